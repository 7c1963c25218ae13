"""Tokens, money and time: over is not met as soon as it is known, and what is unknown is never within a limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.transcript import Usage
from tests.judging.story import Story

USED = Usage(input_tokens=1000, output_tokens=200, cost_usd=0.02, cache_read_tokens=50_000)
HALF = Usage(input_tokens=1000, output_tokens=None)


@pytest.mark.parametrize(
    ("written", "state", "said"),
    [
        ("max_tokens: 2400", "met", "2,400 tokens, at most 2,400 allowed"),
        ("max_tokens: 2399", "not_met", "2,400 tokens, at most 2,399 allowed"),
        ("max_tokens: {max: 300, of: output}", "not_met", "400 output tokens, at most 300 output tokens allowed"),
        ("max_tokens: {max: 2000, of: input}", "met", "2,000 input tokens, at most 2,000 input tokens allowed"),
        ("max_tokens: {max: 1200, turn: any}", "met", "1,200 tokens, at most 1,200 allowed"),
        ("max_tokens: {max: 1199, turn: any}", "not_met", "1,200 tokens, at most 1,199 allowed"),
        ("max_tokens: {max: 1200, turn: 2}", "met", "1,200 tokens, at most 1,200 allowed"),
        ("max_cost_usd: 0.04", "met", "$0.0400, at most $0.0400 allowed"),
        ("max_cost_usd: 0.03", "not_met", "$0.0400, at most $0.0300 allowed"),
        ("max_seconds: 5", "met", "5.0 s, at most 5.0 s allowed"),
        ("max_seconds: 4.9", "not_met", "5.0 s, at most 4.9 s allowed"),
        ("max_seconds: {max: 3, turn: last}", "met", "3.0 s, at most 3.0 s allowed"),
    ],
)
def test_rule(tmp_path: Path, written: str, state: str, said: str) -> None:
    found = Story(tmp_path).turn(usage=USED, seconds=2).turn(usage=USED, seconds=3).judged(written)
    assert (found.state, found.evidence.replace(" tokens allowed", " allowed")) == (
        state,
        said.replace(" tokens allowed", " allowed"),
    )
    assert found.forbidden == (state == "not_met")


@pytest.mark.parametrize("written", ["max_tokens: 1000000", "max_cost_usd: 1000", "max_tokens: {max: 9, of: output}"])
def test_what_the_engine_does_not_say_is_never_within_a_limit(tmp_path: Path, written: str) -> None:
    found = Story(tmp_path).turn(usage=HALF).judged(written)
    assert (found.state, found.cause, found.evidence) == (
        "unknown",
        "unobservable",
        "builtin did not say what was used",
    )


def test_what_is_known_can_be_too_much_already(tmp_path: Path) -> None:
    story = Story(tmp_path).turn(usage=USED).turn()
    assert story.judged("max_tokens: 1199").state == "not_met"
    found = story.judged("max_tokens: 1200")
    assert (found.state, found.cause) == ("unknown", "unobservable")
    assert found.evidence == "builtin did not say what turn 2 used; the other turns: 1,200 tokens"


def test_a_turn_that_was_cut_could_have_used_more(tmp_path: Path) -> None:
    story = Story(tmp_path).turn(usage=USED, seconds=1).cut(seconds=60)
    for written in ("max_tokens: 5000", "max_seconds: 600", "max_cost_usd: 1"):
        assert story.judged(written).cause == "incomplete", written
    assert story.judged("max_seconds: 60").state == "not_met"

"""`command`: what was recorded is judged, and nothing is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.judging.story import Story


@pytest.mark.parametrize(
    ("written", "done", "state", "said"),
    [
        ("command: make", {}, "met", "the command ended with 0; it printed nothing"),
        ("command: make", {"exit_code": 2}, "not_met", "the command ended with 2, expected 0; it printed nothing"),
        ("command: {run: make, exit_code: 2}", {"exit_code": 2}, "met", "the command ended with 2; it printed nothing"),
        ("command: {run: make, exit_code: [0, 5]}", {"exit_code": 5, "output": "no tests\n"}, "met", "ended with 5"),
        ("command: {run: make, exit_code: any, output: {all: [ok]}}", {"exit_code": 9, "output": "ok"}, "met", "'ok'"),
        ("command: {run: make, output: {all: [ok]}}", {"exit_code": 9, "output": "ok"}, "not_met", "ended with 9"),
        ("command: {run: make, output: {not: [warn]}}", {"output": "a warning"}, "not_met", "holds 'warn'"),
        ("command: {run: make, output: {all: [OK], ignore_case: true}}", {"output": "ok"}, "met", "holds 'OK'"),
        ("command: {run: make, output_matches: {all: ['^[0-9]+ passed']}}", {"output": "3 passed"}, "met", "3 passed"),
        (
            "command: make",
            {"exit_code": None, "timed_out": True, "output": "waiting"},
            "not_met",
            "the command did not end within 60 s (`timeout_seconds` raises it); its output ends: 'waiting'",
        ),
        ("command: make", {"exit_code": None, "signal": 11}, "not_met", "the command was ended by signal 11"),
    ],
)
def test_rule(tmp_path: Path, written: str, done: dict[str, Any], state: str, said: str) -> None:
    found = Story(tmp_path).turn().ran("make", **{"exit_code": 0, **done}).judged(written)
    assert (found.state, said in found.evidence) == (state, True), found.evidence


def test_a_command_that_could_not_be_run_says_nothing_about_the_agent(tmp_path: Path) -> None:
    story = Story(tmp_path).turn().ran("make", None, problem="the workspace cannot be copied whole: big (9 bytes)")
    found = story.judged("command: make")
    assert (found.state, found.cause) == ("unknown", "judging")
    assert found.evidence == "the workspace cannot be copied whole: big (9 bytes)"


@pytest.mark.parametrize("written", ["command: other", "command: {run: make, timeout_seconds: 5}"])
def test_a_command_that_was_not_run_with_the_trial_is_unknown(tmp_path: Path, written: str) -> None:
    found = Story(tmp_path).turn().ran("make").judged(written)
    assert (found.state, found.cause) == ("unknown", "judging")
    assert found.evidence == "the trial holds no result of this command: it was run with other rules"


def test_after_a_fault_it_was_not_run(tmp_path: Path) -> None:
    found = Story(tmp_path).turn().broken().judged("command: make")
    assert (found.state, found.cause, found.evidence) == (
        "unknown",
        "not_reached",
        "the command was not run: it broke",
    )


def test_on_a_workspace_that_was_left_half_done_only_what_holds_is_known(tmp_path: Path) -> None:
    story = Story(tmp_path).cut().ran("make", 1).ran("lint", 0)
    assert story.judged("command: make").cause == "incomplete"
    assert story.judged("command: lint").state == "met"


def test_what_may_stand_in_the_middle_that_was_not_kept_is_unknown(tmp_path: Path) -> None:
    story = Story(tmp_path).turn().ran("make", 0, "begin … end", cut=True)
    assert story.judged("command: {run: make, output: {all: [begin]}}").state == "met"
    assert story.judged("command: {run: make, output: {not: [begin]}}").state == "not_met"
    for written in ("{all: [middle]}", "{not: [middle]}"):
        assert story.judged(f"command: {{run: make, output: {written}}}").cause == "unobservable"

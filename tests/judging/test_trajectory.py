"""Rules as scores: the trajectory harness's evaluators, its three cases, and the score of what has nothing to check."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.judging.judge import judge
from skillup.judging.rules import evaluate
from skillup.judging.trajectory import EVALUATORS, score
from skillup.results import Assertion
from skillup.spec.case import Case
from skillup.spec.judge import TRAJECTORY_THRESHOLD
from skillup.transcript import ToolCall
from tests.judging.story import Story, call, read, rule

READ, WRITE = call("readFile", name="readFile", path="config.json"), call("writeFile", name="writeFile")

TASK = """
input: {prompt: do it}
judge:
  type: rule_based
  success:
    - tool_order_correct: {expected: %s}
    - tools_avoided: {forbidden: %s}
"""


def scores(story: Story, expected: str, forbidden: str) -> dict[str | None, Assertion]:
    case = Case.model_validate({"id": "a", **read(TASK % (expected, forbidden))})
    return {one.evaluator: one for one in judge(case, story.evidence()).assertion_results}


@pytest.mark.parametrize(
    ("calls", "expected", "forbidden"),
    [
        ([READ], "[readFile]", "[writeFile]"),  # a fresh task
        ([READ, WRITE], "[readFile, writeFile]", "[deleteFile]"),  # a conversation under way
        ([], "[]", "[readFile, writeFile, deleteFile]"),  # a negative test: no tool is needed
    ],
)
def test_the_three_patterns_of_the_harness_score_1(
    tmp_path: Path, calls: list[ToolCall], expected: str, forbidden: str
) -> None:
    found = scores(Story(tmp_path).turn(calls=calls), expected, forbidden)
    assert {name: one.score for name, one in found.items()} == {"tool_order": 1.0, "tools_avoided": 1.0}
    assert all(one.passed and one.reasoning for one in found.values())


def test_what_does_not_hold_scores_0_with_its_reason(tmp_path: Path) -> None:
    found = scores(Story(tmp_path).turn(calls=[WRITE, READ]), "[readFile, writeFile]", "[writeFile]")
    assert {name: (one.score, one.passed) for name, one in found.items()} == {
        "tool_order": (0.0, False),
        "tools_avoided": (0.0, False),
    }
    assert found["tools_avoided"].reasoning == "called: turn 1: writeFile() [ok]"


def test_nothing_to_check_scores_1_and_says_so(tmp_path: Path) -> None:
    found = scores(Story(tmp_path).turn(calls=[WRITE]), "[]", "[]")
    assert {name: (one.score, one.reasoning) for name, one in found.items()} == {
        "tool_order": (1.0, "nothing to check: the case gives tool_order_correct nothing to look for"),
        "tools_avoided": (1.0, "nothing to check: the case gives tools_avoided nothing to look for"),
    }


def test_what_cannot_be_told_has_no_score(tmp_path: Path) -> None:
    found = scores(Story(tmp_path).turn().hiding("readFile"), "[readFile]", "[readFile]")
    assert [(one.score, one.state, one.passed) for one in found.values()] == [(None, "unknown", False)] * 2


WRITTEN = {
    "tool_order": "tool_order: [bash]",
    "tool_not_called": "tool_not_called: bash",
    "tools_only": "tools_only: []",
    "max_tool_calls": "max_tool_calls: 0",
    "no_repeated_calls": "no_repeated_calls: {}",
    "max_calls_after": "max_calls_after: {rule: bash, n: 0}",
    "no_premature_stop": "no_premature_stop: [write]",
}


@pytest.mark.parametrize("kind", EVALUATORS)
def test_every_evaluator_scores_1_or_0_and_passes_at_the_threshold(tmp_path: Path, kind: str) -> None:
    loop = [call("bash", command="x"), call("bash", command="x", status="error")]
    idle, busy = Story(tmp_path / "idle"), Story(tmp_path / "busy")
    values = set()
    for story in (idle.turn(), busy.turn(calls=loop)):
        written = rule(WRITTEN[kind])
        found = score(written, evaluate(written, story.evidence()))
        assert found is not None
        assert found.value is not None
        assert found.evaluator == EVALUATORS[kind]
        assert found.passed == (found.value >= TRAJECTORY_THRESHOLD)
        values.add(found.value)
    assert values == {0.0, 1.0}


def test_other_rules_have_no_score(tmp_path: Path) -> None:
    written = rule("output_contains: {all: [x]}")
    assert score(written, evaluate(written, Story(tmp_path).turn().evidence())) is None

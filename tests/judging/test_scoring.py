"""Scores of the parts of a conversation: weights, gates, negation, aggregation, and ranges of what is unknown."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from skillup.judging.judge import judge
from skillup.results import Verdict
from skillup.spec.case import Case
from tests.judging.judged import asked, given, judge_model, openai
from tests.judging.story import Story, call, read

HELLO: dict[str, Any] = {"output_contains": {"all": ["hello"]}}
BYE: dict[str, Any] = {"output_contains": {"all": ["bye"]}}
FULL = {"name": "all", "rules": [HELLO]}


def story(tmp_path: Path) -> Story:
    return Story(tmp_path).turn("hello there").turn("and nothing else")


def case(*parts: dict[str, Any], criteria: Any = None, **scoring: Any) -> Case:
    named = [{"name": f"part-{number}", **part} for number, part in enumerate(parts, start=1)]
    judged: dict[str, Any] = {"type": "rule_based", "scoring": {"parts": named, **scoring}}
    if criteria:
        judged |= {"type": "agent_judge", "criteria": criteria}
    turns = [{"content": "one"}, {"content": "two"}]
    return Case.model_validate({"id": "a", "input": {"turns": turns}, "judge": judged})


def verdict(tmp_path: Path, written: Case, **answers: Any) -> Verdict:
    evidence = story(tmp_path).evidence()
    if not answers:
        return judge(written, evidence)
    with judge_model(
        {name: given(value, *(["hello"] if value != "not_met" else [])) for name, value in answers.items()}
    ) as route:
        return judge(written, evidence, asked(written, evidence, openai(route)).criteria)


def part(*graders: dict[str, Any], turn: int | None = 1) -> dict[str, Any]:
    named = [{"name": f"grader-{number}", **grader} for number, grader in enumerate(graders, start=1)]
    return {"graders": named, **({"turn": turn} if turn else {})}


def one(rule: dict[str, Any], weight: float = 1) -> dict[str, Any]:
    """A member with a name of its own."""
    return {"name": f"member-{next(COUNT)}", "rules": [rule], "weight": weight}


def half(**more: Any) -> dict[str, Any]:
    """A member that scores 0.5."""
    return {**one(HELLO), "rules": [HELLO, BYE], **more}


COUNT = itertools.count(1)

ROWS: list[tuple[str, list[dict[str, Any]], float]] = [
    ("what holds", [{"rules": [HELLO]}], 1.0),
    ("what does not", [{"rules": [BYE]}], 0.0),
    ("the share of the rules", [{"rules": [HELLO, BYE, HELLO, HELLO]}], 0.75),
    ("weights", [{"rules": [HELLO], "weight": 3}, {"rules": [BYE]}], 0.75),
    ("a weight of 0", [{"rules": [HELLO]}, {"rules": [BYE], "weight": 0}], 1.0),
    ("negated", [{"rules": [BYE], "negate": True}, {"rules": [HELLO], "negate": True}], 0.5),
    ("required and missed", [{"rules": [BYE], "required": True}, {"rules": [HELLO], "weight": 9}], 0.0),
    ("required and there", [{"rules": [HELLO], "required": True}, {"rules": [BYE]}], 0.5),
    ("so much required", [{"rules": [HELLO, BYE], "required": 0.5}, {"rules": [HELLO]}], 0.75),
    ("more required", [{"rules": [HELLO, BYE], "required": 0.6}, {"rules": [HELLO]}], 0.0),
    ("required at its own minimum", [{"rules": [HELLO, BYE], "required": True, "min_score": 0.5}], 0.5),
    ("members by weight", [{"graders": [one(HELLO, 3), one(BYE)]}], 0.75),
    ("members that pass", [{"graders": [one(HELLO), one(BYE), one(HELLO)], "aggregation": "passing"}], 2 / 3),
    ("counted, not weighed", [{"graders": [one(HELLO, 9), one(BYE)], "aggregation": "passing"}], 0.5),
    ("counted without weight", [{"graders": [one(HELLO, 0), one(HELLO, 0)], "aggregation": "passing"}], 1.0),
    ("a member below its own threshold", [{"graders": [half(), one(HELLO)], "aggregation": "passing"}], 0.5),
    ("a member at its own", [{"graders": [half(pass_threshold=0.5), one(HELLO)], "aggregation": "passing"}], 1.0),
    ("a required member", [{"graders": [one(HELLO, 9), {**one(BYE), "required": True}]}, {"rules": [HELLO]}], 0.5),
    ("members turned round", [{"graders": [one(HELLO, 3), one(BYE)], "negate": True}], 0.25),
    ("a turned member", [{"graders": [one(HELLO), {**one(BYE), "negate": True}]}], 1.0),
    ("members of members", [{"graders": [{"name": "x", "graders": [one(HELLO), one(BYE)]}, one(HELLO)]}], 0.75),
    ("below its minimum", [{"rules": [HELLO, BYE], "min_score": 0.6}, {"rules": [HELLO]}], 0.5),
]


@pytest.mark.parametrize(("graders", "score"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_part_is_the_weighted_mean_of_its_graders(
    tmp_path: Path, graders: list[dict[str, Any]], score: float
) -> None:
    found = verdict(tmp_path, case(part(*graders)))
    assert found.scores[0].score == pytest.approx(score)
    assert found.score == pytest.approx(score)
    assert (found.status, found.pass_threshold) == ("PASS" if score >= 0.8 else "FAIL", 0.8)


@pytest.mark.parametrize(("how", "score"), [("mean", 0.5), ("min", 0.0), ("max", 1.0)])
def test_parts_are_aggregated(tmp_path: Path, how: str, score: float) -> None:
    written = case(part({"rules": [HELLO]}), part({"rules": [HELLO]}, turn=2), aggregation=how)
    found = verdict(tmp_path, written)
    assert (found.score, [one.score for one in found.scores]) == (score, [1.0, 0.0])
    assert found.code == ("all_met" if score == 1 else "score")


def test_a_part_without_graders_scores_1_and_counts(tmp_path: Path) -> None:
    found = verdict(tmp_path, case(part({"rules": [BYE]}), {"turn": 2}))
    assert (found.score, found.scores[1].verdict, found.scores[1].assertions) == (0.5, "pass", ())


def test_a_rule_without_a_turn_looks_at_the_turn_of_its_part(tmp_path: Path) -> None:
    found = verdict(tmp_path, case(part({"rules": [HELLO]}, turn=1), part({"rules": [HELLO]}, turn=None)))
    assert [one.score for one in found.scores] == [1.0, 0.0], "the whole is judged by the final answer"


def test_criteria_and_rules_score_together_and_nothing_in_them_is_a_requirement(tmp_path: Path) -> None:
    criteria = [
        {"id": "kind", "text": "It is kind.", "turn": 1, "weight": 3},
        {"id": "short", "text": "It is short.", "turn": 1},
    ]
    written = case(part({"criteria": ["kind", "short"]}, {"rules": [HELLO]}), criteria=criteria)
    found = verdict(tmp_path, written, kind="met", short="not_met")
    assert (found.score, found.status) == (0.875, "PASS")
    assert [(one.text, one.passed) for one in found.scores[0].assertions][:2] == [
        ("It is kind.", True),
        ("It is short.", False),
    ]


def test_a_required_criterion_takes_its_grader_with_it(tmp_path: Path) -> None:
    criteria = [{"id": "kind", "text": "It is kind.", "turn": 1}, {"id": "short", "text": "x", "turn": 1, "weight": 9}]
    graded = [{"id": "kind", "required": True}, "short"]
    found = verdict(
        tmp_path, case(part({"criteria": graded}, {"rules": [HELLO]}), criteria=criteria), kind="not_met", short="met"
    )
    assert found.scores[0].score == 0.5


def test_a_negated_criterion_is_good_when_it_does_not_hold(tmp_path: Path) -> None:
    criteria = [{"id": "rude", "text": "It is rude.", "turn": 1}]
    found = verdict(tmp_path, case(part({"criteria": ["rude"], "negate": True}), criteria=criteria), rude="not_met")
    assert (found.score, found.status) == (1.0, "PASS")
    assert found.assertion_results[0].text == "must not hold: It is rude."


def test_every_part_is_asked_about_though_the_score_is_lost(tmp_path: Path) -> None:
    criteria = [{"id": "one", "text": "x", "turn": 1}, {"id": "two", "text": "y", "turn": 2}]
    parts = [part({"criteria": ["one"]}), {**part({"criteria": ["two"]}), "turn": 2}]
    written = case(*parts, criteria=criteria, aggregation="min")
    evidence = story(tmp_path).evidence()
    with judge_model({"one": given("not_met")}, {"two": given("met", "nothing else")}) as route:
        found = judge(written, evidence, asked(written, evidence, openai(route)).criteria)
        assert len(route.requests) == 2
    assert [one.score for one in found.scores] == [0.0, 1.0]


def test_what_is_unknown_is_a_range_and_matters_only_where_it_could_decide(tmp_path: Path) -> None:
    criteria = [{"id": "one", "text": "x", "turn": 1}]
    small = case(part({"criteria": ["one"]}, {"rules": [HELLO], "weight": 9}), criteria=criteria)
    found = verdict(tmp_path, small, one="cannot_determine")
    assert (found.status, found.score, found.scores[0].verdict) == ("PASS", None, "pass")
    (tmp_path / "large").mkdir()
    large = case(part({"criteria": ["one"]}, {"rules": [HELLO]}), criteria=criteria)
    found = verdict(tmp_path / "large", large, one="cannot_determine")
    assert (found.status, found.code, found.scores[0].verdict) == ("ERROR", "judge", "unknown")


def test_without_a_model_a_score_is_partial_and_no_verdict(tmp_path: Path) -> None:
    found = verdict(tmp_path, case(part({"criteria": ["one"]}), criteria=[{"id": "one", "text": "x", "turn": 1}]))
    assert (found.status, found.code, found.score, found.scores[0].verdict) == ("UNCHECKED", "partial", None, "unknown")


CALLS = [call("read"), call("write"), call("bash", command="ls")]
PARTLY: dict[str, tuple[str, float]] = {
    "in order": ("tool_order: [read, edit, bash]", 2 / 3),
    "in order, the first too late": ("tool_order: [bash, read, write]", 2 / 3),
    "all of them": ("tool_order: [read, bash]", 1.0),
    "any order": ("tool_order: {order: [bash, edit, read, glob], mode: any_order}", 0.5),
    "exact": ("tool_order: {order: [read, edit, bash], mode: exact}", 2 / 3),
    "exact, and then more": ("tool_order: {order: [read, write], mode: exact}", 2 / 3),
    "exact, and then fewer": ("tool_order: {order: [read, write, bash, edit], mode: exact}", 0.75),
    "only these": ("tools_only: [read, write]", 2 / 3),
    "only with these arguments": (
        "tools_only: {names: [read, write], calls: [{name: bash, args: {command: ls}}]}",
        1.0,
    ),
    "only with others": ("tools_only: {names: [read, write], calls: [{name: bash, args: {command: rm}}]}", 2 / 3),
    "a rule that is whole or nothing": ("tool_called: edit", 0.0),
}


@pytest.mark.parametrize(("rule", "score"), PARTLY.values(), ids=PARTLY.keys())
def test_what_holds_in_part_counts_in_part(tmp_path: Path, rule: str, score: float) -> None:
    evidence = Story(tmp_path).turn("hello", calls=CALLS).evidence()
    written = {"parts": [{"name": "p", "graders": [{"name": "g", "rules": [read(rule)]}]}]}
    judged: dict[str, Any] = {"type": "rule_based", "scoring": written}
    found = judge(Case.model_validate({"id": "a", "input": {"prompt": "x"}, "judge": judged}), evidence)
    assert found.scores[0].score == pytest.approx(score)
    assert found.scores[0].assertions[0].passed == (score == 1)
    judged["scoring"]["parts"][0]["graders"][0]["negate"] = True
    turned = judge(Case.model_validate({"id": "a", "input": {"prompt": "x"}, "judge": judged}), evidence)
    assert turned.scores[0].score == pytest.approx(1 - score)


def test_a_call_that_cannot_be_seen_leaves_the_score_open_and_no_share(tmp_path: Path) -> None:
    evidence = Story(tmp_path).turn("hello", calls=CALLS).hiding("edit").evidence()
    written = {"parts": [{"name": "p", "graders": [{"name": "g", "rules": [read("tool_order: [read, edit]")]}]}]}
    judged = {"type": "rule_based", "scoring": written}
    found = judge(Case.model_validate({"id": "a", "input": {"prompt": "x"}, "judge": judged}), evidence)
    assert (found.status, found.scores[0].score) == ("ERROR", None)


def test_members_stand_below_their_grader_with_what_they_checked(tmp_path: Path) -> None:
    members = [{"name": "a", "rules": [HELLO]}, {"name": "b", "rules": [BYE]}]
    written = case(part({"name": "both", "graders": members, "aggregation": "passing", "pass_threshold": 0.5}))
    found = verdict(tmp_path, written)
    (both,) = found.scores[0].scores
    assert (both.name, both.type, both.score, both.verdict) == ("both", "composite", 0.5, "pass")
    assert [(one.name, one.score, one.verdict, len(one.assertions)) for one in both.scores] == [
        ("a", 1.0, "pass", 1),
        ("b", 0.0, "fail", 1),
    ]
    assert [one.id for one in found.assertion_results] == [
        "judge.scoring.part-1.both.a[0]",
        "judge.scoring.part-1.both.b[0]",
    ]
    assert len(found.scores[0].assertions) == 2

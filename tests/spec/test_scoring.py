"""`judge.scoring` as written: what could not be scored, or scored twice, is a fault."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.loading.faults import faults_from_validation
from skillup.loading.rendering import render_faults
from skillup.loading.yamlfile import parse_yaml
from skillup.spec.case import Case
from skillup.spec.scoring import Scoring

RULE = "{output_contains: {all: [x]}}"
G = f"{{name: g, rules: [{RULE}]}}"

FAULTS = {
    "no part": ("{parts: []}", "", "judge.scoring.parts: must not be empty"),
    "no grader": ("{parts: [{name: a}]}", "", "judge.scoring.parts: no part has a grader"),
    "two names": (f"{{parts: [{{name: a, graders: [{G}]}}, {{name: a}}]}}", "", "another part has the name a"),
    "two parts of a turn": (
        f"{{parts: [{{name: a, turn: 1, graders: [{G}]}}, {{name: b, turn: 1}}]}}",
        "",
        "parts[1].turn: turn 1 is scored twice",
    ),
    "two graders of a name": (
        f"{{parts: [{{name: a, graders: [{G}, {G}]}}]}}",
        "",
        "another grader of a has the name g",
    ),
    "nothing in a grader": (
        "{parts: [{name: a, graders: [{name: g}]}]}",
        "",
        "a grader has `criteria`, `rules`, `graders` or a `program`",
    ),
    "two kinds": (
        f"{{parts: [{{name: a, graders: [{{name: c, rules: [{RULE}], graders: [{G}]}}]}}]}}",
        "",
        "give exactly one",
    ),
    "members of one name": (
        f"{{parts: [{{name: a, graders: [{{name: c, graders: [{G}, {G}]}}]}}]}}",
        "",
        "graders[0].graders[1].name: another grader of c has the name g",
    ),
    "an aggregation of nothing": (
        f"{{parts: [{{name: a, graders: [{{name: g, rules: [{RULE}], aggregation: passing}}]}}]}}",
        "",
        "graders[0].aggregation: `aggregation` says how `graders` make one score",
    ),
    "a member of another turn": (
        "{parts: [{name: a, turn: 1, graders: [{name: c, graders: [{name: g, criteria: [x]}]}]}]}",
        "{id: x, text: t}",
        "graders[0].graders[0].criteria[0]: the criterion x is not about what a scores",
    ),
    "weights of 0": (
        f"{{parts: [{{name: a, graders: [{{name: g, weight: 0, rules: [{RULE}]}}]}}]}}",
        "",
        "the weights sum to 0",
    ),
    "no such criterion": (
        "{parts: [{name: a, graders: [{name: g, criteria: [y]}]}]}",
        "{id: x, text: t}",
        "criteria[0]: no criterion has the id y",
    ),
    "of another turn": (
        "{parts: [{name: a, turn: 1, graders: [{name: g, criteria: [x]}]}]}",
        "{id: x, text: t}",
        "the criterion x is not about what a scores",
    ),
    "not scored": (f"{{parts: [{{name: a, graders: [{G}]}}]}}", "{id: x, text: t}", "no grader scores the criterion x"),
    "a rule of another turn": (
        "{parts: [{name: a, turn: 1, graders: [{name: g, rules: [{output_contains: {all: [x], turn: 2}}]}]}]}",
        "",
        "rules[0]: the rule is not about what a scores",
    ),
    "median": (f"{{aggregation: median, parts: [{{name: a, graders: [{G}]}}]}}", "", "must be one of mean, min, max"),
    "the best of parts of which one is always 1": (
        f"{{aggregation: max, parts: [{{name: a, graders: [{G}]}}, {{name: b, turn: 1}}]}}",
        "",
        "judge.scoring.parts[1]: b has no grader, so it scores 1, and `aggregation: max` could only pass",
    ),
    "a command that comes too late": (
        "{on_turn_failure: stop, parts: [{name: a, turn: 1, graders: [{name: g, rules: [{command: make}]}]}]}",
        "",
        "commands and programs run at the end, and the score of this turn is needed before the next one",
    ),
}


@pytest.mark.parametrize(("scoring", "criteria", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_what_cannot_be_scored_is_a_fault(scoring: str, criteria: str, message: str) -> None:
    kind = f"type: agent_judge, criteria: [{criteria}]" if criteria else "type: rule_based"
    document = parse_yaml(f"id: a\ninput: {{prompt: x}}\njudge: {{{kind}, scoring: {scoring}}}\n", "a.yaml")
    with pytest.raises(ValueError, match="validation error") as caught:
        Case.model_validate(document.data)
    error: Any = caught.value
    assert message in render_faults(faults_from_validation(error, document, Case))


def test_a_turn_without_graders_that_another_can_take_away_may_be_the_best() -> None:
    parts = f"[{{name: a, turn: 1, graders: [{G}]}}, {{name: b, turn: 2}}]"
    text = f"{{aggregation: max, on_turn_failure: stop, parts: {parts}}}"
    assert Scoring.model_validate(parse_yaml(text, "s").data).aggregation == "max"


def test_an_attachment_goes_beside_the_criteria_of_its_turn() -> None:
    text = "{type: rubric, criteria: [x], context: {attachments: [{label: a, text: b, turn: 2}]}}"
    case = Case.model_validate({"id": "a", "input": {"prompt": "x"}, "judge": parse_yaml(text, "j").data})
    assert case.judge is not None
    assert case.judge.context.attachments[0].turn == 2

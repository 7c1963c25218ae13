"""Criteria and judges with a model as users write them: what is refused, at which place, with which words."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError

from skillup.loading.faults import faults_from_validation
from skillup.loading.rendering import render_faults
from skillup.loading.yamlfile import parse_yaml
from skillup.spec.case import Case
from skillup.spec.criteria import BUILT_IN


def report_on(judge: str, model: type[BaseModel] = Case) -> str:
    document = parse_yaml(f"id: a\ninput: {{prompt: x}}\njudge: {judge}\n", "file.yaml")
    try:
        model.model_validate(document.data)
    except ValidationError as error:
        return render_faults(faults_from_validation(error, document, model))
    return ""


REFUSED = {
    "no criteria": ("{type: rubric}", "judge: a judge of type rubric without criteria"),
    "an empty list": ("{type: agent_judge, criteria: []}", "a judge of type agent_judge without criteria"),
    "a blank one": ("{type: rubric, criteria: [' ']}", "judge.criteria[0]: the text is blank"),
    "a number": ("{type: rubric, criteria: [1]}", "judge.criteria[0]"),
    "an unknown key": (
        "{type: rubric, criteria: [{txt: a}]}",
        'judge.criteria[0].txt: unknown key "txt" (did you mean "text"?)',
    ),
    "the same id": ("{type: rubric, criteria: [{id: a, text: x}, {id: a, text: y}]}", "judge.criteria[1]: the id a is"),
    "an id by place": ("{type: rubric, criteria: [x, {id: criterion-1, text: y}]}", "the id criterion-1 is taken"),
    "an id with blanks": ("{type: rubric, criteria: [{id: a b, text: x}]}", '"a b" cannot be an id'),
    "weights of 0": (
        "{type: rubric, criteria: [{text: x, weight: 0}, {text: y, weight: 0}]}",
        "judge.criteria: the weights sum to 0, so no answer could change the score",
    ),
    "a negative weight": ("{type: rubric, criteria: [{text: x, weight: -1}]}", "judge.criteria[0].weight"),
    "a weight that is text": ("{type: rubric, criteria: [{text: x, weight: '1'}]}", "must be a number"),
    "a turn of no scope": ("{type: rubric, criteria: [{text: x, scope: turn}]}", "does not say which turn"),
    "a turn of everything": (
        "{type: rubric, criteria: [{text: x, scope: conversation, turn: 1}]}",
        "`turn` and `scope: conversation` contradict each other",
    ),
    "a window of nothing": ("{type: rubric, criteria: [{text: x, window: 0}]}", "judge.criteria[0].window"),
    "a threshold of 0": ("{type: rubric, criteria: [x], pass_threshold: 0}", "judge.pass_threshold"),
    "a threshold above 1": ("{type: rubric, criteria: [x], pass_threshold: 7}", "judge.pass_threshold"),
    "no sample": ("{type: rubric, criteria: [x], samples: 0}", "judge.samples"),
    "criteria without a model": (
        "{type: rule_based, success: [{files_exist: [a]}], criteria: [x]}",
        "judge.criteria: `criteria` says nothing to a judge of type rule_based (use type: agent_judge",
    ),
    "a model for nothing": ("{type: none, model: x}", "judge.model: `model` says nothing to a judge of type none"),
    "a misspelt type": ("{type: agent_jugde, criteria: [x]}", "judge.type"),
    "another provider": ("{type: rubric, criteria: [x], model: {provider: acme, name: y}}", "judge.model.provider"),
    "a secret in the address": (
        "{type: rubric, criteria: [x], model: {provider: openai, name: y, base_url: 'https://me:pw@h'}}",
        "a secret may not stand in an address",
    ),
    "an address of the local model": (
        "{type: rubric, criteria: [x], model: {provider: local, base_url: 'http://h'}}",
        "the local model is in the process and has no address",
    ),
    "an engine of later": (
        "{type: agent_judge, criteria: [x], engine: opencode}",
        'judge.engine: "opencode" is part of the format but not supported yet',
    ),
    "an engine that is none": ("{type: agent_judge, criteria: [x], engine: codexx}", "judge.engine: "),
    "an engine for a model": (
        "{type: rubric, criteria: [x], engine: codex}",
        "judge.engine: `engine` says nothing to a judge of type rubric (use type: agent_judge, or remove `engine`",
    ),
    "an unknown built-in one": (
        "{type: rubric, criteria: [{builtin: self_coherance}]}",
        "judge.criteria[0].builtin",
    ),
    "a skill of a registry": (
        "{type: rubric, criteria: [x], skills: [{source: registry, path: x}]}",
        '"registry" is part of the format but not supported yet',
    ),
    "nothing to see": (
        "{type: rubric, criteria: [x], context: {profile: minimal, final_message: omit}}",
        "judge.context: the judge would be shown nothing of the trial",
    ),
    "an empty attachment": ("{type: rubric, criteria: [x], context: {attachments: [{label: a}]}}", "holds nothing"),
}


@pytest.mark.parametrize(("judge", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_mean_anything_is_one_fault_at_its_place(judge: str, said: str) -> None:
    report = report_on(judge)
    assert said in report
    assert report.count("\n") == 0


def test_a_text_alone_is_a_criterion_with_an_id_by_its_place() -> None:
    judge = parse_yaml("{type: rubric, criteria: [x, {text: y}, {id: mine, text: z}]}", "").data
    case = Case.model_validate({"id": "a", "input": {"prompt": "x"}, "judge": judge})
    assert [(one.id, one.text) for one in case.criteria] == [("criterion-1", "x"), ("criterion-2", "y"), ("mine", "z")]
    assert case.judge is not None
    assert case.judge.threshold == 0.7


def test_a_built_in_criterion_brings_its_text_and_its_name() -> None:
    judge = parse_yaml(
        "{type: rubric, criteria: [{builtin: self_coherence}, {builtin: self_coherence, id: b}]}", ""
    ).data
    first, second = Case.model_validate({"id": "a", "input": {"prompt": "x"}, "judge": judge}).criteria
    assert (first.id, second.id) == ("self_coherence", "b")
    assert first.text == BUILT_IN["self_coherence"]
    assert first.turn is None


def test_a_case_with_criteria_checks_something() -> None:
    judge = {"type": "rubric", "criteria": ["x"]}
    assert not Case.model_validate({"id": "a", "input": {"prompt": "x"}, "judge": judge}).checks_nothing

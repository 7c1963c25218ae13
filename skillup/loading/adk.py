"""Eval sets of Google's ADK: each eval case becomes a case with a turn for every invocation.

What they are judged by stands in a `test_config.json` beside them; docs/adk.md has every key and metric.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from skillup.errors import Fault, InputError
from skillup.loading.agentv_document import Translated
from skillup.loading.document import Document, KeyPath
from skillup.loading.faults import faults_from_validation
from skillup.loading.formats import is_old_eval_set
from skillup.loading.jsonfile import read_json
from skillup.loading.paths import shown
from skillup.loading.references import References
from skillup.spec.adk import EvalCase, EvalRubric, EvalSet
from skillup.spec.adk_criteria import DEFAULT, Criteria, EvalConfig, JudgedMetric, RubricMetric
from skillup.spec.case import Case, can_be_an_id
from skillup.spec.template import BRACES, literal

CONFIG: Final = "test_config.json"

_EVALUATORS: Final = "skillup.judging.adk"
"""The module of the metrics that need no model."""

_RUBRIC_TYPES: Final = {
    "rubric_based_final_response_quality_v1": "FINAL_RESPONSE_QUALITY",
    "rubric_based_tool_use_quality_v1": "TOOL_USE_QUALITY",
    "rubric_based_multi_turn_trajectory_quality_v1": "TRAJECTORY_QUALITY",
}
"""The `type` of rubrics of cases and turns that a metric takes."""

_IN_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,48}")
"""What can stand in the id of a criterion with a turn's number in front."""


def eval_cases_of(document: Document, path: Path, suite: References) -> list[tuple[Case, Document]]:
    """The cases of a file, each with a document that leads its faults back to the file.

    What judges them is an answer key of `suite`.

    Raises:
        InputError: with all faults of the file and of the `test_config.json` beside it.
    """
    if is_old_eval_set(document.data):
        hint = "AgentEvaluator.migrate_eval_data_to_new_schema of ADK writes it anew"
        raise InputError([document.fault((0, "query"), "this is ADK's older form of an eval set", hint=hint)])
    faults: list[Fault] = []
    found = _criteria(path.with_name(CONFIG), suite, faults)
    criteria = found or DEFAULT.criteria
    try:
        written = EvalSet.model_validate(document.data)
    except ValidationError as error:
        raise InputError([*faults, *faults_from_validation(error, document, EvalSet)]) from None
    name = path.name.split(".")[0]
    cases: list[tuple[Case, Document]] = []
    for index, one in enumerate(written.eval_cases):
        at: KeyPath = ("eval_cases", index)
        missing = _unjudged(one, found, at) if found else ()  # nobody knows what a faulty file asks for
        wrong = [document.fault(place, message, hint=hint) for place, message, hint in missing]
        faults += wrong
        if wrong:
            continue
        usable = can_be_an_id(one.eval_id)
        identity = one.eval_id if usable else f"{name if can_be_an_id(name) else 'case'}-{index + 1}"
        try:
            case = Case.model_validate(_case(one, identity, criteria, title="" if usable else one.eval_id))
        except ValidationError as error:  # what our format refuses, and ADK's does not
            context = error.errors(include_url=False)[0].get("ctx") or {"problem": str(error)}
            message, hint = str(context.get("problem")), str(context.get("hint", ""))
            faults.append(document.fault(at, message, hint=hint))
            continue
        data = {"id": identity, "judges": True} if usable else {"judges": True}
        cases.append((case, Translated(data, document.marks, document.display, _places(one, at))))
    if faults:
        raise InputError(faults)
    return cases


def _criteria(path: Path, suite: References, faults: list[Fault]) -> Criteria | None:
    """The metrics of the file beside the eval set, else ADK's defaults; None where it has faults, which are added."""
    if not path.is_file():
        return DEFAULT.criteria
    if not suite.ground.holds(path):
        faults.append(Fault(shown(path), 0, 0, "", "the link leaves the suite's folder", "copy the file"))
        return None
    suite.add(path)
    try:
        document = read_json(path, shown(path))
    except InputError as error:
        faults += error.faults
        return None
    try:
        return EvalConfig.model_validate(document.data).criteria
    except ValidationError as error:
        faults += faults_from_validation(error, document, EvalConfig)
        return None


def _unjudged(case: EvalCase, criteria: Criteria, at: KeyPath) -> Iterator[tuple[KeyPath, str, str]]:
    """(place, message, hint) of what a metric needs and the case does not have."""
    for name in ("response_match_score", "final_response_match_v2"):
        for index, turn in enumerate(case.conversation):
            if getattr(criteria, name) and not (turn.final_response and turn.final_response.text.strip()):
                message = f"`{name}` compares with the turn's `final_response`, and there is none"
                hint = f"give it, or leave the metric out of a {CONFIG} beside the file"
                yield (*at, "conversation", index), message, hint
    for name in _RUBRIC_TYPES:
        metric: RubricMetric | None = getattr(criteria, name)
        if metric is not None and not all(_rubrics(case, name, metric)):
            message = f"`{name}` has no rubric in this case"
            hint = f"give `rubrics` of the type {_RUBRIC_TYPES[name]} here, or `rubrics` of the metric in {CONFIG}"
            yield at, message, hint


def _rubrics(case: EvalCase, name: str, metric: RubricMetric) -> list[list[EvalRubric]]:
    """The rubrics of a metric for each turn: its own, the case's, and the turn's."""
    kind = _RUBRIC_TYPES[name]
    return [
        [*metric.rubrics, *(one for one in (*case.rubrics, *turn.rubrics) if one.type == kind)]
        for turn in case.conversation
    ]


def _places(case: EvalCase, at: KeyPath) -> dict[KeyPath, KeyPath]:
    """Where the parts of the case stand in the file."""
    places: dict[KeyPath, KeyPath] = {(): at, ("id",): (*at, "eval_id"), ("input",): (*at, "conversation")}
    for index in range(len(case.conversation)):
        turn = (*at, "conversation", index)
        places["input", "turns", index] = turn
        places["input", "turns", index, "content"] = (*turn, "user_content")
    return places | {(key,): (*at, key) for key in ("script", "mock_tools")}


def _case(case: EvalCase, identity: str, criteria: Criteria, *, title: str) -> dict[str, Any]:
    """The eval case as a case is written."""
    said = [turn.user_content.text for turn in case.conversation]
    written = {
        "id": identity,
        "title": title,
        "vars": BRACES if any(literal(text) != text for text in said) else {},
        "input": {"turns": [{"content": literal(text)} for text in said]},
        "mock_tools": [tool.model_dump(by_alias=True, exclude_unset=True) for tool in case.mock_tools],
        "judges": list(_judges(case, criteria)),
    }
    return written if case.script is None else {**written, "script": case.script}


def _judges(case: EvalCase, criteria: Criteria) -> Iterator[dict[str, Any]]:
    """A judge for each metric; all must pass, each by its own threshold, as in ADK."""
    turns = case.conversation
    if calls := criteria.tool_trajectory_avg_score:
        expected = [[{"name": call.name, "args": call.args} for call in turn.intermediate_data.calls] for turn in turns]
        config = {"expected": expected, "match_type": calls.match_type, "ignore_args": calls.ignore_args}
        yield _evaluator("tool_trajectory_avg_score", calls.threshold, config)
    references = [turn.final_response.text if turn.final_response else "" for turn in turns]
    if words := criteria.response_match_score:
        yield _evaluator("response_match_score", words.threshold, {"references": references})
    if same := criteria.final_response_match_v2:
        agrees = "What the agent says in turn {} agrees with that turn's reference answer in all that matters."
        yield _model(
            "final_response_match_v2",
            same,
            [{"id": f"turn-{n}", "text": agrees.format(n), "turn": n} for n in range(1, len(turns) + 1)],
            references,
        )
    for name in _RUBRIC_TYPES:
        metric: RubricMetric | None = getattr(criteria, name)
        if metric is not None:
            yield _model(name, metric, list(_statements(name, _rubrics(case, name, metric))))


def _evaluator(name: str, threshold: float, config: dict[str, Any]) -> dict[str, Any]:
    evaluator = f"{_EVALUATORS}:{name}"
    return {"id": name, "type": "evaluator", "evaluator": evaluator, "config": config, "pass_threshold": threshold}


def _model(
    name: str, metric: JudgedMetric, criteria: list[dict[str, Any]], references: Sequence[str] = ()
) -> dict[str, Any]:
    """A judge that asks a model, shown the reference answers where there are any."""
    options = metric.judge_model_options
    attachments = [
        {"label": f"the reference answer of turn {number}, one good answer among others", "turn": number, "text": text}
        for number, text in enumerate(references, start=1)
    ]
    judge: dict[str, Any] = {
        "id": name,
        "type": "rubric",
        "criteria": criteria,
        "pass_threshold": metric.threshold,
        "samples": options.num_samples,
        "context": {"attachments": attachments},
    }
    return judge if options.judge_model is None else {**judge, "model": options.judge_model}


def _statements(name: str, by_turn: list[list[EvalRubric]]) -> Iterator[dict[str, Any]]:
    """The rubrics as criteria: each turn's about that turn, those of trajectories once about the whole conversation."""
    whole = name == "rubric_based_multi_turn_trajectory_quality_v1"
    about = "About the tool calls: " if name == "rubric_based_tool_use_quality_v1" else ""
    for number, rubrics in enumerate(by_turn[:1] if whole else by_turn, start=1):
        for place, rubric in enumerate(rubrics, start=1):
            own = rubric.rubric_id if _IN_ID.fullmatch(rubric.rubric_id) else f"rubric-{place}"
            text = f"{about}{rubric.rubric_content.text_property}"
            text = f"{text}\n{rubric.description}" if rubric.description else text
            yield {"id": own, "text": text} if whole else {"id": f"turn-{number}.{own}", "text": text, "turn": number}

"""Eval sets of Google's ADK: what their keys become, what is refused with its place, and a run of one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from skillup.errors import InputError
from skillup.loading.native import load_suites
from skillup.loading.rendering import render_faults
from skillup.results import Evaluated
from skillup.spec.case import Case
from tests.support import REPOSITORY, Project

PAGE = REPOSITORY / "docs" / "adk.md"
CALL = {"id": None, "name": "set_device", "args": {"id": "lamp", "value": "off"}}


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"parts": [{"text": text, "thought": None, "inline_data": None}], "role": role}


def turn(text: str = "Turn the lamp off.", answer: str | None = "It is off.", **more: Any) -> dict[str, Any]:
    final = {} if answer is None else {"final_response": said(answer, "model")}
    return {"invocation_id": "i-1", "user_content": said(text), **final, **more}


def eval_set(*turns: dict[str, Any], **case: Any) -> dict[str, Any]:
    cases = [{"eval_id": "lamp", "conversation": list(turns) or [turn()], "session_input": None, **case}]
    return {"eval_set_id": "s", "name": None, "description": None, "eval_cases": cases, "creation_timestamp": 1.5}


def read(folder: Path, data: Any, criteria: dict[str, Any] | None = None) -> tuple[Case, ...]:
    path = folder / "home.evalset.json"
    path.write_text(json.dumps(data, indent=1), encoding="utf-8")
    if criteria is not None:
        (folder / "test_config.json").write_text(json.dumps({"criteria": criteria}, indent=1), encoding="utf-8")
    (suite,) = load_suites([path])
    return suite.cases


def refused(folder: Path, data: Any, criteria: dict[str, Any] | None = None) -> str:
    with pytest.raises(InputError) as caught:
        read(folder, data, criteria)
    return render_faults(caught.value.faults).replace(f"{folder}/", "")


def test_an_eval_case_becomes_a_case_judged_by_adks_defaults(tmp_path: Path) -> None:
    data = {"tool_uses": [CALL], "tool_responses": [{"name": "set_device"}], "intermediate_responses": [["a", []]]}
    second = turn("Is {{it}} off?", "Yes.\n", intermediate_data={"tool_uses": []}, duration=2.5, app_details=None)
    session = {"app_name": "home", "user_id": "u", "state": {}}
    (case,) = read(tmp_path, eval_set(turn(intermediate_data=data), second, session_input=session))
    assert case.id == "lamp"
    assert [one.content for one in case.turns] == ["Turn the lamp off.", "Is {{braces}}it}} off?"]
    assert case.vars == {"braces": "{{"}
    calls, words = case.judges
    assert (calls.id, calls.evaluator, calls.threshold) == (
        "tool_trajectory_avg_score",
        "skillup.judging.adk:tool_trajectory_avg_score",
        1.0,
    )
    assert calls.config == {
        "expected": [[{"name": "set_device", "args": {"id": "lamp", "value": "off"}}], []],
        "match_type": "exact",
        "ignore_args": False,
    }
    assert (words.id, words.threshold) == ("response_match_score", 0.8)
    assert words.config == {"references": ["It is off.", "Yes.\n"]}


def test_camel_case_events_of_a_run_and_additions_of_ours_are_read(tmp_path: Path) -> None:
    events = [
        {"author": "home", "invocationIndex": 1, "content": {"role": "model", "parts": [{"text": "Let me see."}]}},
        {"author": "home", "content": {"parts": [{"functionCall": {"name": "set_device"}, "thoughtSignature": "x"}]}},
        {"author": "home", "content": None},
    ]
    written = {
        "evalId": "lamp",
        "conversation": [
            {
                "invocationId": "1",
                "userContent": said("Off."),
                "finalResponse": said("Done."),
                "intermediateData": {"invocationEvents": events},
            }
        ],
        "mock_tools": [{"name": "set_device", "description": "Sets a device.", "result": "ok"}],
        "script": [{"say": "Done."}],
    }
    (case,) = read(tmp_path, {"eval_set_id": "s", "eval_cases": [written]})
    assert case.judges[0].config["expected"] == [[{"name": "set_device", "args": {}}]]
    assert case.mock_tools[0].name == "set_device"
    assert case.script is not None


def test_an_id_that_can_name_no_folder_is_the_title(tmp_path: Path) -> None:
    (case,) = read(tmp_path, eval_set(eval_id="tests/home/simple.test.json"))
    assert (case.id, case.title) == ("home-1", "tests/home/simple.test.json")


def test_metrics_with_a_model_become_judges_with_criteria(tmp_path: Path) -> None:
    own = {"rubric_id": "short", "rubric_content": {"text_property": "The answer is short."}}
    tools = {"rubric_id": "one call", "rubric_content": {"text_property": "One call."}, "type": "TOOL_USE_QUALITY"}
    course = {"rubric_id": "sure", "rubric_content": {"text_property": "It is sure."}, "type": "TRAJECTORY_QUALITY"}
    criteria = {
        "final_response_match_v2": {"threshold": 0.5, "judgeModelOptions": {"judgeModel": "gpt-5", "numSamples": 3}},
        "rubric_based_final_response_quality_v1": {"threshold": 0.8, "rubrics": [own]},
        "rubric_based_tool_use_quality_v1": 0.6,
        "rubric_based_multi_turn_trajectory_quality_v1": {"threshold": 1},
        "tool_trajectory_avg_score": {"threshold": 0.5, "match_type": "ANY-ORDER", "ignore_args": True},
    }
    data = eval_set(turn(rubrics=[tools]), turn("And now?", "Off."), rubrics=[course])
    data["eval_cases"][0]["conversation"][1]["rubrics"] = [tools]
    (case,) = read(tmp_path, data, criteria)
    judges = {judge.id: judge for judge in case.judges}
    assert judges["tool_trajectory_avg_score"].config["match_type"] == "any_order"
    assert judges["tool_trajectory_avg_score"].config["ignore_args"] is True
    same = judges["final_response_match_v2"]
    assert (same.threshold, same.samples, [one.turn for one in same.criteria]) == (0.5, 3, [1, 2])
    assert same.model is not None
    assert same.model.name == "gpt-5"
    assert [(one.turn, one.text) for one in same.context.attachments] == [(1, "It is off."), (2, "Off.")]
    quality = judges["rubric_based_final_response_quality_v1"]
    assert [(one.id, one.turn) for one in quality.criteria] == [("turn-1.short", 1), ("turn-2.short", 2)]
    assert quality.samples == 5
    use = judges["rubric_based_tool_use_quality_v1"].criteria
    assert [(one.id, one.text) for one in use] == [
        ("turn-1.rubric-1", "About the tool calls: One call."),
        ("turn-2.rubric-1", "About the tool calls: One call."),
    ]
    whole = judges["rubric_based_multi_turn_trajectory_quality_v1"].criteria
    assert [(one.id, one.turn) for one in whole] == [("sure", None)]


IMAGE = {"user_content": {"parts": [{"text": "See:"}, {"inline_data": {"mime_type": "image/png", "data": "x"}}]}}


@pytest.mark.parametrize(
    ("data", "where", "message"),
    [
        (
            eval_set({**turn(), **IMAGE}),
            ".conversation[0].user_content.parts[1].inline_data",
            "a part with `inline_data` cannot be said here (only text can",
        ),
        (
            eval_set(session_input={"app_name": "a", "user_id": "u", "state": {"city": "Rome"}}),
            ".session_input.state",
            "agents here have no session state that could be set (write what",
        ),
        (
            eval_set(session_input={"app_name": "a", "user_id": "u", "sessionId": "s-1"}),
            ".session_input.sessionId",
            "every trial here has a session of its own (remove it)",
        ),
        (
            eval_set(final_session_state={"done": True}),
            ".final_session_state",
            "agents here have no session state that could be compared",
        ),
        (
            eval_set(conversation_scenario={"starting_prompt": "Hi", "conversation_plan": "Talk."}),
            ".conversation_scenario",
            "a simulated user is not supported yet (write what the user says as `conversation`)",
        ),
        (
            eval_set(turn(answer=None)),
            ".conversation[0]",
            "`response_match_score` compares with the turn's `final_response`, and there is none (give it, or",
        ),
        (eval_set(turn(final_answer="x")), ".conversation[0].final_answer", 'unknown key "final_answer"'),
        (eval_set(turn(" ")), ".conversation[0].user_content.parts", "the user says nothing"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(tmp_path: Path, data: Any, where: str, message: str) -> None:
    told = refused(tmp_path, data)
    line = next(line for line in told.splitlines() if f": eval_cases[0]{where}: " in line)
    assert message in line
    assert re.match(r"home\.evalset\.json:[1-9]\d*:[1-9]\d*: ", line), "the place is a line of the file"


@pytest.mark.parametrize(
    ("criteria", "message"),
    [
        ({"response_match_scor": 0.5}, 'criteria.response_match_scor: unknown key "response_match_scor" (did you mean'),
        ({"safety_v1": 0.5}, "criteria.safety_v1: `safety_v1` cannot be measured here: it is computed by a service of"),
        (
            {"hallucinations_v1": {"threshold": 1}},
            "`hallucinations_v1` cannot be measured here: it takes answers apart",
        ),
        ({"tool_trajectory_avg_score": 0}, "criteria.tool_trajectory_avg_score: must be greater than 0"),
        ({"tool_trajectory_avg_score": {"threshold": 1, "match_type": "subset"}}, "match_type"),
        ({}, "criteria: no metric judges anything (name one, or remove the file: ADK has defaults)"),
        (
            {"rubric_based_tool_use_quality_v1": 0.5},
            "`rubric_based_tool_use_quality_v1` has no rubric in this case (give `rubrics` of the type TOOL_USE",
        ),
    ],
)
def test_a_metric_that_cannot_be_measured_is_refused_by_name(
    tmp_path: Path, criteria: dict[str, Any], message: str
) -> None:
    told = refused(tmp_path, eval_set(), criteria)
    assert message in told, told
    assert "test_config.json" in told


def test_a_faulty_file_of_criteria_asks_nothing_of_the_cases(tmp_path: Path) -> None:
    (line,) = refused(tmp_path, eval_set(turn(answer=None)), {"tool_trajectory_avg_scor": 1}).splitlines()
    assert line.startswith("test_config.json:3:3: criteria.tool_trajectory_avg_scor: unknown key")


def test_the_older_form_says_how_it_is_written_anew(tmp_path: Path) -> None:
    told = refused(tmp_path, [{"query": "Hi", "expected_tool_use": [], "reference": "Hello"}])
    assert "home.evalset.json:3:12: [0].query: this is ADK's older form of an eval set" in told
    assert "AgentEvaluator.migrate_eval_data_to_new_schema of ADK writes it anew" in told


def test_eval_sets_in_a_folder_are_found_and_share_the_faults_of_their_criteria(tmp_path: Path) -> None:
    for name in ("a.test.json", "b.evalset.json"):
        (tmp_path / name).write_text(json.dumps(eval_set(eval_id=name[0])), encoding="utf-8")
    assert [case.id for suite in load_suites([tmp_path]) for case in suite.cases] == ["a", "b"]
    (tmp_path / "test_config.json").write_text('{"criteria": {"safety_v1": 1}}', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_suites([tmp_path])
    assert [fault.key for fault in caught.value.faults] == ["criteria.safety_v1"]


def test_a_skill_is_installed_without_the_criteria(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("---\nname: s\ndescription: d\n---\n", encoding="utf-8")
    suite = "schema_version: v1alpha1\nskills: [{path: .}]\ncases: {files: [tests/*.test.json]}\n"
    (tmp_path / "eval.yaml").write_text(suite, encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.test.json").write_text(json.dumps(eval_set()), encoding="utf-8")
    config = tmp_path / "tests" / "test_config.json"
    config.write_text('{"criteria": {"response_match_score": 0.5}}', encoding="utf-8")
    (loaded,) = load_suites([tmp_path / "eval.yaml"])
    assert loaded.skills[0].files == ("SKILL.md",)
    assert config in loaded.files, "a change of it is told"


def test_the_example_of_the_docs_runs_and_each_metric_is_a_judge(project: Project) -> None:
    blocks = PAGE.read_text(encoding="utf-8").split("```json\n")
    project.write("home.evalset.json", blocks[1].partition("```")[0])
    project.write("test_config.json", blocks[2].partition("```")[0])
    done = project.run("home.evalset.json", "--agent", "demo")
    grading = done.trial().grading
    assert (done.code, done.trial().status) == (1, "FAIL"), done.stderr
    assert [(part.id, part.status, round(part.score or 0, 2)) for part in grading.judges] == [
        ("tool_trajectory_avg_score", "PASS", 1.0),
        ("response_match_score", "FAIL", 0.72),
    ]
    saved = (done.folder() / "judges" / "response_match_score" / "evaluation.json").read_bytes()
    assert [turn["turn"] for turn in Evaluated.model_validate_json(saved).turns] == [1, 2]

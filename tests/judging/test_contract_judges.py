"""The contract's sentences on judges, scores and what meets them: gates, limits, captures, faults; one test each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from skillup.judging.gates import ask
from skillup.judging.several import judge_all
from skillup.loading.native import load_suites
from skillup.results import GateRecord, TurnStatus, Verdict
from skillup.spec.case import Case, Gate
from skillup.spec.judge import Judge
from tests.judging.judged import Wanted, asked, given, judge_model, openai
from tests.judging.story import Story, call, read
from tests.support import Project

GATE = "input: {turns: [{content: one, post_condition: {must_contain_any: [yes], on_fail: %s}}, {content: two}]}\n"
TWO = "input: {turns: [{content: one}, {content: two}]}\n"
BASH = call("bash", command="ls")

NO = "{id: no, type: rule_based, success: [{tool_not_called: bash}]}"
MATCHES = "{id: matches, type: rule_based, failure: [{output_contains: {any: [no]}}]}"
YES = "{id: yes, type: rule_based, success: [{tool_not_called: grep}]}"
LATER = "{id: later, type: rule_based, success: [{output_contains: {all: [x], turn: 2}}]}"
HOLE = "{id: hole, type: script, script_path: {path: a.sh}}"
"""The trial holds no result of this script: it cannot judge."""


def case(text: str) -> Case:
    return Case.model_validate({"id": "a", **read(text)})


def judged(story: Story, text: str, gate: GateRecord | None = None) -> Verdict:
    """The verdict without any model; `gate` is how the gate of turn 1 was answered."""
    evidence = story.evidence()
    if gate is not None:
        first = evidence.record.turns[0].model_copy(update={"gate": gate})
        told = evidence.record.model_copy(update={"turns": (first, *evidence.record.turns[1:])})
        evidence = type(evidence)(told, evidence.snapshots)
    return judge_all(case(text), evidence, {})


def by_model(story: Story, text: str, *answers: Wanted) -> tuple[Verdict, list[Mapping[str, Any]]]:
    """The verdict with a model that gives these answers, and what it was asked."""
    made, evidence = case(text), story.evidence()
    with judge_model(*answers) as route:
        said = asked(made, evidence, openai(route))
        return judge_all(made, evidence, {"": said.criteria}), [request.body or {} for request in route.requests]


SKIPPED = GateRecord(state="not_met", on_fail="skip_remaining", evidence="the answer of turn 1 holds none of 'yes'")


# Section 4


def test_a_turn_is_completed_timed_out_limit_failed_skipped_or_error() -> None:
    assert set(get_args(TurnStatus)) == {"completed", "timed_out", "limit", "failed", "skipped", "error"}


@pytest.mark.parametrize(
    ("judges", "ends", "wanted"),
    [
        ((NO, YES), "skips", "FAIL success"),
        ((YES, LATER), "skips", "SKIP gate"),
        ((NO, LATER), "skips", "FAIL success"),
        ((NO, HOLE), "goes on", "ERROR judge"),
        ((HOLE, NO), "goes on", "ERROR judge"),
        ((NO, HOLE), "skips", "FAIL success"),
        ((YES, HOLE), "skips", "SKIP gate"),
        ((NO, MATCHES), "breaks", "ERROR network"),
        ((YES, HOLE), "breaks", "ERROR network"),
        ((YES, LATER), "breaks", "ERROR network"),
    ],
)
def test_where_two_judges_a_gate_and_a_fault_meet(
    tmp_path: Path, judges: tuple[str, str], ends: str, wanted: str
) -> None:
    story = Story(tmp_path).turn("no", calls=[BASH])
    match ends:
        case "skips":
            story.skipped()
        case "breaks":
            story.broken("no")
        case _:
            story.turn("no")
    verdict = judged(
        story, GATE % "skip_remaining" + f"judges: [{', '.join(judges)}]", SKIPPED if ends == "skips" else None
    )
    assert f"{verdict.status} {verdict.code}" == wanted, verdict.reason
    assert [part.id for part in verdict.judges] == [one[5:].partition(",")[0] for one in judges], "each is reported"
    kept = [line.partition(":")[0] for line in verdict.violations_before_error]
    assert kept == (["judges.no.success[0]", "judges.matches.failure[0]"] if MATCHES in judges else [])


def test_a_score_under_its_threshold_is_fail(tmp_path: Path) -> None:
    text = "input: {prompt: x}\njudge: {type: rubric, criteria: [{id: a, text: A}, {id: b, text: B}]%s}"
    answer = {"a": given("met", "done"), "b": given("not_met", "done")}
    found, _ = by_model(Story(tmp_path / "one").turn("done"), text % "", answer)
    assert (found.status, found.code, found.score, found.pass_threshold) == ("FAIL", "score", 0.5, 0.7)
    assert by_model(Story(tmp_path / "two").turn("done"), text % ", pass_threshold: 0.5", answer)[0].status == "PASS"


def test_once_fail_is_certain_no_model_judge_is_called(tmp_path: Path) -> None:
    text = "input: {prompt: x}\nexpect: {must_contain: [more]}\njudge: {type: rubric, criteria: [Good.]}"
    found, requests = by_model(Story(tmp_path).turn("done"), text, "nobody asks")
    assert (found.status, found.code, len(requests)) == ("FAIL", "expect", 0)


def test_requires_that_is_not_met_by_this_agent_is_skip(project: Project) -> None:
    needs = "requires: {commands: [no-such-command]}\n"
    project.write("a.yaml", f"input: {{prompt: x}}\n{needs}expect: {{must_contain: [y]}}\nscript: [{{say: n}}]\n")
    trial = project.run("a.yaml", "--agent", "demo").trial()
    assert (trial.status, trial.grading.code, trial.turns) == ("SKIP", "requires", 0)


def test_on_limit_fail_judge_or_error_decides(project: Project) -> None:
    for how in ("fail", "judge", "error"):
        project.write(
            f"cases/{how}.yaml",
            f"""
            input: {{prompt: go}}
            constraints: {{max_steps: 1, on_limit: {how}}}
            judge: {{type: rule_based, success: [{{tool_called: bash}}]}}
            script: [{{replies: [{{calls: [{{tool: bash, args: {{command: 'true'}}}}]}}, {{say: done}}]}}]
            """,
        )
    done = project.run("cases", "--agent", "demo")
    found = {one.case_id: f"{one.status} {one.grading.code}" for one in done.run.case_results}
    assert found == {"fail": "FAIL limit/steps", "judge": "PASS all_met", "error": "ERROR timeout"}, done.stdout


def test_the_case_limit_covers_the_turns_not_the_judging(project: Project) -> None:
    project.write(
        "a.yaml",
        """
        input: {prompt: go}
        constraints: {timeout_seconds: 6}
        judge: {type: rule_based, success: [{command: {run: sleep 6.2}}]}
        script: [{say: done}]
        """,
    )
    assert project.run("a.yaml", "--agent", "demo").trial().status == "PASS"


def test_a_default_that_was_used_is_shown_and_on_missing_decides_otherwise(project: Project) -> None:
    for name, more in (
        ("default", "default: T-0"),
        ("fails", "on_missing: fail"),
        ("skips", "on_missing: skip_remaining"),
    ):
        project.write(
            f"cases/{name}.yaml",
            f"""
            input:
              turns:
                - {{content: a, capture: [{{variable: id, pattern: '(T-[0-9]+)', {more}}}]}}
                - {{content: 'b {{{{id}}}}'}}
            judge: {{type: rule_based, success: [{{tool_not_called: bash}}]}}
            script: [{{say: nothing}}]
            """,
        )
    run = project.run("cases", "--agent", "demo").run
    found = {one.case_id: f"{one.status} {one.grading.code}" for one in run.case_results}
    assert found == {"default": "PASS all_met", "fails": "FAIL capture", "skips": "SKIP capture"}
    used = next(one for one in run.case_results if one.case_id == "default").turn_results
    assert used[0].captures[0].defaulted
    assert used[1].content == "b T-0"


# Section 8


@pytest.mark.parametrize(
    ("gate", "holds", "fails"),
    [
        ({"must_contain_any": ["a", "b"]}, "b", "c"),
        ({"must_contain_all": ["a", "b"]}, "b a", "b"),
        ({"must_not_contain": ["a"]}, "b", "a"),
        ({"must_match": ["^a"]}, "ab", "ba"),
        ({"must_not_match": ["^a"]}, "ba", "ab"),
    ],
)
def test_gates_take_must_contain_any_all_must_not_contain_must_match_must_not_match(
    gate: dict[str, Any], holds: str, fails: str
) -> None:
    answers = [ask(Gate.model_validate(gate), text, turn=1, ignore_case=False).state for text in (holds, fails)]
    assert answers == ["met", "not_met"]


def test_turns_without_criteria_are_left_out_of_the_mean(tmp_path: Path) -> None:
    criteria = "{id: a, text: A, turn: 1}, {id: b, text: B, turn: 1}"
    answer = {"a": given("met", "one"), "b": given("not_met", "one")}
    found, _ = by_model(
        Story(tmp_path).turn("one").turn("two"), TWO + f"judge: {{type: rubric, criteria: [{criteria}]}}", answer
    )
    assert found.score == 0.5


def test_in_files_read_as_agentv_turns_without_criteria_count_1(tmp_path: Path) -> None:
    turns = [{"input": "one", "assertions": [{"type": "contains", "value": "x"}]}, {"input": "two"}]
    tests = {"tests": [{"id": "a", "mode": "conversation", "turns": turns}]}
    (tmp_path / "a.yaml").write_text(json.dumps(tests), encoding="utf-8")
    (suite,) = load_suites([tmp_path / "a.yaml"])
    found = judge_all(suite.cases[0], Story(tmp_path / "trial").turn("one").turn("two").evidence(), {})
    assert (found.score, found.pass_threshold, found.status) == (0.5, 0.8, "FAIL")


def test_default_thresholds_are_those_of_each_kind_of_judge() -> None:
    asks = Judge.model_validate({"type": "agent_judge", "criteria": ["Good."]})
    parts = [{"name": "a", "graders": [{"name": "b", "rules": [{"tool_called": "x"}]}]}]
    scores = Judge.model_validate({"type": "rule_based", "scoring": {"parts": parts}})
    assert (asks.threshold, scores.threshold) == (0.7, 0.8)  # 0.99 of trajectories: test_contract_rules.py


def test_a_score_of_1_to_10_is_divided_by_10(tmp_path: Path) -> None:
    text = "input: {prompt: x}\njudge: {type: rubric, criteria: [{id: a, text: A, scored: true}]}"
    found, _ = by_model(Story(tmp_path).turn("done"), text, {"a": given(8, "done")})
    assert (found.score, found.status) == (0.8, "PASS")


def test_a_model_gives_evidence_first_then_the_reason_then_the_verdict(tmp_path: Path) -> None:
    text = "input: {prompt: x}\njudge: {type: rubric, criteria: [{id: a, text: A}]}"
    _, requests = by_model(Story(tmp_path).turn("done"), text, {"a": given("met", "done")})
    schema = requests[0]["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]["answers"]["properties"]["a"]["properties"]) == ["evidence", "reason", "verdict"]


def test_every_criterion_is_answered_or_the_judge_is_asked_once_more_then_error(tmp_path: Path) -> None:
    text = "input: {prompt: x}\njudge: {type: rubric, criteria: [{id: a, text: A}, {id: b, text: B}]}"
    half = {"a": given("met", "done")}
    found, requests = by_model(Story(tmp_path / "one").turn("done"), text, half)
    assert (found.status, found.code, len(requests)) == ("ERROR", "judge", 2)
    whole = {**half, "b": given("met", "done")}
    found, requests = by_model(Story(tmp_path / "two").turn("done"), text, half, whole)
    assert (found.status, len(requests)) == ("PASS", 2)


def test_a_conversation_level_verdict_needs_no_per_turn_results_and_carries_reasoning(tmp_path: Path) -> None:
    story = Story(tmp_path)
    for number in range(15):
        story.turn(f"answer {number}")
    turns = "input: {turns: [%s]}\n" % ", ".join("{content: go}" for _ in range(15))  # noqa: UP031 - braces of YAML
    criteria = "instruction_retention", "inference_memory", "self_coherence"
    text = turns + "judge: {type: rubric, criteria: [%s]}" % ", ".join(f"{{builtin: {one}}}" for one in criteria)  # noqa: UP031
    found, requests = by_model(story, text, {one: given("met", "answer 3") for one in criteria})
    assert (found.status, len(requests)) == ("PASS", 1), "one call, never 45"
    assert [(one.scope, one.turn) for one in found.assertion_results] == [("conversation", None)] * 3
    assert found.reasoning == "\n".join(f"{one}: It follows." for one in criteria)

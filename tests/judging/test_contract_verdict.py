"""The contract's section on verdicts, sentence by sentence, from a case and its trial to what is decided.

`test_verdict.py` has the table of the deciding function alone; here rules, gates, expectations and faults meet.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from skillup.errors import ErrorKind
from skillup.judging.judge import judge
from skillup.judging.totals import count
from skillup.results import CheckState, GateRecord, TurnStatus, Verdict
from skillup.spec.case import Case
from tests.judging.story import Story, call, read
from tests.support import Project

TWO = "input: {turns: [{content: one}, {content: two}]}\n"
GATE = "input: {turns: [{content: one, post_condition: {must_contain_any: [yes], on_fail: %s}}, {content: two}]}\n"
RULES = "judge: {type: rule_based, success: [%s], failure: [%s]}\n"
SAYS_DONE, NO_BASH = "{output_contains: {all: [done]}}", "{tool_not_called: bash}"


def judged(story: Story, text: str, gate: GateRecord | None = None) -> Verdict:
    evidence = story.evidence()
    if gate is not None:
        first = evidence.record.turns[0].model_copy(update={"gate": gate})
        told = evidence.record.model_copy(update={"turns": (first, *evidence.record.turns[1:])})
        evidence = type(evidence)(told, evidence.snapshots)
    return judge(Case.model_validate({"id": "a", **read(text)}), evidence)


def states(verdict: Verdict) -> list[str]:
    return [one.state for one in verdict.assertion_results]


SKIPPED = GateRecord(state="not_met", on_fail="skip_remaining", evidence="the answer of turn 1 holds none of 'yes'")
BASH = call("bash", command="ls")


# Turns and checks


def test_a_turn_whose_skip_gate_said_no_is_completed_with_gate_not_met(project: Project) -> None:
    project.write(
        "a.yaml",
        """
        input:
          turns:
            - {role: user, content: one, post_condition: {must_match: yes, on_fail: skip_remaining}}
            - {role: user, content: two}
        judge: {type: rule_based, success: [{output_contains: {all: [x], turn: 2}}]}
        script: [{say: no}]
        """,
    )
    trial = project.run("a.yaml", "--agent", "demo").trial()
    first, second = trial.turn_results
    assert (first.status, first.gate.state if first.gate else None, second.status) == (
        "completed",
        "not_met",
        "skipped",
    )
    assert trial.status == "SKIP"


def test_every_check_ends_met_not_met_or_unknown(tmp_path: Path) -> None:
    assert get_args(CheckState) == ("met", "not_met", "unknown")
    text = TWO + RULES % (f"{SAYS_DONE}, {NO_BASH}, {{tool_called: read}}", "")
    assert states(judged(Story(tmp_path).turn("done", calls=[BASH]).cut("done"), text)) == ["met", "not_met", "unknown"]


@pytest.mark.parametrize("status", ["timed_out", "limit", "error"])
def test_evidence_that_exists_is_judged_whatever_the_turns_status(tmp_path: Path, status: TurnStatus) -> None:
    story = Story(tmp_path).turn("done", calls=[BASH], files={"a.txt": "a"}, status=status)
    rules = "{output_contains: {all: [done]}}, {tool_order: [bash]}, {file_equals: {path: a.txt, content: a}}"
    assert states(judged(story, "input: {prompt: x}\n" + RULES % (rules + f", {NO_BASH}", ""))) == [
        "met",
        "met",
        "met",
        "not_met",
    ]


def test_absence_is_met_only_on_a_complete_observable_turn(tmp_path: Path) -> None:
    absent = f"{{output_contains: {{not: [x]}}}}, {NO_BASH}, {{tools_only: [read]}}, {{max_tool_calls: 3}}"
    text = "input: {prompt: x}\n" + RULES % (absent, "")
    assert states(judged(Story(tmp_path / "whole").turn(), text)) == ["met"] * 4
    assert states(judged(Story(tmp_path / "cut").cut("so far"), text)) == ["unknown"] * 4
    hidden = judged(Story(tmp_path / "hidden").turn().hiding("bash"), text)
    assert states(hidden) == ["met", "unknown", "unknown", "unknown"]


def test_a_failure_rule_that_is_unknown_does_not_match_and_its_evidence_says_so(tmp_path: Path) -> None:
    text = "input: {prompt: x}\n" + RULES % (SAYS_DONE, "{tool_called: bash}")
    verdict = judged(Story(tmp_path).turn("done").hiding("bash"), text)
    assert verdict.status == "PASS"
    assert verdict.assertion_results[1].evidence.startswith("unknown, so the failure rule does not match: ")


# 1 ERROR


def test_a_fault_in_set_up_or_conversation_is_error(tmp_path: Path) -> None:
    text = "input: {prompt: x}\n" + RULES % (SAYS_DONE, "")
    for began in (False, True):
        verdict = judged(Story(tmp_path / str(began)).broken("done", began=began), text)
        assert (verdict.status, verdict.code) == ("ERROR", "network")


def test_failure_rules_and_forbidding_checks_that_had_matched_before_are_kept(tmp_path: Path) -> None:
    text = TWO + "expect: {must_not_contain: [secret]}\n" + RULES % (
        f"{NO_BASH}, {{max_tool_calls: 0}}, {SAYS_DONE}",
        "{tool_called: bash}",
    )  # fmt: skip
    verdict = judged(Story(tmp_path).turn(calls=[BASH]).broken("the secret"), text)
    assert verdict.status == "ERROR"
    assert [line.partition(":")[0] for line in verdict.violations_before_error] == [
        "expect.must_not_contain[0]",
        "judge.success[0]",
        "judge.success[1]",
        "judge.failure[0]",
    ]


def test_where_a_gate_an_expectation_a_rule_and_a_fault_meet_it_is_error(tmp_path: Path) -> None:
    text = (
        GATE % "skip_remaining"
        + "expect: {must_contain: [x]}\n"
        + RULES % (SAYS_DONE, "{output_contains: {any: [no]}}")
    )
    verdict = judged(Story(tmp_path).turn("no").broken("no", kind="rate_limit"), text, SKIPPED)
    assert (verdict.status, verdict.code) == ("ERROR", "rate_limit")
    assert verdict.summary.total == 4
    assert [line.partition(":")[0] for line in verdict.violations_before_error] == ["judge.failure[0]"]


# 2 FAIL


def test_a_fail_gate_is_fail(project: Project) -> None:
    project.write(
        "a.yaml",
        """
        input: {turns: [{content: a, post_condition: {must_match: yes}}, {content: b}]}
        judge: {type: rule_based, success: [{tool_not_called: bash}]}
        script: [{say: no}]
        """,
    )
    trial = project.run("a.yaml", "--agent", "demo").trial()
    assert (trial.status, trial.grading.code, trial.turn_results[0].status) == ("FAIL", "gate", "failed")


@pytest.mark.parametrize(("answer", "code"), [("done, sorry", "failure_rule"), ("nothing", "expect"), ("x", "success")])
def test_a_matched_failure_rule_or_a_required_check_not_met_is_fail(tmp_path: Path, answer: str, code: str) -> None:
    text = "input: {prompt: a}\nexpect: {must_not_contain: [nothing]}\n" + RULES % (
        SAYS_DONE,
        "{output_contains: {any: [sorry]}}",
    )
    verdict = judged(Story(tmp_path).turn(answer), text)
    assert (verdict.status, verdict.code) == ("FAIL", code)


def test_an_agent_limit_is_fail(project: Project) -> None:
    project.write(
        "a.yaml",
        """
        input: {prompt: a}
        constraints: {timeout_seconds: 3}
        judge: {type: rule_based, success: [{output_contains: {all: [done]}}]}
        script: [{replies: [{calls: [{tool: bash, args: {command: sleep 60}}]}, {say: done}]}]
        """,
    )
    trial = project.run("a.yaml", "--agent", "demo").trial()
    assert (trial.status, trial.grading.code) == ("FAIL", "limit/case_seconds")
    assert "constraints.timeout_seconds" in trial.grading.reason, "the message names the key that raises it"


def test_no_failure_rule_matched_and_a_success_rule_not_met_is_fail(tmp_path: Path) -> None:
    text = "input: {prompt: a}\n" + RULES % (SAYS_DONE, "{output_contains: {any: [sorry]}}")
    assert judged(Story(tmp_path).turn("x"), text).status == "FAIL"


# 3 a required check is unknown


def test_unknown_because_of_a_skip_gate_is_skip(tmp_path: Path) -> None:
    text = GATE % "skip_remaining" + RULES % ("{output_contains: {all: [done], turn: 2}}", "")
    assert judged(Story(tmp_path).turn("no").skipped(), text, SKIPPED).status == "SKIP"


def test_unknown_because_judging_broke_is_error_judge(tmp_path: Path) -> None:
    text = "input: {prompt: a}\n" + RULES % ("{command: make}", "")
    verdict = judged(Story(tmp_path).turn().ran("make", None, problem="no space left"), text)
    assert (verdict.status, verdict.code) == ("ERROR", "judge")
    assert verdict.error is not None
    assert verdict.error.hint


@pytest.mark.parametrize(
    "written", ["tool_called: read", "tool_order: [read]", "tool_not_called: read", "max_tokens: 5"]
)
def test_unknown_because_the_engine_cannot_show_it_is_error_unobservable(tmp_path: Path, written: str) -> None:
    verdict = judged(Story(tmp_path).turn().hiding("read"), "input: {prompt: a}\n" + RULES % (f"{{{written}}}", ""))
    assert (verdict.status, verdict.code) == ("ERROR", "unobservable")


# 4 SKIP


def test_a_skip_gate_ended_the_conversation(tmp_path: Path) -> None:
    text = GATE % "skip_remaining" + RULES % (NO_BASH, "")
    assert judged(Story(tmp_path).turn("no").skipped(), text, SKIPPED).status == "SKIP"


def test_a_success_rule_that_failed_on_a_turn_that_did_run_is_still_fail(tmp_path: Path) -> None:
    text = GATE % "skip_remaining" + RULES % (NO_BASH, "")
    verdict = judged(Story(tmp_path).turn("no", calls=[BASH]).skipped(), text, SKIPPED)
    assert (verdict.status, verdict.code) == ("FAIL", "success")


def test_skip_remaining_on_the_last_turn_is_skip_and_validate_warns(project: Project) -> None:
    project.write(
        "a.yaml",
        """
        input: {turns: [{content: a, post_condition: {must_match: yes, on_fail: skip_remaining}}]}
        judge: {type: rule_based, success: [{tool_not_called: bash}]}
        script: [{say: no}]
        """,
    )
    assert "skip_remaining on the last turn makes the case SKIP" in project.call("validate", "a.yaml").stderr
    assert project.run("a.yaml", "--agent", "demo").trial().status == "SKIP"


# 5 PASS


def test_everything_was_checked_and_held(tmp_path: Path) -> None:
    text = TWO + "expect: {files_exist: [a.txt]}\n" + RULES % (f"{SAYS_DONE}, {NO_BASH}", "{files_exist: [b.txt]}")
    verdict = judged(Story(tmp_path).turn(files={"a.txt": "a"}).turn("done"), text)
    assert (verdict.status, verdict.reason, verdict.summary.pass_rate) == ("PASS", "all 4 checks held", 1.0)


def test_a_case_without_any_check_is_refused_unless_it_says_judge_none_then_it_is_unchecked(project: Project) -> None:
    project.write("a.yaml", "input: {prompt: x}\nscript: [{say: y}]\n")
    refused = project.call("validate", "a.yaml")
    assert refused.code == 2
    assert "the case checks nothing, so it could only pass" in refused.stderr
    project.write("a.yaml", "input: {prompt: x}\nscript: [{say: y}]\njudge: {type: none}\n")
    done = project.run("a.yaml", "--agent", "demo")
    assert (done.trial().status, done.run.totals.valid, done.run.totals.pass_rate_all) == ("UNCHECKED", 0, None)
    assert done.code == 3, "no valid trial at all"


# The rest of the section


def test_the_kinds_of_error_are_a_closed_list() -> None:
    assert set(get_args(ErrorKind)) == {
        *("setup", "environment", "engine_missing", "auth", "quota", "rate_limit", "overloaded", "request", "network"),
        *("timeout", "crash", "output", "session", "capture", "template", "simulator", "judge", "unobservable"),
        "internal",
    }


def test_error_carries_kind_phase_turn_message_hint_and_tail_and_all_failures_are_kept(project: Project) -> None:
    project.write("a.yaml", "input: {prompt: x}\nexpect: {must_contain: [y]}\nscript: [{faults: [{status: 401}]}]\n")
    trial = project.run("a.yaml", "--agent", "demo").trial()
    assert trial.error is not None
    assert (trial.error.kind, trial.error.phase, trial.error.turn) == ("auth", "conversation", 1)
    assert trial.error.message
    assert trial.failures == (trial.error,)


def test_an_agent_that_writes_rate_limit_is_not_rate_limited(project: Project) -> None:
    project.write(
        "a.yaml", "input: {prompt: x}\nexpect: {must_contain: [rate limit]}\nscript: [{say: 'Error 429: rate limit'}]\n"
    )
    assert project.run("a.yaml", "--agent", "demo").trial().status == "PASS"


def test_a_capture_that_finds_nothing_is_error_capture_with_its_own_column(project: Project) -> None:
    project.write(
        "a.yaml",
        """
        input: {turns: [{content: a, capture: [{variable: id, pattern: '(T-[0-9]+)'}]}, {content: 'b {{id}}'}]}
        judge: {type: rule_based, success: [{tool_not_called: bash}]}
        script: [{say: nothing}]
        """,
    )
    run = project.run("a.yaml", "--agent", "demo").run
    assert run.case_results[0].grading.code == "capture"
    assert run.totals.errors_by_kind == {"capture": 1}


def test_valid_is_pass_and_fail_all_is_valid_and_error_skip_and_unchecked_stand_beside(project: Project) -> None:
    script = "script: [{say: done}]\n"
    gate = "input: {turns: [{content: a, post_condition: {must_match: yes, on_fail: skip_remaining}}]}\n"
    cases = {
        "passes": "input: {prompt: x}\nexpect: {must_contain: [done]}\n" + script,
        "fails": "input: {prompt: x}\nexpect: {must_contain: [more]}\n" + script,
        "breaks": "input: {prompt: x}\nexpect: {must_contain: [done]}\nscript: [{faults: [{status: 401}]}]\n",
        "skips": gate + script,
        "unchecked": "input: {prompt: x}\njudge: {type: none}\n" + script,
    }
    for name, text in cases.items():
        project.write(f"cases/{name}.yaml", text)
    done = project.run("cases", "--agent", "demo")
    totals = count(done.run.case_results)
    assert (totals.valid, totals.errors, totals.skipped, totals.unchecked) == (2, 1, 1, 1)
    assert (totals.pass_rate_valid, totals.pass_rate_all) == (1 / 2, 1 / 3)
    assert done.code == 3

"""Attempts: which outcomes are tried again, in a fresh workspace and session, and what they count for together."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import time
from typing import Any

import pytest

from skillup.errors import ERROR_KINDS, ErrorKind
from skillup.execution.attempts import PASSING_FAULTS, pause_before_next, together
from skillup.judging.stability import stability_of
from skillup.judging.totals import count
from skillup.results import RetryCosts, TrialResult
from skillup.spec.suite import RetryPolicy
from skillup.transcript import Usage
from tests.support import Finished, Project

SUITE = """
    schema_version: v1alpha1
    cases:
      files: [cases/*.yaml]
      retry_policy: {{max_retries: {retries}, retry_on: [{on}]}}
"""

DIES_ONCE = """
    input: {{prompt: go}}
    expect: {{must_contain: [done]}}
    judge: {{type: rule_based, failure: [{{tool_called: {{name: bash, args: {{command: forbidden}}}}}}]}}
    script:
      - replies:
          - calls: [{{tool: bash, args: {{command: forbidden}}}}]
          - calls: [{{tool: bash, args: {{command: "test -e {root}/seen || {{ touch {root}/seen; kill -9 $PPID; }}"}}}}]
          - say: done
"""


def run(project: Project, case: str, *, retries: int, on: str) -> Finished:
    project.write("eval.yaml", SUITE.format(retries=retries, on=on))
    project.write("cases/a.yaml", case.format(root=project.root))
    return project.run("eval.yaml", "--agent", "demo", "--format", "junit")


PASSES_LATER = """
    input: {{prompt: go}}
    expect: {{must_contain: [done]}}
    script:
      - replies:
          - calls: [{{tool: bash, args: {{command: "test -e {root}/seen || {{ touch {root}/seen; kill -9 $PPID; }}"}}}}]
          - say: done
"""


def test_a_fault_is_tried_again_and_both_attempts_are_kept(project: Project) -> None:
    done = run(project, PASSES_LATER, retries=3, on="error")
    assert done.code == 0, done.stdout
    trial = done.trial()
    assert (trial.status, trial.attempts, trial.best_of_n, trial.first_valid_status) == ("PASS", 2, None, "PASS")
    first, second = trial.attempt_results
    assert (first.attempt, first.status, first.code) == (1, "ERROR", "crash")
    assert (second.status, second.folder) == ("PASS", trial.folder)
    records = [json.loads((done.directory / tried.folder / "record.json").read_text()) for tried in (first, second)]
    assert [record["attempt"] for record in records] == [1, 2]
    ids = [turn["session_id"] for record in records for turn in record["turns"]]
    assert len(set(ids)) == 2, "the second attempt has a session of its own"
    assert "attempt 1 was ERROR crash" in done.stdout
    assert done.run.totals.pass_rate_all == 1.0


def test_what_was_violated_before_an_error_is_kept_over_retries(project: Project) -> None:
    done = run(project, DIES_ONCE.replace("- say: done", "- say: nothing"), retries=1, on="error")
    trial = done.trial()
    assert trial.attempts == 2
    (violation,) = trial.attempt_results[0].violations_before_error
    assert violation.startswith("judge.failure[0]: ")
    assert "forbidden" in violation
    assert "violated before an error: judge.failure[0]" in done.stdout


def test_without_a_policy_or_without_retry_on_nothing_is_tried_again(project: Project) -> None:
    trial = run(project, PASSES_LATER, retries=3, on="").trial()
    assert (trial.status, trial.attempts, trial.attempt_results) == ("ERROR", 1, ())


ALWAYS_DIES = """
    input: {{prompt: go}}
    expect: {{must_contain: [done]}}
    script: [{{replies: [{{calls: [{{tool: bash, args: {{command: "kill -9 $PPID"}}}}]}}, {{say: done}}]}}]
"""


def test_retries_end_at_their_number(project: Project) -> None:
    done = run(project, ALWAYS_DIES, retries=2, on="error")
    assert done.code == 3
    trial = done.trial()
    assert [tried.status for tried in trial.attempt_results] == ["ERROR", "ERROR", "ERROR"]
    assert sorted(path.name for path in (done.directory / trial.folder).parent.glob("attempt-*")) == [
        "attempt-1",
        "attempt-2",
        "attempt-3",
    ]


GATE = """
    input:
      turns:
        - {{role: user, content: go, post_condition: {{must_contain_any: [ready], on_fail: fail}}}}
        - {{role: user, content: on}}
    expect: {{must_contain: [fine]}}
    script:
      - user: go
        replies:
          - calls: [{{tool: bash, args: {{command: "cat {root}/seen 2>&1 || echo ready > {root}/seen; ls; touch x"}}}}]
          - say: "{{{{result}}}}"
      - {{user: "on", say: fine}}
"""


def test_a_gate_that_failed_is_tried_again_and_the_pass_is_marked_as_the_best_of_two(project: Project) -> None:
    done = run(project, GATE, retries=2, on="turn_precondition_fail")
    trial = done.trial()
    assert (trial.status, trial.attempts, trial.best_of_n, trial.first_valid_status) == ("PASS", 2, 2, "FAIL")
    assert "x" not in (trial.turn_results[0].response or ""), "the second attempt began in a fresh workspace"
    totals = done.run.totals
    assert (totals.passed, totals.best_of_n, totals.passed_first, totals.valid) == (1, 1, 0, 1)
    assert totals.pass_rate_valid == totals.pass_rate_all == 0.0
    assert "PASS best-of-2" in done.stdout
    (agent,) = done.run.totals_by_agent
    spent = [tried.usage.total_tokens or 0 for tried in trial.attempt_results]
    assert (agent.total_tokens, done.run.total_tokens, min(spent) > 0) == (sum(spent), sum(spent), True)
    assert agent.duration_ms == sum(tried.duration_ms for tried in trial.attempt_results)
    (steadiness,) = stability_of([done.run, done.run])
    assert (steadiness.stability, steadiness.outcomes) == ("flaky", {"FAIL": 2}), "a retry hides no failure"
    assert "best of 2 attempts" in done.stdout
    assert "0 of 1 valid trials passed, counting first attempts (0%)" in done.stdout
    assert done.code == 0
    report = (done.directory / "report.xml").read_text(encoding="utf-8")
    assert '<property name="attempts" value="2" />' in report
    assert '<property name="best_of_n" value="2" />' in report


def test_a_gate_is_not_tried_again_for_an_error_policy(project: Project) -> None:
    assert run(project, GATE, retries=2, on="error").trial().attempts == 1


def test_judging_again_gives_the_same_bytes_also_over_attempts(project: Project) -> None:
    done = run(project, GATE, retries=2, on="turn_precondition_fail")
    before = {path: path.read_bytes() for path in done.directory.rglob("*.json") if path.name != "timing.json"}
    again = project.call("judge", done.directory)
    assert again.code == 0, again.stderr
    assert {path: path.read_bytes() for path in before} == before
    shown = [line for line in done.stdout.splitlines() if not line.startswith("report: ")]
    assert project.call("report", done.directory).stdout.splitlines() == shown


def test_attempts_that_ended_before_the_run_was_interrupted_can_still_be_counted(project: Project) -> None:
    project.write("eval.yaml", SUITE.format(retries=10, on="error"))
    project.write("cases/a.yaml", ALWAYS_DIES.format())
    directory = project.root / "broken-off"
    process = project.start("run", "eval.yaml", "--agent", "demo", "--output-dir", directory)
    attempts = directory / "a" / "demo" / "with_skill" / "trial-1"
    for _ in range(600):
        if (attempts / "attempt-2" / "result.json").exists():
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    done = project.wait(process, directory)
    assert done.code == 130, done.stderr
    assert "no trial ended; no valid trial: nothing was measured" in done.stdout
    report = project.call("report", directory)
    assert (report.code, report.stdout) == (2, "")
    assert f"`skillup judge {directory}` counts the attempts that did" in report.stderr
    judged = project.call("judge", directory)
    assert (judged.code, done.trial().status, done.trial().attempts >= 2) == (3, "ERROR", True), judged.stderr
    assert project.call("report", directory).code == 0


def test_what_somebody_puts_beside_the_attempts_is_none(project: Project) -> None:
    done = run(project, "{{input: {{prompt: go}}, judge: {{type: none}}, script: [{{say: hi}}]}}", retries=0, on="")
    attempt = done.folder()
    for name in ("attempt-1 copy", "attempt-x", "attempt-01", "attempt-1.old"):
        shutil.copytree(attempt, attempt.with_name(name))
    again = project.call("judge", done.directory)
    assert (again.code, again.stderr) == (3, "")
    assert done.trial().attempts == 1


# The pure parts.


NOBODY: dict[str, Any] = {
    **dict.fromkeys(("name", "engine", "permissions", "source"), "demo"),
    **dict.fromkeys(("model", "provider", "base_url", "engine_version")),
    "settings": {},
    "environment_names": (),
}
SUMMARY = {"passed": 0, "failed": 0, "unknown": 0, "total": 0, "pass_rate": None}


def result(status: str, kind: ErrorKind | None = None, code: str = "", retry_after: float | None = None) -> TrialResult:
    """A trial's result with nothing in it but how it ended."""
    error = kind and {"kind": kind, "phase": "conversation", "message": "no", "retry_after": retry_after}
    grading: dict[str, Any] = {
        "status": status,
        "code": code or kind or "",
        "reason": "",
        "error": error,
        "summary": SUMMARY,
    }
    grading |= {"assertion_results": (), "turns_executed": 1, "turns_total": 1}
    known: dict[str, Any] = {"status": status, "grading": grading, "error": error, "agent": NOBODY, "usage": {}}
    known |= {"configuration": "with_skill", "continuity": "resumed", "execution_mode": "single_turn"}
    known |= dict.fromkeys(("case_id", "title", "prompt", "folder"), "a")
    known |= dict.fromkeys(("trial", "attempts", "duration_ms", "turns"), 1)
    known |= dict.fromkeys(("input_tokens", "output_tokens", "cost_usd", "response"))
    known |= dict.fromkeys(("session_ids", "turn_results", "failures"), ())
    return TrialResult.model_validate(known)


@pytest.mark.parametrize("kind", ERROR_KINDS)
def test_only_faults_that_pass_are_tried_again(kind: ErrorKind) -> None:
    policy = RetryPolicy(max_retries=1, retry_on=("error",))
    again = pause_before_next([result("ERROR", kind)], policy) is not None
    assert again == (kind in PASSING_FAULTS or kind == "judge"), "a judge's fault that ended the conversation, too"
    timeouts = RetryPolicy(max_retries=1, retry_on=("timeout",))
    assert (pause_before_next([result("ERROR", kind)], timeouts) is not None) == (kind == "timeout")


@pytest.mark.parametrize("status", ["PASS", "SKIP", "UNCHECKED", "FAIL"])
def test_a_measurement_is_never_tried_again_but_for_a_failed_gate(status: str) -> None:
    everything = RetryPolicy(max_retries=10, retry_on=("error", "timeout", "turn_precondition_fail"))
    assert pause_before_next([result(status, code="failure_rule")], everything) is None


def test_any_part_of_a_pause_that_doubles_up_to_a_minute_is_waited() -> None:
    policy = RetryPolicy(max_retries=10, retry_on=("error",))
    longest = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0]
    failed = result("ERROR", "network")
    for number, limit in enumerate(longest, start=1):
        assert pause_before_next([failed] * number, policy, chance=lambda _, most: most) == limit
        assert pause_before_next([failed] * number, policy, chance=lambda least, _: least) == 0.0
    assert pause_before_next([failed] * 11, policy) is None
    seeded, again = random.Random(7), random.Random(7)  # noqa: S311 - no secret
    pauses = [pause_before_next([failed] * number, policy, chance=seeded.uniform) for number in range(1, 11)]
    assert pauses == [again.uniform(0.0, limit) for limit in longest]


def test_a_provider_is_waited_for_as_it_asks_but_not_for_hours() -> None:
    policy = RetryPolicy(max_retries=10, retry_on=("error",))
    for chance, least in ((lambda low, _: low, 42.0), (lambda _, high: high, 43.0)):
        assert pause_before_next([result("ERROR", "rate_limit", retry_after=42.0)], policy, chance=chance) == least
    assert pause_before_next([result("ERROR", "rate_limit", retry_after=600.0)], policy) is not None
    assert pause_before_next([result("ERROR", "rate_limit", retry_after=601.0)], policy) is None


def test_retries_on_the_command_line_are_for_faults_and_leave_the_rest_of_the_policy() -> None:
    gates = RetryPolicy(max_retries=1, retry_on=("turn_precondition_fail",))
    assert gates.with_retries(3) == RetryPolicy(max_retries=3, retry_on=("error", "turn_precondition_fail"))
    assert RetryPolicy().with_retries(2) == RetryPolicy(max_retries=2, retry_on=("error",))


def test_what_retries_cost_is_counted_apart_and_unknown_where_an_attempt_does_not_say() -> None:
    known = Usage(input_tokens=10, output_tokens=5, cache_read_tokens=0, cache_write_tokens=0, cost_usd=0.5)
    tries = [
        result("ERROR", "network").model_copy(update={"usage": known, "cost_usd": 0.5, "folder": "1"}),
        result("ERROR", "crash").model_copy(update={"usage": known, "cost_usd": 0.5, "waited_ms": 700, "folder": "2"}),
        result("PASS").model_copy(update={"usage": known, "waited_ms": 1500, "folder": "3"}),
    ]
    once = count([together(tries), result("PASS")]).retries
    assert once == RetryCosts(
        trials=1,
        attempts=2,
        duration_ms=2,
        waited_ms=2200,
        total_tokens=30,
        cost_usd=1.0,
        known_tokens=30,
        known_cost_usd=1.0,
    )
    unknown = count([together([tries[0].model_copy(update={"usage": Usage()}), tries[2]])]).retries
    assert (unknown.attempts, unknown.total_tokens, unknown.cost_usd) == (1, None, None)
    partly = [tries[0], tries[1].model_copy(update={"usage": Usage()}), tries[2]]
    known_part = count([together(partly)]).retries
    assert (known_part.total_tokens, known_part.known_tokens, known_part.known_cost_usd) == (None, 15, 0.5)
    assert count([result("PASS")]).retries == RetryCosts()


ROWS = {
    "one attempt": (["PASS"], 0, None, None),
    "an error, then a pass": (["ERROR", "PASS"], 1, None, "PASS"),
    "an error, then a failure": (["ERROR", "FAIL"], 1, None, "FAIL"),
    "errors only": (["ERROR", "ERROR"], 1, None, None),
    "a failure that was tried again": (["FAIL", "PASS"], 1, 2, "FAIL"),
    "never better": (["FAIL", "FAIL", "FAIL"], 2, 3, "FAIL"),
    "a fault is no better than a failure": (["FAIL", "ERROR"], 0, 2, "FAIL"),
    "a skip is no measurement": (["ERROR", "SKIP"], 1, None, None),
}


@pytest.mark.parametrize(("statuses", "shown", "best", "first"), ROWS.values(), ids=ROWS)
def test_what_attempts_mean_together(statuses: list[str], shown: int, best: int | None, first: str | None) -> None:
    results = [result(status, "network" if status == "ERROR" else None, code="gate") for status in statuses]
    results = [one.model_copy(update={"folder": str(index)}) for index, one in enumerate(results)]
    whole = together(results)
    assert whole.folder == str(shown)
    if len(statuses) > 1:
        assert (whole.attempts, whole.best_of_n, whole.first_valid_status) == (len(statuses), best, first)


def test_a_policy_is_read_strictly(project: Project) -> None:
    project.write("cases/a.yaml", "{input: {prompt: go}, judge: {type: none}}")
    for policy, complaint in (
        ("{max_retries: 11}", "max_retries: must be at most 10"),
        ("{max_retries: -1}", "max_retries: must be at least 0"),
        ("{max_retries: 1, retry_on: [errors]}", 'did you mean "error"'),
        ("{retries: 1}", 'unknown key "retries"'),
    ):
        project.write(
            "eval.yaml", f"schema_version: v1alpha1\ncases: {{files: [cases/a.yaml], retry_policy: {policy}}}"
        )
        done = project.call("validate", "eval.yaml")
        assert done.code == 2
        assert re.search(re.escape(complaint), done.stderr), done.stderr

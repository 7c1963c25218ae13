"""A retry after ERROR `judge`: the judge is asked again, within the policy's count, and the agent is never started."""

from __future__ import annotations

import json

import pytest

from skillup.modelserver.source import Fault
from tests.cli.test_model_judge import judging
from tests.judging.judged import given
from tests.support import Finished, Project

SUITE = """
    schema_version: v1alpha1
    cases: {{files: [a.yaml], retry_policy: {{max_retries: {retries}, retry_on: [{on}]}}}}
"""
CASE = """
    input: {{prompt: go}}
    judge: {{type: rubric, criteria: [{{id: polite, text: It is polite.}}, {{id: short, text: It is short., turn: 1}}]}}
    script:
      - replies:
          - calls: [{{tool: bash, args: {{command: "echo started >> {root}/starts"}}}}]
          - say: all done, my friend
"""
POLITE = {"polite": given("met", "my friend")}
SHORT = {"short": given("met", "all done")}
REFUSED = Fault("status", 401, "who are you")


def suite(project: Project, *, retries: int, on: str = "error") -> Project:
    project.write("eval.yaml", SUITE.format(retries=retries, on=on))
    project.write("a.yaml", CASE.format(root=project.root))
    return project


def assert_started_once(project: Project, done: Finished) -> None:
    assert (project.root / "starts").read_text() == "started\n"
    assert len(done.requests()) == 2
    assert [path.name for path in done.folder().parent.glob("attempt-*")] == ["attempt-1"]
    assert (done.trial().attempts, done.trial().attempt_results) == (1, ())


def test_a_judging_that_broke_is_repeated_alone(project: Project) -> None:
    """The second criterion's question breaks; only that one is asked again."""
    with judging(POLITE, REFUSED, SHORT) as (route, variables):
        done = suite(project, retries=2).run("eval.yaml", "--agent", "demo", env=variables)
        assert (done.code, done.trial().status) == (0, "PASS"), done.stdout
        assert len(route.requests) == 3
    assert_started_once(project, done)
    before = json.loads((done.folder() / "revisions" / "1" / "grading.json").read_bytes())
    assert (before["status"], before["code"]) == ("ERROR", "judge")
    judged = done.trial().grading.judging
    assert judged is not None
    assert judged.revision == 2


@pytest.mark.parametrize(("retries", "on", "asked"), [(1, "error", 2), (2, "timeout", 1)])
def test_the_policy_bounds_how_often(project: Project, retries: int, on: str, asked: int) -> None:
    with judging(REFUSED) as (route, variables):
        done = suite(project, retries=retries, on=on).run("eval.yaml", "--agent", "demo", env=variables)
        assert (done.code, done.trial().grading.code, len(route.requests)) == (3, "judge", asked)
    assert_started_once(project, done)


def test_a_pause_before_it_ends_with_the_seconds_of_the_run(project: Project) -> None:
    later = Fault("status", 401, "come back", retry_after=30)
    with judging(later) as (_, variables):
        arguments = ("eval.yaml", "--agent", "demo", "--max-seconds", "1")
        done = suite(project, retries=1).run(*arguments, env=variables, seconds=25)
    assert (done.code, done.run.case_results) == (3, ())
    assert "stopped by max_seconds of the run: " in done.stderr


def test_what_no_judge_could_answer_is_not_asked_again(project: Project) -> None:
    unsure = {"polite": given("cannot_determine", reason="It was not shown.")}
    with judging(unsure, SHORT) as (route, variables):
        done = suite(project, retries=3).run("eval.yaml", "--agent", "demo", env=variables)
        assert (done.trial().grading.code, len(route.requests)) == ("judge", 2)
    assert_started_once(project, done)


def test_a_judging_that_broke_a_conversation_off_is_repeated_with_the_conversation(project: Project) -> None:
    """The turns that were to come cannot be judged: there are none."""
    project.write("eval.yaml", SUITE.format(retries=1, on="error"))
    project.write(
        "a.yaml",
        """
        input: {turns: [{role: user, content: go}, {role: user, content: on}]}
        judge:
          type: rubric
          criteria: [{id: polite, text: It is polite., turn: 1}]
          scoring:
            on_turn_failure: stop
            parts: [{name: first, turn: 1, graders: [{name: tone, criteria: [polite]}]}]
        script: [{user: go, say: "all done, my friend"}, {user: on, say: more}]
        """,
    )
    with judging(REFUSED, POLITE) as (_, variables):
        done = project.run("eval.yaml", "--agent", "demo", env=variables)
    result = done.trial()
    assert (done.code, result.status, result.attempts) == (0, "PASS", 2), done.stdout
    assert [attempt.code for attempt in result.attempt_results] == ["judge", "all_met"]

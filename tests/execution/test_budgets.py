"""What a whole run may take: once that is taken no further trial, attempt or iteration begins, and the run says so."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

from skillup.execution.budget import RunBudget
from skillup.results import RunResult, TrialResult
from skillup.spec.budget import Budget, tightest
from tests.fake_claude import fake_claude
from tests.support import Finished, Project

CASE = """
    input: {prompt: hello}
    judge: {type: rule_based, success: [{output_contains: {all: [done]}}]}
    script: [{say: nothing}]
"""

COSTS = "say(result('done', cost=0.01, tokens=90))"
"""A trial: one cent, and 100 tokens in and out."""

SUITE = """
    schema_version: v1alpha1
    budget: {%s}
    cases: {files: [cases/*.yaml], retry_policy: {max_retries: 3, retry_on: [error]}}
"""


def suite(project: Project, budget: str, cases: int = 5) -> None:
    project.write("eval.yaml", SUITE % budget)
    for number in range(cases):
        project.write(f"cases/case-{number}.yaml", CASE)


def ended(done: Finished) -> list[tuple[str, str]]:
    return [(result.case_id, result.status) for result in done.run.case_results]


def test_a_budget_of_the_run_begins_no_further_trial_and_keeps_what_there_is(project: Project) -> None:
    suite(project, "max_cost_usd: 0.02")
    done = project.run("eval.yaml", "--agent", fake_claude(project, "cheap", COSTS))
    assert done.code == 3
    assert ended(done) == [("case-0", "PASS"), ("case-1", "PASS")]
    said = "max_cost_usd of the run: $0.0200 of $0.0200 spent"
    assert f"stopped by {said}; 3 of 5 trials were not run" in done.stderr
    assert (done.run.status, done.run.stopped_by, done.run.trials_planned) == ("stopped", said, 5)
    assert f"This run is not whole (it was stopped by {said}): only 2 of 5 planned trials ended." in done.stdout
    assert len(list(done.directory.glob("case-*"))) == 2
    report = project.call("report", done.directory, "--json")
    assert RunResult.model_validate_json(report.stdout).stopped_by == said
    stopped = project.call("run", "--resume", done.directory)
    assert stopped.code == 3, "what was spent before counts"
    assert "stopped by " + said in stopped.stderr
    assert project.call("run", "--resume", done.directory, "--max-cost-usd", "5").code == 0
    assert len(done.run.case_results) == 5
    assert done.run.stopped_by == ""


def test_the_command_line_outranks_the_suite_and_every_figure_has_its_option(project: Project) -> None:
    suite(project, "max_cost_usd: 0.01, max_tokens: 1", cases=4)
    agent = fake_claude(project, "cheap", COSTS + "\ntime.sleep(0.4)")
    done = project.run("eval.yaml", "--agent", agent, "--max-cost-usd", "5", "--max-tokens", "250")
    assert [case for case, _ in ended(done)] == ["case-0", "case-1", "case-2"]
    assert "stopped by max_tokens of the run: 300 of 250 used; 1 of 4" in done.stderr
    done = project.run("cases", "--agent", agent, "--max-seconds", "0.5")
    assert 0 < len(ended(done)) < 4
    assert "stopped by max_seconds of the run: " in done.stderr


def test_attempts_count_and_one_that_the_run_cannot_pay_for_is_made_when_it_is_resumed(project: Project) -> None:
    suite(project, "max_tokens: 50", cases=2)
    body = "say({**result('', tokens=90), 'is_error': True, 'api_error_status': 529})"
    done = project.run("eval.yaml", "--agent", fake_claude(project, "failing", body), "--retries", "1")
    assert done.code == 3
    assert ended(done) == [], "the first attempt used up what there was, and the second is still to be made"
    trial = done.directory / "case-0/failing/with_skill/trial-1"
    assert [path.name for path in trial.iterdir()] == ["attempt-1"]
    assert project.call("run", "--resume", done.directory, "--max-tokens", "150").code == 3
    assert ended(done) == [("case-0", "ERROR")]
    assert done.trial().attempts == 2
    project.write("cases/case-0.yaml", CASE + "    constraints: {max_tokens: 50}\n")
    done = project.run("cases/case-0.yaml", "--agent", "failing")
    assert done.trial().attempts == 1, "all attempts at a trial have the trial's own limit together"


def test_what_was_spent_on_trials_that_are_run_once_more_counts_before_the_first_begins(project: Project) -> None:
    suite(project, "max_cost_usd: 1", cases=2)
    done = project.run("eval.yaml", "--agent", fake_claude(project, "cheap", COSTS))
    again = project.call("run", "--resume", done.directory, "--only-status", "PASS", "--max-cost-usd", "0.02")
    assert "stopped by max_cost_usd of the run: $0.0200 of $0.0200 spent; 2 of 2 trials were not run" in again.stderr
    assert [path.name for path in done.directory.glob("case-*/*/*/*/attempt-*")] == ["attempt-1", "attempt-1"]


def test_a_trial_that_waits_for_another_does_not_begin_either(project: Project) -> None:
    suite(project, "max_tokens: 50", cases=2)
    project.write("cases/case-1.yaml", CASE + "    depends_on: [case-0]\n")
    agent = fake_claude(project, "cheap", "time.sleep(0.5)\n" + COSTS)
    done = project.run("eval.yaml", "--agent", agent, "--parallelism", "2", seconds=60)
    assert ended(done) == [("case-0", "PASS")]
    assert done.run.status == "stopped"


def test_no_further_iteration_begins(project: Project) -> None:
    suite(project, "max_cost_usd: 0.015", cases=1)
    fake_claude(project, "cheap", COSTS)
    done = project.call("run", "eval.yaml", "--agent", "cheap", "--iteration", "4", "--json")
    assert len(json.loads(done.stdout)["runs"]) == 2
    assert "no further iteration: max_cost_usd of the run: $0.0200 of $0.0150 spent" in done.stderr
    assert done.code == 3


def test_a_budget_of_money_is_refused_where_an_agent_does_not_say_what_it_costs(project: Project) -> None:
    suite(project, "max_cost_usd: 1")
    fake_claude(project, "cheap", COSTS)
    refused = project.call("run", "eval.yaml", "--agent", "cheap", "--agent", "demo")
    assert refused.code == 2
    said = "demo cannot say what a turn costs, so a budget of money cannot be held to"
    assert f"eval.yaml:2:24: budget.max_cost_usd: {said}" in refused.stderr
    refused = project.call("run", "cases", "--agent", "demo", "--max-cost-usd", "1")
    assert refused.code == 2
    assert f"--max-cost-usd: {said}" in refused.stderr


def test_a_cli_whose_supervisor_was_lost_keeps_its_output_and_has_an_unknown_cost(project: Project) -> None:
    suite(project, "max_tokens: 1000", cases=1)
    body = "say(assistant(text('half an answer')))\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(60)"
    done = project.run("eval.yaml", "--agent", fake_claude(project, "lost", body), "--retries", "0")
    lost = done.trial()
    assert (lost.grading.code, lost.usage.total_tokens) == ("environment", None)
    assert b"half an answer" in (done.folder() / "turn-1" / "stdout").read_bytes()
    assert (done.folder() / "turn-1" / "stderr").exists()
    known = lost.usage.model_copy(update={"input_tokens": 9, "output_tokens": 1})
    budget = RunBudget(Budget(max_tokens=10))
    budget.add(Path("one"), lost)
    budget.add(Path("another"), lost.model_copy(update={"usage": known}))
    assert budget.reached == "max_tokens of the run: 10 of 10 used, and 1 attempt did not say what all of it used"


def test_a_budget_that_cannot_be_held_to_stops_the_run_until_somebody_resumes_it(project: Project) -> None:
    suite(project, "max_cost_usd: 0.03", cases=3)
    flag = project.root / "works"
    body = f"if not os.path.exists({str(flag)!r}): os.kill(os.getpid(), signal.SIGKILL)\n{COSTS}"
    done = project.run("eval.yaml", "--agent", fake_claude(project, "dies", body), "--retries", "0")
    said = "the budget cannot be held to: case-0/dies/with_skill/trial-1/attempt-1 did not say what it cost"
    assert (done.code, ended(done), done.run.status) == (3, [("case-0", "ERROR")], "stopped")
    assert f"stopped by {said}; 2 of 3 trials were not run" in done.stderr
    assert f"`skillup run --resume {done.directory}` goes on without knowing that" in done.stderr
    flag.touch()
    assert project.call("run", "--resume", done.directory).code == 3
    assert ended(done) == [("case-0", "ERROR"), ("case-1", "PASS"), ("case-2", "PASS")]


def test_an_attempt_that_started_no_cli_took_nothing(project: Project) -> None:
    suite(project, "max_tokens: 1000", cases=2)
    project.write(
        "eval.yaml", f"{textwrap.dedent(SUITE % 'max_tokens: 1000')}environment: {{setup_steps: [run: 'false']}}"
    )
    done = project.run("eval.yaml", "--agent", fake_claude(project, "cheap", COSTS))
    assert ended(done) == [("case-0", "ERROR"), ("case-1", "ERROR")]
    assert done.run.status == "finished"


def test_of_several_suites_the_least_of_each_figure_holds() -> None:
    budgets = [Budget(max_tokens=5, max_seconds=9.0), Budget(max_tokens=3), Budget()]
    assert tightest(budgets, Budget()) == Budget(max_tokens=3, max_seconds=9.0)
    assert tightest(budgets, Budget(max_tokens=100)) == Budget(max_tokens=100, max_seconds=9.0)


def test_an_attempt_that_is_judged_again_counts_once(project: Project) -> None:
    suite(project, "max_tokens: 1000", cases=1)
    done = project.run("eval.yaml", "--agent", fake_claude(project, "cheap", COSTS))
    saved = TrialResult.model_validate_json(Path(done.folder() / "result.json").read_bytes())
    budget = RunBudget(Budget(max_tokens=150, max_cost_usd=5))
    budget.add(Path("one"), saved)
    budget.add(Path("one"), saved)
    assert budget.reached == ""
    unknown = saved.usage.model_copy(update={"input_tokens": None})
    budget.add(Path("another"), saved.model_copy(update={"usage": unknown}))
    said = "the budget cannot be held to: case-0/cheap/with_skill/trial-1/attempt-1 did not say how many tokens it used"
    assert budget.reached == budget.unknown == said
    budget.add(Path("another"), saved.model_copy(update={"usage": unknown}), earlier=True)
    assert budget.reached == "", "what is not known is not counted"
    budget.add(Path("a third"), saved)
    said = "max_tokens of the run: 200 of 150 used, and 1 attempt did not say what all of it used"
    assert budget.reached == said

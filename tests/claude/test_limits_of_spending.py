"""Limits on money, tokens and steps: held after every turn, and inside one where the CLI can bound itself."""

from __future__ import annotations

import pytest

from skillup.results import TrialResult
from tests.fake_claude import fake_claude
from tests.support import Project

THREE_TURNS = """
    input:
      turns:
        - {role: user, content: one%s}
        - {role: user, content: two}
        - {role: user, content: three}
    constraints: {%s}
    judge: {type: rule_based, success: [{output_contains: {all: [done], turn: 1}}]}
    script: [{say: nothing}]
"""

COSTS = "say(result('done ' + PROMPT, cost=0.01, tokens=90))"
"""A turn: one cent, and 100 tokens in and out."""

HELD = {
    "money": (
        "",
        "max_cost_usd: 0.015",
        "FAIL limit/case_cost_usd",
        "turn 2 reached case_cost_usd ($0.0200 of $0.0150)",
    ),
    "tokens": (
        "",
        "max_tokens: 199",
        "FAIL limit/case_tokens",
        "turn 2 reached case_tokens (200 tokens of 199 tokens)",
    ),
    "of-a-turn": (
        ", max_tokens: 99",
        "max_cost_usd: 9",
        "FAIL limit/turn_tokens",
        "(100 tokens of 99 tokens); input.turns[0].max_tokens raises it",
    ),
    "enough": ("", "max_cost_usd: 0.03, max_tokens: 300", "PASS all_met", "the check held"),
    "judged": ("", "max_cost_usd: 0.015, on_limit: judge", "PASS all_met", "the check held"),
    "error": ("", "max_cost_usd: 0.015, on_limit: error", "ERROR timeout", "constraints.max_cost_usd raises it"),
}
"""Limits of the first turn and of the case, the outcome, and a part of the reason."""


def test_a_limit_on_money_or_tokens_ends_the_conversation_after_the_turn_that_reached_it(project: Project) -> None:
    for name, (of_turn, of_case, _, _) in HELD.items():
        project.write(f"cases/{name}.yaml", THREE_TURNS % (of_turn, of_case))
    done = project.run("cases", "--agent", fake_claude(project, "cheap", COSTS), "--parallelism", "2")
    for name, (_, _, outcome, reason) in HELD.items():
        trial = done.trial(name)
        assert (name, outcome_of(trial)) == (name, outcome)
        assert reason in trial.grading.reason
    statuses = [turn.status for turn in done.trial("money").turn_results]
    assert statuses == ["completed", "completed", "skipped"], "turn 2 came to its end, and no further one began"
    assert done.trial("money").cost_usd == pytest.approx(0.02)


def test_the_limit_of_an_agent_holds_for_each_of_its_trials(project: Project) -> None:
    project.write("case.yaml", THREE_TURNS % ("", "max_cost_usd: 5"))
    limits = {"money": "max_cost_usd: 0.015", "tokens": "max_tokens: 150", "time": "max_seconds: 1.5"}
    agents = []
    works_on = COSTS + " if PROMPT == 'one' else (say(assistant(call('x'))), time.sleep(60))"
    for name, limit in limits.items():
        body = works_on if name == "time" else COSTS
        agents += ["--agent", fake_claude(project, name, body, f"limits: {{{limit}}}\n")]
    done = project.run("case.yaml", *agents, "--parallelism", "3")
    found = {name: done.trial(agent=name).grading for name in limits}
    assert {name: verdict.code for name, verdict in found.items()} == {
        "money": "limit/case_cost_usd",
        "tokens": "limit/case_tokens",
        "time": "limit/case_seconds",
    }
    assert "limits.max_seconds of the agent raises it" in found["time"].reason
    assert "limits.max_cost_usd of the agent raises it" in found["money"].reason


def test_a_turn_that_does_not_say_what_it_cost_is_no_measurement_under_a_limit(project: Project) -> None:
    project.write("case.yaml", THREE_TURNS % ("", "max_cost_usd: 5"))
    body = "say({'type': 'result', 'subtype': 'success', 'is_error': False, 'result': 'done'})"
    done = project.run("case.yaml", "--agent", fake_claude(project, "silent", body))
    assert outcome_of(done.trial()) == "ERROR unobservable"
    reason = "claude_code did not say what turn 1 cost, so constraints.max_cost_usd cannot be held to"
    assert done.trial().grading.reason == reason


def test_a_limit_on_money_is_refused_at_planning_where_nobody_says_what_a_turn_costs(project: Project) -> None:
    project.write("case.yaml", THREE_TURNS % ("", "max_cost_usd: 5"))
    done = project.run("case.yaml", "--agent", "demo")
    error = done.trial().error
    assert error is not None
    assert (error.kind, error.phase) == ("setup", "plan")
    assert (
        error.message == "builtin does not say what a turn costs, so constraints.max_cost_usd of case cannot be held to"
    )
    assert "run the case on claude_code" in error.hint
    project.write("agents/mine.yaml", "engine: codex\nlimits: {max_cost_usd: 1, max_steps: 3}\n")
    refused = project.call("run", "case.yaml", "--agent", "mine")
    assert refused.code == 2
    assert "agents/mine.yaml:2:24: limits.max_cost_usd: codex does not say what a turn costs" in refused.stderr
    assert "limits.max_steps: codex cannot be told how many steps a turn may take" in refused.stderr


INSIDE = """
    input: {{prompt: go on}}
    constraints: {{{limit}}}
    judge: {{type: rule_based, success: [{{output_contains: {{all: [done]}}}}]}}
    script:
      - replies:
          - calls: [{{tool: bash, args: {{command: echo 1 >> steps}}}}]
          - calls: [{{tool: bash, args: {{command: echo 2 >> steps}}}}]
          - calls: [{{tool: bash, args: {{command: echo 3 >> steps}}}}]
          - say: done
"""


@pytest.mark.claude
def test_claude_code_bounds_itself_inside_a_turn(claude: Project) -> None:
    claude.write("cases/money.yaml", INSIDE.format(limit="max_cost_usd: 0.0001"))
    claude.write("cases/steps.yaml", INSIDE.format(limit="max_steps: 2"))
    claude.write("cases/enough.yaml", INSIDE.format(limit="max_steps: 4, max_cost_usd: 50"))
    done = claude.run("cases", "--agent", "claude_code", "--model", "scripted", "--parallelism", "3")
    assert outcome_of(done.trial("enough")) == "PASS all_met", done.stdout
    assert outcome_of(done.trial("money")) == "FAIL limit/case_cost_usd"
    assert "constraints.max_cost_usd raises it" in done.trial("money").grading.reason
    assert outcome_of(done.trial("steps")) == "FAIL limit/steps"
    assert "constraints.max_steps raises it" in done.trial("steps").grading.reason
    assert len(done.trial("money").turn_results[0].tool_calls) < 3
    assert len(done.trial("steps").turn_results[0].tool_calls) == 2
    assert [done.trial(name).turn_results[0].status for name in ("money", "steps")] == ["limit", "limit"]


def outcome_of(trial: TrialResult) -> str:
    """Status and code."""
    return f"{trial.grading.status} {trial.grading.code}"

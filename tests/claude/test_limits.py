"""Limits: the agent's failure where it was at work, an error where the model was silent, and nothing left alive."""

from __future__ import annotations

import pytest

from skillup.results import TrialResult
from tests.support import Finished, Project, processes_mentioning

SECONDS = {"builtin": 5, "claude_code": 20}
"""Turn limits: long enough for the CLI to start beside others on a busy machine, and to come to what it does here."""

CUT = """
    input:
      turns:
        - {{role: user, content: one}}
        - {{role: user, content: two, timeout_seconds: {seconds}}}
        - {{role: user, content: three}}
    judge:
      type: rule_based
      success:
        - output_contains: {{all: [did one], turn: 1}}
        - tool_called: {{name: bash, args: {{command: {{matches: sleep}}}}, turn: 2}}
        - files_exist: {{paths: [two.txt], turn: 2}}
        - output_contains: {{all: [Now the second], turn: 2}}
        - files_exist: {{paths: [three.txt], turn: 2}}
        - tool_not_called: {{name: write, turn: 2}}
        - tool_called: {{name: bash, status: ok, turn: 2}}
        - output_contains: {{all: [did two], turn: 2}}
        - output_contains: {{all: [did three]}}
      failure:
        - tool_called: {{name: bash, status: error}}
    script:
      - {{user: one, say: did one}}
      - user: two
        replies:
          - {{say: Now the second., calls: [{{tool: bash, args: {{command: "touch two.txt; sleep 4851"}}}}]}}
          - say: did two
"""

STATES = [
    ("judge.success[0]", "met"),
    ("judge.success[1]", "met"),
    ("judge.success[2]", "met"),
    ("judge.success[3]", "met"),
    ("judge.success[4]", "unknown"),
    ("judge.success[5]", "unknown"),
    ("judge.success[6]", "unknown"),
    ("judge.success[7]", "unknown"),
    ("judge.success[8]", "unknown"),
    ("judge.failure[0]", "unknown"),
]
"""What exists is judged, absence is unknown; the end that we put to the call is not its error."""

OTHER_LIMITS = {
    "stalled": (
        """
    input: {{turns: [{{role: user, content: hello, timeout_seconds: {seconds}}}]}}
    judge: {{type: rule_based, success: [{{output_contains: {{all: [fine]}}}}]}}
    script: [{{say: all is fine, faults: [{{stall: true}}]}}]
        """,
        "ERROR timeout",
        "turn 1 reached turn_seconds ({seconds} s); input.turns[0].timeout_seconds raises it; {silent}",
    ),
    "retrying": (
        """
    input: {{turns: [{{role: user, content: hello, timeout_seconds: {seconds}}}]}}
    judge: {{type: rule_based, success: [{{output_contains: {{all: [fine]}}}}]}}
    script: [{{say: all is fine, faults: [{{status: 429, retry_after: 60}}]}}]
        """,
        "ERROR rate_limit",
        "input.turns[0].timeout_seconds raises it; the CLI was retrying",
    ),
    "case-limit": (
        """
    input: {{turns: [{{role: user, content: one}}, {{role: user, content: two}}]}}
    constraints: {{timeout_seconds: {seconds}}}
    judge: {{type: rule_based, success: [{{output_contains: {{all: [answer], turn: 1}}}}]}}
    script:
      - {{user: one, say: the answer}}
      - {{user: two, replies: [{{calls: [{{tool: bash, args: {{command: sleep 4852}}}}]}}]}}
        """,
        "FAIL limit/case_seconds",
        "turn 2 reached case_seconds (the last ",
    ),
    "judged-all-the-same": (
        """
    input: {{turns: [{{role: user, content: hello, timeout_seconds: {seconds}}}]}}
    constraints: {{on_limit: judge}}
    judge: {{type: rule_based, success: [{{tool_called: {{name: bash}}}}]}}
    script: [{{replies: [{{calls: [{{tool: bash, args: {{command: sleep 4853}}}}]}}]}}]
        """,
        "PASS all_met",
        "",
    ),
    "judged-and-open": (
        """
    input: {{turns: [{{role: user, content: hello, timeout_seconds: {seconds}}}]}}
    constraints: {{on_limit: judge}}
    judge: {{type: rule_based, success: [{{tool_called: {{name: bash}}}}, {{tool_not_called: {{name: write}}}}]}}
    script: [{{replies: [{{calls: [{{tool: bash, args: {{command: sleep 4854}}}}]}}]}}]
        """,
        "FAIL limit/turn_seconds",
        "so it is unknown whether tool_not_called",
    ),
    "an-error-on-demand": (
        """
    input: {{turns: [{{role: user, content: hello, timeout_seconds: {seconds}}}]}}
    constraints: {{on_limit: error}}
    judge: {{type: rule_based, success: [{{tool_called: {{name: bash}}}}]}}
    script: [{{replies: [{{calls: [{{tool: bash, args: {{command: sleep 4855}}}}]}}]}}]
        """,
        "ERROR timeout",
        "turn 1 reached turn_seconds ({seconds} s); input.turns[0].timeout_seconds raises it",
    ),
    "a-failure-on-demand": (
        """
    input: {{turns: [{{role: user, content: hello, timeout_seconds: {seconds}}}]}}
    constraints: {{on_limit: fail}}
    judge: {{type: rule_based, success: [{{output_contains: {{all: [fine]}}}}]}}
    script: [{{say: all is fine, faults: [{{stall: true}}]}}]
        """,
        "FAIL limit/turn_seconds",
        "turn 1 reached turn_seconds ({seconds} s); input.turns[0].timeout_seconds raises it",
    ),
}
"""Cases by name: their text, their status and code, and a part of the reason."""


BY_ENGINE = {
    "builtin": tuple(OTHER_LIMITS),
    "claude_code": ("stalled", "retrying", "case-limit", "judged-all-the-same"),
}
"""What is judged alike whatever the engine is tried on one of them."""

OF_CLAUDE = {
    "cut-beside-a-task": """
    input: {{turns: [{{role: user, content: hello, timeout_seconds: {seconds}}}]}}
    judge: {{type: rule_based, success: [{{output_contains: {{all: [beside]}}}}]}}
    script:
      - user: hello
        replies:
          - calls: [{{name: Bash, args: {{command: sleep 4859, description: wait, run_in_background: true}}}}]
          - {{say: beside it, calls: [{{tool: bash, args: {{command: sleep 4860}}}}]}}
          - say: an answer to the interruption
    """,
    "endless": """
    input: {{turns: [{{role: user, content: hello, timeout_seconds: {seconds}}}]}}
    judge: {{type: rule_based, success: [{{output_contains: {{all: ["1 2 3"]}}}}, {{output_contains: {{all: [end]}}}}]}}
    script: [{{say: never said, faults: [{{endless: true}}]}}]
    """,
}


def run_limits(project: Project, engine: str) -> Finished:
    """All cases of an engine at once: their time passes together."""
    texts = {"cut": CUT, **{name: OTHER_LIMITS[name][0] for name in BY_ENGINE[engine]}}
    if engine == "claude_code":
        texts |= OF_CLAUDE
    for name, text in texts.items():
        project.write(f"cases/{name}.yaml", text.format(seconds=SECONDS[engine]))
    return project.run("cases", "--agent", engine, "--model", "scripted", "--parallelism", "8")


@pytest.mark.parametrize("engine", ["builtin", pytest.param("claude_code", marks=pytest.mark.claude)])
def test_a_limit_is_the_agents_failure_where_it_was_at_work(claude: Project, engine: str) -> None:
    done = run_limits(claude, engine)
    assert processes_mentioning(str(claude.trials)) == []
    assert_cut_in_a_tool_call(done)
    expected = {name: OTHER_LIMITS[name][1] for name in BY_ENGINE[engine]}
    assert {name: outcome_of(done.trial(name)) for name in expected} == expected
    for name in expected:
        reason = OTHER_LIMITS[name][2].format(seconds=SECONDS[engine], silent=SILENT)
        assert reason in done.trial(name).grading.reason
    assert done.trial("judged-all-the-same").turn_results[0].status == "timed_out"
    if engine == "claude_code":
        assert_told_by_its_events(done)


SILENT = "the agent showed no sign of work: the model was silent: a request had been open for "
"""What the loopback model knows of a turn in which it says nothing."""


def assert_cut_in_a_tool_call(done: Finished) -> None:
    """FAIL; what ran is judged, what the limit prevented is unknown."""
    trial = done.trial("cut")
    assert outcome_of(trial) == "FAIL limit/turn_seconds"
    assert "input.turns[1].timeout_seconds raises it" in trial.grading.reason
    assert [(assertion.id, assertion.state) for assertion in trial.grading.assertion_results] == STATES
    assert [turn.status for turn in trial.turn_results] == ["completed", "timed_out", "skipped"]
    assert trial.error is None


def assert_told_by_its_events(done: Finished) -> None:
    """An answer without end is work; what the CLI says once it was interrupted is not."""
    endless = done.trial("endless")
    assert outcome_of(endless) == "FAIL limit/turn_seconds"
    begun, ended = (assertion.state for assertion in endless.grading.assertion_results)
    # The CLI writes the cut answer only once it is interrupted, and on a crowded machine not within its grace.
    assert begun in ("met", "unknown"), "what is not there on a cut turn is unknown, never not met"
    assert ended == "unknown"
    beside = done.trial("cut-beside-a-task")
    assert outcome_of(beside) == "FAIL limit/turn_seconds"
    assert beside.turn_results[0].response == "beside it", "the CLI asks the model about the task that it ended"


def test_a_limit_of_the_cli_itself_is_named_with_the_key_that_raises_it(project: Project) -> None:
    project.write("agents/short.yaml", "engine: builtin\nmodel: scripted\nsettings: {max_steps: 2}\n")
    project.write(
        "loop.yaml",
        """
        input: {prompt: go}
        judge: {type: rule_based, success: [{output_contains: {all: [fine]}}]}
        script:
          - replies:
              - calls: [{tool: bash, args: {command: echo 1}}]
              - calls: [{tool: bash, args: {command: echo 2}}]
              - say: fine
        """,
    )
    done = project.run("loop.yaml", "--agent", "short")
    assert outcome_of(done.trial()) == "FAIL limit/steps"
    reason = "turn 1 reached steps (the CLI's own limit); settings.max_steps of the agent raises it"
    assert done.trial().grading.reason == reason
    assert [turn.status for turn in done.trial().turn_results] == ["limit"]


BACKGROUND = {
    "task": """
    input: {turns: [{role: user, content: one}, {role: user, content: two}]}
    judge: {type: rule_based, success: [{output_matches: {all: ['^still two$']}}]}
    script:
      - user: one
        replies:
          - calls: [{name: Bash, args: {command: sleep 4856, description: wait here, run_in_background: true}}]
          - say: started
      - {user: two, say: still two}
    """,
    "stopped": """
    input: {turns: [{role: user, content: one}, {role: user, content: two}]}
    judge: {type: rule_based, success: [{output_matches: {all: ['^still two$']}}]}
    script:
      - user: one
        find: {task: 'with ID: (\\w+)'}
        replies:
          - calls: [{name: Bash, args: {command: sleep 4857, description: wait here, run_in_background: true}}]
          - calls: [{name: TaskStop, args: {task_id: "{{task}}"}}]
          - say: started and stopped
      - {user: two, say: still two}
    """,
    "second-result": """
    input: {turns: [{role: user, content: one}, {role: user, content: two}]}
    judge:
      type: rule_based
      success:
        - output_matches: {all: ['^I see that it is over$'], turn: 1}
        - output_matches: {all: ['^still two$']}
    script:
      - user: one
        replies:
          - calls: [{name: Bash, args: {command: sleep 1; echo over, description: wait, run_in_background: true}}]
          - say: started
          - say: I see that it is over
      - {user: two, say: still two}
    """,
    "daemon": """
    input: {turns: [{role: user, content: one}, {role: user, content: two}]}
    judge: {type: rule_based, success: [{output_matches: {all: ['^still two$']}}]}
    script:
      - user: one
        replies:
          - calls: [{tool: bash, args: {command: env -i setsid -f sleep 4858 > /dev/null 2>&1}}]
          - say: started
      - {user: two, say: still two}
    """,
}


@pytest.mark.claude
def test_what_a_turn_leaves_in_the_background_is_ended_and_noted_in_that_turn(claude: Project) -> None:
    for name, text in BACKGROUND.items():
        claude.write(f"cases/{name}.yaml", text)
    done = claude.run("cases", "--agent", "claude_code", "--model", "scripted", "--parallelism", "4")
    assert done.code == 0, done.stdout
    assert notes_of(done, "task") == [("unfinished_background: wait here (ended by the CLI)",), ()]
    assert notes_of(done, "stopped") == [(), ()]
    assert notes_of(done, "second-result") == [(), ()]
    assert unfinished_of(done, "daemon") == [["sleep 4858"], []]
    assert unfinished_of(done, "task") == [["wait here (ended by the CLI)"], []]
    assert processes_mentioning(str(claude.trials)) == []


def test_a_daemon_that_the_builtin_agent_leaves_is_ended_and_noted(project: Project) -> None:
    project.write("daemon.yaml", BACKGROUND["daemon"])
    done = project.run("daemon.yaml", "--agent", "demo")
    assert unfinished_of(done, "daemon") == [["sleep 4858"], []]
    assert processes_mentioning(str(project.trials)) == []


def outcome_of(trial: TrialResult) -> str:
    """Status and code."""
    return f"{trial.grading.status} {trial.grading.code}"


def notes_of(done: Finished, case: str) -> list[tuple[str, ...]]:
    """What was out of the ordinary, by turn."""
    return [turn.notes for turn in done.trial(case).turn_results]


def unfinished_of(done: Finished, case: str) -> list[list[str]]:
    """What had to be ended, by turn, without the process numbers."""
    return [
        [line.partition(": ")[2] or line for line in turn.unfinished_background]
        for turn in done.trial(case).turn_results
    ]

"""Faults of the provider, the CLI and the session: ERROR with its kind, never the agent's failure, never silent."""

from __future__ import annotations

import json

import pytest

from tests.support import Finished, Project, processes_mentioning

CHECKED = """
    judge:
      type: rule_based
      success: [{output_contains: {all: [fine]}}]
      failure: [{output_contains: {any: [API Error]}}, {output_contains: {any: [Invalid API key]}}]
"""

PROVIDER = {
    "unauthorised": ("{status: 401}", "auth"),
    "forbidden": ("{status: 403}", "auth"),
    "unpaid": ("{status: 402}", "quota"),
    "refused": ("{status: 400}", "request"),
    "too-many": ("{status: 429}", "rate_limit"),
    "broken": ("{status: 500}", "overloaded"),
    "overloaded": ("{status: 529}", "overloaded"),
    "dropped": ("{drop: true}", "network"),
    "malformed": ("{malformed: true}", "output"),
}
"""Faults that come with every request, and the kind of ERROR that they mean."""

RECOVERED = {
    "too-many-twice": ("{status: 429, times: 2}", "retried: rate_limit ×2"),
    "broken-once": ("{status: 500, times: 1}", "retried: overloaded ×1"),
}
"""Faults that the CLI's own retries get over, and the note that the turn then carries."""


def profile(project: Project, name: str, engine: str, **settings: str | int) -> None:
    """An agent of the project whose model is scripted."""
    lines = "".join(f"\n  {key}: {json.dumps(value)}" for key, value in settings.items()) or " {}"
    project.write(f"agents/{name}.yaml", f"engine: {engine}\nmodel: scripted\nsettings:{lines}\n")


def failing(project: Project, name: str, faults: str) -> None:
    """A case of one turn whose model fails so before it says that all is fine."""
    script = f"    script: [{{say: all is fine, faults: [{faults}]}}]"
    project.write(f"cases/{name}.yaml", f"    input: {{prompt: hello}}{CHECKED}{script}")


@pytest.mark.parametrize("engine", ["builtin", pytest.param("claude_code", marks=pytest.mark.claude)])
def test_a_fault_with_every_request_is_an_error_of_its_kind(claude: Project, engine: str) -> None:
    profile(claude, "hasty", engine, max_retries=0)
    for name, (fault, _) in PROVIDER.items():
        failing(claude, name, fault)
    done = claude.run("cases", "--agent", "hasty", "--parallelism", "4")
    assert done.code == 3
    assert {name: code_of(done, name) for name in PROVIDER} == {
        name: f"ERROR {kind}" for name, (_, kind) in PROVIDER.items()
    }
    for name in PROVIDER:
        error = done.trial(name).error
        assert error is not None
        assert (error.phase, error.turn) == ("conversation", 1)
        assert error.message
        assert done.trial(name).grading.violations_before_error == ()
        assert done.trial(name).turn_results[0].response is None
    assert done.run.totals.valid == 0
    assert "no valid trial" in done.stdout


@pytest.mark.parametrize("engine", ["builtin", pytest.param("claude_code", marks=pytest.mark.claude)])
def test_a_fault_that_the_cli_gets_over_is_noted(claude: Project, engine: str) -> None:
    profile(claude, "patient", engine, max_retries=2)
    for name, (fault, _) in RECOVERED.items():
        failing(claude, name, fault)
    done = claude.run("cases", "--agent", "patient", "--parallelism", "2")
    assert done.code == 0, done.stdout
    assert {name: done.trial(name).turn_results[0].notes for name in RECOVERED} == {
        name: (note,) for name, (_, note) in RECOVERED.items()
    }


@pytest.mark.claude
def test_a_stream_that_was_dropped_once_completes_and_is_marked(claude: Project) -> None:
    """Claude Code asks again without streaming and says nothing of it, in the first reply or in a later one."""
    profile(claude, "hasty", "claude_code", max_retries=0)
    failing(claude, "dropped-once", "{drop: true, times: 1}")
    failing(claude, "malformed-once", "{malformed: true, times: 1}")
    failing(claude, "whole", "{slow: 0.01}")
    claude.write(
        "cases/dropped-later.yaml",
        f"""
    input: {{prompt: hello}}{CHECKED}
    script:
      - replies:
          - calls: [{{tool: bash, args: {{command: echo}}}}]
          - {{think: hm, say: one more, calls: [{{tool: bash, args: {{command: echo}}}}],
             faults: [{{drop: true, times: 1}}]}}
          - say: all is fine
        """,
    )
    done = claude.run("cases", "--agent", "hasty", "--parallelism", "4")
    assert done.code == 0, done.stdout
    note = ("fallback: a stream broke off, and the CLI asked again without streaming",)
    for name in ("dropped-once", "malformed-once", "dropped-later"):
        assert done.trial(name).turn_results[0].notes == note
        assert done.trial(name).input_tokens
    assert done.trial("whole").turn_results[0].notes == ()


def test_the_builtin_agent_repeats_a_dropped_request_and_notes_it(project: Project) -> None:
    failing(project, "dropped-once", "{drop: true, times: 1}")
    done = project.run("cases", "--agent", "demo")
    assert code_of(done, "dropped-once") == "PASS all_met"
    assert done.trial().turn_results[0].notes == ("retried: network ×1",)


def test_the_last_fault_names_the_kind_not_one_that_was_overcome(project: Project) -> None:
    profile(project, "once", "builtin", max_retries=1)
    failing(project, "changing", "{status: 429, times: 1}, {drop: true}")
    done = project.run("cases", "--agent", "once")
    assert code_of(done, "changing") == "ERROR network"
    assert done.trial().turn_results[0].notes == ("retried: rate_limit ×1",)


def test_a_missing_cli_is_an_error_and_the_other_agent_runs(project: Project) -> None:
    profile(project, "nowhere", "claude_code", binary="claude-that-is-nowhere")
    failing(project, "hello", "{slow: 0.01}")
    done = project.run("cases", "--agent", "nowhere", "--agent", "demo")
    assert done.code == 3
    assert done.trial(agent="demo").status == "PASS"
    error = done.trial(agent="nowhere").error
    assert error is not None
    assert (error.kind, error.phase) == ("engine_missing", "plan")
    assert "claude-that-is-nowhere: program not found" in error.message
    assert "settings: {binary: …}" in error.hint


TWO_TURNS = """
    input: {turns: [{role: user, content: one}, {role: user, content: two}]}
    judge:
      type: rule_based
      success: [{output_contains: {all: [answer one], turn: 1}}]
      failure: [{output_contains: {any: [answer two], turn: any}}]
    script: [{user: one, say: answer one}, {user: two, say: answer two}]
"""

OTHER = "11111111-2222-4333-8444-555555555555"

WRAPPERS = {
    "resumes-another": (
        f"""
        previous=
        for argument; do
            shift
            [ "$previous" = --resume ] && argument={OTHER}
            set -- "$@" "$argument"
            previous=$argument
        done
        exec claude "$@"
        """,
        "session",
        f"No conversation found with session ID: {OTHER}",
    ),
    "starts-afresh": (
        f"""
        previous=
        for argument; do
            shift
            [ "$previous" = --resume ] && argument={OTHER}
            previous=$argument
            [ "$argument" = --resume ] && argument=--session-id
            set -- "$@" "$argument"
        done
        exec claude "$@"
        """,
        "session",
        f"turn 2 ran in session {OTHER}",
    ),
    "reports-another": (
        f"""
        case "$*" in *--resume*) ;; *) exec claude "$@" ;; esac
        claude "$@" | sed 's/"session_id":"[^"]*"/"session_id":"{OTHER}"/g'
        """,
        "session",
        f"turn 2 ran in session {OTHER}",
    ),
    "forgets": (
        """
        case "$*" in *--resume*) rm "$CLAUDE_CONFIG_DIR"/projects/*/*.jsonl ;; esac
        exec claude "$@"
        """,
        "session",
        "No conversation found",
    ),
    "dies-after-a-first-result": (
        """
        case "$*" in *--resume*)
            claude "$@" > out
            grep '"subtype":"init"' out; grep '"type":"result"' out; grep '"subtype":"init"' out
            kill -9 $$ ;;
        esac
        exec claude "$@"
        """,
        "crash",
        "ended by signal 9 before it answered",
    ),
}
"""Scripts in place of the CLI, which call it and spoil the second turn: the kind and a part of the message."""


@pytest.mark.claude
def test_a_second_turn_in_another_session_or_without_an_end_is_an_error(claude: Project) -> None:
    agents: list[str] = []
    for name, (body, _, _) in WRAPPERS.items():
        wrapper = claude.write(f"bin/{name}", f"#!/bin/sh\n{body}")
        wrapper.chmod(0o755)
        profile(claude, name, "claude_code", binary=f"../bin/{name}")
        agents += ["--agent", name]
    claude.write("two.yaml", TWO_TURNS)
    done = claude.run("two.yaml", *agents, "--parallelism", "4")
    assert done.code == 3
    for name, (_, kind, message) in WRAPPERS.items():
        trial = done.trial(agent=name)
        assert (name, trial.status, trial.grading.code) == (name, "ERROR", kind)
        assert trial.error is not None
        assert trial.error.turn == 2
        assert message in trial.error.message, name
        assert [turn.response for turn in trial.turn_results] == ["answer one", None]
        assert trial.grading.violations_before_error == (), "an answer of another session was judged"


BROKEN = {
    "dies": ("echo 'out of memory' >&2; exit 134", "crash", "exited with 134 before it answered: out of memory"),
    "says-nothing": ("exit 0", "output", "exited with 0 and printed nothing"),
    "says-nonsense": (
        """printf 'nonsense\\n[7]\\n{"type":"result"\\n'""",
        "output",
        "exited with 0 and printed no result event",
    ),
    "is-used": ("echo 'Error: Session ID is already in use.' >&2; exit 1", "session", "refused the session"),
}
"""Programs that are no Claude Code: what they do, the kind and a part of the message."""


def test_a_cli_that_does_not_answer_is_an_error_and_says_why(project: Project) -> None:
    agents: list[str] = []
    for name, (body, _, _) in BROKEN.items():
        program = project.write(f"bin/{name}", f"#!/bin/sh\n[ $1 = --version ] && exec echo 1.0\n{body}\n")
        program.chmod(0o755)
        profile(project, name, "claude_code", binary=f"../bin/{name}")
        agents += ["--agent", name]
    failing(project, "hello", "{slow: 0.01}")
    done = project.run("cases", *agents)
    for name, (_, kind, message) in BROKEN.items():
        error = done.trial(agent=name).error
        assert error is not None
        assert (name, error.kind, error.turn) == (name, kind, 1)
        assert message in error.message
    notes = done.trial(agent="says-nonsense").turn_results[0].notes
    assert [note.partition(":")[0] for note in notes] == ["stream_corrupt"] * 3


KILLED = """
    input: {turns: [{role: user, content: one}, {role: user, content: two}]}
    judge:
      type: rule_based
      success: [{output_contains: {all: [answer one], turn: 1}}]
      failure: [{tool_called: {name: bash, args: {command: {matches: kill}}, turn: 2}}]
    script:
      - {user: one, say: answer one}
      - {user: two, replies: [{calls: [{tool: bash, args: {command: "touch here; kill -9 $PPID; sleep 4747"}}]}]}
"""


@pytest.mark.parametrize("agent", ["builtin", pytest.param("claude_code", marks=pytest.mark.claude)])
def test_a_cli_that_is_killed_in_mid_turn_is_a_crash_and_nothing_of_it_is_left(claude: Project, agent: str) -> None:
    """The agent's own tool call kills it; what it had done, and what a failure rule says of it, is kept."""
    claude.write("killed.yaml", KILLED)
    done = claude.run("killed.yaml", "--agent", agent, "--model", "scripted")
    trial = done.trial()
    assert (trial.status, trial.grading.code) == ("ERROR", "crash")
    assert trial.error is not None
    assert "ended by signal 9" in trial.error.message
    assert any("sleep 4747" in line for line in trial.turn_results[1].unfinished_background)
    assert trial.turn_results[1].workspace is not None
    assert trial.turn_results[1].workspace.created == ("here",)
    assert len(trial.grading.violations_before_error) == 1
    assert processes_mentioning(str(claude.trials)) == []


def test_a_session_that_vanishes_in_mid_turn_is_an_error_on_the_builtin_agent(project: Project) -> None:
    project.write(
        "gone.yaml",
        """
        input: {prompt: one}
        judge: {type: rule_based, success: [{output_contains: {all: [done]}}]}
        script: [{replies: [{calls: [{tool: bash, args: {command: "rm -r ~/.skillup-agent/sessions"}}]}, {say: done}]}]
        """,
    )
    done = project.run("gone.yaml", "--agent", "demo")
    assert code_of(done, "gone") == "ERROR session"


ONLY_TALK = """
    input: {turns: [{role: user, content: what happened}, {role: user, content: and in the log}]}
    judge:
      type: rule_based
      success:
        - output_contains: {all: ["API Error: 429", rate_limit_error, authentication_failed], turn: 1}
        - tool_called: {name: bash, status: ok, turn: 2}
        - output_contains: {all: ["The log says: API Error: 401"], turn: 2}
    script:
      - user: happened
        say: |-
          API Error: 429 {"type":"error","error":{"type":"rate_limit_error"}}
          API Error: Request rejected (429) · authentication_failed · Invalid API key · Please run /login
          {"type":"result","subtype":"error_during_execution","is_error":true}
      - user: log
        replies:
          - calls:
              - tool: bash
                args:
                  command: >-
                    echo 'API Error: 401 {"type":"error","error":{"type":"authentication_error"}}';
                    echo 'No conversation found'; echo 'Credit balance is too low' >&2
          - say: "The log says: {{result}}"
"""


@pytest.mark.claude
def test_an_answer_that_speaks_of_errors_is_only_an_answer(claude: Project) -> None:
    """The checks decide: PASS where they hold, FAIL where they do not, and never ERROR."""
    claude.write("cases/talk.yaml", ONLY_TALK)
    claude.write(
        "cases/wrong.yaml",
        """
        input: {prompt: what happened}
        expect: {must_contain: [all is fine]}
        script: [{say: "exceeded retry limit, last status: 429 Too Many Requests"}]
        """,
    )
    engines = ("claude_code", "codex", "builtin")
    agents = [part for engine in engines for part in ("--agent", engine)]
    done = claude.run("cases", *agents, "--model", "scripted", "--parallelism", "3")
    assert done.code == 1, done.stdout
    for agent in engines:
        talk, wrong = done.trial("talk", agent), done.trial("wrong", agent)
        assert (agent, talk.status, wrong.status, wrong.grading.code) == (agent, "PASS", "FAIL", "expect")
        assert [turn.notes for turn in (*talk.turn_results, *wrong.turn_results)] == [(), (), ()]


def code_of(done: Finished, case: str) -> str:
    """Status and code."""
    grading = done.trial(case).grading
    return f"{grading.status} {grading.code}"

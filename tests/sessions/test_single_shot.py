"""Agents that cannot resume a session: all turns in one message where that is allowed, and never in silence."""

from __future__ import annotations

import json

import pytest

from skillup.execution.single_shot import needs_turns
from skillup.spec.case import Case
from tests.support import Project

CANNOT = "engine: builtin\nmodel: scripted\nsettings: {sessions: false}\n"

CASE = """
    vars: {bird: heron}
    input: {turns: [{role: user, content: "Remember the {{bird}}."}, {role: user, content: "Which bird was it?"}]}
    judge: {type: rule_based, success: [{output_contains: {all: [heron]}}, {tool_called: {name: bash}}]}
    script: [{replies: [{calls: [{tool: bash, args: {command: ls}}]}, {say: a heron}]}]
"""


def cannot(project: Project, name: str = "cannot", more: str = "") -> str:
    project.write(f"agents/{name}.yaml", CANNOT + more)
    return name


@pytest.mark.parametrize("said_by", ["suite", "profile", "command line"])
def test_all_turns_go_out_as_one_message_and_the_result_says_so(project: Project, said_by: str) -> None:
    agent = cannot(project, more="fallback: single_shot\n" if said_by == "profile" else "")
    project.write("cases/bird.yaml", CASE)
    suite = "schema_version: v1alpha1\ncases: {files: [cases/*.yaml]}\n"
    project.write("eval.yaml", suite + ("fallback: single_shot\n" if said_by == "suite" else ""))
    options = ("--fallback", "single_shot") if said_by == "command line" else ()
    done = project.run("eval.yaml", "--agent", agent, *options)
    assert done.code == 0, done.stdout + done.stderr
    trial = done.trial()
    assert (trial.status, trial.execution_mode, trial.continuity) == ("PASS", *["single_shot_fallback"] * 2)
    (turn,) = trial.turn_results
    assert "Message 1 of 2:\nRemember the heron.\n\nMessage 2 of 2:\nWhich bird was it?" in turn.content
    asked = [request["body"]["messages"][-1]["content"] for request in done.requests()]
    assert json.dumps(asked[0]).count("Message 2 of 2") == 1
    record = json.loads((done.folder() / "record.json").read_text())
    assert (record["execution_mode"], record["turns_total"]) == ("single_shot_fallback", 1)


def test_without_leave_it_is_an_error_that_says_how_to_give_it(project: Project) -> None:
    agent = cannot(project)
    project.write("bird.yaml", CASE)
    done = project.run("bird.yaml", "--agent", agent, "--agent", "demo")
    error = done.trial(agent=agent).error
    assert error is not None
    assert (error.kind, error.phase) == ("session", "plan")
    assert error.message == "cannot cannot resume a session, and the case bird has 2 turns"
    assert "`fallback: single_shot` in the suite or profile, or --fallback" in error.hint
    assert done.trial(agent="demo").status == "PASS", "an agent that resumes is asked turn by turn"


def test_an_agent_that_resumes_does_so_whatever_is_allowed(project: Project) -> None:
    project.write("bird.yaml", CASE)
    trial = project.run("bird.yaml", "--agent", "demo", "--fallback", "single_shot").trial()
    assert (trial.execution_mode, trial.continuity, trial.turns) == ("multi_turn", "resumed", 2)


def test_a_single_turn_needs_no_leave(project: Project) -> None:
    agent = cannot(project)
    project.write("one.yaml", "{input: {prompt: go}, expect: {must_contain: [done]}, script: [{say: done}]}")
    trial = project.run("one.yaml", "--agent", agent).trial()
    assert (trial.status, trial.execution_mode, trial.continuity) == ("PASS", "single_turn", "resumed")


GATE = "post_condition: {must_contain_any: [ready]}"
NEEDS = {
    "a gate": (GATE, "", "the gate of turn 1"),
    "a capture": ("capture: [{variable: x, pattern: (a)}]", "", "the capture of 'x' in turn 1"),
    "two of them": (GATE + ", capture: [{variable: x, pattern: (a)}]", "", "the gate of turn 1 (and 1 more)"),
    "a rule on a turn": ("", ", turn: 1", "`turn: 1` of judge.success[0]"),
    "a rule on any turn": ("", ", turn: any", "`turn: any` of judge.success[0]"),
    "a rule on the last turn": ("", ", turn: last", "`turn: last` of judge.success[0]"),
    "a limit of a turn": ("timeout_seconds: 5", "", "timeout_seconds of turn 1"),
    "a slash command": ("slash_command: true", "", "the slash command of turn 1"),
}


@pytest.mark.parametrize(("turn", "rule", "needed"), NEEDS.values(), ids=NEEDS)
def test_what_depends_on_a_single_turn_needs_the_resume(project: Project, turn: str, rule: str, needed: str) -> None:
    agent = cannot(project, more="fallback: single_shot\n")
    project.write(
        "needs.yaml",
        f"""
        input: {{turns: [{{role: user, content: /one, {turn or "turn_delay: 0"}}}, {{role: user, content: two}}]}}
        judge: {{type: rule_based, success: [{{output_contains: {{all: [x]{rule}}}}}]}}
        script: [{{say: x}}]
        """,
    )
    done = project.run("needs.yaml", "--agent", agent)
    assert done.code == 3, done.stderr
    error = done.trial().error
    assert error is not None
    assert error.kind == "session"
    assert error.message == f"cannot cannot resume a session, and the case needs needs it for {needed}"


@pytest.mark.parametrize(
    ("milestone", "needed"),
    [
        ("{files_exist: [done.txt]}", "cannot cannot resume a session, and the case needs needs it for "),
        ("{output_contains: {all: [done]}}", "cannot cannot resume a session, and the case needs needs it for "),
        ("{tool_called: {name: read}}", ""),
    ],
)
def test_a_milestone_that_a_turn_brings_about_needs_the_resume(project: Project, milestone: str, needed: str) -> None:
    """With one turn no call can come after it, and the rule would hold whatever the agent did."""
    agent = cannot(project, more="fallback: single_shot\n")
    project.write(
        "needs.yaml",
        f"""
        input: {{turns: [{{role: user, content: one}}, {{role: user, content: two}}]}}
        judge: {{type: rule_based, success: [{{max_calls_after: {{rule: {milestone}, n: 0}}}}]}}
        script: [{{say: done}}]
        """,
    )
    error = project.run("needs.yaml", "--agent", agent).trial().error
    after = "`max_calls_after` of judge.success[0], which looks for its milestone after each turn"
    assert (error.message if error else "") == (needed and needed + after)


def test_a_captured_value_in_a_message_is_what_needs_it() -> None:

    case = Case.model_validate(
        {
            "id": "a",
            "input": {
                "turns": [
                    {"role": "user", "content": "one", "capture": [{"variable": "x", "pattern": "(a)"}]},
                    {"role": "user", "content": "say {{x}} and {{y}}"},
                ]
            },
            "vars": {"y": "why"},
            "judge": {"type": "none"},
        }
    )
    assert needs_turns(case) == ("the capture of 'x' in turn 1", "{{x}} in turn 2")


def test_it_is_shown_wherever_the_result_is(project: Project) -> None:
    agent = cannot(project, more="fallback: single_shot\n")
    project.write("bird.yaml", CASE)
    done = project.run("bird.yaml", "--agent", agent, "--format", "junit")
    assert "single_shot_fallback" in (done.directory / "report.xml").read_text()
    assert "all turns were sent as one message" in done.stdout

"""Codex resumes its own thread and no other: mixed with Claude Code, spoiled on purpose, and never started afresh."""

from __future__ import annotations

import json

import pytest

from tests.claude.test_sessions import CASE, NUMBERS
from tests.claude.test_sessions import TREES as ALL_TREES
from tests.support import Project

TREES = ALL_TREES[:8]


@pytest.mark.claude
def test_sixteen_mixed_conversations_at_once_stay_apart(claude: Project) -> None:
    """Eight on each CLI, eight at a time: every answer holds its own words, and no address saw another's."""
    agents = ("codex", "claude_code")
    for tree in TREES:
        claude.write(f"cases/{tree}.yaml", CASE.format(tree=tree))
    options = ("--agent", "codex", "--agent", "claude_code", "--model", "scripted", "--parallelism", "8")
    done = claude.run("cases", *options)
    assert done.code == 0, done.stdout
    ids = [done.trial(tree, agent).session_ids for tree in TREES for agent in agents]
    assert len({identity for (identity,) in ids}) == 16
    for tree in TREES:
        for agent in agents:
            words = [f"SECRET-{tree}-{number}" for number in NUMBERS]
            trial = done.trial(tree, agent)
            assert [t.response for t in trial.turn_results] == [f"I know {', '.join(words[:n])}" for n in range(1, 5)]
            assert {turn.session_id for turn in trial.turn_results} == set(trial.session_ids)
            seen = (done.folder(tree, agent) / "requests.jsonl").read_text(encoding="utf-8")
            assert all(word in seen for word in words)
            assert [other for other in TREES if other != tree and f"SECRET-{other}" in seen] == []


TWO_TURNS = """
    input: {turns: [{role: user, content: one}, {role: user, content: two}]}
    judge:
      type: rule_based
      success: [{output_contains: {all: [answer one], turn: 1}}]
      failure: [{output_contains: {any: [answer two], turn: any}}]
    script: [{user: one, say: answer one}, {user: two, say: answer two}]
"""

OTHER = "11111111-2222-4333-8444-555555555555"

REPLACE = """
    for argument; do
        shift
        case $argument in ????????-????-????-????-????????????) argument={other} ;; esac
        set -- "$@" "$argument"
    done
    exec codex "$@"
"""

WRAPPERS = {
    "resumes-an-unknown-id": (REPLACE.format(other=OTHER), "no rollout found"),
    "resumes-a-name": (REPLACE.format(other="some-name"), "but this trial is bound to"),
    "forgets": (
        """
        case "$*" in *resume*) rm -r "$CODEX_HOME"/sessions "$CODEX_HOME"/*.sqlite* ;; esac
        exec codex "$@"
        """,
        "no rollout found",
    ),
    "reports-another": (
        f"""
        case "$*" in *resume*) ;; *) exec codex "$@" ;; esac
        codex "$@" | sed 's/"thread_id":"[^"]*"/"thread_id":"{OTHER}"/'
        """,
        f"turn 2 ran in session {OTHER}",
    ),
}
"""Scripts in place of the CLI, which call it and spoil the second turn; and a part of the message."""


def test_a_second_turn_in_another_thread_is_an_error_and_no_new_one_is_started(claude: Project) -> None:
    agents: list[str] = []
    spoiled = {name: entry for name, entry in WRAPPERS.items() if entry[1]}
    for name, (body, _) in spoiled.items():
        wrapper = claude.write(f"bin/{name}", f"#!/bin/sh\n{body}")
        wrapper.chmod(0o755)
        claude.write(f"agents/{name}.yaml", f"engine: codex\nmodel: scripted\nsettings: {{binary: ../bin/{name}}}\n")
        agents += ["--agent", name]
    claude.write("two.yaml", TWO_TURNS)
    done = claude.run("two.yaml", *agents, "--parallelism", "4")
    assert done.code == 3
    for name, (_, message) in spoiled.items():
        trial = done.trial(agent=name)
        assert (name, trial.status, trial.grading.code) == (name, "ERROR", "session")
        assert trial.error is not None
        assert trial.error.turn == 2
        assert message in trial.error.message, (name, trial.error.message)
        assert [turn.response for turn in trial.turn_results] == ["answer one", None]
        assert trial.grading.violations_before_error == ()


def test_tokens_of_a_turn_are_its_own_although_the_cli_counts_the_thread(claude: Project) -> None:
    claude.write("two.yaml", TWO_TURNS.replace("failure:", "failure: [{output_contains: {any: [never]}}]\n      #"))
    done = claude.run("two.yaml", "--agent", "codex", "--model", "scripted")
    first, second = (turn.usage for turn in done.trial().turn_results)
    asked = [request["body"] for request in done.requests()]
    assert len(asked) == 2
    assert first.basis == second.basis == "cumulative_delta"
    assert first.input_tokens is not None
    assert second.input_tokens is not None
    assert second.input_tokens < 1.5 * first.input_tokens, "turn 1 was counted again"
    assert done.trial().usage.input_tokens == first.input_tokens + second.input_tokens


def test_a_read_only_session_stays_read_only_when_it_is_resumed(claude: Project) -> None:
    claude.write("agents/careful.yaml", "engine: codex\nmodel: scripted\nsettings: {sandbox: read-only}\n")
    claude.write(
        "writes.yaml",
        """
        input: {turns: [{role: user, content: one}, {role: user, content: two}]}
        judge:
          type: rule_based
          success:
            - workspace_changed: {only: []}
            - tool_called: {name: bash, status: error, turn: 2}
        script:
          - {user: one, say: ready}
          - {user: two, replies: [{calls: [{tool: bash, args: {command: "echo x > made.txt"}}]}, {say: tried}]}
        """,
    )
    done = claude.run("writes.yaml", "--agent", "careful", "-v")
    assert done.trial().status == "PASS", done.stdout
    turns = json.loads((done.folder() / "record.json").read_text())["turns"]
    assert [turn["policy"]["permission_mode"] for turn in turns] == ["read-only", "read-only"]

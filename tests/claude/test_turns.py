"""A turn's rules, calls, changes, tokens and money are those of that turn, though the session holds all of them."""

from __future__ import annotations

import json

import pytest

from skillup.modelserver.anthropic import AnthropicMessages
from skillup.modelserver.source import tokens
from tests.support import Finished, Project

AGENTS = pytest.mark.parametrize("agent", ["builtin", pytest.param("claude_code", marks=pytest.mark.claude)])

CASE = """
    input:
      turns:
        - {role: user, content: first write it down}
        - {role: user, content: second say nothing new}
        - {role: user, content: third change it}
    judge:
      type: rule_based
      success:
        - tool_called: {name: bash, args: {command: {matches: alpha}}, count: 1, turn: 1}
        - tool_not_called: {name: bash, turn: 2}
        - tool_called: {name: bash, args: {command: {matches: beta}}, count: 1, turn: 3}
        - tool_called: {name: bash, count: 2}
        - output_contains: {all: [written], not: [alpha], turn: 1}
        - output_contains: {all: [nothing], not: [written], turn: 2}
        - output_contains: {not: [nothing, written], turn: 3}
        - workspace_changed: {created: [note.txt], only: [note.txt], turn: 1}
        - workspace_changed: {only: [], turn: 2}
        - workspace_changed: {changed: [note.txt], only: [note.txt], turn: 3}
        - file_contains: {path: note.txt, content: alpha, turn: 2}
        - file_contains: {path: note.txt, content: beta, turn: 3}
    script:
      - user: first
        replies:
          - calls: [{tool: bash, args: {command: "echo alpha > note.txt"}}]
          - say: written
      - {user: second, say: "nothing but a longer sentence, so that its tokens can be told from those of the others"}
      - user: third
        replies:
          - calls: [{tool: bash, args: {command: "echo beta > note.txt"}}]
          - say: changed
"""

MISPLACED = """
    input: {turns: [{role: user, content: first}, {role: user, content: second}]}
    judge:
      type: rule_based
      success:
        - tool_called: {name: bash, turn: 2}
        - output_contains: {all: [written], turn: 2}
        - workspace_changed: {created: [note.txt], turn: 2}
    script:
      - {user: first, replies: [{calls: [{tool: bash, args: {command: "echo > note.txt"}}]}, {say: written}]}
      - {user: second, say: done}
"""


@AGENTS
def test_rules_of_a_turn_see_that_turn_only(claude: Project, agent: str) -> None:
    claude.write("cases/placed.yaml", CASE)
    claude.write("cases/misplaced.yaml", MISPLACED)
    done = claude.run("cases", "--agent", agent, "--model", "scripted", "--parallelism", "2")
    assert [a.evidence for a in done.trial("placed").grading.assertion_results if a.state != "met"] == []
    misplaced = done.trial("misplaced").grading
    assert misplaced.status == "FAIL"
    assert [assertion.state for assertion in misplaced.assertion_results] == ["not_met"] * 3
    assert "turn 1: bash" in misplaced.assertion_results[0].evidence
    assert "turn 1" in misplaced.assertion_results[1].evidence
    placed = done.trial("placed")
    assert [turn.tool_calls for turn in placed.turn_results] == [("bash",), (), ("bash",)]
    assert_counted_once(done)


def assert_counted_once(done: Finished) -> None:
    """Each turn's tokens are those of its own requests, and the trial's are their sum."""
    trial = done.trial("placed")
    answered = [
        AnthropicMessages().conversation(request["path"], request["body"]) for request in done.requests("placed")
    ]
    asked = [tokens(conversation.characters) for conversation in answered]
    per_turn = [asked[0] + asked[1], asked[2], asked[3] + asked[4]]
    assert [turn.usage.input_tokens for turn in trial.turn_results] == per_turn
    said = [tokens(len(turn.response or "")) for turn in trial.turn_results]
    called = [called_tokens(request) for request in done.requests("placed")]
    written = [called[1] + said[0], said[1], called[4] + said[2]]
    assert [turn.usage.output_tokens for turn in trial.turn_results] == written
    assert (trial.input_tokens, trial.output_tokens) == (sum(per_turn), sum(written))
    costs = [turn.usage.cost_usd for turn in trial.turn_results]
    assert trial.cost_usd == (None if None in costs else pytest.approx(sum(cost or 0 for cost in costs)))


def called_tokens(request: dict[str, object]) -> int:
    """The output tokens of the last tool call that a request holds: what the reply before it was counted as."""
    body = request["body"]
    assert isinstance(body, dict)
    calls = [
        block
        for message in body["messages"]
        if message["role"] == "assistant"
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "tool_use"
    ]
    return tokens(len(calls[-1]["name"]) + len(json.dumps(calls[-1]["input"]))) if calls else 0

"""The main job, once through, on both engines."""

from __future__ import annotations

import pytest

from tests.support import Project

CASE = """
    title: a ticket is made, and closed by its number
    input:
      turns:
        - role: user
          content: create a ticket
          post_condition: {must_contain_any: ["T-"]}
          capture: [{variable: ticket, pattern: '(T-\\d+)'}]
        - role: user
          content: close {{ticket}}
    judge:
      type: rule_based
      success:
        - tool_called: {name: bash, args: {command: {matches: echo}}, turn: 1}
        - output_contains: {all: [closed T-42]}
        - file_contains: {path: tickets.txt, content: T-42}
    script:
      - user: create a ticket
        replies:
          - calls: [{tool: bash, args: {command: "echo T-42 > tickets.txt; cat tickets.txt"}}]
          - say: "Created {{result}}"
      - {user: close T-42, say: closed T-42}
"""


@pytest.mark.parametrize("agent", ["builtin", "claude_code"])
def test_a_case_of_two_turns_passes_in_one_native_session(claude: Project, agent: str) -> None:
    claude.write("ticket.yaml", CASE)
    done = claude.run("ticket.yaml", "--agent", agent, "--model", "scripted")
    assert done.code == 0, done.stderr
    trial = done.trial()
    assert trial.status == "PASS"
    assert len(trial.session_ids) == 1
    assert [turn.content for turn in trial.turn_results] == ["create a ticket", "close T-42"]

"""How canonical calls reach each engine's own tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.modelserver.source import ToolCall, ToolOffer
from skillup.modelserver.tools import OFFERED_TOOLS, own_call
from skillup.spec.script_parts import TOOL_ARGUMENTS
from skillup.transcript import CANONICAL_TOOLS

CLAUDE_CODE = (
    "Agent",
    "Bash",
    "Edit",
    "Glob",
    "Grep",
    "Read",
    "Skill",
    "TaskCreate",
    "WebFetch",
    "WebSearch",
    "Write",
)
BUILT_IN = ("bash", "read", "write", "edit")


def call(tool: str, args: dict[str, Any], offered: tuple[str, ...]) -> ToolCall | None:
    return own_call(tool, args, [ToolOffer(name, {}) for name in offered], Path("/ws"))


@pytest.mark.parametrize(
    ("tool", "args", "own"),
    [
        ("bash", {"command": "ls"}, ToolCall("Bash", {"command": "ls"})),
        ("read", {"path": "a.txt"}, ToolCall("Read", {"file_path": "/ws/a.txt"})),
        ("read", {"path": "/etc/hosts"}, ToolCall("Read", {"file_path": "/etc/hosts"})),
        ("write", {"path": "a", "content": "x"}, ToolCall("Write", {"file_path": "/ws/a", "content": "x"})),
        (
            "edit",
            {"path": "a", "old": "x", "new": "y"},
            ToolCall("Edit", {"file_path": "/ws/a", "old_string": "x", "new_string": "y"}),
        ),
        ("grep", {"pattern": "x", "path": "src"}, ToolCall("Grep", {"pattern": "x", "path": "src"})),
        ("skill", {"name": "greet", "args": "bob"}, ToolCall("Skill", {"skill": "greet", "args": "bob"})),
        ("web_fetch", {"url": "u", "prompt": "p"}, ToolCall("WebFetch", {"url": "u", "prompt": "p"})),
        ("todo", {"text": "t"}, ToolCall("TaskCreate", {"subject": "t", "description": "t"})),
        (
            "subagent",
            {"prompt": "p", "description": "d", "type": "Explore"},
            ToolCall("Agent", {"description": "d", "prompt": "p", "subagent_type": "Explore"}),
        ),
    ],
)
def test_claude_code_gets_its_own_names(tool: str, args: dict[str, Any], own: ToolCall) -> None:
    assert call(tool, args, CLAUDE_CODE) == own


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("bash", {"command": "ls"}),
        ("read", {"path": "a"}),
        ("write", {"path": "a", "content": "x"}),
        ("edit", {"path": "a", "old": "x", "new": "y"}),
    ],
)
def test_the_built_in_agent_speaks_the_canonical_names(tool: str, args: dict[str, Any]) -> None:
    assert call(tool, args, BUILT_IN) == ToolCall(tool, args)


def test_a_subagent_has_defaults() -> None:
    own = call("subagent", {"prompt": "p"}, ("Task",))
    assert own is not None
    assert own.args["subagent_type"] == "general-purpose"


def test_a_question_has_options() -> None:
    own = call("ask_user", {"question": "Sure?", "options": ["a", "b"]}, ("AskUserQuestion",))
    assert own is not None
    assert [option["label"] for option in own.args["questions"][0]["options"]] == ["a", "b"]


def test_an_mcp_tool_keeps_its_arguments() -> None:
    assert call("mcp:tiny/add", {"a": 1}, ("mcp__tiny__add",)) == ToolCall("mcp__tiny__add", {"a": 1})
    assert call("mcp:tiny/add", {"a": 1}, CLAUDE_CODE) is None


def test_what_is_not_offered_is_not_called() -> None:
    assert call("glob", {"pattern": "*"}, BUILT_IN) is None
    assert call("bash", {"command": "ls"}, ()) is None


def test_scripts_know_every_canonical_tool_and_every_row_is_of_one() -> None:
    assert set(TOOL_ARGUMENTS) == set(CANONICAL_TOOLS) - {"other"}
    assert {row.canonical for rows in OFFERED_TOOLS.values() for row in rows} == set(TOOL_ARGUMENTS)

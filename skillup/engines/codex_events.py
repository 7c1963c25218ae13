"""What the lines of `codex exec --json` mean, and what its file of the thread adds.

Measured on 0.169.0 (tests/engines/recordings/codex/).

Terminal events are `turn.completed` and `turn.failed` alone; a top-level `error` may be a mere retry. Usage counts the
whole thread.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skillup.engines.events import (
    Called,
    EngineFault,
    Event,
    Failing,
    Finished,
    Noted,
    Retrying,
    Returned,
    Said,
    SessionSeen,
    Thought,
    Withheld,
    Working,
    inside_workspace,
)
from skillup.engines.faults import CODEX
from skillup.engines.lines import parse_object
from skillup.transcript import CallStatus, Usage

_NOT_APPROVED = ("user cancelled MCP tool call", "MCP tool call cancelled before approval")
"""What it says of calls that it asks somebody to approve; `codex exec` asks nobody, and cancels them."""

_RETRY = re.compile(r"Reconnecting\.\.\.(?: (\d+)/\d+)?(?: \((.*)\))?", re.DOTALL)
_SKILL = re.compile(r"<skill>\n<name>([^<\n]+)</name>\n<path>([^<\n]+)</path>\n")


def events_of(line: bytes, workspace: Path) -> tuple[Event, ...]:
    """What one line of its output means.

    Raises:
        ValueError: the line is not an event of the CLI.
    """
    event = parse_object(line)
    try:
        return _meaning(event, workspace)
    except (AttributeError, KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"not an event of Codex: {type(error).__name__}: {error}") from error


def _meaning(event: dict[str, Any], workspace: Path) -> tuple[Event, ...]:
    match event.get("type"):
        case "thread.started":
            return (SessionSeen(str(event["thread_id"])),)
        case "item.started" | "item.updated" | "item.completed":
            return _item(event["item"], workspace, done=event["type"] == "item.completed")
        case "error":
            return _error(str(event.get("message", "")))
        case "turn.completed":
            return (Finished(text=None, usage=_usage(event.get("usage") or {})),)
        case "turn.failed":
            message = str((event.get("error") or {}).get("message", "the turn failed"))
            return (Finished(text=None, usage=Usage(), fault=CODEX.told(message)),)
    return ()


def turns_in(lines: Sequence[bytes]) -> int:
    """How many turns the thread's file holds, whoever began them."""
    return sum(_begins_a_turn(line) for line in lines)


def _begins_a_turn(line: bytes) -> bool:
    if b'"task_started"' not in line:
        return False
    try:
        payload = parse_object(line).get("payload")
    except ValueError:
        return False
    return isinstance(payload, dict) and payload.get("type") == "task_started"


def hidden_events(lines: Sequence[bytes], workspace: Path) -> tuple[Event, ...]:
    """Calls of the last turn in the thread's file that the stream does not show, and skills that the CLI put in.

    A call that the stream shows has an `item_completed` with its id beside it; one without was refused by the CLI
    itself (an unknown tool, bad arguments, a patch that does not apply), or by its sandbox.
    """
    skills: list[Event] = []
    calls: dict[str, dict[str, Any]] = {}
    outputs: dict[str, str] = {}
    shown: set[str] = set()
    for line in lines:
        try:
            entry = parse_object(line)
        except ValueError:
            continue
        payload = entry.get("payload")
        kind = payload.get("type") if isinstance(payload, dict) else None
        if entry.get("type") == "turn_context":
            skills, calls, outputs, shown = [], {}, {}, set()
        elif not isinstance(payload, dict):
            continue
        elif kind in ("function_call", "custom_tool_call"):
            calls[str(payload.get("call_id"))] = payload
        elif kind in ("function_call_output", "custom_tool_call_output"):
            outputs[str(payload.get("call_id"))] = _output_text(payload.get("output"))
        elif kind in ("item_completed", "item_started") and isinstance(payload.get("item"), dict):
            shown.add(str(payload["item"].get("id")))
        elif kind == "message":
            skills += _injected(payload)
    found = skills
    for call_id, payload in calls.items():
        if call_id not in shown and call_id in outputs:
            found += _hidden_call(call_id, payload, outputs[call_id], workspace)
    return tuple(found)


def _injected(payload: dict[str, Any]) -> list[Event]:
    """A skill whose text the CLI put into the conversation, because the user's message names it as `$name`."""
    passed = payload.get("internal_chat_message_metadata_passthrough")
    kinds = passed.get("content_item_kinds") if isinstance(passed, dict) else None
    text = _output_text(payload.get("content"))
    named = _SKILL.match(text)
    if named is None or payload.get("role") != "user" or not isinstance(kinds, list):
        return []
    if not any(str(kind).startswith("skills.") for kind in kinds):
        return []
    identity, arguments = str(payload.get("id")), {"name": named[1]}
    call = Called(identity, "skill", {"path": named[2]}, "skill", arguments, basis="session_file")
    return [call, Returned(identity, "ok", text)]


def _error(message: str) -> tuple[Event, ...]:
    """A top-level `error`: a retry where it says so, else the reason of the `turn.failed` that follows."""
    retry = _RETRY.match(message)
    if retry:
        return (Retrying(CODEX.told(retry.group(2) or message), int(retry.group(1) or 0)),)
    return (Failing(CODEX.told(message)),)


def _item(item: dict[str, Any], workspace: Path, *, done: bool) -> tuple[Event, ...]:
    identity = str(item.get("id", ""))
    match item.get("type"):
        case "agent_message":
            return (Said(str(item.get("text", ""))),)
        case "reasoning":
            return (Thought(str(item.get("text", ""))),)
        case "error":
            return (Noted("warning", str(item.get("message", ""))),)
        case "command_execution":
            command = unwrapped(str(item.get("command", "")))
            call = Called(identity, "command_execution", {"command": item.get("command")}, "bash", {"command": command})
            status: CallStatus = "ok" if item.get("exit_code") == 0 else "error"
            return _call(call, status, str(item.get("aggregated_output", "")), done=done)
        case "file_change":
            return tuple(
                event
                for index, change in enumerate(item.get("changes") or ())
                for event in _file_change(f"{identity}.{index}", change, item, workspace, done=done)
            )
        case "mcp_tool_call":
            name = f"mcp:{item.get('server')}/{item.get('tool')}"
            arguments = dict(item.get("arguments") or {})
            call = Called(identity, f"mcp__{item.get('server')}__{item.get('tool')}", arguments, name, arguments)
            text = _output_text((item.get("result") or {}).get("content") or (item.get("error") or {}).get("message"))
            if item.get("error") and any(words in text for words in _NOT_APPROVED):
                message = f"Codex cancelled the call of {name}, because nobody was there to approve it"
                hint = "let the tool run without approval in the server's configuration"
                return (*_call(call, "denied", text, done=True), Withheld(EngineFault("setup", message, hint=hint)))
            return _call(call, "ok" if item.get("status") == "completed" else "error", text, done=done)
        case "collab_tool_call" if item.get("tool") == "spawn_agent":
            arguments = {"prompt": item.get("prompt")}
            call = Called(identity, "spawn_agent", arguments, "subagent", arguments)
            return _call(call, "ok" if item.get("status") == "completed" else "error", "", done=done)
        case "web_search":
            arguments = {"query": item.get("query")}
            return _call(Called(identity, "web_search", arguments, "web_search", arguments), "ok", "", done=done)
        case "todo_list":
            arguments = {"items": item.get("items")}
            return _call(Called(identity, "update_plan", arguments, "todo", arguments), "ok", "", done=done)
    return (Working(),)


def _call(call: Called, status: CallStatus, content: str, *, done: bool) -> tuple[Event, ...]:
    """The call alone while it runs; with its result when it is done (some items have no start)."""
    return (call, Returned(call.id, status, content)) if done else (call,)


def _file_change(
    identity: str, change: dict[str, Any], item: dict[str, Any], workspace: Path, *, done: bool
) -> tuple[Event, ...]:
    path = inside_workspace(str(change.get("path", "")), workspace)
    tool = "write" if change.get("kind") == "add" else "edit"
    call = Called(identity, "file_change", dict(change), tool, {"path": path, "kind": change.get("kind")})
    return _call(call, "ok" if item.get("status") == "completed" else "error", "", done=done)


def unwrapped(command: str) -> str:
    """The command inside the shell call that the CLI reports: `/bin/bash -lc 'echo hi'` is `echo hi`."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    if len(words) == 3 and words[0].rpartition("/")[2] in ("bash", "sh", "zsh") and words[1] in ("-lc", "-c"):
        return words[2]
    return command


def _usage(counted: dict[str, Any]) -> Usage:
    """Tokens of the whole thread so far; the caller takes the difference to the turn before."""

    def number(key: str) -> int | None:
        value = counted.get(key)
        return value if isinstance(value, int) else None

    total, cached = number("input_tokens"), number("cached_input_tokens")
    fresh = total - cached if total is not None and cached is not None else total
    return Usage(
        input_tokens=fresh,
        output_tokens=number("output_tokens"),
        cache_read_tokens=cached,
        cache_write_tokens=number("cache_write_input_tokens"),
        basis="cumulative_delta",
    )


def _output_text(output: Any) -> str:
    if isinstance(output, str):
        return output
    parts = output if isinstance(output, list) else ()
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


_EXIT_CODE = re.compile(r"^Process exited with code (-?\d+)$", re.MULTILINE)


def _hidden_call(call_id: str, payload: dict[str, Any], output: str, workspace: Path) -> list[Event]:
    name = str(payload.get("name", ""))
    raw = _arguments(payload)
    tool, arguments = "other", raw
    if name in ("exec_command", "shell") and isinstance(raw.get("cmd"), str):
        tool, arguments = "bash", {"command": raw["cmd"]}
    elif name == "apply_patch":
        touched = re.search(r"^\*\*\* (Add|Update|Delete) File: (.+)$", str(raw.get("input", "")), re.MULTILINE)
        if touched:
            path = inside_workspace(touched.group(2).strip(), workspace)
            tool, arguments = ("write" if touched.group(1) == "Add" else "edit"), {"path": path}
    code = _EXIT_CODE.search(output[:400])
    status: CallStatus = "ok" if code and code.group(1) == "0" else "error"
    return [Called(call_id, name, raw, tool, arguments, basis="session_file"), Returned(call_id, status, output)]


def _arguments(payload: dict[str, Any]) -> dict[str, Any]:
    if payload.get("type") == "custom_tool_call":
        return {"input": payload.get("input")}
    try:
        arguments = json.loads(payload.get("arguments") or "{}")
    except (TypeError, ValueError):
        return {"raw": payload.get("arguments")}
    return arguments if isinstance(arguments, dict) else {"raw": arguments}

"""What the lines of Claude Code's stream-json mean (measured on 2.1.197, tests/engines/recordings/claude_code/).

Faults are told from the CLI's error classes, HTTP statuses and error events, never from what the agent says. One
process may print several `result` events: a background task that ends after the answer starts the CLI anew, and a
resumed session reports the tasks of its former process first.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from skillup.engines.events import (
    Called,
    EngineFault,
    Event,
    Failing,
    Finished,
    LimitReached,
    Noted,
    Retrying,
    Returned,
    Said,
    SessionSeen,
    Thought,
    Waiting,
    Working,
    inside_workspace,
)
from skillup.engines.faults import CLAUDE_CODE, amount, seconds_of
from skillup.engines.lines import parse_object
from skillup.transcript import Usage

_TOOLS = {
    "Bash": "bash",
    "Read": "read",
    "Write": "write",
    "Edit": "edit",
    "NotebookEdit": "edit",
    "Glob": "glob",
    "Grep": "grep",
    "LS": "list",
    "WebFetch": "web_fetch",
    "WebSearch": "web_search",
    "Skill": "skill",
    "Agent": "subagent",
    "Task": "subagent",
    "TodoWrite": "todo",
    "TaskCreate": "todo",
    "TaskUpdate": "todo",
    "AskUserQuestion": "ask_user",
}

_ARGUMENTS = {
    "file_path": "path",
    "notebook_path": "path",
    "old_string": "old",
    "new_string": "new",
    "skill": "name",
    "subagent_type": "type",
}
"""Argument names that differ from the canonical ones."""


_PARTIAL = b'{"type":"stream_event","event":{"type":"'
_SILENT = (b'message_start"', b'ping"')
"""How partial messages begin, and which of them say nothing of the agent: a stalled provider sends these, too."""

_SYNTHETIC = "<synthetic>"
"""The model of messages that the CLI wrote itself."""


def prompts_in(lines: Sequence[bytes]) -> int:
    """How many messages of a user the session's file holds, whoever sent them; measured on 2.1.197.

    Two processes that resume a session at once both succeed, and the file forks: each prompt is there, but later turns
    see one of them only. Notices of background tasks and what slash commands write have no source, or an origin.
    """
    return sum(_is_prompt(line) for line in lines)


def _is_prompt(line: bytes) -> bool:
    if b'"promptSource"' not in line:
        return False
    try:
        entry = parse_object(line)
    except ValueError:
        return False
    own = entry.get("type") == "user" and entry.get("isSidechain") is not True and entry.get("isMeta") is not True
    return own and entry.get("promptSource") is not None and not entry.get("origin")


def events_of(line: bytes, workspace: Path) -> tuple[Event, ...]:
    """What one line of stream-json means.

    Raises:
        ValueError: the line is not an event of the CLI.
    """
    event = parse_object(line)
    if line.startswith(_PARTIAL):
        # Most lines are these, and they say no more than that the model writes.
        return () if line.startswith(_SILENT, len(_PARTIAL)) else (Working(),)
    try:
        return _meaning(event, workspace)
    except (AttributeError, KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"not an event of Claude Code: {type(error).__name__}: {error}") from error


def _meaning(event: dict[str, Any], workspace: Path) -> tuple[Event, ...]:
    match event.get("type"):
        case "system":
            return _system(event)
        case "assistant":
            return _assistant(event, workspace)
        case "user":
            return _user(event)
        case "result":
            return _result(event)
        case "rate_limit_event":
            return _account_limit(event["rate_limit_info"])
    return ()


def _system(event: dict[str, Any]) -> tuple[Event, ...]:
    match event.get("subtype"):
        case "init":
            keys = (
                "model",
                "tools",
                "skills",
                "agents",
                "mcp_servers",
                "permissionMode",
                "claude_code_version",
                "cwd",
            )
            details = {key: event[key] for key in (*keys, "apiKeySource", "memory_paths") if key in event}
            return (SessionSeen(str(event["session_id"]), details),)
        case "api_retry":
            status = _status(event.get("error_status"))
            said = f"the provider answered {status or 'nothing'}"
            delay = seconds_of(event.get("retry_delay_ms"))
            # A Retry-After is whole seconds, while the CLI's own delays have a share of chance.
            asked = delay if delay and delay.is_integer() else None
            fault = CLAUDE_CODE.told(said, error_class=event.get("error"), status=status, retry_after=asked)
            return (Retrying(fault, int(event.get("attempt", 0)), delay),)
        case "status":
            return (Waiting(),)
        case "task_started" | "task_progress" | "thinking_tokens":
            return (Working(),)
        case "task_notification":
            return _task_ended(str(event.get("status")), str(event.get("summary")))
        case "compact_boundary":
            return (Noted("compacted", "the CLI compacted the conversation"),)
    return ()


def _account_limit(told: dict[str, Any]) -> tuple[Event, ...]:
    """What the CLI says of the limits of a subscription: reached, with the time at which that ends, or nearly so."""
    status, resets_at, used = told.get("status"), amount(told.get("resetsAt")), amount(told.get("utilization"))
    if status == "rejected" and resets_at is not None:
        return (LimitReached(resets_at),)
    if status == "allowed_warning" and used is not None:
        return (Noted("usage_limit", f"{used:.0%} of the account's limit is used ({told.get('rateLimitType')})"),)
    return ()


def _task_ended(status: str, summary: str) -> tuple[Event, ...]:
    """A background task has ended; one that was still running when the turn was over is `stopped` by the CLI."""
    if status in ("stopped", "killed"):
        return (Noted("unfinished_background", f"{summary} (ended by the CLI)"),)
    return () if status == "completed" else (Noted("background_task", f"{summary} ({status})"),)


def _assistant(event: dict[str, Any], workspace: Path) -> tuple[Event, ...]:
    message = event.get("message") or {}
    parent = event.get("parent_tool_use_id")
    blocks = [block for block in message.get("content") or () if isinstance(block, dict)]
    if event.get("error"):
        text = " ".join(str(block.get("text", "")) for block in blocks)
        return (Failing(CLAUDE_CODE.told(text, error_class=str(event["error"]))),)
    found: list[Event] = []
    if message.get("stop_reason") and message.get("model") != _SYNTHETIC:
        # A streamed message says why it stopped only in its partial events.
        found.append(Noted("fallback", "a stream broke off, and the CLI asked again without streaming"))
    for block in blocks:
        match block.get("type"):
            case "text":
                found.append(Said(str(block.get("text", "")), parent))
            case "thinking":
                found.append(Thought(str(block.get("thinking", "")), parent))
            case "tool_use":
                name, raw = str(block.get("name", "")), block.get("input")
                raw = raw if isinstance(raw, dict) else {}
                tool = canonical_tool(name)
                arguments = canonical_arguments(tool, raw, workspace)
                found.append(Called(str(block.get("id", "")), name, raw, tool, arguments, parent))
    return tuple(found)


def _user(event: dict[str, Any]) -> tuple[Event, ...]:
    content = (event.get("message") or {}).get("content")
    found: list[Event] = []
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_result":
            status: Literal["ok", "error"] = "error" if block.get("is_error") else "ok"
            parent = event.get("parent_tool_use_id")
            found.append(Returned(str(block.get("tool_use_id", "")), status, _text(block.get("content")), parent))
    return tuple(found)


def _result(event: dict[str, Any]) -> tuple[Event, ...]:
    subtype = str(event.get("subtype", ""))
    text = event.get("result")
    errors = "; ".join(str(error) for error in event.get("errors") or ())
    limit = {"error_max_turns": "steps", "error_max_budget_usd": "cost"}.get(subtype)
    fault = None
    if limit is None and (event.get("is_error") or subtype.startswith("error")):
        fault = CLAUDE_CODE.told(errors or str(text or subtype), status=_status(event.get("api_error_status")))
        if subtype.startswith("error") and fault.kind == CLAUDE_CODE.otherwise:
            # Not the provider's: requests that fail end as `success` with `is_error`.
            fault = EngineFault("crash", f"Claude Code gave up: {fault.message}")
    denials = tuple(str(denial.get("tool_use_id", "")) for denial in event.get("permission_denials") or ())
    answer = None if fault or text is None else str(text)
    finished = Finished(
        text=answer, usage=_usage(event, failed=fault is not None), fault=fault, limit=limit, denied=denials
    )
    return (SessionSeen(str(event["session_id"])), finished) if "session_id" in event else (finished,)


def _status(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _usage(event: dict[str, Any], *, failed: bool) -> Usage:
    """Tokens of this process, subagents included: `modelUsage`, as `usage` is 0 after a non-streaming fallback.

    Without a model in it, a turn that did not fail asked none (a slash command that the CLI answers itself).
    """
    models = list((event.get("modelUsage") or {}).values())
    if not models and (failed or "modelUsage" not in event):
        return Usage()

    def total(key: str) -> int:
        return sum(int(model.get(key, 0)) for model in models)

    cost = event.get("total_cost_usd")
    return Usage(
        input_tokens=total("inputTokens"),
        output_tokens=total("outputTokens"),
        cache_read_tokens=total("cacheReadInputTokens"),
        cache_write_tokens=total("cacheCreationInputTokens"),
        cost_usd=float(cost) if isinstance(cost, (int, float)) else None,
        basis="per_turn",
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def canonical_tool(name: str) -> str:
    """The canonical name of one of Claude Code's tools; `mcp__server__tool` becomes `mcp:server/tool`."""
    if name.startswith("mcp__"):
        server, _, tool = name.removeprefix("mcp__").partition("__")
        return f"mcp:{server}/{tool}"
    return _TOOLS.get(name, "other")


def canonical_arguments(tool: str, raw: dict[str, Any], workspace: Path) -> dict[str, Any]:
    """The arguments under their canonical names, paths relative to the workspace; those of other tools as sent."""
    if tool == "other" or tool.startswith("mcp:"):
        return raw
    arguments = {_ARGUMENTS.get(key, key): value for key, value in raw.items()}
    path = arguments.get("path")
    if isinstance(path, str):
        arguments["path"] = inside_workspace(path, workspace)
    return arguments

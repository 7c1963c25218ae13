"""Claude Code (`claude -p`, stream-json): one process a turn, `--session-id` first, then `--resume`.

Event and flag facts were measured on 2.1.197 (recordings under tests/engines/recordings/claude_code/): the final
word is the last `result` event and its `is_error`, never the exit code; a resumed turn must repeat every flag; the
prompt goes in by stdin, because arguments that begin with `-` are options and long ones do not fit.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from pydantic import Field

from skillup.engines.base import (
    Called,
    EngineFault,
    EngineSettings,
    Event,
    Failing,
    Finished,
    Invocation,
    Noted,
    Retrying,
    Returned,
    Said,
    SessionSeen,
    Thought,
    TurnRequest,
    Waiting,
    Working,
    inside_workspace,
)
from skillup.errors import ErrorKind
from skillup.transcript import Usage

SCRIPTED_KEY = "sk-ant-loopback-not-a-secret"
"""The CLI wants a key before it sends anything; the loopback model accepts every key."""

_KINDS: dict[str, ErrorKind] = {
    "authentication_failed": "auth",
    "oauth_org_not_allowed": "auth",
    "billing_error": "quota",
    "rate_limit": "rate_limit",
    "invalid_request": "request",
    "model_not_found": "request",
    "max_output_tokens": "request",
}
"""The CLI's own error classes that name a kind without doubt; the others are judged by the HTTP status."""

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


class ClaudeSettings(EngineSettings):
    """`settings:` of a Claude Code profile.

    `binary`: the command to run. `max_retries`: how often the CLI itself repeats a failed request (its own default is
    10, about three minutes). `workspace_instructions`: whether CLAUDE.md and rules of the fixture load.
    `append_system_prompt` and `allowed_tools` are the CLI's flags of that name.
    """

    binary: str = "claude"
    max_retries: int = Field(4, ge=0, le=10)
    workspace_instructions: bool = True
    append_system_prompt: str = ""
    tools: tuple[str, ...] | None = None
    effort: Literal["low", "medium", "high"] | None = None


class ClaudeCode:
    """The engine `claude_code`."""

    name = "claude_code"
    settings = ClaudeSettings
    resumes = True
    assigns_session_id = True
    hidden_tools: frozenset[str] = frozenset()
    protocol = "anthropic"
    credentials = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
    address_variables = ("ANTHROPIC_BASE_URL",)
    version_variables = MappingProxyType({"DISABLE_AUTOUPDATER": "1"})
    login_files = ((".claude/.credentials.json", ".claude/.credentials.json"),)
    skills_folder = ".claude/skills"

    def version_argv(self, settings: EngineSettings) -> tuple[str, ...]:
        """The command that prints the CLI's version."""
        assert isinstance(settings, ClaudeSettings)
        return (settings.binary, "--version")

    def invocation(self, request: TurnRequest) -> Invocation:
        """How to run this turn."""
        settings = request.settings
        assert isinstance(settings, ClaudeSettings)
        session = request.session
        argv = [
            settings.binary,
            "--print",
            *("--output-format", "stream-json", "--verbose", "--include-partial-messages"),
            *("--resume" if session.started else "--session-id", str(session.id)),
            "--dangerously-skip-permissions",
            *("--setting-sources", "user", "--strict-mcp-config"),
        ]
        if request.endpoint.model:
            argv += ["--model", request.endpoint.model]
        if settings.workspace_instructions:
            argv += ["--add-dir", str(request.workspace)]
        if settings.append_system_prompt:
            argv += ["--append-system-prompt", settings.append_system_prompt]
        if settings.tools is not None:
            argv += ["--tools", ",".join(settings.tools)]
        if settings.effort:
            argv += ["--effort", settings.effort]
        prompt = request.prompt
        if prompt.startswith("/") and not request.slash_command:
            prompt = "\n" + prompt  # at the very start it would be a slash command, and the model would never see it
        return Invocation(argv=tuple(argv), env=self._variables(request, settings), stdin=prompt)

    def _variables(self, request: TurnRequest, settings: ClaudeSettings) -> dict[str, str]:
        env = {
            "CLAUDE_CONFIG_DIR": str(request.home / ".claude"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
            "CLAUDE_CODE_MAX_RETRIES": str(settings.max_retries),
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        # With `--setting-sources user` the CLI reads no CLAUDE.md of the working folder or its parents; the fixture's
        # own comes in as that of an additional directory.
        switch = "ADDITIONAL_DIRECTORIES_CLAUDE_MD" if settings.workspace_instructions else "DISABLE_CLAUDE_MDS"
        env[f"CLAUDE_CODE_{switch}"] = "1"
        if request.as_root:
            env["IS_SANDBOX"] = "1"  # the CLI refuses to skip permissions as root without it
        if request.endpoint.base_url:
            env["ANTHROPIC_BASE_URL"] = request.endpoint.base_url
        if request.endpoint.scripted:
            env["ANTHROPIC_API_KEY"] = SCRIPTED_KEY
        return env

    def policy(self, request: TurnRequest) -> dict[str, str]:
        """The permissions that are in force in this turn, for the record."""
        return {"permission_mode": "bypassPermissions", "cwd": str(request.workspace)}

    def events(self, line: bytes, workspace: Path) -> tuple[Event, ...]:
        """What one line of stream-json means.

        Raises:
            ValueError: the line is not a JSON object.
        """
        if line.startswith(b'{"type":"stream_event"'):
            return () if b'"type":"ping"' in line[:200] else (Working(),)
        event = json.loads(line)
        if not isinstance(event, dict):
            raise ValueError("not a JSON object")
        match event.get("type"):
            case "system":
                return _system(event)
            case "assistant":
                return _assistant(event, workspace)
            case "user":
                return _user(event)
            case "result":
                return (_result(event),)
        return ()

    def explain(self, exit_code: int | None, signal: int | None, stdout: str, stderr: str) -> EngineFault:
        """Why a process that ended without a `result` event did so."""
        last = stderr.strip().splitlines()[-1:] or ["it said nothing on stderr"]
        if "is already in use" in stderr or "No conversation found" in stderr:
            return EngineFault("session", f"Claude Code refused the session: {last[0]}")
        if signal is not None:
            return EngineFault("crash", f"Claude Code was ended by signal {signal} before it answered: {last[0]}")
        if exit_code:
            return EngineFault("crash", f"Claude Code exited with {exit_code} before it answered: {last[0]}")
        said = "and printed no result event" if stdout.strip() else "and printed nothing"
        return EngineFault("output", f"Claude Code exited with 0 {said}: {last[0]}")


def _fault(error_class: str | None, status: int | None, message: str) -> EngineFault:
    """The fault that the CLI's error class and the HTTP status describe; `message` is the CLI's own text."""
    kind = _KINDS.get(error_class or "")
    if kind is None and status is not None:
        kind = _kind_of_status(status)
    if kind is None and "timed out" in message:
        kind = "timeout"
    hint = {
        "auth": "check the credential that the profile passes",
        "rate_limit": "run fewer trials at once, or later",
        "request": "check the model's name and the size of the input",
    }.get(kind or "", "")
    return EngineFault(kind or "network", message, hint=hint)


def _kind_of_status(status: int) -> ErrorKind:
    if status in (401, 403):
        return "auth"
    if status == 402:
        return "quota"
    if status == 429:
        return "rate_limit"
    return "overloaded" if status >= 500 else "request"


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
            return (SessionSeen(str(event.get("session_id", "")), details),)
        case "api_retry":
            status = event.get("error_status")
            fault = _fault(event.get("error"), status, f"the provider answered {status or 'nothing'}")
            return (Retrying(fault, int(event.get("attempt", 0))),)
        case "status":
            return (Waiting(),)
        case "task_started" | "task_progress" | "thinking_tokens":
            return (Working(),)
        case "task_notification" if event.get("status") not in ("completed", None):
            summary = f"background task {event.get('task_id')} ended as {event.get('status')}"
            return (Noted("background_task", summary),)
        case "compact_boundary":
            return (Noted("compacted", "the CLI compacted the conversation"),)
    return ()


def _assistant(event: dict[str, Any], workspace: Path) -> tuple[Event, ...]:
    message = event.get("message") or {}
    parent = event.get("parent_tool_use_id")
    blocks = [block for block in message.get("content") or () if isinstance(block, dict)]
    if event.get("error"):
        text = " ".join(str(block.get("text", "")) for block in blocks)
        return (Failing(_fault(str(event["error"]), None, text)),)
    found: list[Event] = []
    for block in blocks:
        match block.get("type"):
            case "text":
                found.append(Said(str(block.get("text", "")), parent))
            case "thinking":
                found.append(Thought(str(block.get("thinking", "")), parent))
            case "tool_use":
                name, raw = str(block.get("name", "")), block.get("input")
                raw = raw if isinstance(raw, dict) else {}
                arguments = canonical_arguments(raw, workspace)
                found.append(Called(str(block.get("id", "")), name, raw, canonical_tool(name), arguments, parent))
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


def _result(event: dict[str, Any]) -> Finished:
    subtype = str(event.get("subtype", ""))
    status = event.get("api_error_status")
    text = event.get("result")
    errors = "; ".join(str(error) for error in event.get("errors") or ())
    limit, fault = None, None
    if subtype == "error_max_turns":
        limit = "steps"
    elif subtype == "error_max_budget_usd":
        limit = "cost"
    elif "No conversation found" in errors:
        fault = EngineFault("session", errors, hint="the session was deleted, or the working folder changed")
    elif event.get("is_error") or subtype.startswith("error"):
        fault = _fault(None, status if isinstance(status, int) else None, errors or str(text or subtype))
    denials = tuple(str(denial.get("tool_use_id", "")) for denial in event.get("permission_denials") or ())
    answer = None if fault or text is None else str(text)
    return Finished(text=answer, usage=_usage(event), fault=fault, limit=limit, denied=denials)


def _usage(event: dict[str, Any]) -> Usage:
    """Tokens of this process, subagents included: `modelUsage`, as `usage` is 0 after a non-streaming fallback."""
    models = list((event.get("modelUsage") or {}).values())
    if not models:
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


def canonical_arguments(raw: dict[str, Any], workspace: Path) -> dict[str, Any]:
    """The arguments under their canonical names, paths relative to the workspace."""
    arguments = {_ARGUMENTS.get(key, key): value for key, value in raw.items()}
    path = arguments.get("path")
    if isinstance(path, str):
        arguments["path"] = inside_workspace(path, workspace)
    return arguments

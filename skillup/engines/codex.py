"""Codex (`codex exec --json`): one process a turn, the thread's id from `thread.started`, then `exec resume ID`.

Event and flag facts were measured on 0.169.0 (recordings under tests/engines/recordings/codex/): terminal events are
`turn.completed` and `turn.failed` alone, a top-level `error` may be a mere retry; usage counts the whole thread; a
resume rejects `--sandbox` and is read-only without a policy in the configuration, so the policy stands in the private
`config.toml`; an unknown name (not id) silently starts a new thread, so ids are compared on every turn.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
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
    Working,
    inside_workspace,
)
from skillup.errors import ErrorKind
from skillup.transcript import CallStatus, Usage

SCRIPTED_MODEL = "gpt-5.5"
"""What a scripted model is called: the CLI offers its patch tool only to names that it knows."""

_PROVIDER = "skillup"
_LOOPBACK_KEY = "SKILLUP_LOOPBACK_KEY"
_DEFAULT_ADDRESS = "https://api.openai.com/v1"

_RETRY = re.compile(r"Reconnecting\.\.\.(?: (\d+)/\d+)?(?: \((.*)\))?", re.DOTALL)
_STATUS = re.compile(r"(?:unexpected|last) status:? (\d{3})")


class CodexSettings(EngineSettings):
    """`settings:` of a Codex profile.

    `binary`: the command to run. `max_retries`: repeats of a failed request. `idle_seconds`: silence of a stream
    that counts as broken. `patience_seconds`: how long the CLI may go on reconnecting before we end the turn (it
    would for ever). `sandbox`: the CLI's own sandbox, the same in every turn. `workspace_instructions`: whether
    AGENTS.md of the fixture loads. `effort`: the model's reasoning effort.
    """

    binary: str = "codex"
    max_retries: int = Field(2, ge=0, le=10)
    idle_seconds: float = Field(120, gt=0)
    patience_seconds: float = Field(60, gt=0)
    sandbox: Literal["danger-full-access", "workspace-write", "read-only"] = "danger-full-access"
    workspace_instructions: bool = True
    effort: Literal["minimal", "low", "medium", "high", "xhigh"] | None = None


class Codex:
    """The engine `codex`."""

    name = "codex"
    settings = CodexSettings
    resumes = True
    assigns_session_id = False
    shows_progress = False
    hidden_tools = frozenset({"read", "glob", "grep", "list", "web_fetch", "skill", "ask_user"})
    protocol = "openai_responses"
    credentials = ("CODEX_API_KEY", "OPENAI_API_KEY")
    address_variables = ("OPENAI_BASE_URL",)
    version_variables: MappingProxyType[str, str] = MappingProxyType({})
    login_files = ((".codex/auth.json", ".codex/auth.json"),)
    skills_folder = ".codex/skills"

    def version_argv(self, settings: EngineSettings) -> tuple[str, ...]:
        """The command that prints the CLI's version."""
        return (CodexSettings.model_validate(settings).binary, "--version")

    def patience(self, settings: EngineSettings) -> float | None:
        """Seconds of reconnecting after which a turn is ended: the CLI itself never gives up."""
        return CodexSettings.model_validate(settings).patience_seconds

    def home_files(self, settings: EngineSettings) -> dict[str, str]:
        """The private configuration: what a resumed turn must find again, whatever its arguments."""
        chosen = CodexSettings.model_validate(settings)
        lines = [
            f'sandbox_mode = "{chosen.sandbox}"',
            'approval_policy = "never"',
            "check_for_update_on_startup = false",
            f"project_doc_max_bytes = {32 * 1024 if chosen.workspace_instructions else 0}",
            "[skills.bundled]",
            "enabled = false",
            "[analytics]",
            "enabled = false",
        ]
        return {".codex/config.toml": "\n".join(lines) + "\n"}

    def invocation(self, request: TurnRequest) -> Invocation:
        """How to run this turn."""
        settings = CodexSettings.model_validate(request.settings)
        model = SCRIPTED_MODEL if request.endpoint.scripted else request.endpoint.model
        argv = [settings.binary, "exec", *(["resume"] if request.session.started else [])]
        argv += ["--json", "--skip-git-repo-check"]
        if model:
            argv += ["--model", model]
        if settings.effort:
            argv += ["-c", f'model_reasoning_effort="{settings.effort}"']
        for key, value in self._provider(request, settings):
            argv += ["-c", f"{key}={value}"]
        if request.session.started:
            argv.append(str(request.session.id))
        argv.append("-")  # the prompt comes by stdin: an argument may neither begin with - nor be long
        env = {"CODEX_HOME": str(request.home / ".codex")}
        if request.endpoint.scripted:
            env[_LOOPBACK_KEY] = "loopback-not-a-secret"
        return Invocation(argv=tuple(argv), env=env, stdin=request.prompt)

    def _provider(self, request: TurnRequest, settings: CodexSettings) -> list[tuple[str, str]]:
        """The provider as configuration overrides; none where a copied login chooses it."""
        endpoint = request.endpoint
        if not endpoint.scripted and request.credential is None:
            return []
        key = _LOOPBACK_KEY if endpoint.scripted else request.credential
        address = f"{endpoint.base_url}/v1" if endpoint.scripted else endpoint.base_url or _DEFAULT_ADDRESS
        fields = {
            "name": json.dumps(_PROVIDER),
            "base_url": json.dumps(address),
            "env_key": json.dumps(key),
            "wire_api": '"responses"',
            "request_max_retries": str(settings.max_retries),
            "stream_max_retries": str(settings.max_retries),
            "stream_idle_timeout_ms": str(round(settings.idle_seconds * 1000)),
        }
        table = ", ".join(f"{name} = {value}" for name, value in fields.items())
        return [("model_provider", json.dumps(_PROVIDER)), (f"model_providers.{_PROVIDER}", f"{{{table}}}")]

    def policy(self, request: TurnRequest) -> dict[str, str]:
        """The permissions that are in force in this turn, for the record."""
        settings = CodexSettings.model_validate(request.settings)
        return {"sandbox_mode": settings.sandbox, "approval_policy": "never", "cwd": str(request.workspace)}

    def events(self, line: bytes, workspace: Path) -> tuple[Event, ...]:
        """What one line of its output means.

        Raises:
            ValueError: the line is not a JSON object.
        """
        event = json.loads(line)
        if not isinstance(event, dict):
            raise ValueError("not a JSON object")
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
                return (Finished(text=None, usage=Usage(), fault=_fault(message)),)
        return ()

    def session_file(self, session_id: str) -> str:
        """A glob below the home for the file of this thread, and of no other."""
        return f".codex/sessions/*/*/*/rollout-*-{session_id}.jsonl"

    def session_events(self, lines: Sequence[bytes], workspace: Path) -> tuple[Event, ...]:
        """Calls of the last turn in the thread's file that the stream does not show.

        A call that the stream shows has an `item_completed` with its id beside it; one without was refused by the CLI
        itself (an unknown tool, bad arguments, a patch that does not apply), or by its sandbox.
        """
        calls: dict[str, dict[str, Any]] = {}
        outputs: dict[str, str] = {}
        shown: set[str] = set()
        for line in lines:
            try:
                entry = json.loads(line)
                payload = entry["payload"]
                kind = payload.get("type")
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
            if entry.get("type") == "turn_context":
                calls, outputs, shown = {}, {}, set()
            elif kind in ("function_call", "custom_tool_call"):
                calls[str(payload.get("call_id"))] = payload
            elif kind in ("function_call_output", "custom_tool_call_output"):
                outputs[str(payload.get("call_id"))] = _output_text(payload.get("output"))
            elif kind in ("item_completed", "item_started"):
                shown.add(str((payload.get("item") or {}).get("id")))
        found: list[Event] = []
        for call_id, payload in calls.items():
            if call_id not in shown and call_id in outputs:
                found += _hidden_call(call_id, payload, outputs[call_id], workspace)
        return tuple(found)

    def explain(self, exit_code: int | None, signal: int | None, stdout: str, stderr: str) -> EngineFault:
        """Why a process ended without a terminal event."""
        said = [line for line in stderr.strip().splitlines() if line.strip()]
        last = said[-1] if said else "it said nothing on stderr"
        if any(words in stderr for words in ("no rollout found", "active writer", "thread not found")):
            return EngineFault("session", f"Codex refused the session: {last}")
        if "Missing environment variable" in stderr:
            return EngineFault("auth", last)
        if signal is not None:
            return EngineFault("crash", f"Codex was ended by signal {signal} before it answered: {last}")
        if exit_code:
            return EngineFault("crash", f"Codex exited with {exit_code} before it answered: {last}")
        return EngineFault("output", f"Codex exited with 0 without a terminal event: {last}")


def _error(message: str) -> tuple[Event, ...]:
    """A top-level `error`: a retry where it says so, else the reason of the `turn.failed` that follows."""
    retry = _RETRY.match(message)
    if retry:
        return (Retrying(_fault(retry.group(2) or message), int(retry.group(1) or 0)),)
    return (Failing(_fault(message)),)


def _fault(message: str) -> EngineFault:
    """The fault that the CLI's own words describe; it gives no structured class."""
    status = _STATUS.search(message)
    if status:
        return EngineFault(_kind_of_status(int(status.group(1))), message)
    kinds: tuple[tuple[str, ErrorKind], ...] = (
        ("Quota exceeded", "quota"),
        ("usage limit", "quota"),
        ("high demand", "overloaded"),
        ("at capacity", "overloaded"),
        ("Missing environment variable", "auth"),
        ("idle timeout", "timeout"),
        ("context window", "request"),
        ("does not exist", "request"),
        ('"error"', "request"),  # the raw body of a refused request
    )
    return EngineFault(next((kind for words, kind in kinds if words in message), "network"), message)


def _kind_of_status(status: int) -> ErrorKind:
    if status in (401, 403):
        return "auth"
    if status == 402:
        return "quota"
    if status == 429:
        return "rate_limit"
    return "overloaded" if status >= 500 else "request"


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

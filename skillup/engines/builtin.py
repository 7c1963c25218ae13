"""The agent that ships with skillup (`python -m skillup.builtin_agent`): small, real, and free of any account.

Its events are documented in docs/builtin-agent.md. It is driven exactly as the foreign CLIs are: a process a turn,
a session on disk, `--session-id` first and `--resume` after.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import Field

from skillup.engines.base import (
    Called,
    EngineFault,
    EngineSettings,
    Event,
    Finished,
    Invocation,
    Retrying,
    Returned,
    Said,
    SessionSeen,
    Thought,
    TurnRequest,
    inside_workspace,
)
from skillup.errors import ERROR_KINDS
from skillup.transcript import Usage

DEFAULT_MODEL = "builtin-model"

_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
"""On PYTHONPATH, because the agent starts in a folder of its own and an uninstalled checkout must work, too."""

_RETRY_KINDS = {
    "rate_limit": "rate_limit",
    "overloaded": "overloaded",
    "server_error": "overloaded",
    "authentication": "auth",
    "network": "network",
    "malformed": "network",
}


class BuiltinSettings(EngineSettings):
    """`settings:` of a builtin profile: model replies a turn may take, and repeats of a failed request."""

    max_steps: int = Field(20, ge=1, le=1000)
    max_retries: int = Field(2, ge=0, le=10)


class Builtin:
    """The engine `builtin`."""

    name = "builtin"
    settings = BuiltinSettings
    resumes = True
    assigns_session_id = True
    hidden_tools = frozenset({"skill"})  # it reads a SKILL.md with `read` or `bash`; there is no event of its own
    protocol = "anthropic"
    credentials = ("ANTHROPIC_API_KEY",)
    address_variables = ("ANTHROPIC_BASE_URL",)
    version_variables = MappingProxyType({"PYTHONPATH": _PACKAGE_ROOT, "PYTHONSAFEPATH": "1"})
    login_files: tuple[tuple[str, str], ...] = ()
    skills_folder = "skills"

    def version_argv(self, settings: EngineSettings) -> tuple[str, ...]:
        """The command that prints the agent's version."""
        del settings
        return (sys.executable, "-m", "skillup.builtin_agent", "--version")

    def invocation(self, request: TurnRequest) -> Invocation:
        """How to run this turn."""
        settings = request.settings
        assert isinstance(settings, BuiltinSettings)
        argv = (
            *(sys.executable, "-m", "skillup.builtin_agent"),
            *("--home", str(request.home)),
            *("--model", request.endpoint.model or DEFAULT_MODEL),
            *("--resume" if request.session.started else "--session-id", str(request.session.id)),
            *("--max-steps", str(settings.max_steps), "--max-retries", str(settings.max_retries)),
        )
        env = dict(self.version_variables)
        if request.endpoint.base_url:
            env["ANTHROPIC_BASE_URL"] = request.endpoint.base_url
        if request.endpoint.scripted:
            env["ANTHROPIC_API_KEY"] = "loopback-not-a-secret"
        return Invocation(argv=argv, env=env, stdin=request.prompt)

    def policy(self, request: TurnRequest) -> dict[str, str]:
        """The permissions that are in force in this turn, for the record."""
        return {"permission_mode": "full", "cwd": str(request.workspace)}

    def events(self, line: bytes, workspace: Path) -> tuple[Event, ...]:
        """What one line of its output means.

        Raises:
            ValueError: the line is not a JSON object.
        """
        event = json.loads(line)
        if not isinstance(event, dict):
            raise ValueError("not a JSON object")
        match event.get("type"):
            case "session":
                keys = ("model", "tools", "skills", "version", "cwd")
                return (SessionSeen(str(event["session_id"]), {key: event[key] for key in keys if key in event}),)
            case "text":
                return (Said(str(event["text"])),)
            case "thinking":
                return (Thought(str(event["text"])),)
            case "tool_call":
                raw = dict(event["arguments"])
                return (Called(event["id"], event["name"], raw, _tool(event["name"]), _arguments(raw, workspace)),)
            case "tool_result":
                return (Returned(event["id"], event["status"], str(event["content"])),)
            case "retry":
                kind = _RETRY_KINDS.get(event["error"], "network")
                fault = _fault(kind, f"the provider answered {event.get('status') or 'nothing'}")
                return (Retrying(fault, int(event["attempt"])),)
            case "end":
                return (_finished(event),)
        return ()

    def explain(self, exit_code: int | None, signal: int | None, stdout: str, stderr: str) -> EngineFault:
        """Why a process ended without its `end` event."""
        last = (stderr.strip().splitlines() or ["it said nothing on stderr"])[-1]
        if signal is not None:
            return EngineFault("crash", f"the builtin agent was ended by signal {signal}: {last}")
        if "session" in last and exit_code == 1:
            return EngineFault("session", last)
        if exit_code:
            return EngineFault("crash", f"the builtin agent exited with {exit_code}: {last}")
        return EngineFault("output", f"the builtin agent exited with 0 and printed no end event: {last}")


def _fault(kind: str, message: str) -> EngineFault:
    return EngineFault(next((known for known in ERROR_KINDS if known == kind), "crash"), message)


def _finished(event: dict[str, Any]) -> Finished:
    usage = Usage(**event["usage"], basis="per_turn") if event.get("usage") else Usage()
    error = event.get("error")
    fault = None
    if error:
        fault = _fault(str(error.get("kind")), str(error.get("message")))
    elif event.get("reason") == "interrupted":
        fault = EngineFault("crash", "the builtin agent was interrupted")
    limit = "steps" if event.get("reason") == "max_steps" else None
    return Finished(text=event.get("text"), usage=usage, fault=fault, limit=limit)


def _tool(name: str) -> str:
    return name if name in ("bash", "read", "write", "edit") else "other"


def _arguments(raw: dict[str, Any], workspace: Path) -> dict[str, Any]:
    path = raw.get("path")
    return {**raw, "path": inside_workspace(path, workspace)} if isinstance(path, str) else raw

"""The agent that ships with skillup (`python -m skillup.builtin_agent`): small, real, and free of any account.

Its events are documented in docs/builtin-agent.md. It is driven exactly as the foreign CLIs are: a process a turn,
a session on disk, `--session-id` first and `--resume` after.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast

from pydantic import Field

from skillup.engines.base import (
    EngineDefaults,
    EngineSettings,
    Invocation,
    Provider,
    TurnRequest,
)
from skillup.engines.events import (
    Called,
    EngineFault,
    Event,
    Finished,
    Retrying,
    Returned,
    Said,
    SessionSeen,
    Thought,
    inside_workspace,
)
from skillup.engines.faults import BUILTIN, amount, seconds_of
from skillup.engines.lines import parse_object
from skillup.spec.mocks import HistoryMessage
from skillup.transcript import Usage

DEFAULT_MODEL = "builtin-model"

_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])

_START = (
    *(sys.executable, "-P", "-c"),
    "import sys; sys.path.insert(0, sys.argv.pop(1)); import skillup.builtin_agent.__main__ as m; sys.exit(m.main())",
    _PACKAGE_ROOT,
)
"""`python -m skillup.builtin_agent`, also from an uninstalled checkout; the path is no variable, as the agent's
commands would inherit it, and -P keeps modules of the workspace out."""

_PROVIDERS = MappingProxyType(
    {
        "anthropic": Provider("anthropic", ("ANTHROPIC_API_KEY",), ("ANTHROPIC_BASE_URL",)),
        "openai_chat": Provider("openai_chat", ("OPENAI_API_KEY",), ("OPENAI_BASE_URL",)),
    }
)

_VERSION_IN_ADDRESS = MappingProxyType({"anthropic": "", "openai_chat": "/v1"})
"""What an address of each API ends with; the loopback model's own has no version."""


class BuiltinSettings(EngineSettings):
    """`settings:` of a builtin profile.

    `api`: what the model speaks. `max_steps`: replies of the model in one turn. `max_retries`: repeats of a failed
    request. `tools`: which of its own tools it offers; by default all, and none beside mocked ones. Without `sessions`
    it is an agent that cannot resume one, to try out what the fallback does with a case.
    """

    api: Literal["anthropic", "openai_chat"] = "anthropic"
    max_steps: int = Field(20, ge=1, le=1000)
    max_retries: int = Field(2, ge=0, le=10)
    sessions: bool = True
    tools: tuple[Literal["bash", "read", "write", "edit"], ...] | None = None


class Builtin(EngineDefaults):
    """The engine `builtin`."""

    name = "builtin"
    settings = BuiltinSettings
    assigns_session_id = True
    shows_progress = False
    hidden_tools = frozenset({"skill"})  # it reads a SKILL.md with `read` or `bash`; there is no event of its own
    version_variables: Mapping[str, str] = MappingProxyType({})
    home_folder = ".skillup-agent"
    home_needs_lock = False  # it locks each session itself, and keeps nothing else
    skills_folder = ".skillup-agent/skills"
    supports = frozenset({"mock_tools", "input.messages", "input.system", "constraints.max_steps"})

    def resumes(self, settings: EngineSettings) -> bool:
        """Unless the settings say no."""
        return cast("BuiltinSettings", settings).sessions

    def provider(self, settings: EngineSettings) -> Provider:
        """The model API that the settings choose."""
        return _PROVIDERS[cast("BuiltinSettings", settings).api]

    def version_argv(self, settings: EngineSettings) -> tuple[str, ...]:
        """The command that prints the agent's version."""
        del settings
        return (*_START, "--version")

    def as_judge(self, provider: str) -> BuiltinSettings | None:
        """With the tool that only looks."""
        if provider == "anthropic":
            return BuiltinSettings(tools=("read",))
        return BuiltinSettings(api="openai_chat", tools=("read",)) if provider == "openai" else None

    def history(self, messages: Sequence[HistoryMessage]) -> str:
        """What was said before the first turn, as the agent keeps a session."""
        return json.dumps(_history(messages))

    def invocation(self, request: TurnRequest) -> Invocation:
        """How to run this turn."""
        settings, around = cast("BuiltinSettings", request.settings), request.around
        argv = (
            *_START,
            *("--home", str(request.home)),
            *("--api", settings.api),
            *("--model", request.endpoint.model or DEFAULT_MODEL),
            *("--resume" if request.session.started else "--session-id", str(request.session.id)),
            *("--max-steps", str(around.max_steps or settings.max_steps)),
            *("--max-retries", str(settings.max_retries)),
            *(("--tools", ",".join(settings.tools)) if settings.tools is not None else ()),
            *(("--system-prompt-file", str(around.system_file)) if around.system_file else ()),
            *(("--history", str(around.history)) if around.history and not request.session.started else ()),
        )
        env: dict[str, str] = {}
        provider = self.provider(settings)
        (address,), (key,) = provider.address_variables, provider.credentials
        if request.endpoint.base_url:
            version = _VERSION_IN_ADDRESS[settings.api] if request.endpoint.scripted else ""
            env[address] = request.endpoint.base_url + version
        if request.endpoint.scripted:
            env[key] = "loopback-not-a-secret"
        if around.tools_url:
            env["BUILTIN_AGENT_TOOLS_URL"] = around.tools_url
        return Invocation(argv=argv, env=env, stdin=request.prompt)

    def policy(self, request: TurnRequest) -> dict[str, str]:
        """The permissions that are in force in this turn, for the record."""
        return {"permission_mode": "full", "cwd": str(request.workspace)}

    def events(self, line: bytes, workspace: Path) -> tuple[Event, ...]:
        """What one line of its output means.

        Raises:
            ValueError: the line is not an event of the agent.
        """
        event = parse_object(line)
        try:
            return _meaning(event, workspace)
        except (AttributeError, KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"not an event of the built-in agent: {type(error).__name__}: {error}") from error

    def explain(self, exit_code: int | None, signal: int | None, stdout: str, stderr: str) -> EngineFault:
        """Why a process ended without its `end` event."""
        return BUILTIN.ended(exit_code, signal, stdout, stderr)


def _history(messages: Sequence[HistoryMessage]) -> list[dict[str, Any]]:
    """Messages in the agent's own form: roles alternate, and every call has its result in the message after it."""
    made: list[dict[str, Any]] = []

    def add(role: str, blocks: list[dict[str, Any]]) -> None:
        if made and made[-1]["role"] == role:
            made[-1]["content"] += blocks
        elif blocks:
            made.append({"role": role, "content": blocks})

    calls = 0
    for message in messages:
        add(message.role, [{"type": "text", "text": message.content}] if message.content is not None else [])
        results = []
        for call in message.calls:
            calls += 1
            add("assistant", [{"type": "tool_use", "id": f"call_{calls}", "name": call.name, "input": call.args}])
            result = {"type": "tool_result", "tool_use_id": f"call_{calls}", "content": call.content}
            results.append({**result, "is_error": True} if call.failed else result)
        if results:
            add("user", results)
    return made


def _meaning(event: dict[str, Any], workspace: Path) -> tuple[Event, ...]:
    match event.get("type"):
        case "session":
            keys = ("model", "tools", "skills", "version", "cwd")
            return (SessionSeen(str(event["session_id"]), {key: event[key] for key in keys if key in event}),)
        case "text":
            return (Said(str(event["text"])),)
        case "thinking":
            return (Thought(str(event["text"])),)
        case "tool_call":
            name, raw = str(event["name"]), _object(event["arguments"])
            return (Called(str(event["id"]), name, raw, _tool(name), _arguments(raw, workspace)),)
        case "tool_result":
            status: Literal["ok", "error"] = "ok" if event["status"] == "ok" else "error"
            return (Returned(str(event["id"]), status, str(event["content"])),)
        case "retry":
            status_code = event.get("status")
            answered = f"the provider answered {status_code}" if status_code else "the provider gave no usable answer"
            word, asked = str(event["error"]), amount(event.get("retry_after"))
            fault = BUILTIN.told(answered, error_class=word, status=status_code, retry_after=asked)
            return (Retrying(fault, int(event["attempt"]), seconds_of(event.get("delay_ms"))),)
        case "end":
            return (_finished(event),)
    return ()


def _finished(event: dict[str, Any]) -> Finished:
    usage = Usage(**event["usage"], basis="per_turn") if event.get("usage") else Usage()
    error, reason = event.get("error"), event["reason"]
    fault = None
    if error:
        kind, asked = str(error["kind"]), amount(error.get("retry_after"))
        fault = BUILTIN.told(str(error["message"]), error_class=kind, retry_after=asked)
    elif reason == "interrupted":
        fault = EngineFault("crash", "the built-in agent was interrupted by a signal before it answered")
    text = event.get("text")
    limit = "steps" if reason == "max_steps" else None
    steps = event.get("steps")
    return Finished(
        text=None if text is None else str(text),
        usage=usage,
        fault=fault,
        limit=limit,
        steps=steps if isinstance(steps, int) else None,
    )


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{type(value).__name__} where an object is expected")
    return value


def _tool(name: str) -> str:
    return name if name in ("bash", "read", "write", "edit") else "other"


def _arguments(raw: dict[str, Any], workspace: Path) -> dict[str, Any]:
    path = raw.get("path")
    return {**raw, "path": inside_workspace(path, workspace)} if isinstance(path, str) else raw

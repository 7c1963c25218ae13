"""Codex (`codex exec --json`): one process a turn, the thread's id from `thread.started`, then `exec resume ID`.

Event and flag facts were measured on 0.169.0 (recordings under tests/engines/recordings/codex/): terminal events are
`turn.completed` and `turn.failed` alone, a top-level `error` may be a mere retry; usage counts the whole thread; a
resume rejects `--sandbox` and is read-only without a policy in the configuration, so each turn is given the whole
configuration by `-c` and told to read no `config.toml`: neither a shared home nor an agent that writes one can change
it; an unknown name (not id) silently starts a new thread, so ids are compared on every turn.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from glob import escape
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast

from pydantic import Field

from skillup.engines.base import (
    EngineDefaults,
    EngineSettings,
    Invocation,
    Provider,
    TurnRequest,
)
from skillup.engines.codex_events import events_of, hidden_events, turns_in
from skillup.engines.events import EngineFault, Event
from skillup.engines.faults import CODEX

SCRIPTED_MODEL = "gpt-5.5"
"""What a scripted model is called: the CLI offers its patch tool only to names that it knows."""

_PROVIDER = "skillup"
_LOOPBACK_KEY = "CODEX_API_KEY"
_DEFAULT_ADDRESS = "https://api.openai.com/v1"

_PROJECT_DOC_BYTES = 32 * 1024
"""As much of a fixture's AGENTS.md as the CLI reads by default."""

_ASKING_FEATURES = ("plugins", "remote_plugin", "apps", "skill_search")
"""Each of these asks servers of its own for lists, whatever the provider is."""


class CodexSettings(EngineSettings):
    """`settings:` of a Codex profile.

    `binary`: the command to run. `max_retries`: repeats of a failed request. `idle_seconds`: silence of a stream
    that counts as broken. `patience_seconds`: how long the CLI may go on reconnecting before we end the turn (it
    would for ever). `sandbox`: the CLI's own sandbox, the same in every turn. `workspace_instructions`: whether
    AGENTS.md of the fixture loads; `workspace_skills`: whether its skills do. `effort`: the model's reasoning effort.
    """

    binary: str = "codex"
    max_retries: int = Field(2, ge=0, le=10)
    idle_seconds: float = Field(120, gt=0)
    patience_seconds: float = Field(60, gt=0)
    sandbox: Literal["danger-full-access", "workspace-write", "read-only"] = "danger-full-access"
    workspace_instructions: bool = True
    workspace_skills: bool = False
    effort: Literal["minimal", "low", "medium", "high", "xhigh"] | None = None


class Codex(EngineDefaults):
    """The engine `codex`."""

    name = "codex"
    settings = CodexSettings
    assigns_session_id = False
    shows_progress = False
    hidden_tools = frozenset({"read", "glob", "grep", "list", "web_fetch", "skill", "ask_user"})
    version_variables: MappingProxyType[str, str] = MappingProxyType({})
    home_folder = ".codex"
    home_variable = "CODEX_HOME"
    login_files = ("auth.json",)
    skills_folder = ".agents/skills"
    workspace_skills = (".agents/skills", ".codex/skills")

    def provider(self, settings: EngineSettings) -> Provider:
        """The model API that it speaks."""
        del settings
        return Provider("openai_responses", ("CODEX_API_KEY", "OPENAI_API_KEY"), ("OPENAI_BASE_URL",), _DEFAULT_ADDRESS)

    def version_argv(self, settings: EngineSettings) -> tuple[str, ...]:
        """The command that prints the CLI's version."""
        return (cast("CodexSettings", settings).binary, "--version")

    def as_judge(self, provider: str) -> CodexSettings | None:
        """In its read-only sandbox, and without what the folder has to say to it."""
        if provider != "openai":
            return None
        return CodexSettings(sandbox="read-only", workspace_instructions=False)

    def confines_itself(self, settings: EngineSettings) -> bool:
        """Unless its sandbox is off. Within another one it runs no command, and does not say so."""
        return cast("CodexSettings", settings).sandbox != "danger-full-access"

    def patience(self, settings: EngineSettings) -> float | None:
        """Seconds of reconnecting after which a turn is ended: the CLI itself never gives up."""
        return cast("CodexSettings", settings).patience_seconds

    def invocation(self, request: TurnRequest) -> Invocation:
        """How to run this turn."""
        settings = cast("CodexSettings", request.settings)
        model = SCRIPTED_MODEL if request.endpoint.scripted else request.endpoint.model
        argv = [settings.binary, "exec", *(["resume"] if request.session.started else [])]
        argv += ["--json", "--skip-git-repo-check", "--ignore-user-config"]
        if model:
            argv += ["--model", model]
        for key, value in (*_configuration(request, settings), *_provider(request, settings)):
            argv += ["-c", f"{key}={value}"]
        if request.session.started:
            argv.append(str(request.session.id))
        argv.append("-")  # the prompt comes by stdin: an argument may neither begin with - nor be long
        env = {"CODEX_HOME": str(request.home)}
        if request.endpoint.scripted:
            env[_LOOPBACK_KEY] = "loopback-not-a-secret"
        return Invocation(argv=tuple(argv), env=env, stdin=request.prompt)

    def policy(self, request: TurnRequest) -> dict[str, str]:
        """The permissions that are in force in this turn, for the record."""
        settings = cast("CodexSettings", request.settings)
        return {"permission_mode": settings.sandbox, "approval_policy": "never", "cwd": str(request.workspace)}

    def events(self, line: bytes, workspace: Path) -> tuple[Event, ...]:
        """What one line of its output means.

        Raises:
            ValueError: the line is not an event of the CLI.
        """
        return events_of(line, workspace)

    def session_file(self, session_id: str) -> str:
        """A glob below the home for the file of this thread, and of no other."""
        return f"sessions/*/*/*/rollout-*-{escape(session_id)}.jsonl"

    def session_events(self, lines: Sequence[bytes], workspace: Path) -> tuple[Event, ...]:
        """Calls of the last turn that the thread's file shows and the stream does not."""
        return hidden_events(lines, workspace)

    def session_turns(self, lines: Sequence[bytes]) -> int:
        """How many turns that file holds."""
        return turns_in(lines)

    def explain(self, exit_code: int | None, signal: int | None, stdout: str, stderr: str) -> EngineFault:
        """Why a process ended without a terminal event."""
        return CODEX.ended(exit_code, signal, stdout, stderr)


def _configuration(request: TurnRequest, settings: CodexSettings) -> list[tuple[str, str]]:
    """What is in force in every turn, the first and the resumed ones, as TOML values by key."""
    off = () if settings.workspace_skills else request.workspace_skills
    skills = ", ".join(f"{{path = {json.dumps(str(skill))}, enabled = false}}" for skill in off)
    return [
        ("sandbox_mode", json.dumps(settings.sandbox)),
        ("approval_policy", '"never"'),
        ("check_for_update_on_startup", "false"),
        ("project_doc_max_bytes", str(_PROJECT_DOC_BYTES if settings.workspace_instructions else 0)),
        ("skills.bundled.enabled", "false"),
        *([("skills.config", f"[{skills}]")] if skills else []),
        ("analytics.enabled", "false"),
        *((f"features.{name}", "false") for name in _ASKING_FEATURES),
        *([("model_reasoning_effort", json.dumps(settings.effort))] if settings.effort else []),
    ]


def _provider(request: TurnRequest, settings: CodexSettings) -> list[tuple[str, str]]:
    """The provider; nothing where the CLI's own login chooses it."""
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

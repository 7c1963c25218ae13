"""Claude Code (`claude -p`, stream-json): one process a turn, `--session-id` first, then `--resume`.

Event and flag facts were measured on 2.1.197 (recordings under tests/engines/recordings/claude_code/): the final
word is the last `result` event and its `is_error`, never the exit code; a resumed turn must repeat every flag; the
prompt goes in by stdin, because arguments that begin with `-` are options and long ones do not fit.
"""

from __future__ import annotations

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
from skillup.engines.claude_events import events_of, prompts_in
from skillup.engines.events import EngineFault, Event
from skillup.engines.faults import CLAUDE_CODE

SCRIPTED_KEY = "sk-ant-loopback-not-a-secret"
"""The CLI wants a key before it sends anything; the loopback model accepts every key."""


class ClaudeSettings(EngineSettings):
    """`settings:` of a Claude Code profile.

    `binary`: the command to run. `max_retries`: how often the CLI itself repeats a failed request (its own default is
    10, about three minutes). `workspace_instructions`: whether CLAUDE.md and rules of the fixture load.
    `append_system_prompt`, `tools` and `effort` are the CLI's flags of that name.
    """

    binary: str = "claude"
    max_retries: int = Field(4, ge=0, le=10)
    workspace_instructions: bool = True
    append_system_prompt: str = ""
    tools: tuple[str, ...] | None = None
    effort: Literal["low", "medium", "high"] | None = None


class ClaudeCode(EngineDefaults):
    """The engine `claude_code`."""

    name = "claude_code"
    settings = ClaudeSettings
    assigns_session_id = True
    shows_progress = True
    hidden_tools: frozenset[str] = frozenset()
    version_variables = MappingProxyType({"DISABLE_AUTOUPDATER": "1"})
    host_policy = ("/etc/claude-code",)
    home_folder = ".claude"
    home_variable = "CLAUDE_CONFIG_DIR"
    login_files = (".credentials.json",)
    skills_folder = ".claude/skills"
    supports = frozenset({"input.system", "constraints.max_steps"})
    reports_cost = True

    def provider(self, settings: EngineSettings) -> Provider:
        """The model API that it speaks."""
        del settings
        return Provider(
            "anthropic",
            ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
            ("ANTHROPIC_BASE_URL",),
            "https://api.anthropic.com",
        )

    def version_argv(self, settings: EngineSettings) -> tuple[str, ...]:
        """The command that prints the CLI's version."""
        return (cast("ClaudeSettings", settings).binary, "--version")

    def as_judge(self, provider: str) -> ClaudeSettings | None:
        """With the tools that only look, and without what the folder has to say to it."""
        if provider != "anthropic":
            return None
        return ClaudeSettings(tools=("Read", "Glob", "Grep", "Skill"), workspace_instructions=False)

    def invocation(self, request: TurnRequest) -> Invocation:
        """How to run this turn."""
        settings = cast("ClaudeSettings", request.settings)
        session = request.session
        argv = [
            settings.binary,
            "--print",
            *("--output-format", "stream-json", "--verbose", "--include-partial-messages"),
            *("--resume" if session.started else "--session-id", str(session.id)),
            "--dangerously-skip-permissions",
            *("--setting-sources", "user", "--strict-mcp-config"),
        ]
        if request.shared:
            argv += ["--settings", '{"disableAllHooks": true}']  # the user's hooks are in the home that is shared
        if request.endpoint.model:
            argv += ["--model", request.endpoint.model]
        if settings.workspace_instructions:
            argv += ["--add-dir", str(request.workspace)]
        appended = [text for text in (settings.append_system_prompt, request.around.system) if text]
        if appended:
            argv += ["--append-system-prompt", "\n\n".join(appended)]
        if request.around.max_steps is not None:
            argv += ["--max-turns", str(request.around.max_steps)]
        if request.around.max_cost_usd is not None:
            argv += ["--max-budget-usd", f"{request.around.max_cost_usd:.4f}"]
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
            "CLAUDE_CONFIG_DIR": str(request.home),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
            "CLAUDE_CODE_MAX_RETRIES": str(settings.max_retries),
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
            # Else the model may be asked before the tools of a slow MCP server are there, and nobody would notice.
            "MCP_CONNECTION_NONBLOCKING": "false",
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
            ValueError: the line is not an event of the CLI.
        """
        return events_of(line, workspace)

    def session_file(self, session_id: str) -> str:
        """A glob below the home for the file of this session, and of no other."""
        return f"projects/*/{escape(session_id)}.jsonl"

    def session_turns(self, lines: Sequence[bytes]) -> int:
        """How many messages of a user that file holds."""
        return prompts_in(lines)

    def explain(self, exit_code: int | None, signal: int | None, stdout: str, stderr: str) -> EngineFault:
        """Why a process that ended without a `result` event did so."""
        return CLAUDE_CODE.ended(exit_code, signal, stdout, stderr)

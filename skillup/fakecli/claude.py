"""The stream-json of Claude Code, as 2.1.197 prints it, with its rules for sessions and arguments."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillup import __version__
from skillup.fakecli.dialect import Dialect, Refused
from skillup.fakecli.output import complain, read_all
from skillup.fakecli.store import SessionFile, claude_file, claude_prompt

_MODEL = "fake-model"
_SYNTHETIC = "<synthetic>"
_TOOLS = {"bash": "Bash", "write": "Write"}
_CLASSES = {400: "invalid_request", 401: "authentication_failed", 403: "authentication_failed", 404: "model_not_found"}


_WITH_VALUE = frozenset(
    {
        *(
            "--output-format",
            "--input-format",
            "--session-id",
            "--resume",
            "-r",
            "--model",
            "--fallback-model",
            "--effort",
        ),
        *(
            "--append-system-prompt",
            "--system-prompt",
            "--settings",
            "--setting-sources",
            "--permission-mode",
            "--agents",
        ),
        *("--permission-prompt-tool", "--max-turns", "--max-budget-usd", "--json-schema", "--mcp-config", "--add-dir"),
        *("--tools", "--allowedTools", "--allowed-tools", "--disallowedTools", "--disallowed-tools", "--betas"),
    }
)
"""Options that are followed by a value; those that take several are played with one."""

_STDIN_SECONDS = 3.0
"""How long it waits for a silent stdin when it has a prompt already."""


class Claude(Dialect):
    """`claude -p`. `--output-format json` prints the final event alone, `text` its answer."""

    denied: tuple[str, ...] = ()

    def home(self) -> Path:
        """`$CLAUDE_CONFIG_DIR`, else `~/.claude`."""
        return Path(self.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")

    def prompt(self) -> str:
        """See `Dialect.prompt`: the argument, and what stdin holds below it."""
        if self.value_of("--input-format") == "stream-json":
            raise Refused("skillup-fake-agent: --input-format stream-json is not played", 2)
        words = self.words(_WITH_VALUE)
        given = read_all(_STDIN_SECONDS if words else None)
        return "\n".join([*words, *([given] if given else [])])

    def open(self, prompt: str) -> None:
        """See `Dialect.open`."""
        chosen, resumed = self.value_of("--session-id"), self.value_of("--resume", "-r")
        self._refuse_wrong_arguments(prompt, chosen, resumed)
        self.session_id = resumed or chosen or str(uuid.uuid4())
        file = self.file()
        entries = [entry for entry in file.entries if entry.get("type") == "user"]
        if resumed and not entries:
            said = f"No conversation found with session ID: {resumed}"
            complain(said)
            self._final({"subtype": "error_during_execution", "is_error": True, "num_turns": 0, "errors": [said]})
            raise Refused("")
        if resumed and self.has("--fork-session"):
            self.session_id = chosen or str(uuid.uuid4())
            file = self.file()
            file.add(*entries)
        elif entries and not resumed:
            raise Refused(f"Error: Session ID {self.session_id} is already in use.")
        self.turn = len(entries) + 1
        self.first_prompt = str(entries[0]["message"]["content"]) if entries else prompt
        file.add(claude_prompt(self.session_id, self.cwd, prompt))
        self.init()

    def _refuse_wrong_arguments(self, prompt: str, chosen: str | None, resumed: str | None) -> None:
        if self._format == "stream-json" and not self.has("--verbose"):
            raise Refused("Error: When using --print, --output-format=stream-json requires --verbose")
        if chosen and (resumed or self.has("--continue", "-c")) and not self.has("--fork-session"):
            told = "--session-id can only be used with --continue or --resume if --fork-session is also specified."
            raise Refused(f"Error: {told}")
        if chosen and not _is_uuid(chosen):
            raise Refused("Error: Invalid session ID. Must be a valid UUID.")
        if not prompt:
            told = "Input must be provided either through stdin or as a prompt argument when using --print"
            raise Refused(f"Error: {told}")

    @property
    def _format(self) -> str:
        return self.value_of("--output-format") or "text"

    def file(self) -> SessionFile:
        """See `Dialect.file`."""
        return claude_file(self.home(), self.cwd, self.session_id)

    def init(self, **changes: Any) -> None:
        """The event with which every turn begins."""
        self._event(
            {
                "type": "system",
                "subtype": "init",
                "cwd": self.cwd,
                "session_id": self.session_id,
                "tools": [*_TOOLS.values()],
                "mcp_servers": [],
                "model": self.value_of("--model") or _MODEL,
                "permissionMode": "bypassPermissions" if self.has("--dangerously-skip-permissions") else "default",
                "slash_commands": [],
                "agents": [],
                "skills": [],
                "apiKeySource": "none",
                "claude_code_version": f"{__version__}-fake",
                "uuid": str(uuid.uuid4()),
                **changes,
            }
        )

    def say(self, text: str, *, thought: bool = False) -> None:
        """See `Dialect.say`."""
        self._assistant({"type": "thinking", "thinking": text} if thought else {"type": "text", "text": text})

    def _assistant(self, *blocks: dict[str, Any], model: str = _MODEL, **more: Any) -> None:
        usage = {"input_tokens": self.usage.input_tokens, "output_tokens": 1}
        message: dict[str, Any] = {
            "id": f"msg_{uuid.uuid4().hex[:12]}",
            "type": "message",
            "role": "assistant",
            "model": model,
        }
        message |= {"content": list(blocks), "stop_reason": None, "stop_sequence": None, "usage": usage}
        self._event({"type": "assistant", "message": message, **self._common(), **more})

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """See `Dialect.call`."""
        call_id = f"toolu_{self.new_call_id()}"
        arguments = {"file_path" if key == "path" else key: value for key, value in arguments.items()}
        self._assistant({"type": "tool_use", "id": call_id, "name": _TOOLS.get(name, name), "input": arguments})
        return call_id

    def result(self, call_id: str, text: str, *, failed: bool = False) -> None:
        """See `Dialect.result`."""
        block = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": failed}
        self._event({"type": "user", "message": {"role": "user", "content": [block]}, **self._common()})

    def deny(self, call_id: str) -> None:
        """See `Dialect.deny`: the call fails, and the final event lists it."""
        self.denied += (call_id,)
        self.result(call_id, "Claude requested permissions to use this tool, but they were not granted.", failed=True)

    def finish(self, text: str | None, changes: Mapping[str, Any]) -> None:
        """See `Dialect.finish`."""
        self._final({"subtype": "success", "is_error": False, "num_turns": 1, "result": text or "", **changes})

    def fail(self, status: int | None, message: str, changes: Mapping[str, Any]) -> None:
        """See `Dialect.fail`: also a failure ends with the subtype `success`."""
        said = f"API Error: {f'{status} ' if status else ''}{message}"
        kind = "server_error" if status and status >= 500 else _CLASSES.get(status or 0, "unknown")
        kind = "rate_limit" if status == 429 else kind
        self._assistant({"type": "text", "text": said}, model=_SYNTHETIC, error=kind)
        failed = {"subtype": "success", "is_error": True, "api_error_status": status, "num_turns": 1, "result": said}
        self._final({**failed, "modelUsage": {}, "total_cost_usd": 0, **changes})

    def _final(self, fields: Mapping[str, Any]) -> None:
        taken = {"input_tokens": self.usage.input_tokens, "output_tokens": self.usage.output_tokens}
        model = {"inputTokens": taken["input_tokens"], "outputTokens": taken["output_tokens"]}
        denials = [{"tool_name": "Bash", "tool_use_id": call_id, "tool_input": {}} for call_id in self.denied]
        event = {
            "type": "result",
            "duration_ms": 1,
            "duration_api_ms": 1,
            "session_id": self.session_id,
            "total_cost_usd": self.usage.cost_usd,
            "usage": taken,
            "permission_denials": denials,
            "modelUsage": {_MODEL: {**model, "costUSD": self.usage.cost_usd}},
            "uuid": str(uuid.uuid4()),
            **fields,
        }
        if self._format == "text":
            self.output.write(str(event.get("result", "")).encode() + b"\n")
        else:
            self.output.event(event)

    def retry(self, status: int, attempt: int, seconds: float) -> None:
        """See `Dialect.retry`."""
        kind = "rate_limit" if status == 429 else "server_error"
        said = {"attempt": attempt, "max_retries": 10, "retry_delay_ms": seconds * 1000, "error_status": status}
        self._system("api_retry", **said, error=kind)

    def keep_alive(self) -> None:
        """See `Dialect.keep_alive`: the ping of the model's stream."""
        self._event({"type": "stream_event", "event": {"type": "ping"}, **self._common()})

    def compacted(self) -> None:
        """See `Dialect.compacted`."""
        self._system("compact_boundary", compact_metadata={"trigger": "auto", "pre_tokens": 150_000})

    def task(self, command: str, *, ended: bool) -> None:
        """See `Dialect.task`: a call of `Bash` that returns at once; when it is ended, nothing but notices."""
        task_id = "b_fake"
        if ended:
            self._system("task_updated", task_id=task_id, patch={"status": "killed"})
            self._system("task_notification", task_id=task_id, status="stopped", output_file="", summary=command)
            return
        call_id = self.call("bash", {"command": command, "run_in_background": True})
        about = {"task_id": task_id, "tool_use_id": call_id}
        self._system("task_started", **about, description=command, task_type="local_bash")
        self.result(call_id, f"Command running in background with ID: {task_id}.")

    def interrupted(self) -> int:
        """See `Dialect.interrupted`: it still prints a final event."""
        self._final({"subtype": "error_during_execution", "is_error": True, "num_turns": 1, "errors": []})
        return 1

    def name_session(self, session_id: str) -> None:
        """See `Dialect.name_session`."""
        self.session_id = session_id
        self.file().add(claude_prompt(session_id, self.cwd, self.first_prompt))

    def add_neighbour(self) -> None:
        """See `Dialect.add_neighbour`."""
        other = str(uuid.uuid4())
        claude_file(self.home(), self.cwd, other).add(claude_prompt(other, self.cwd, "a neighbour's prompt"))

    def _system(self, subtype: str, **fields: Any) -> None:
        own = {"session_id": self.session_id, "uuid": str(uuid.uuid4())}
        self._event({"type": "system", "subtype": subtype, **fields, **own})

    def _common(self) -> dict[str, Any]:
        return {"parent_tool_use_id": None, "session_id": self.session_id, "uuid": str(uuid.uuid4())}

    def _event(self, event: dict[str, Any]) -> None:
        if self._format == "stream-json":
            self.output.event(event)


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True

"""The JSON lines of `codex exec`, as 0.169.0 prints them, with its rules for threads, arguments and the sandbox."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillup.fakecli.dialect import Dialect, Refused
from skillup.fakecli.output import Output, read_all
from skillup.fakecli.store import SessionFile, codex_file, codex_prompt, newest_codex_thread

_NOT_ON_RESUME = ("--sandbox", "-s", "--cd", "-C", "--add-dir", "--profile", "-p")
"""Options of `codex exec` that `codex exec resume` does not know."""

_WITH_VALUE = frozenset(
    {"--model", "-m", "-c", "--config", "--sandbox", "-s", "--cd", "-C", "--add-dir", "--profile", "-p", "-i", "-o"}
)


class Codex(Dialect):
    """`codex exec --json`. Without a policy of its own a turn is read-only, a resumed one, too."""

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str], output: Output) -> None:
        super().__init__(arguments, environ, output)
        self._counted: Mapping[str, int] = {}
        self._open: dict[str, Any] = {}

    def home(self) -> Path:
        """`$CODEX_HOME`, else `~/.codex`."""
        return Path(self.environ.get("CODEX_HOME") or Path.home() / ".codex")

    def prompt(self) -> str:
        """See `Dialect.prompt`: stdin is read to its end, also when there is a prompt already."""
        words = self._words()
        taken = 0 if words[:1] != ["resume"] else 1 if self.has("--last") else 2
        given, told = read_all(), [word for word in words[taken:] if word != "-"]
        if not told:
            return given
        return f"{told[0]}\n\n<stdin>\n{given}\n</stdin>" if given else told[0]

    def open(self, prompt: str) -> None:
        """See `Dialect.open`."""
        words = self._words()
        resumes = words[:1] == ["resume"]
        self._refuse_wrong_arguments(prompt, resumes=resumes)
        named = words[1] if resumes and len(words) > 1 and not self.has("--last") else None
        if resumes and self.has("--last"):
            named = newest_codex_thread(self.home())
        entries = codex_file(self.home(), named).entries if named else []
        if named and not entries and len(named) == len(str(uuid.uuid4())):
            message = f"no rollout found for thread id {named}"
            raise Refused(f"Error: thread/resume: thread/resume failed: {message} (code -32600)")
        # A name that it does not know begins a new thread, and nothing says so but the id.
        self.session_id = named if named and entries else str(uuid.uuid4())
        prompts = [entry["payload"]["content"][0]["text"] for entry in entries if entry["type"] == "response_item"]
        totals = [entry["payload"]["total"] for entry in entries if entry["payload"].get("type") == "token_count"]
        self.turn, self.first_prompt = len(prompts) + 1, prompts[0] if prompts else prompt
        self._counted = totals[-1] if totals else {}
        self.file().add(*codex_prompt(prompt))
        self.output.event({"type": "thread.started", "thread_id": self.session_id})
        self.output.event({"type": "turn.started"})

    def _words(self) -> list[str]:
        """What stands behind `exec` and is no option: `resume` and a thread, a prompt."""
        return self.words(_WITH_VALUE)[1:]

    def _refuse_wrong_arguments(self, prompt: str, *, resumes: bool) -> None:
        wrong = [name for name in _NOT_ON_RESUME if self.has(name)] if resumes else []
        if wrong:
            raise Refused(f"error: unexpected argument '{wrong[0]}' found", 2)
        if not self.home().is_dir():
            raise Refused(f"Error: CODEX_HOME points to {str(self.home())!r}, but that path does not exist")
        trusted = self.has("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
        places = (Path(self.cwd), *Path(self.cwd).parents)
        if not trusted and not any((place / ".git").exists() for place in places):
            raise Refused("Not inside a trusted directory and --skip-git-repo-check was not specified.")
        if not prompt.strip():
            raise Refused("No prompt provided via stdin.")

    def file(self) -> SessionFile:
        """See `Dialect.file`."""
        return codex_file(self.home(), self.session_id)

    def may_write(self) -> bool:
        """See `Dialect.may_write`."""
        if self.has("--dangerously-bypass-approvals-and-sandbox", "--full-auto"):
            return True
        given = [value for value in self.arguments if value.startswith("sandbox_mode=")]
        mode = self.value_of("--sandbox", "-s") or (given[-1].partition("=")[2].strip("\"'") if given else "read-only")
        return mode != "read-only"

    def say(self, text: str, *, thought: bool = False) -> None:
        """See `Dialect.say`."""
        self._item("completed", {"type": "reasoning" if thought else "agent_message", "text": text})

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """See `Dialect.call`: writing a file shows only when it is done, as the change that it is."""
        call_id = self.new_call_id()
        if name == "write":
            change = {"path": str(Path(self.cwd, str(arguments["path"]))), "kind": "add"}
            self._open = {"type": "file_change", "changes": [change], "status": "in_progress"}
        elif name.startswith("mcp__"):
            _, server, tool = name.split("__", 2)
            called = {"server": server, "tool": tool, "arguments": arguments, "status": "in_progress"}
            self._open = {"type": "mcp_tool_call", **called, "result": None, "error": None}
        else:
            command = f"/bin/bash -lc {shlex.quote(str(arguments.get('command', '')))}"
            self._open = {"type": "command_execution", "command": command, "aggregated_output": ""}
            self._open |= {"exit_code": None, "status": "in_progress"}
        self._item("started", self._open, call_id)
        return call_id

    def result(self, call_id: str, text: str, *, failed: bool = False) -> None:
        """See `Dialect.result`."""
        ended = {**self._open, "status": "failed" if failed else "completed"}
        if ended["type"] == "command_execution":
            ended |= {"aggregated_output": text, "exit_code": int(failed)}
        if ended["type"] == "mcp_tool_call":
            ended |= (
                {"error": {"message": text}} if failed else {"result": {"content": [{"type": "text", "text": text}]}}
            )
        self._item("completed", ended, call_id)

    def deny(self, call_id: str) -> None:
        """See `Dialect.deny`: it looks like any call that failed."""
        self.result(call_id, "Operation not permitted", failed=True)

    def finish(self, text: str | None, changes: Mapping[str, Any]) -> None:
        """See `Dialect.finish`; its usage counts the whole thread."""
        del text  # the answer is the last message of the agent
        own = {
            "input_tokens": self.usage.input_tokens,
            "cached_input_tokens": 0,
            "cache_write_input_tokens": 0,
            "output_tokens": self.usage.output_tokens,
            "reasoning_output_tokens": 0,
        }
        total = {name: count + self._counted.get(name, 0) for name, count in own.items()}
        self.file().add({"type": "event_msg", "payload": {"type": "token_count", "total": total}})
        self.output.event({"type": "turn.completed", "usage": total, **changes})

    def fail(self, status: int | None, message: str, changes: Mapping[str, Any]) -> None:
        """See `Dialect.fail`."""
        said = f"unexpected status {status}: {message}" if status else message
        self.output.event({"type": "error", "message": said})
        self.output.event({"type": "turn.failed", "error": {"message": said}, **changes})

    def retry(self, status: int, attempt: int, seconds: float) -> None:
        """See `Dialect.retry`: how long it waits it does not say."""
        del seconds
        said = f"Reconnecting... {attempt}/5 (unexpected status {status}: the provider refused)"
        self.output.event({"type": "error", "message": said})

    def keep_alive(self) -> None:
        """See `Dialect.keep_alive`: it prints nothing meanwhile, so this is an empty line."""
        self.output.write(b"\n")

    def compacted(self) -> None:
        """See `Dialect.compacted`: it does not say."""

    def task(self, command: str, *, ended: bool) -> None:
        """See `Dialect.task`: a command that began and never ends; that it was ended it does not say."""
        if not ended:
            self.call("bash", {"command": command})

    def interrupted(self) -> int:
        """See `Dialect.interrupted`: it goes without a word."""
        return 1

    def name_session(self, session_id: str) -> None:
        """See `Dialect.name_session`: the stream names it as a new thread."""
        self.session_id = session_id
        self.file().add(*codex_prompt(self.first_prompt))
        self.output.event({"type": "thread.started", "thread_id": session_id})

    def add_neighbour(self) -> None:
        """See `Dialect.add_neighbour`."""
        codex_file(self.home(), str(uuid.uuid4())).add(*codex_prompt("a neighbour's prompt"))

    def _item(self, what: str, item: dict[str, Any], item_id: str | None = None) -> None:
        self.output.event({"type": f"item.{what}", "item": {"id": item_id or self.new_call_id(), **item}})

"""The steps of a plan, one method a step; docs/conformance.md explains them to those who write plans."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from typing import Any, NoReturn

from skillup.fakecli.children import BackgroundTask, remember, run_tool, signals, start_daemon
from skillup.fakecli.places import PlaceSteps
from skillup.fakecli.printing import PrintingSteps

_FOR_EVER = 10**6
_KEEP_ALIVE_SECONDS = 0.1


class Steps(PrintingSteps, PlaceSteps):
    """All steps: those about the agent and the CLI's end here, the others in its bases."""

    # --- what the agent says and does

    def do_say(self, text: object) -> None:
        """A text of the agent."""
        self._dialect.say(self._text(text))

    def do_think(self, text: object) -> None:
        """A thought of the agent."""
        self._dialect.say(self._text(text), thought=True)

    def do_bash(self, command: str) -> None:
        """A shell command: it is run, and shown with what it printed."""
        call_id = self._dialect.call("bash", {"command": command})
        text, failed = run_tool(command)
        self._dialect.result(call_id, text, failed=failed)

    def do_write(self, file: Mapping[str, str]) -> None:
        """A file that is written into the workspace, where the policy allows it."""
        call_id = self._dialect.call("write", {"path": file["path"], "content": file["content"]})
        allowed = self._dialect.may_write()
        if allowed:
            with open(file["path"], "w", encoding="utf-8") as written:  # noqa: PTH123 - relative to the workspace
                written.write(self._text(file["content"]))
        self._dialect.result(call_id, "written" if allowed else "Read-only file system", failed=not allowed)

    def do_open_call(self, command: str) -> None:
        """A shell command that begins and never ends, as far as the stream shows; nothing is run."""
        self._dialect.call("bash", {"command": command})

    def do_denied(self, command: str) -> None:
        """A shell command that is refused for lack of permission."""
        self._dialect.deny(self._dialect.call("bash", {"command": command}))

    def do_mcp(self, call: Mapping[str, Any]) -> None:
        """A call of an MCP server's tool; with `error` it fails with that text."""
        call_id = self._dialect.call(f"mcp__{call['server']}__{call['tool']}", dict(call.get("arguments", {})))
        self._dialect.result(call_id, str(call.get("error", "done")), failed="error" in call)

    def do_background(self, command: str) -> None:
        """A background task, which really runs; when the CLI exits it is ended, and that is told as the CLI does."""
        self._tasks.append(BackgroundTask(command))
        remember(self._plan.memory, self._tasks[-1].pid)
        self._dialect.task(command, ended=False)

    # --- how the turn ends

    def do_answer(self, text: object) -> None:
        """The agent's last text, and the final word."""
        said = self._text(text)
        self._dialect.say(said)
        self._dialect.finish(said, {})

    def do_finish(self, changes: Mapping[str, Any] | None) -> None:
        """The final word alone; fields of its event can be replaced."""
        self._dialect.finish(None, self._filled(changes or {}))

    def do_fail(self, how: str | Mapping[str, Any]) -> None:
        """The provider's refusal, as the CLI reports it; it will exit with 1."""
        how = {"message": how} if isinstance(how, str) else how
        self._dialect.fail(how.get("status"), str(how["message"]), self._filled(how.get("changes", {})))
        self.code = 1

    def do_exit(self, code: int) -> None:
        """The exit code that the CLI will have."""
        self.code = int(code)

    def do_exit_now(self, code: int) -> NoReturn:
        """Exits at once, without any order."""
        os._exit(int(code))

    def do_kill(self, name: str) -> None:
        """A signal to itself."""
        (number,) = signals(name)
        signal.signal(number, signal.SIG_DFL) if number not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), number)
        _wait_for_ever()

    # --- trouble on the way

    def do_retry(self, how: Mapping[str, Any]) -> None:
        """Events of the CLI that a request failed and is tried again, `times` times; it does not wait."""
        for attempt in range(1, int(how.get("times", 1)) + 1):
            self._dialect.retry(int(how["status"]), attempt, float(how.get("seconds", 1)))

    def do_event(self, event: Mapping[str, Any]) -> None:
        """Any event, as it is written here."""
        self._output.event(self._filled(event))

    def do_compacted(self, _nothing: None) -> None:
        """The CLI has shortened the conversation."""
        self._dialect.compacted()

    def do_sleep(self, seconds: float) -> None:
        """Silence."""
        time.sleep(float(seconds))

    def do_hang(self, _nothing: None) -> None:
        """Silence for ever."""
        _wait_for_ever()

    def do_keep_alive(self, seconds: float | None) -> None:
        """Signs of a living connection and of nothing else, for so many seconds or for ever."""
        until = time.monotonic() + (_FOR_EVER if seconds is None else float(seconds))
        while time.monotonic() < until:
            self._dialect.keep_alive()
            time.sleep(_KEEP_ALIVE_SECONDS)

    def do_ignore(self, names: object) -> None:
        """Signals that have no effect from now on."""
        for number in signals(names):
            signal.signal(number, signal.SIG_IGN)

    def do_daemons(self, how: Mapping[str, Any]) -> None:
        """Processes that hide and outlive the CLI."""
        ignored = signals(how.get("ignore", []))
        for _ in range(int(how.get("count", 1))):
            holds = bool(how.get("holds_output", False))
            start_daemon(float(how.get("seconds", 600)), ignored, self._plan.memory, holds_output=holds)

    def end(self) -> None:
        """What the CLI does before it exits: background tasks go, and it says so."""
        for task in self._tasks:
            if task.end():
                self._dialect.task(task.command, ended=True)


def _wait_for_ever() -> None:
    """In short sleeps: a signal that comes just before a long one would be heard at its end."""
    while True:
        time.sleep(_KEEP_ALIVE_SECONDS)

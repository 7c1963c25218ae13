"""One turn: the prompt goes to the model, its tool calls run in order, until a reply that calls no tool."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from skillup.builtin_agent.client import ModelClient, Request
from skillup.builtin_agent.faults import ModelError
from skillup.builtin_agent.replies import Reply, Usage
from skillup.builtin_agent.sessions import INTERRUPTED, Session, Skill
from skillup.builtin_agent.tools import Toolbox, ToolResult

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# The first wait is below what anybody notices, the third is long enough for a server to come back.
RETRY_SECONDS = 0.2
LONGEST_RETRY_SECONDS = 30.0

INSTRUCTIONS = """\
You are a coding agent. You work on files and run commands with the tools bash, read, write and edit.
Do what the user asks, no more. When you are done, say briefly what you did and what came of it.
When you need to know something that is missing, ask instead of guessing: the user answers in the next turn.\
"""
OTHER_INSTRUCTIONS = """\
You are an agent. Do what the user asks, no more, with the tools that you have.
When you are done, say briefly what you did and what came of it.
When you need to know something that is missing, ask instead of guessing: the user answers in the next turn.\
"""
SKILLS = """\
Skills are instructions for particular tasks. When a task fits the description of a skill, read its file first
and follow it. The skills that you have:\
"""


class Interrupted(BaseException):
    """A signal asked the turn to stop. Not an `Exception`: nothing may take it for a fault of its own."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.number = number


class Interrupts:
    """Turns the first SIGINT or SIGTERM into `Interrupted`, but never in the middle of a held block.

    An exception that a handler raises is lost when Python happens to be in a finalizer (of a socket, of a child
    process). So the signal is also remembered, and raised again at the end of the next held block.
    """

    def __init__(self) -> None:
        self._holds = 0
        self._arrived: int | None = None
        self._settled = False

    def install(self) -> None:
        """Take over both signals, also where they came in ignored (a background job of a shell)."""
        for number in SIGNALS:
            signal.signal(number, self._arrive)

    def settle(self) -> None:
        """From here on the outcome is known and no signal changes it, also while the interpreter shuts down."""
        self._settled = True
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def check(self) -> None:
        """Raise what has arrived.

        Raises:
            Interrupted: a signal arrived, and the outcome is not settled.
        """
        if self._arrived is not None and not self._holds and not self._settled:
            raise Interrupted(self._arrived)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within the block no interruption is raised; one that arrived is raised at its end."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            self.check()

    def _arrive(self, number: int, _frame: FrameType | None) -> None:
        if self._arrived is None:  # once: the way out is short and is not interrupted again
            self._arrived = number
            self.check()


class OutputError(Exception):
    """Events cannot be written: nobody reads them any more, or the disk is full."""


@dataclass(frozen=True, slots=True)
class Events:
    """Writes events to a file descriptor, one JSON object a line, each line at once."""

    descriptor: int
    held: Callable[[], AbstractContextManager[None]]

    def emit(self, kind: str, **members: object) -> None:
        """Write one event.

        Raises:
            OutputError: it cannot be written.
        """
        # ASCII: no reader can take a character of the text for the end of a line.
        line = json.dumps({"type": kind, **members}, allow_nan=False).encode("ascii") + b"\n"
        try:
            with self.held():
                while line:  # one write does it, except where a signal cuts it short
                    line = line[os.write(self.descriptor, line) :]
        except OSError as error:
            raise OutputError(f"events cannot be written: {error}") from error


@dataclass(slots=True)
class Progress:
    """What the turn has come to; it is told in the end event however the turn ends.

    Attributes:
        requests: HTTP requests begun.
        steps: whole replies.
        text: the text of the last reply, None when it had none.
    """

    requests: int = 0
    steps: int = 0
    text: str | None = None
    stop_reason: str | None = None
    usages: list[Usage] = field(default_factory=list)

    def add(self, reply: Reply) -> None:
        """Count one whole reply."""
        texts = [block["text"] for block in reply.content if block["type"] == "text"]
        self.steps += 1
        self.text = "".join(texts) if texts else None
        self.stop_reason = reply.stop_reason
        self.usages.append(reply.usage)

    def usage(self) -> dict[str, int | None]:
        """The tokens of this process; None where a reply did not tell, for then the sum is not known."""
        return {name: self._sum(name) for name in Usage.__slots__}

    def _sum(self, name: str) -> int | None:
        counts = [getattr(usage, name) for usage in self.usages]
        return sum(counts) if counts and None not in counts else None


@dataclass(frozen=True, slots=True)
class Turn:
    """Everything that one turn works with."""

    session: Session
    client: ModelClient
    toolbox: Toolbox
    events: Events
    progress: Progress
    model: str
    system: str
    max_steps: int
    max_retries: int

    def run(self, prompt: str) -> str:
        """Work until the model is done; returns the reason of the end, `completed` or `max_steps`.

        The session on disk is whole at every moment, so the caller has nothing to save when this raises.

        Raises:
            ModelError: the model gave no usable reply, retries included.
            SessionError: the session cannot be saved.
            OutputError: nobody reads the events.
            RemoteToolError: nobody answered a tool that is answered elsewhere.
            Interrupted: a signal arrived; the tool that ran is gone.
        """
        with self.events.held():
            self.session.prompt(prompt)
        while self.progress.steps < self.max_steps:
            reply = self._ask()
            with self.events.held():
                self.progress.add(reply)
                self.session.reply(reply.content)
                calls = self._show(reply)
            if not calls:
                return "completed"
            for call in calls:
                self._call(call, reply)
        return "max_steps"

    def _ask(self) -> Reply:
        request = Request(self.model, self.system, self.session.messages, self.toolbox.offers)
        attempt = 0
        while True:
            with self.events.held():  # its end is where a lost interruption is raised before the long wait
                self.progress.requests += 1
            try:
                return self.client.send(request)
            except ModelError as error:
                if error.retry is None or attempt >= self.max_retries:
                    raise
                delay = max(RETRY_SECONDS * 2.0 ** min(attempt, 10), error.retry_after or 0.0)
                delay = min(delay, LONGEST_RETRY_SECONDS)
                attempt += 1
                self.events.emit(
                    "retry",
                    attempt=attempt,
                    max_retries=self.max_retries,
                    delay_ms=round(delay * 1000),
                    status=error.status,
                    error=error.retry,
                    retry_after=error.retry_after,
                )
            time.sleep(delay)

    def _show(self, reply: Reply) -> list[dict[str, Any]]:
        """Tell what the model said, and return its tool calls; each of those is told before it runs."""
        calls = []
        for block in reply.content:
            match block["type"]:
                case "text":
                    self.events.emit("text", text=block["text"])
                case "thinking" if block["thinking"]:
                    self.events.emit("thinking", text=block["thinking"])
                case "tool_use":
                    calls.append(block)
                case _:  # thinking that the provider keeps to itself
                    pass
        return calls

    def _call(self, call: dict[str, Any], reply: Reply) -> None:
        self.events.emit("tool_call", id=call["id"], name=call["name"], arguments=call["input"])
        try:
            if call["id"] in reply.unreadable:
                raw = reply.unreadable[call["id"]][:200]
                result = ToolResult(f"{call['name']}: the arguments are not a JSON object: {raw}", failed=True)
            else:
                result = self.toolbox.run(call["name"], call["input"])
        except Interrupted:
            self._end_call(call["id"], ToolResult(INTERRUPTED, failed=True))
            raise
        self._end_call(call["id"], result)

    def _end_call(self, call_id: str, result: ToolResult) -> None:
        with self.events.held():
            self.session.result(call_id, result.content, failed=result.failed)
            status = "error" if result.failed else "ok"
            self.events.emit("tool_result", id=call_id, status=status, content=result.content)


def system_prompt(instructions: str, cwd: Path | None, skills: tuple[Skill, ...]) -> str:
    """The system prompt: instructions, the working directory where tools work in it, and the skills if there are any.

    It holds no date and nothing of the host, so that equal turns send equal requests.
    """
    parts = [instructions.strip()]
    if cwd is not None:
        parts.append(f"The working directory is {cwd}; relative paths start there.")
    if skills:
        lines = [f"- {skill.name}: {skill.description or '(no description)'} (file: {skill.path})" for skill in skills]
        parts.append("\n".join([SKILLS, *lines]))
    return "\n\n".join(parts)

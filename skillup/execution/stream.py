"""The events of one turn, folded into its transcript as they come, with what is needed to tell work from waiting."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from skillup.engines.base import (
    Called,
    EngineFault,
    Event,
    Failing,
    Finished,
    Noted,
    Retrying,
    Returned,
    Said,
    SessionSeen,
    Thought,
    Working,
)
from skillup.transcript import CallStatus, Message, Role, ToolCall, ToolResult

MAX_DAMAGE_NOTES = 5
"""Damaged lines are counted, and this many of them shown."""

_BY_MODEL = frozenset({"subagent"})
"""Tools whose open call is no sign of work: what a subagent does shows in events of its own, or its model is silent."""


@dataclass
class TurnStream:
    """What a turn's events amount to so far. Times are seconds since the turn began.

    `unfinished` is what the CLI ended of its own after the answer. `cut_at` is set when we ended the turn: what calls
    returned after it is the CLI's answer to that, and says nothing of the agent. `closing` is set when the time is up:
    the final word that is there, or the one that comes next, is the last. A CLI that is interrupted ends its background
    tasks, asks the model about them, and would replace the answer, or a limit that was reached, by what it says then.
    """

    turn: int
    session_ids: list[str] = field(default_factory=list)
    details: dict[str, object] = field(default_factory=dict)
    finished: Finished | None = None
    unfinished: list[str] = field(default_factory=list)
    cut_at: float | None = None
    closing: bool = False
    _messages: list[Message] = field(default_factory=list)
    _returned: dict[str, tuple[CallStatus, float]] = field(default_factory=dict)
    _open: set[str] = field(default_factory=set)
    _calls: set[str] = field(default_factory=set)
    _last_said: str | None = None
    _last_work: float | None = None
    _trouble: EngineFault | None = None
    _failing: EngineFault | None = None
    _trouble_since: float | None = None
    _retries: Counter[str] = field(default_factory=Counter)
    _notes: list[str] = field(default_factory=list)
    _damaged: int = 0

    def add(self, event: Event, at: float) -> None:
        """Takes one event in."""
        if self.closing and self.finished is not None and not isinstance(event, Noted):
            return
        match event:
            case Said() | Thought() | Called() | Returned():
                self._transcribe(event, at)
            case SessionSeen():
                self.finished = None  # a CLI that names its session again goes on: another final word is to come
                if event.id not in self.session_ids:
                    self.session_ids.append(event.id)
                self.details = event.details or self.details
            case Retrying():
                self._retries[event.fault.kind] += 1
                self._trouble = event.fault
            case Failing():
                self._trouble = self._failing = event.fault
            case Noted():
                self._note(event)
            case Finished():
                self.finished = event
                self._open.clear()
        if isinstance(event, (Said, Thought, Called, Returned, Working)):
            self._last_work, self._trouble, self._failing, self._trouble_since = at, None, None, None
        elif self._trouble is not None and self._trouble_since is None:
            self._trouble_since = at

    def _transcribe(self, event: Said | Thought | Called | Returned, at: float) -> None:
        match event:
            case Said():
                self._message("assistant", at, text=event.text, parent=event.parent)
                if event.parent is None:
                    self._last_said = event.text
            case Thought():
                self._message("reasoning", at, text=event.text, parent=event.parent)
            case Called() if event.id in self._calls:
                pass  # a CLI may show a call again when it is done
            case Called():
                self._calls.add(event.id)
                if event.tool not in _BY_MODEL:
                    self._open.add(event.id)
                call = ToolCall(
                    id=event.id,
                    name=event.name,
                    tool=event.tool,
                    arguments=event.arguments,
                    raw_arguments=event.raw_arguments,
                    parent=event.parent,
                    basis=event.basis,
                )
                self._message("tool_call", at, call=call, parent=event.parent)
            case Returned():
                self._open.discard(event.call_id)
                self._returned[event.call_id] = (event.status, at)
                result = ToolResult(call_id=event.call_id, status=event.status, content=event.content)
                self._message("tool_result", at, result=result, parent=event.parent)

    def _note(self, event: Noted) -> None:
        if event.name != "unfinished_background":
            self._notes.append(f"{event.name}: {event.text}")
        elif self.finished is not None:
            # Before the answer it is a task that the agent stopped itself, or one of an earlier turn.
            self.unfinished.append(event.text)

    def damaged(self, line: bytes, why: str) -> None:
        """Notes a line that could not be read."""
        self._damaged += 1
        if self._damaged <= MAX_DAMAGE_NOTES:
            self._notes.append(f"stream_corrupt: {why}: {line[:80]!r}")

    def _message(
        self,
        role: Role,
        at: float,
        *,
        text: str = "",
        call: ToolCall | None = None,
        result: ToolResult | None = None,
        parent: str | None = None,
    ) -> None:
        message = Message(
            role=role,
            turn=self.turn,
            source="agent",
            text=text,
            time=round(at, 3),
            tool_call=call,
            tool_result=result,
            parent=parent,
        )
        self._messages.append(message)

    @property
    def fault(self) -> EngineFault | None:
        """Why the turn failed, as the CLI says. Its error event names the kind better than its final one."""
        if self.finished is None or self.finished.fault is None:
            return None
        if self._failing is not None and self.finished.fault.kind == "network":
            return self._failing
        return self.finished.fault

    @property
    def trouble(self) -> EngineFault | None:
        """The last fault that was followed by no sign of work."""
        return self._trouble

    def in_trouble_for(self, now: float) -> float:
        """Seconds since the first fault that was followed by no sign of work; 0 when there is none."""
        return 0.0 if self._trouble_since is None else now - self._trouble_since

    @property
    def answer(self) -> str | None:
        """The agent's answer: the CLI's final word, or the last text where that is empty (some CLIs lose it)."""
        if self.finished is not None and self.finished.text:
            return self.finished.text
        return self._last_said if self._last_said is not None else (self.finished.text if self.finished else None)

    def at_work(self, now: float, window: float) -> bool:
        """Whether the agent was working: a tool ran, or it showed a sign of work in the last `window` seconds."""
        if self._trouble is not None:
            return False
        return bool(self._open) or (self._last_work is not None and now - self._last_work <= window)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The transcript, every call with the status of its result."""
        denied = frozenset(self.finished.denied) if self.finished else frozenset()
        return tuple(self._with_status(message, denied) for message in self._messages)

    def _with_status(self, message: Message, denied: frozenset[str]) -> Message:
        call, result = message.tool_call, message.tool_result
        if call is not None:
            status = self._status(call.id, denied)
            return message.model_copy(update={"tool_call": call.model_copy(update={"status": status})})
        if result is not None:
            status = self._status(result.call_id, denied)
            return message.model_copy(update={"tool_result": result.model_copy(update={"status": status})})
        return message

    def _status(self, call_id: str, denied: frozenset[str]) -> CallStatus:
        if call_id in denied:
            return "denied"
        status, at = self._returned.get(call_id, ("unknown", 0.0))
        return "unknown" if self.cut_at is not None and at >= self.cut_at else status

    @property
    def notes(self) -> tuple[str, ...]:
        """What was out of the ordinary."""
        retried = [f"retried: {kind} ×{count}" for kind, count in sorted(self._retries.items())]
        more = self._damaged - MAX_DAMAGE_NOTES
        rest = [f"stream_corrupt: {more} more damaged lines"] if more > 0 else []
        left = [f"unfinished_background: {text}" for text in self.unfinished]
        return (*retried, *dict.fromkeys(self._notes), *left, *rest)

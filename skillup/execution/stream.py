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


@dataclass
class TurnStream:
    """What a turn's events amount to so far. Times are seconds since the turn began."""

    turn: int
    session_ids: list[str] = field(default_factory=list)
    details: dict[str, object] = field(default_factory=dict)
    finished: Finished | None = None
    _messages: list[Message] = field(default_factory=list)
    _statuses: dict[str, CallStatus] = field(default_factory=dict)
    _open: set[str] = field(default_factory=set)
    _last_said: str | None = None
    _last_work: float | None = None
    _trouble: EngineFault | None = None
    _retries: Counter[str] = field(default_factory=Counter)
    _notes: list[str] = field(default_factory=list)
    _damaged: int = 0

    def add(self, event: Event, at: float) -> None:
        """Takes one event in."""
        match event:
            case SessionSeen():
                if event.id not in self.session_ids:
                    self.session_ids.append(event.id)
                self.details = event.details or self.details
            case Said():
                self._message("assistant", at, text=event.text, parent=event.parent)
                if event.parent is None:
                    self._last_said = event.text
            case Thought():
                self._message("reasoning", at, text=event.text, parent=event.parent)
            case Called():
                self._open.add(event.id)
                call = ToolCall(
                    id=event.id,
                    name=event.name,
                    tool=event.tool,
                    arguments=event.arguments,
                    raw_arguments=event.raw_arguments,
                    parent=event.parent,
                )
                self._message("tool_call", at, call=call, parent=event.parent)
            case Returned():
                self._open.discard(event.call_id)
                self._statuses[event.call_id] = event.status
                result = ToolResult(call_id=event.call_id, status=event.status, content=event.content)
                self._message("tool_result", at, result=result, parent=event.parent)
            case Retrying():
                self._retries[event.fault.kind] += 1
                self._trouble = event.fault
            case Failing():
                self._trouble = event.fault
            case Noted():
                self._notes.append(f"{event.name}: {event.text}")
            case Finished():
                self.finished = event
                self._open.clear()
        if isinstance(event, (Said, Thought, Called, Returned, Working)):
            self._last_work, self._trouble = at, None

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
        if self._trouble is not None and self.finished.fault.kind == "network":
            return self._trouble
        return self.finished.fault

    @property
    def trouble(self) -> EngineFault | None:
        """The last fault that was followed by no sign of work."""
        return self._trouble

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
            status: CallStatus = "denied" if call.id in denied else self._statuses.get(call.id, "unknown")
            return message.model_copy(update={"tool_call": call.model_copy(update={"status": status})})
        if result is not None and result.call_id in denied:
            return message.model_copy(update={"tool_result": result.model_copy(update={"status": "denied"})})
        return message

    @property
    def notes(self) -> tuple[str, ...]:
        """What was out of the ordinary."""
        retried = [f"retried: {kind} ×{count}" for kind, count in sorted(self._retries.items())]
        more = self._damaged - MAX_DAMAGE_NOTES
        rest = [f"stream_corrupt: {more} more damaged lines"] if more > 0 else []
        return (*retried, *self._notes, *rest)

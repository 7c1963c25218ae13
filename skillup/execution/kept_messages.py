"""The messages of one turn as they come, as many as are kept: a CLI that runs wild may print millions."""

from __future__ import annotations

from dataclasses import dataclass, field

from skillup.transcript import CallStatus, Message, Role, ToolCall, ToolResult

KEPT_BYTES = 8 << 20
"""Text of one turn that is kept in its transcript: twice what the largest context of a model holds."""

_MESSAGE_BYTES = 512
"""What a message takes besides its text, so that many small ones are bounded, too."""


@dataclass
class KeptMessages:
    """A transcript that grows. `left_out` counts messages beyond what is kept, `returned` has how and when calls ended.

    Times are seconds since the turn began.
    """

    turn: int
    left_out: int = 0
    returned: dict[str, tuple[CallStatus, float]] = field(default_factory=dict)
    _messages: list[Message] = field(default_factory=list)
    _calls: dict[str, ToolCall] = field(default_factory=dict)
    _bytes_left: int = KEPT_BYTES

    def say(self, role: Role, at: float, text: str, parent: str | None) -> None:
        """Keeps what was said."""
        self._keep(len(text), role, at, text=text, parent=parent)

    def call(self, at: float, call: ToolCall) -> None:
        """Keeps a call."""
        size = _size(call.arguments) + _size(call.raw_arguments)
        if self._keep(size, "tool_call", at, call=call, parent=call.parent):
            self._calls[call.id] = call

    def result(self, at: float, result: ToolResult, parent: str | None) -> None:
        """Keeps what a call gave back."""
        kept = self._keep(len(result.content), "tool_result", at, result=result, parent=parent)
        if kept or result.call_id in self._calls:
            self.returned[result.call_id] = (result.status, at)

    @property
    def calls(self) -> dict[str, ToolCall]:
        """The calls that are kept, by their ids."""
        return self._calls

    def messages(self, denied: frozenset[str], cut_at: float | None) -> tuple[Message, ...]:
        """All that is kept, every call with the status of its result.

        Calls that are `denied` are so whatever came back, and what came back after `cut_at` says nothing of the call.
        """
        return tuple(self._with_status(message, denied, cut_at) for message in self._messages)

    def _keep(
        self,
        size: int,
        role: Role,
        at: float,
        *,
        text: str = "",
        call: ToolCall | None = None,
        result: ToolResult | None = None,
        parent: str | None = None,
    ) -> bool:
        """Keeps a message, unless the turn has said too much."""
        if size + _MESSAGE_BYTES > self._bytes_left:
            self.left_out += 1
            return False
        self._bytes_left -= size + _MESSAGE_BYTES
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
        return True

    def _with_status(self, message: Message, denied: frozenset[str], cut_at: float | None) -> Message:
        call, result = message.tool_call, message.tool_result
        if call is not None:
            status = self._status(call.id, denied, cut_at)
            return message.model_copy(update={"tool_call": call.model_copy(update={"status": status})})
        if result is not None:
            status = self._status(result.call_id, denied, cut_at)
            return message.model_copy(update={"tool_result": result.model_copy(update={"status": status})})
        return message

    def _status(self, call_id: str, denied: frozenset[str], cut_at: float | None) -> CallStatus:
        if call_id in denied:
            return "denied"
        status, at = self.returned.get(call_id, ("unknown", 0.0))
        return "unknown" if cut_at is not None and at >= cut_at else status


def _size(value: object) -> int:
    """About how many characters plain data takes."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(key) + _size(inner) for key, inner in value.items())
    return sum(map(_size, value)) if isinstance(value, list) else 8

"""What stands between the protocols and the sources: a conversation goes in, an answer comes out.

A protocol page translates its JSON to `Conversation` and a `Reply` back; a source page turns a `Conversation`
into an `Answer`. Neither knows the other.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

JsonObject = Mapping[str, Any]

Role = Literal["user", "assistant", "system"]
Stop = Literal["end_turn", "tool_use", "max_tokens", "refusal"]
FaultKind = Literal["status", "drop", "malformed", "stall", "endless"]

CHARACTERS_PER_TOKEN = 4
"""The rule of thumb for English text; usage must be deterministic and plausible, not exact."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call under the engine's own tool name, arguments as sent."""

    name: str
    args: JsonObject


@dataclass(frozen=True, slots=True)
class Msg:
    """One message of a request; a tool result is its text."""

    role: Role
    texts: tuple[str, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_results: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool that the request offers: its name and the JSON Schema of its arguments."""

    name: str
    schema: JsonObject


@dataclass(frozen=True)
class Conversation:
    """A model request, whatever the protocol."""

    messages: tuple[Msg, ...]
    tools: tuple[ToolOffer, ...] = ()
    system: str = ""
    model: str = ""
    stream: bool = False

    @cached_property
    def identity(self) -> str:
        """A hash of the messages' roles and contents: equal for a repeated request, streamed or not.

        Model, tools, system text and metadata are left out: a retry by another way is the same request.
        """
        content = [
            (
                message.role,
                message.texts,
                [(call.name, call.args) for call in message.tool_calls],
                message.tool_results,
            )
            for message in self.messages
        ]
        return fingerprint(content)

    @cached_property
    def characters(self) -> int:
        """How many characters the conversation has, the system text and tool calls included."""
        total = len(self.system)
        for message in self.messages:
            total += sum(map(len, message.texts)) + sum(map(len, message.tool_results))
            total += sum(len(call.name) + len(json.dumps(call.args)) for call in message.tool_calls)
        return total


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply: counted from characters, so the same in every run."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Reply:
    """One good reply of the model."""

    text: str
    thinking: str
    calls: tuple[ToolCall, ...]
    stop: Stop
    usage: Usage


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong instead of the reply.

    `status`, `message` and `retry_after` (seconds) belong to the kind `status`. The other kinds: `drop` ends
    the connection after the first bytes, `malformed` sends what cannot be parsed, `stall` falls silent after
    the first bytes, `endless` trickles for ever.
    """

    kind: FaultKind
    status: int = 0
    message: str = ""
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server does with one request, and why.

    `pause` is the time in seconds between the pieces of the reply. `entry` and `step` count from 1 and are
    None where no entry matched. `unmatched` says what was missing when the reply is not the source's own.
    """

    reply: Reply
    fault: Fault | None = None
    pause: float = 0.0
    entry: int | None = None
    step: int | None = None
    unmatched: str | None = None


class RouteView(Protocol):
    """What a source may know of the route that the request came by."""

    @property
    def workspace(self) -> Path:
        """The absolute path of the folder that the agent works in."""


class Source(Protocol):
    """Where replies come from; called by many threads at once."""

    def answer(self, conversation: Conversation, route: RouteView) -> Answer:
        """The answer to one request."""


def make_reply(
    conversation: Conversation,
    *,
    text: str = "",
    thinking: str = "",
    calls: tuple[ToolCall, ...] = (),
    stop: Stop | None = None,
) -> Reply:
    """A reply with its usage counted and its stop reason derived where none is given."""
    written = len(text) + len(thinking) + sum(len(call.name) + len(json.dumps(call.args)) for call in calls)
    usage = Usage(input_tokens=tokens(conversation.characters), output_tokens=tokens(written))
    return Reply(text, thinking, calls, stop or ("tool_use" if calls else "end_turn"), usage)


def tokens(characters: int) -> int:
    """How many tokens that many characters count as; at least 1, as no request is without."""
    return max(1, math.ceil(characters / CHARACTERS_PER_TOKEN))


def fingerprint(value: Any) -> str:
    """A short hash of a JSON value, the same in every process."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]

"""Conversations as model APIs take them (OpenAI's chat messages), and what they are in a case."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import JsonValue, model_validator

from skillup.spec.mocks import HistoryCall, HistoryMessage, ToolName, check_history
from skillup.spec.problems import fault_at, quoted
from skillup.spec.values import Spec, Words


class Entry(Spec):
    """A mapping of a format in which `null` says nothing: programs write out what they leave open."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        return {key: one for key, one in value.items() if one is not None} if isinstance(value, dict) else value


class TextPart(Entry):
    """One part of a message's content; what is no text cannot be sent."""

    type: Literal["text", "input_text", "output_text"]
    text: str

    @model_validator(mode="before")
    @classmethod
    def _only_text(cls, value: Any) -> Any:
        kind = value.get("type") if isinstance(value, dict) else None
        if isinstance(kind, str) and kind not in ("text", "input_text", "output_text"):
            hint = "calls stand in `tool_calls`, their results in messages of `role: tool`"
            raise fault_at(f"a part of the type {quoted(kind)} cannot be sent: only text can", "type", hint=hint)
        return value


class Function(Entry):
    """The tool that was called, and its arguments as the model wrote them: an object, mostly as a text of JSON."""

    name: ToolName
    arguments: str | dict[str, JsonValue] = {}

    @property
    def parsed(self) -> dict[str, Any]:
        """The arguments as data.

        Raises:
            ValueError: they are no JSON object.
        """
        if isinstance(self.arguments, dict):
            return self.arguments
        data = json.loads(self.arguments or "{}")
        if not isinstance(data, dict):
            raise ValueError("no object")
        return data

    @model_validator(mode="after")
    def _an_object(self) -> Function:
        try:
            _ = self.parsed
        except (ValueError, RecursionError):
            raise fault_at("the arguments are no JSON object", "arguments") from None
        return self


class ChatCall(Entry):
    """One tool call of the assistant."""

    id: Words
    type: Literal["function"] = "function"
    function: Function


class ChatMessage(Entry):
    """One message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | tuple[TextPart, ...] = ""
    tool_calls: tuple[ChatCall, ...] = ()
    tool_call_id: Words | None = None
    name: str | None = None

    @property
    def text(self) -> str:
        """Its content, text parts joined."""
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)

    @model_validator(mode="after")
    def _fits_its_role(self) -> ChatMessage:
        if self.tool_calls and self.role != "assistant":
            raise fault_at(f"the {self.role} calls no tools", "tool_calls", hint="calls belong to the assistant")
        if (self.tool_call_id is not None) != (self.role == "tool"):
            problem = "a result names the call that it answers" if self.role == "tool" else "only `role: tool` answers"
            raise fault_at(f"{problem}: `tool_call_id`")
        if self.name is not None and self.role != "tool":
            raise fault_at("who speaks cannot be told to the model", "name", hint="remove it, or say it in `content`")
        if not self.text.strip() and not self.tool_calls and self.role != "tool":
            raise fault_at("the message says nothing", hint="write `content`")
        return self


@dataclass(frozen=True)
class Conversation:
    """What a case makes of messages: instructions, and history whose last message is the one that is sent."""

    system: str | None
    history: tuple[HistoryMessage, ...]


def conversation(messages: Sequence[ChatMessage]) -> Conversation:
    """The conversation that messages are.

    Raises a fault below `messages` where they are none that an agent can take up.
    """
    system: list[str] = []
    made: list[HistoryMessage] = []
    at: list[int] = []
    answers: dict[str, str] = {}
    for index, message in enumerate(messages):
        match message.role:
            case "system" | "developer" if made:
                hint = "put it first, or let the user say it"
                raise fault_at(
                    "a system message in the middle of a conversation cannot be sent", "messages", index, hint=hint
                )
            case "system" | "developer":
                system.append(message.text)
            case "tool":
                if str(message.tool_call_id) not in answers:
                    problem = f"no call before this message has the id {quoted(str(message.tool_call_id))}"
                    raise fault_at(problem, "messages", index, "tool_call_id")
                answers.pop(str(message.tool_call_id))
            case _:
                answers = {call.id: call.function.name for call in message.tool_calls}
                made.append(_history(message, _results(messages, index)))
                at.append(index)
    if not made or messages[-1].role != "user":
        problem = "nothing is said to the agent: the last message is not the user's"
        raise fault_at(problem, "messages", len(messages) - 1, hint="a turn begins with a message of the user")
    check_history(made, goes_on=False, at=at)
    return Conversation("\n\n".join(system) or None, tuple(made))


def _results(messages: Sequence[ChatMessage], index: int) -> dict[str, str]:
    """What the calls of one message gave back, by their ids, from the results right after it."""
    found: dict[str, str] = {}
    for message in _tools_after(messages, index):
        found.setdefault(str(message.tool_call_id), message.text)
    ids = [call.id for call in messages[index].tool_calls]
    for number, call in enumerate(messages[index].tool_calls):
        place = ("messages", index, "tool_calls", number)
        if call.id not in found:
            hint = 'add {"role": "tool", "tool_call_id": …, "content": …} after it'
            raise fault_at(f"the call {quoted(call.id)} has no result", *place, hint=hint)
        if ids.index(call.id) != number:
            raise fault_at(f"two calls have the id {quoted(call.id)}", *place, "id")
    return found


def _tools_after(messages: Sequence[ChatMessage], index: int) -> Iterator[ChatMessage]:
    for message in messages[index + 1 :]:
        if message.role != "tool":
            return
        yield message


def _history(message: ChatMessage, results: Mapping[str, str]) -> HistoryMessage:
    calls = tuple(
        HistoryCall(name=call.function.name, args=call.function.parsed, result=results[call.id])
        for call in message.tool_calls
    )
    role: Literal["user", "assistant"] = "user" if message.role == "user" else "assistant"
    return HistoryMessage(role=role, content=message.text if message.text.strip() else None, calls=calls)

"""What users write to play a case's surroundings: tools that are not there, and a conversation already under way."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, StrictStr, model_validator

from skillup.spec.problems import fault_at, quoted
from skillup.spec.rules import check_patterns
from skillup.spec.values import Message, Spec, Text, Whole, Words

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def _tool_name(name: str) -> str:
    if not _TOOL_NAME.match(name):
        raise fault_at(f"{quoted(name)} cannot name a tool", hint="use letters, digits, _ and -, at most 64 in all")
    return name


ToolName = Annotated[str, AfterValidator(_tool_name)]
"""A tool's name as model APIs take it."""


class _Given(Spec):
    """What a call gives back: a `result` (text, or any JSON), or an `error`."""

    result: JsonValue = None
    error: Text | None = None

    @property
    def gives(self) -> tuple[str, ...]:
        """Which of the two is written."""
        return tuple(name for name in ("result", "error") if name in self.model_fields_set)

    @property
    def failed(self) -> bool:
        """Whether it is an error."""
        return self.error is not None

    @property
    def content(self) -> str:
        """The text that the model gets."""
        if self.error is not None:
            return self.error
        return self.result if isinstance(self.result, str) else json.dumps(self.result, ensure_ascii=False)


class MockResult(_Given):
    """One result of a mocked tool: for calls whose arguments match `args`, and for the first `times` of them."""

    args: dict[str, Any] = {}
    times: Annotated[Whole, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _one_result(self) -> Self:
        if len(self.gives) != 1:
            raise fault_at("a result is `result` or `error`, exactly one of them")
        check_patterns(self.args, "args")
        return self


class MockTool(_Given):
    """A tool that the model is offered and that we answer: always the same way, or by `results`."""

    name: ToolName
    description: Words
    parameters: dict[str, JsonValue] = {"type": "object", "properties": {}}
    results: tuple[MockResult, ...] = ()

    @model_validator(mode="after")
    def _answers(self) -> Self:
        if self.parameters.get("type") != "object":
            hint = "write {type: object, properties: {…}, required: […]}"
            raise fault_at("the parameters are no JSON Schema of an object", "parameters", hint=hint)
        if len(self.gives) + bool(self.results) != 1:
            raise fault_at(
                "what the tool gives back is not clear",
                hint="write exactly one of `result`, `error` and `results`",
            )
        for index, earlier in enumerate(self.results[:-1]):
            if not earlier.args and earlier.times is None:
                raise fault_at(
                    "the result never comes: an earlier one is for every call",
                    *("results", index + 1),
                    hint="give the earlier one `args` or `times`, or put it last",
                )
        return self

    @property
    def answers(self) -> tuple[MockResult, ...]:
        """Its results in the order in which they are tried; `result` or `error` alone is one for every call."""
        if self.results:
            return self.results
        return (MockResult.model_validate({name: getattr(self, name) for name in self.gives}),)


def _once(tools: tuple[MockTool, ...]) -> tuple[MockTool, ...]:
    counts = Counter(tool.name for tool in tools)
    for index, tool in reversed(list(enumerate(tools))):
        if counts[tool.name] > 1:
            raise fault_at(f"the tool {quoted(tool.name)} is mocked twice", index, "name")
    return tools


MockTools = Annotated[tuple[MockTool, ...], AfterValidator(_once)]
"""The mocked tools of a case, each name once."""


class HistoryCall(_Given):
    """A tool call that was made before the case begins, with what it gave back."""

    name: ToolName
    args: dict[StrictStr, JsonValue] = {}

    @model_validator(mode="after")
    def _one_result(self) -> Self:
        if len(self.gives) != 1:
            raise fault_at("every earlier call has its `result` or its `error`, exactly one of them")
        return self


class HistoryMessage(Spec):
    """One message of a conversation already under way."""

    role: Literal["user", "assistant"]
    content: Message | None = None
    calls: tuple[HistoryCall, ...] = ()

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.role == "user" and self.calls:
            raise fault_at("a user calls no tools", "calls", hint="calls belong to `role: assistant`")
        if self.content is None and not self.calls:
            raise fault_at("the message says nothing", hint="write `content`, or `calls` of the assistant")
        return self


def check_history(messages: Sequence[HistoryMessage], *, goes_on: bool, at: Sequence[int] | None = None) -> None:
    """Raises a fault where messages are no conversation that a user's message can follow.

    `goes_on` says that the next message of the user is written elsewhere; else it is the last one here. `at` is where
    each message was written, when that is a list of more.
    """
    places: Sequence[int] = range(len(messages)) if at is None else at
    if messages[0].role != "user":
        raise fault_at("a conversation begins with the user", "messages", places[0], "role")
    for index, (message, following) in enumerate(pairwise(messages)):
        if message.role == following.role == "user":
            raise fault_at(
                "two messages of the user in a row: the first was never answered", "messages", places[index + 1]
            )
        if message.role == following.role and not message.calls:
            raise fault_at(
                "two messages of the assistant in a row: its turn ended with the first",
                *("messages", places[index + 1]),
                hint="only after `calls` does the assistant go on by itself",
            )
    last = len(messages) - 1
    if goes_on and messages[last].role == "user":
        hint = "remove `prompt` or `turns`, or write the assistant's answer"
        raise fault_at("the last message of the user was never answered", "messages", places[last], hint=hint)
    if goes_on and messages[last].calls:
        hint = "add what the assistant said then"
        raise fault_at(
            "the conversation stops in the middle of the assistant's turn", "messages", places[last], hint=hint
        )
    if not goes_on and messages[last].role != "user":
        hint = "write `prompt` or `turns` beside `messages`, or let the user speak last"
        raise fault_at("nothing is said to the agent", "messages", places[last], hint=hint)

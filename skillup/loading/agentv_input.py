"""What stands before the first turn of an AgentV test: a system message, earlier messages, and context."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from skillup.loading.document import KeyPath
from skillup.spec.agentv import AgentVFile, AgentVMessage, AgentVTest, text_of
from skillup.spec.mocks import HistoryMessage


@dataclass(frozen=True)
class Opening:
    """`context` are the last messages of the user that nobody has answered: they go in front of the first turn."""

    system: str | None
    history: tuple[HistoryMessage, ...]
    context: str


def opening(
    file: AgentVFile, test: AgentVTest, at: KeyPath, filled: Callable[[str, KeyPath], str]
) -> tuple[Opening, list[tuple[KeyPath, str, str]]]:
    """The `input` of file and test, the file's first; and what is wrong with it: place, message, hint.

    `filled` puts variables into a text that stands at a place. The context keeps its own: the turn's message is filled.
    """
    faults: list[tuple[KeyPath, str, str]] = []
    placed: list[tuple[AgentVMessage, KeyPath]] = []
    for written, place in (
        (() if test.execution.skip_defaults else file.input, ("input",)),
        (test.input, (*at, "input")),
    ):
        if isinstance(written, str):
            placed.append((AgentVMessage(role="user", content=written), place))
        else:
            placed += [(message, (*place, index)) for index, message in enumerate(written or ())]
    system: list[str] = []
    begun: set[KeyPath] = set()
    messages: list[_Said] = []
    for message, place in placed:
        written = text_of(message.content)
        text = filled(written, place)
        if message.role == "system":
            if place[:-1] in begun:
                hint = "put it in front of the other messages"
                faults.append((place, "a system message in the middle of a conversation", hint))
            system.append(text)
        elif message.role == "assistant" and not messages:
            faults.append((place, "a conversation begins with the user", "write what was asked"))
            return Opening(None, (), ""), faults
        else:
            begun.add(place[:-1])
            _join(messages, _Said("user" if message.role == "user" else "assistant", written, text))
    context = messages.pop().written if messages and messages[-1].role == "user" else ""
    history = tuple(HistoryMessage(role=one.role, content=one.text) for one in messages)
    return Opening("\n\n".join(system) or None, history, context), faults


class _Said(NamedTuple):
    """A message as it is written, and with its variables."""

    role: Literal["user", "assistant"]
    written: str
    text: str


def _join(messages: list[_Said], new: _Said) -> None:
    """Adds a message; two of the same role in a row are one."""
    if messages and messages[-1].role == new.role:
        last = messages.pop()
        new = _Said(new.role, f"{last.written}\n\n{new.written}", f"{last.text}\n\n{new.text}")
    messages.append(new)

"""What was there before the first turn, as a judge is shown it: the case's author wrote it, so it proves nothing."""

from __future__ import annotations

from collections.abc import Iterator

from skillup.judging.shown import LONGEST, Piece, cut, cut_all
from skillup.spec.turn import Input


def earlier(given: Input) -> Iterator[Piece]:
    """The instructions and the messages of a conversation that was already under way."""
    if given.system is not None:
        yield Piece("user", None, {"the agent's instructions": cut(given.system, LONGEST)})
    for message in given.history:
        if message.content is not None:
            yield Piece("user", None, {f"before turn 1 the {message.role} said": cut(message.content, LONGEST)})
        for call in message.calls:
            called = {"before turn 1 the assistant called": call.name, "arguments": cut_all(call.args, LONGEST)}
            yield Piece("user", None, {**called, "error" if call.failed else "result": cut(call.content, LONGEST)})

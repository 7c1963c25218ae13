"""A conversation in one message, for agents that cannot resume a session; only where the user has allowed it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skillup.spec.case import Case
from skillup.spec.milestones import MaxCallsAfter
from skillup.spec.template import placeholders
from skillup.spec.turn import Turn

_HEAD = (
    "These are {count} messages of one user, in the order in which they were meant to be sent. Deal with them one "
    "after another, each as if you had already answered those before it, and end with your answer to the last one."
)


def needs_turns(case: Case) -> tuple[str, ...]:
    """What in a case depends on a single turn, so that its messages cannot be sent as one; in words, with its place."""
    return tuple(dict.fromkeys(_needs(case)))


def _needs(case: Case) -> Iterator[str]:
    captured = {capture.variable for turn in case.turns for capture in turn.capture}
    for number, turn in enumerate(case.turns, start=1):
        if turn.post_condition is not None:
            yield f"the gate of turn {number}"
        for capture in turn.capture:
            yield f"the capture of {capture.variable!r} in turn {number}"
        for name in placeholders(turn.content):
            if name in captured:
                yield f"{{{{{name}}}}} in turn {number}"
        if turn.slash_command:
            yield f"the slash command of turn {number}"
        for key in ("timeout_seconds", "max_cost_usd", "max_tokens"):
            if getattr(turn, key) is not None:
                yield f"{key} of turn {number}"
    yield from _judged_turns(case)


def _judged_turns(case: Case) -> Iterator[str]:
    for part in case.scoring.parts if case.scoring else ():
        if part.turn is not None and part.graders:
            yield f"the score of {part.name}"
    for items, key in ((case.judge.success, "success"), (case.judge.failure, "failure")) if case.judge else ():
        for index, item in enumerate(items):
            if item.rule.turn is not None:
                yield f"`turn: {item.rule.turn}` of judge.{key}[{index}]"
            elif isinstance(item.rule, MaxCallsAfter) and item.rule.by_turn:
                yield f"`max_calls_after` of judge.{key}[{index}], which looks for its milestone after each turn"


def joined(turns: Sequence[Turn]) -> Turn:
    """All messages as one."""
    parts = (f"Message {number} of {len(turns)}:\n{turn.content}" for number, turn in enumerate(turns, start=1))
    return Turn(content="\n\n".join((_HEAD.format(count=len(turns)), *parts)))

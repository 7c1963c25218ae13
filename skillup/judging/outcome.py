"""How one check ended, and how several outcomes make one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillup.results import CheckState, UnknownCause

MAX_EVIDENCE = 1000
"""Characters of evidence that a check keeps: a screenful; the whole text is in the trial's record."""


@dataclass(frozen=True)
class Outcome:
    """`cause` says why an `unknown` is unknown; `forbidden` that a `not_met` is something that happened.

    What is merely missing has `forbidden` False: a fault that ends the conversation takes nothing away from the
    first kind, and says nothing about the second. `share`, in [0, 1], is how much of what is asked there is, where a
    `not_met` can be told so finely: it counts in scores, and never makes one `met`.
    """

    state: CheckState
    evidence: str
    cause: UnknownCause | None = None
    forbidden: bool = False
    share: float | None = None


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """All must hold: one `not_met` decides, then one `unknown`."""
    for state in ("not_met", "unknown"):
        decisive = [outcome for outcome in outcomes if outcome.state == state]
        if decisive:
            forbidden = any(outcome.forbidden for outcome in decisive)
            shares = [outcome.share or 0.0 for outcome in decisive]
            share = min(shares) if state == "not_met" else None
            return Outcome(decisive[0].state, _joined(decisive), decisive[0].cause, forbidden, share)
    return Outcome("met", _joined(outcomes))


def either(outcomes: Sequence[Outcome]) -> Outcome:
    """One must hold: one `met` decides, then one `unknown`."""
    for state in ("met", "unknown"):
        decisive = [outcome for outcome in outcomes if outcome.state == state]
        if decisive:
            return decisive[0]
    share = max((outcome.share or 0.0 for outcome in outcomes), default=0.0)
    return Outcome("not_met", _joined(outcomes), forbidden=all(outcome.forbidden for outcome in outcomes), share=share)


def bounded(text: str, limit: int = MAX_EVIDENCE) -> str:
    """A text made printable and cut to a limit, saying how much is missing."""
    shown = printable(text[:limit])
    if len(text) <= limit and len(shown) <= limit:
        return shown
    return f"{shown[:limit]}… (cut: {len(text)} characters in all)"


def printable(text: str) -> str:
    """A text in which everything that could move a cursor or turn a line around is written out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _joined(outcomes: Sequence[Outcome]) -> str:
    return "; ".join(dict.fromkeys(outcome.evidence for outcome in outcomes))

"""Whether a text is exactly the expected one, and where it first differs."""

from __future__ import annotations

from skillup.judging.outcome import Outcome
from skillup.judging.texts import shortened
from skillup.masking import MASK

_SHOWN = 120


def same_text(expected: str, actual: str, *, what: str, complete: bool, trim: bool) -> Outcome:
    """Both texts are the same; with `trim`, blanks at both ends left out.

    A masked secret is equal to any other one, so a text with one in it is never known to be the same.
    """
    wanted, found = (expected.strip(), actual.strip()) if trim else (expected, actual)
    if wanted == found:
        if MASK in found:
            said = f"a secret in {what} was masked, so it may differ from what is expected"
            return Outcome("unknown", f"{said}; check its other parts instead", "unobservable")
        return Outcome("met", f"{what} is exactly what is expected ({len(found)} characters)")
    said = f"{what} is not what is expected: {_difference(wanted, found)}"
    if not complete:
        return Outcome("unknown", f"{said}; but the turn was cut, so it could still have come", "incomplete")
    return Outcome("not_met", said)


def _difference(wanted: str, found: str) -> str:
    if not found:
        return "it is empty"
    if wanted.strip() == found.strip():
        return "only blanks or line breaks at the ends differ (`trim: true` leaves them out)"
    if wanted.replace("\r\n", "\n") == found.replace("\r\n", "\n"):
        return "only the kind of line breaks differs"
    if wanted.casefold() == found.casefold():
        return "only the case of letters differs"
    ours, theirs = wanted.splitlines(), found.splitlines()
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False), start=1):
        if one != other:
            return f"line {number} is {shortened(other, _SHOWN)}, expected {shortened(one, _SHOWN)}"
    if len(ours) == len(theirs):
        return "only line breaks differ"
    shorter = min(len(ours), len(theirs))
    if len(theirs) > shorter:
        return f"after line {shorter} it goes on with {shortened(theirs[shorter], _SHOWN)}"
    return f"it ends after line {shorter}; expected next: {shortened(ours[shorter], _SHOWN)}"

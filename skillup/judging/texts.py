"""Texts and patterns that an answer or a file must, may or must not hold: the one place where gates and rules look.

Three-valued: what must be there can be judged on whatever was said, absence only on a complete text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillup.results import CheckState
from skillup.spec.values import compile_pattern

_EXCERPT = 120
"""Characters of context that evidence quotes: enough to see why, short enough for a table."""


@dataclass(frozen=True)
class Finding:
    """The outcome of looking for texts, with the evidence in a sentence."""

    state: CheckState
    evidence: str


@dataclass(frozen=True)
class Wanted:
    """What is looked for: all of these, any of those, none of the others; literal texts or RE2 patterns."""

    all_of: Sequence[str] = ()
    any_of: Sequence[str] = ()
    none_of: Sequence[str] = ()
    patterns: bool = False
    ignore_case: bool = False


def look(wanted: Wanted, text: str, *, what: str, complete: bool = True) -> Finding:
    """Whether `text` holds what is wanted; `what` names the text in the evidence, such as `the answer of turn 2`.

    `complete` is False when the text may go on (a turn that was cut): then absence is unknown.
    """
    missing = [entry for entry in wanted.all_of if not _found(entry, text, wanted)]
    present = [entry for entry in wanted.none_of if _found(entry, text, wanted)]
    matched = [entry for entry in wanted.any_of if _found(entry, text, wanted)]
    none_matched = bool(wanted.any_of) and not matched
    said: list[str] = []
    if present:
        said.append(f"{what} holds {_listed(present)}, which is forbidden: {excerpt(present[0], text, wanted)}")
        return Finding("not_met", "; ".join(said))
    if missing or none_matched:
        if missing:
            said.append(f"{what} lacks {_listed(missing)}{_near_miss(missing, text, wanted)}")
        if none_matched:
            said.append(f"{what} holds none of {_listed(wanted.any_of)}{_near_miss(wanted.any_of, text, wanted)}")
        if not complete:
            return Finding("unknown", "; ".join(said) + "; but the turn was cut, so it could still have come")
        said.append(f"it reads: {shortened(text)}")
        return Finding("not_met", "; ".join(said))
    if wanted.none_of and not complete:
        return Finding("unknown", f"{what} does not hold {_listed(wanted.none_of)} so far; but the turn was cut")
    found = [*wanted.all_of, *matched]
    if found:
        said.append(f"{what} holds {_listed(found)}: {excerpt(found[0], text, wanted)}")
    if wanted.none_of:
        said.append(f"{what} does not hold {_listed(wanted.none_of)}")
    return Finding("met", "; ".join(said))


def _found(entry: str, text: str, wanted: Wanted) -> bool:
    if wanted.patterns:
        return compile_pattern(entry, ignore_case=wanted.ignore_case).search(text) is not None
    return _place(entry, text, ignore_case=wanted.ignore_case) >= 0


def _place(entry: str, text: str, *, ignore_case: bool) -> int:
    return text.casefold().find(entry.casefold()) if ignore_case else text.find(entry)


def _listed(entries: Sequence[str]) -> str:
    return ", ".join(repr(entry) for entry in entries)


def _near_miss(entries: Sequence[str], text: str, wanted: Wanted) -> str:
    """Says when a check fails by the case of letters alone."""
    if wanted.ignore_case:
        return ""
    relaxed = Wanted(patterns=wanted.patterns, ignore_case=True)
    close = [entry for entry in entries if _found(entry, text, relaxed)]
    return f" (but {_listed(close)} is there in other case; `ignore_case: true` would find it)" if close else ""


def excerpt(entry: str, text: str, wanted: Wanted) -> str:
    """The surroundings of what was found, quoted."""
    if wanted.patterns:
        match = compile_pattern(entry, ignore_case=wanted.ignore_case).search(text)
        start, end = (match.start(), match.end()) if match else (0, 0)
    else:
        start = max(_place(entry, text, ignore_case=wanted.ignore_case), 0)
        end = start + len(entry)
    before = max(0, start - _EXCERPT // 2)
    piece = text[before : min(len(text), max(end, start + 1) + _EXCERPT // 2)]
    return f"{'…' if before else ''}{shortened(piece, 2 * _EXCERPT)}"


def shortened(text: str, limit: int = 2 * _EXCERPT) -> str:
    """A text on one line, quoted, and cut when it is long."""
    line = " ".join(text.split())
    return repr(line if len(line) <= limit else line[: limit - 1] + "…")

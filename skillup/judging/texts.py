"""Texts and patterns that an answer or a file must, may or must not hold: the one place where gates and rules look.

Three-valued: what must be there can be judged on whatever was said, absence only on a complete text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from skillup.judging.outcome import Outcome, printable
from skillup.masking import MASK
from skillup.spec.values import compile_pattern

_AROUND = 60
"""Characters before and after what was found that evidence quotes: enough to see why, short enough for a table."""

_EXCERPT = 240

_LISTED = 5
"""Entries that evidence names; the rule itself says all of them."""

_SECRETS = (
    "sk-ant-api03-Ab1cD2eF3gH4iJ5kL6mN7oP8qR9sT0u",
    "sk-proj-Ab1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uVwXyZ",
    "ghp_Ab1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uVwXyZ",
    "github_pat_Ab1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV",
    "AKIAABCDEFGHIJKLMNOP",
    "AIzaAb1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uVwXy",
    "xoxb-1234567890-Ab1cD2eF3gH4iJ5kL6mN7oP8",
)
"""One made-up secret of each shape that is masked: what `[masked]` may have been."""


@dataclass(frozen=True)
class Wanted:
    """What is looked for: all of these, any of those, none of the others; literal texts or RE2 patterns."""

    all_of: Sequence[str] = ()
    any_of: Sequence[str] = ()
    none_of: Sequence[str] = ()
    patterns: bool = False
    ignore_case: bool = False


def look(wanted: Wanted, text: str, *, what: str, complete: bool = True, masked: bool = False) -> Outcome:
    """Whether `text` holds what is wanted; `what` names the text in the evidence, such as `the answer of turn 2`.

    `complete` is False when the text may go on (a turn that was cut): then absence is unknown. `masked` is True for
    a saved text: where a secret was masked in it, what could have been a part of that secret is unknown, too.
    """
    search = _Search(text, patterns=wanted.patterns, ignore_case=wanted.ignore_case)
    holds, not_holds = ("matches", "does not match") if wanted.patterns else ("holds", "does not hold")
    present = [entry for entry in wanted.none_of if search.finds(entry)]
    if present:
        said = f"{what} {holds} {_listed(present)}, which is forbidden: {search.excerpt(present[0])}"
        return Outcome("not_met", said, forbidden=True)
    missing = [entry for entry in wanted.all_of if not search.finds(entry)]
    matched = [entry for entry in wanted.any_of if search.finds(entry)]
    absent = [*missing, *(wanted.any_of if not matched else ())]
    hidden = [entry for entry in (*absent, *wanted.none_of) if masked and search.may_be_masked(entry)]
    if hidden:
        said = f"a secret in {what} was masked, and {_listed(hidden)} could have been a part of it"
        return Outcome("unknown", f"{said}; look for the literal [masked] instead", "unobservable")
    if absent:
        lacks = [f"{what} {not_holds} {_listed(missing)}"] if missing else []
        none = [f"{what} {holds} none of {_listed(wanted.any_of)}"] if wanted.any_of and not matched else []
        said = "; ".join(lacks + none) + search.near_miss(absent)
        if not complete:
            return Outcome("unknown", f"{said}; but the turn was cut, so it could still have come", "incomplete")
        return Outcome("not_met", f"{said}; it {f'reads: {shortened(text)}' if text.strip() else 'is empty'}")
    if wanted.none_of and not complete:
        said = f"{what} {not_holds} {_listed(wanted.none_of)} so far; but the turn was cut"
        return Outcome("unknown", said, "incomplete")
    found = [*wanted.all_of, *matched]
    positive = [f"{what} {holds} {_listed(found)}: {search.excerpt(found[0])}"] if found else []
    negative = [f"{what} {not_holds} {_listed(wanted.none_of)}"] if wanted.none_of else []
    return Outcome("met", "; ".join(positive + negative))


class _Search:
    """One text in which entries are looked for."""

    def __init__(self, text: str, *, patterns: bool, ignore_case: bool) -> None:
        self._text = text
        self._patterns = patterns
        self._ignore_case = ignore_case

    @cached_property
    def _folded(self) -> str:
        return self._text.casefold()

    def finds(self, entry: str) -> bool:
        """Whether the text holds the entry."""
        return self._span(entry) is not None

    def _span(self, entry: str) -> tuple[int, int] | None:
        if self._patterns:
            match = compile_pattern(entry, ignore_case=self._ignore_case).search(self._text)
            return None if match is None else (match.start(), match.end())
        if self._ignore_case:
            folded = entry.casefold()
            place = self._folded.find(folded)
            return None if place < 0 else (self._unfolded(place), self._unfolded(place + len(folded)))
        place = self._text.find(entry)
        return None if place < 0 else (place, place + len(entry))

    def _unfolded(self, place: int) -> int:
        """Where a place of the folded text is in the text itself: folding can make it longer (`ß` becomes `ss`)."""
        if len(self._folded) == len(self._text):
            return place
        low, high = 0, len(self._text)
        while low < high:
            middle = (low + high) // 2
            if len(self._text[:middle].casefold()) < place:
                low = middle + 1
            else:
                high = middle
        return low

    def excerpt(self, entry: str) -> str:
        """The surroundings of what was found, quoted."""
        start, end = self._span(entry) or (0, 0)
        first, last = max(0, start - _AROUND), min(len(self._text), min(end, start + _EXCERPT) + _AROUND)
        before, after = "…" if first else "", "…" if last < len(self._text) else ""
        return f"{before}{shortened(self._text[first:last], _EXCERPT + 2 * _AROUND)}{after}"

    def near_miss(self, entries: Sequence[str]) -> str:
        """Says when a check fails by the case of letters alone."""
        if self._ignore_case:
            return ""
        relaxed = _Search(self._text, patterns=self._patterns, ignore_case=True)
        close = [entry for entry in entries if relaxed.finds(entry)]
        return f" (but {_listed(close)} would be found with `ignore_case: true`)" if close else ""

    def may_be_masked(self, entry: str) -> bool:
        """Whether the entry is not in the text, but could have been in a secret that was masked there."""
        if MASK not in self._text or self.finds(entry):
            return False
        texts = (self._text.replace(MASK, secret) for secret in _SECRETS)
        return any(_Search(text, patterns=self._patterns, ignore_case=self._ignore_case).finds(entry) for text in texts)


def _listed(entries: Sequence[str]) -> str:
    more = f" and {len(entries) - _LISTED} more" if len(entries) > _LISTED else ""
    return ", ".join(quoted(entry) for entry in entries[:_LISTED]) + more


def quoted(text: str, limit: int = 80) -> str:
    """A text in quotes as it is, but for what is not printable, and cut when it is long."""
    return f"'{printable(text if len(text) <= limit else text[: limit - 1] + '…')}'"


def shortened(text: str, limit: int = _EXCERPT) -> str:
    """A text in quotes on one line, blanks run together, and cut when it is long."""
    start = text[: 10 * limit]  # splitting all of a text of megabytes to show one line takes a while
    line = " ".join(start.split())
    return quoted(line if len(start) == len(text) else line + "…", limit)

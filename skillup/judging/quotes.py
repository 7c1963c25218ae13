"""Whether a judge's evidence is there: a quote must stand, word for word, in what the judge was shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from skillup.judging.shown import Piece

_SHORTEST: Final = 3
"""A quote of one or two characters stands everywhere, so it proves nothing, unless it is all that was said."""

_MARKS: Final = "\"'`“”‘’«»"

_STRING = re.compile(r'"((?:\\.|[^"\\])*)"(\s*:)?')
"""A text in a line of JSON; the colon tells our own names from what was said and done."""


_FOR_THE_JUDGE = re.compile(
    r"(?i)\bfull marks\b|\b(?:ignore|disregard|forget)\b.{0,40}\b(?:instructions|criteria|rules)\b"
    r"|\bverdict\b\W{1,4}met\b|\b(?:score|rate|grade|mark|judge)\b.{0,30}(?:\b10\b|\bas (?:met|passed)\b)"
)
"""Words by which a text asks for its own verdict. What agents do for their users does not read like this."""


def asks_for_a_verdict(quote: str) -> bool:
    """Whether a quote is the agent's word to the judge: it shows that the text was there, and nothing else."""
    return bool(_FOR_THE_JUDGE.search(quote))


@dataclass(frozen=True)
class Quotable:
    """What can be quoted: texts as they were said, and the lines of JSON that the judge read them in."""

    texts: tuple[str, ...]
    lines: tuple[str, ...]

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> Self:
        """What these pieces hold."""
        texts = (_flat(text) for piece in pieces for text in _strings(piece.data))
        return cls(tuple(texts), tuple(_flat(piece.line) for piece in pieces))

    def holds(self, quote: str) -> bool:
        """Whether a quote stands here, runs of blanks and marks around it aside."""
        return any(self._stands(form) for form in _forms(quote))

    def _stands(self, needle: str) -> bool:
        if len(needle) < _SHORTEST:
            return bool(needle) and needle in self.texts
        return any(needle in text for text in self.texts) or any(_quotes_line(needle, line) for line in self.lines)


def _quotes_line(needle: str, line: str) -> bool:
    """Whether a piece of a line is a quote of what was said in it, and not of our own names alone."""
    start = line.find(needle)
    end = start + len(needle)
    values = (found.span(1) for found in _STRING.finditer(line) if not found[2])
    return start >= 0 and any(min(end, last) - max(start, first) >= _SHORTEST for first, last in values)


def _forms(quote: str) -> Iterator[str]:
    """The quote as it is, without the marks that models put around it, and with JSON's escapes resolved."""
    plain = _flat(quote)
    for form in dict.fromkeys((plain, plain.strip(_MARKS).strip())):
        yield form
        if "\\" in form:
            try:
                yield _flat(str(json.loads(f'"{form}"')))
            except ValueError:
                continue  # no JSON: it has been looked for as it is


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _strings(inner)


def _flat(text: str) -> str:
    """The text with every run of blanks and line ends as one blank: models rewrap what they quote."""
    return " ".join(text.split())

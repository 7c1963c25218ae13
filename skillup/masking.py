"""Secrets out of everything that is written: exact values of credentials, and key shapes that anyone recognises."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

MASK = "[masked]"

_MIN_SECRET = 6
"""A shorter value would mask ordinary words all over a report, and is no secret worth the name."""

_JSON_DEPTH = 3
"""JSON in JSON in JSON: an argument of a tool call, inside a streamed piece of it, inside a line of output."""

# A key begins where a word begins: `task-` and `disk-` begin file names, not keys. Ours have digits in them, too.
_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-ant-[A-Za-z0-9_-]{16,}"
    r"|sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{24,}"
    r"|gh[pousr]_[A-Za-z0-9]{30,}"
    r"|github_pat_[A-Za-z0-9_]{30,}"
    r"|AKIA[0-9A-Z]{16}"
    r"|AIza[0-9A-Za-z_-]{35}"
    r"|xox[abprs]-[A-Za-z0-9-]{20,}"
    r")"
)

_CUT_MARKS = "'\"…)"
"""What messages put behind a text that they cut."""

_Place = tuple[str | int, ...]
"""Where a text stands in a JSON value: keys and indexes from the outside in."""


class Masker:
    """Replaces secrets by `[masked]`; the same for texts, bytes and whole values. Holds no other state."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms: set[str] = set()
        for secret in secrets:
            if len(secret) >= _MIN_SECRET:
                forms |= _written_forms(secret)
        # The longest first, so that a secret that begins with another one goes whole.
        listed = sorted(forms, key=len, reverse=True)
        exact = [re.escape(form) for form in listed]
        self._forms = tuple(listed)
        self._text = re.compile("|".join([*exact, _SHAPES.pattern]))
        self._bytes = re.compile("|".join([*exact, _SHAPES.pattern]).encode("utf-8", "surrogateescape"))

    def text(self, text: str) -> str:
        """The text without secrets, nor half of one, or more, where it was cut: at its beginning and at its end."""
        text = self._text.sub(MASK, text)
        for form in self._forms:
            half = (len(form) + 1) // 2
            if half < _MIN_SECRET:
                continue
            end = len(text.rstrip(_CUT_MARKS))
            start = text.rfind(form[:half], max(0, end - len(form)), end)
            if start >= 0 and form.startswith(text[start:end]):
                text = text[:start] + MASK + text[end:]
            start = text.find(form[-half:], 0, len(form))
            if start >= 0 and form.endswith(text[: start + half]):
                text = MASK + text[start + half :]
        return text

    def data(self, data: bytes) -> bytes:
        """The bytes without secrets; what is not text stays as it is.

        Lines of JSON, as CLIs print them, are also searched for a secret that several of them hold in pieces.
        """
        masked = self._bytes.sub(MASK.encode(), data)
        return self._pieces(masked) if masked.startswith(b"{") or b"\n{" in masked else masked

    def value(self, value: Any) -> Any:
        """A copy of plain data (mappings, lists, texts, numbers) with every text masked, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.value(inner) for key, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(inner) for inner in value]
        return value

    def _pieces(self, data: bytes) -> bytes:
        """Masks what is a secret only when the texts at one place of successive lines are joined: a streamed reply.

        Lines that change are parsed twice, because all of them together would take ten times the memory of their text.
        """
        lines = data.split(b"\n")
        texts: dict[_Place, list[tuple[int, str]]] = {}
        for number, line in enumerate(lines):
            if line.startswith(b"{"):
                try:
                    found = list(_texts(json.loads(line)))
                except (ValueError, RecursionError):
                    continue  # a damaged line, or a hostile one: it was masked as bytes
                for place, text in found:
                    texts.setdefault(place, []).append((number, text))
        changed: dict[int, list[tuple[_Place, str]]] = {}
        for place, pieces in texts.items():
            for number, text in self._masked_across(pieces):
                changed.setdefault(number, []).append((place, text))
        for number, changes in changed.items():
            value = json.loads(lines[number])
            for place, text in changes:
                _put(value, place, text)
            lines[number] = json.dumps(value, separators=(",", ":")).encode()
        return b"\n".join(lines)

    def _masked_across(self, pieces: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """The pieces that change; a mask stands in the first of those that a secret is spread over."""
        if len(pieces) < 2:
            return
        spans = [found.span() for found in self._text.finditer("".join(text for _, text in pieces))]
        start = 0
        for number, text in pieces:
            end = start + len(text)
            kept, at = [], start
            for first, last in spans:
                if first < end and last > start:
                    kept.append(text[at - start : max(first, start) - start])
                    kept.append(MASK if first >= start else "")
                    at = min(last, end)
            if kept:
                yield number, "".join(kept) + text[at - start :]
            start = end


def _written_forms(secret: str) -> set[str]:
    """The secret as it is, as notes quote bytes, and as these stand in JSON, also in JSON that is a text in JSON."""
    forms = {secret, repr(secret.encode("utf-8", "surrogateescape"))[2:-1]}
    for _ in range(_JSON_DEPTH):
        forms |= {json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in forms for ascii_only in (True, False)}
    return forms


def _texts(value: Any, place: _Place = ()) -> Iterator[tuple[_Place, str]]:
    """Every text in a JSON value, with its place."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _texts(inner, (*place, index))


def _put(value: Any, place: _Place, text: str) -> None:
    """Replaces the text at a place of a JSON value."""
    for step in place[:-1]:
        value = value[step]
    value[place[-1]] = text

"""Strict, bounded JSON with the place of every value, so that faults in it are told like those in YAML."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from pathlib import Path
from typing import Any

from skillup.errors import Fault, InputError
from skillup.loading.builder import MAX_DEPTH, MAX_VALUES
from skillup.loading.document import Document, Marks, Place, Position
from skillup.loading.yamlfile import read_text, read_yaml
from skillup.spec.problems import key_text, quoted

_BLANK = re.compile(r"[ \t\n\r]*")
_TEXT = re.compile(r'"(?:[^"\\\x00-\x1f]+|\\.)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z]+")
_WORDS = {"true": True, "false": False, "null": None}

_LONGEST_NUMBER = 400
"""Characters; no number that JSON's readers agree on is longer."""


def read_document(path: Path, display: str) -> Document:
    """The document in a file: JSON where its name says so, else YAML.

    Raises:
        InputError: the file cannot be read, or is not one document within the bounds.
    """
    return read_json(path, display) if path.suffix == ".json" else read_yaml(path, display)


def read_json(path: Path, display: str) -> Document:
    """The JSON document in the file `path`, which faults call `display`.

    Raises:
        InputError: the file cannot be read, or is not one JSON document within the bounds.
    """
    return parse_json(read_text(path, display, "JSON"), display)


def parse_json(text: str, display: str) -> Document:
    """The JSON document in `text`.

    Raises:
        InputError: the text is not one JSON document within the bounds; keys that are given twice are told together.
    """
    reader = _Reader(text, display)
    data, place = reader.document()
    if reader.faults:
        raise InputError(reader.faults)
    return Document(data, Marks(place), display)


class _Reader:
    """Reads one document from its beginning to its end; the first fault of syntax ends it."""

    def __init__(self, text: str, display: str) -> None:
        self.faults: list[Fault] = []
        self._text = text
        self._display = display
        self._at = 0
        self._values = 0
        self._path: list[str | int] = []
        self._ends = [match.start() for match in re.finditer("\n", text)]

    def document(self) -> tuple[Any, Place]:
        """The value, and the places in it."""
        self._skip()
        if self._at == len(self._text):
            raise self._stop("the file is empty")
        found = self._value()
        self._skip()
        if self._at < len(self._text):
            raise self._stop("this follows the end of the document", "one file holds one list or one object")
        return found

    def _value(self) -> tuple[Any, Place]:
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._stop(f"more than {MAX_VALUES:,} keys and values in one file", "split the file")
        place = Place(self._position(self._at))
        match self._text[self._at : self._at + 1]:
            case "{" | "[" if len(self._path) >= MAX_DEPTH:
                raise self._stop(f"nested more than {MAX_DEPTH} levels deep")
            case "{":
                return self._object(place), place
            case "[":
                return self._list(place), place
            case '"':
                return self._string(), place
        return self._plain(), place

    def _object(self, place: Place) -> dict[str, Any]:
        made: dict[str, Any] = {}
        while self._goes_on("}", "object", place, bool(made)):
            if self._text[self._at : self._at + 1] != '"':
                raise self._stop("a key is expected here", 'keys stand in double quotes, as in {"key": 1}')
            start = self._position(self._at)
            key = self._string()
            self._skip()
            if self._text[self._at : self._at + 1] != ":":
                raise self._stop(f"a `:` is missing after the key {quoted(key)}")
            self._at += 1
            self._skip()
            self._path.append(key)
            if key in made:
                message = f"{quoted(key)} is given twice, first in line {place.keys[key].line}"
                self.faults.append(Fault(self._display, *start, key_text(self._path), message, "keep one"))
            made[key], place.children[key] = self._value()
            place.keys.setdefault(key, start)
            self._path.pop()
        return made

    def _list(self, place: Place) -> list[Any]:
        made: list[Any] = []
        while self._goes_on("]", "list", place, bool(made)):
            self._path.append(len(made))
            value, place.children[len(made)] = self._value()
            self._path.pop()
            made.append(value)
        return made

    def _goes_on(self, end: str, what: str, place: Place, any_yet: bool) -> bool:  # noqa: FBT001 - one caller each
        """Steps over the bracket or the comma before the next item, or over the closing bracket."""
        if not any_yet:
            self._at += 1
        self._skip()
        found = self._text[self._at : self._at + 1]
        if found == end:
            self._at += 1
            return False
        if not any_yet:
            return True
        if found != ",":
            raise self._stop(f"a `,` or `{end}` is missing in the {what} from line {place.position.line}")
        self._at += 1
        self._skip()
        if self._text[self._at : self._at + 1] == end:
            raise self._stop(f"a comma before the `{end}`", "remove it: JSON has none after the last item")
        return True

    def _string(self) -> str:
        match = _TEXT.match(self._text, self._at)
        if match is None:
            raise self._stop("the text that begins here does not end on its line", 'close it with ", write \\n in it')
        try:
            text: str = json.loads(match[0])
            text.encode()
        except ValueError:  # UnicodeEncodeError is one
            message = "an escape in this text stands for no character"
            raise self._stop(message, "write \\\\ for a backslash; a \\ud… has its second half after it") from None
        self._at = match.end()
        return text

    def _plain(self) -> Any:
        number = _NUMBER.match(self._text, self._at)
        if number is not None:
            value: int | float = math.inf
            if len(number[0]) <= _LONGEST_NUMBER:
                value = float(number[0]) if number[1] or number[2] else int(number[0])
            if isinstance(value, float) and not math.isfinite(value):
                raise self._stop("the number is too large", "put it in quotes when it is text")
            self._at = number.end()
            return value
        word = _WORD.match(self._text, self._at)
        if word is not None and word[0] in _WORDS:
            self._at = word.end()
            return _WORDS[word[0]]
        if self._at >= len(self._text):
            raise self._stop("the file ends inside a list or an object", "close every bracket")
        if self._text.startswith(("//", "/*", "#"), self._at):
            raise self._stop("JSON has no comments", "remove it")
        raise self._stop("a value is expected here", "texts stand in double quotes; else true, false, null, a number")

    def _skip(self) -> None:
        blank = _BLANK.match(self._text, self._at)
        self._at = blank.end() if blank else self._at

    def _position(self, at: int) -> Position:
        line = bisect_right(self._ends, at - 1)
        return Position(line + 1, at - (self._ends[line - 1] if line else -1))

    def _stop(self, message: str, hint: str = "") -> InputError:
        position = self._position(min(self._at, max(len(self._text) - 1, 0)))
        return InputError([*self.faults, Fault(self._display, *position, key_text(self._path), message, hint)])

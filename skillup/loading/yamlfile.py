"""Strict, bounded YAML: one file becomes plain data, with the place of every value and every key.

The parser's events are read one at a time and every bound is checked before anything is kept, because the
composer of libyaml overflows the C stack on deep input. Scalars follow the core schema of YAML 1.2: `yes`,
`1:30` and dates are text. Several documents, duplicate keys, keys that are not text, and tags are faults.

Longer than most modules, because every step needs the same bounds and positions. In this order: the document,
the bytes of the file, the marks, the builder, scalars, syntax errors.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from skillup.errors import Fault, InputError
from skillup.spec.problems import key_text, quoted

MAX_BYTES = 4_000_000
"""Far above any suite written by hand; a file of this size is still read, or refused, within two seconds."""

MAX_DEPTH = 64
"""Several times deeper than any suite, and shallow enough for every recursion further on."""

MAX_VALUES = 100_000
"""Keys and values written out in one file; a suite of a thousand cases in one file has about half of it."""

MAX_ALIASED_VALUES = 20_000
"""What aliases may add; with MAX_VALUES it bounds what later steps walk through."""

MAX_DIGITS = 1_000
"""Longer numbers are no numbers, and Python converts them in quadratic time."""

_MAX_FAULTS = 100
"""Nobody reads more, and a hostile file could hold one per byte."""

LIBYAML: bool = yaml.__with_libyaml__
EventLoader: type[Any] = yaml.CBaseLoader if LIBYAML else yaml.BaseLoader
"""Turns text into events: libyaml where PyYAML was built with it (ten times faster), else pure Python.

The pure one is stricter in one point: it refuses tabs between the tokens of a line.
"""

KeyPath = tuple[str | int, ...]


class Position(NamedTuple):
    """A place in a text; line and column count from 1, in characters."""

    line: int
    column: int


class Mark(NamedTuple):
    """Where a value begins, and where its key does (None for list items and for the root)."""

    value: Position
    key: Position | None


@dataclass(frozen=True)
class Document:
    """One YAML file: plain data, the mark of everything in it, and the name that faults show.

    What an alias names is one object in several places of `data`: do not change data in place. What stands in
    an alias, or was merged with `<<`, has the marks of the text that it was taken from.
    """

    data: Any
    marks: Mapping[KeyPath, Mark]
    display: str

    def fault(self, path: KeyPath, message: str, *, hint: str = "", on_key: bool = False) -> Fault:
        """A fault at the value (or key) at `path`, or at the nearest place above it that is in the file."""
        known = path
        while known not in self.marks:
            known = known[:-1]
        mark = self.marks[known]
        position = mark.key if on_key and mark.key else mark.value
        return Fault(self.display, *position, key_text(path), message, hint)


def read_yaml(path: Path, display: str) -> Document:
    """The YAML document in the file `path`, which faults call `display`.

    Raises:
        InputError: the file cannot be read, or is not one strict YAML document within the bounds.
    """
    return parse_yaml(_decode(_read(path, display), display), display)


def parse_yaml(text: str, display: str, *, loader: type[Any] = EventLoader) -> Document:
    """The YAML document in `text`; `loader` is the PyYAML class that gives the events.

    Raises:
        InputError: the text is not one strict YAML document within the bounds.
    """
    _refuse_control_characters(text, display)
    builder = _Builder(yaml.parse(text, Loader=loader), text, display)
    try:
        data, place = builder.document()
    except yaml.MarkedYAMLError as error:
        fault = _syntax_fault(error, text, display)
        # A fault that is already known on the same line is the cause of what is broken after it.
        known = any(other.line == fault.line for other in builder.faults)
        raise InputError(builder.faults if known else [*builder.faults, fault]) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # The pure Python scanner hands every escape to chr() and every version to int(), whatever they hold.
        raise InputError([*builder.faults, Fault(display, 0, 0, "", f"not valid YAML: {error}")]) from None
    if builder.faults:
        raise InputError(builder.faults)
    return Document(data, _Marks(place), display)


def _read(path: Path, display: str) -> bytes:
    """At most MAX_BYTES + 1 bytes of a regular file."""
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for a writer; Path.open() takes no opener.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file.read(MAX_BYTES + 1)
            message = "not a regular file"
    except FileNotFoundError:
        message = "there is no such file"
    except IsADirectoryError:
        message = "a folder, where a YAML file is expected"
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
    except ValueError as error:  # the name holds a NUL
        message = f"cannot be read: {error}"
    raise InputError([Fault(display, 0, 0, "", message)])


def _decode(raw: bytes, display: str) -> str:
    """The file's text, without the byte order mark."""
    if len(raw) > MAX_BYTES:
        hint = "move large texts into files of their own"
        raise InputError([Fault(display, 0, 0, "", f"larger than {MAX_BYTES // 1_000_000} MB", hint)])
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError([Fault(display, 1, 1, "", "the file is UTF-16", "save it as UTF-8")])
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    message, hint = "a binary file: byte {number} is NUL", "a YAML file holds text"
    index = raw.find(b"\0")
    if index < 0:
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            index = error.start
            message, hint = f"byte {{number}} (0x{raw[index]:02x}) is not UTF-8", "save the file as UTF-8"
    line_start = raw.rfind(b"\n", 0, index) + 1
    position = raw.count(b"\n", 0, index) + 1, len(raw[line_start:index].decode(errors="replace")) + 1
    raise InputError([Fault(display, *position, "", message.format(number=index + 1), hint)])


# The complement of what YAML allows, so that the search ends at the first character that it does not.
_NOT_ALLOWED = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _refuse_control_characters(text: str, display: str) -> None:
    found = _NOT_ALLOWED.search(text)
    if found:
        position = text.count("\n", 0, found.start()) + 1, found.start() - text.rfind("\n", 0, found.start())
        code = f"{ord(found.group()):04x}"
        hint = f'write it as "\\u{code}", in double quotes'
        raise InputError([Fault(display, *position, "", f"the control character U+{code.upper()}", hint)])


@dataclass(slots=True)
class _Place:
    """Where a value begins, where its keys do, and the places inside it."""

    position: Position
    children: dict[str | int, _Place] = field(default_factory=dict)
    keys: dict[str | int, Position] = field(default_factory=dict)


class _Marks(Mapping[KeyPath, Mark]):
    """Marks by path, read from the tree of places: a file without faults never needs one."""

    def __init__(self, root: _Place) -> None:
        self._root = root

    def __getitem__(self, path: KeyPath) -> Mark:
        place, key = self._root, None
        for part in path:
            key, place = place.keys.get(part), place.children[part]
        return Mark(place.position, key)

    def __iter__(self) -> Iterator[KeyPath]:
        todo: list[tuple[KeyPath, _Place]] = [((), self._root)]
        while todo:
            path, place = todo.pop()
            yield path
            todo.extend(((*path, part), inner) for part, inner in place.children.items())

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Builder:
    """Builds data from events. Faults that it can read on after are collected, the others raised at once."""

    def __init__(self, events: Iterator[yaml.Event], text: str, display: str) -> None:
        self.faults: list[Fault] = []
        self._events = events
        self._text = text
        self._display = display
        self._path: list[str | int] = []
        self._anchors: dict[str, tuple[Any, _Place] | None] = {}  # None while the value has not ended
        self._values = 0
        self._aliased = 0

    def document(self) -> tuple[Any, _Place]:
        """The only document of the stream."""
        next(self._events)
        first = next(self._events)
        root = first if isinstance(first, yaml.StreamEndEvent) else next(self._events)
        if root is first or (isinstance(root, yaml.ScalarEvent) and _is_nothing(root)):
            raise InputError([Fault(self._display, 0, 0, "", "the file is empty")])
        built = self._node(root)
        next(self._events)
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise self._stop(after, "a second document begins here", "one file holds one document: remove the `---`")
        return built

    def _note(self, event: yaml.Event, message: str, hint: str = "") -> None:
        self.faults.append(Fault(self._display, *_position(event), key_text(self._path), message, hint))
        if len(self.faults) >= _MAX_FAULTS:
            raise InputError(self.faults)

    def _stop(self, event: yaml.Event, message: str, hint: str = "") -> InputError:
        return InputError([*self.faults, Fault(self._display, *_position(event), "", message, hint)])

    def _node(self, event: yaml.Event) -> tuple[Any, _Place]:
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._stop(event, f"more than {MAX_VALUES:,} keys and values in one file", "split the file")
        match event:
            case yaml.AliasEvent():
                return self._alias(event)
            case yaml.ScalarEvent() | yaml.CollectionStartEvent():
                return self._value(event)
        raise AssertionError(f"unreachable: {event} begins no value")

    def _value(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> tuple[Any, _Place]:
        if event.tag is not None:
            tag = quoted(event.tag.replace("tag:yaml.org,2002:", "!!"))
            self._note(event, f"the tag {tag} is not supported", "remove it, and quote what is text")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        place = _Place(_position(event))
        value: Any
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event)
        elif len(self._path) >= MAX_DEPTH:
            raise self._stop(event, f"nested more than {MAX_DEPTH} levels deep")
        elif isinstance(event, yaml.MappingStartEvent):
            value = self._mapping(place)
        else:
            value = self._sequence(place)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, place)
        return value, place

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        text = event.value
        if event.implicit[0]:
            try:
                return _plain(text)
            except OverflowError:
                self._note(event, f"the number {quoted(text)} is too large", "quote it when it is text")
        elif not text.isascii() and re.search("[\ud800-\udfff]", text):
            self._note(event, *_BAD_CHARACTER)  # libyaml refuses these itself
        return text

    def _sequence(self, place: _Place) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            self._path.append(len(items))
            value, place.children[len(items)] = self._node(event)
            self._path.pop()
            items.append(value)
        return items

    def _mapping(self, place: _Place) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merges: list[tuple[dict[str, Any], _Place]] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            is_merge = isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value == "<<"
            key = self._key(event)
            self._path.append("?" if key is None else key)
            if key in place.keys:
                self._note(event, f"{quoted(key)} is given twice, first in line {place.keys[key].line}", "keep one")
            value_event = next(self._events)
            value, inner = self._node(value_event)
            if is_merge:
                merges.extend(self._merged(value_event, value, inner))
            elif key is not None:
                own[key], place.children[key] = value, inner
            if key is not None:
                place.keys.setdefault(key, _position(event))
            self._path.pop()
        # The mapping's own keys win over merged ones, and an earlier merged mapping over a later one.
        for base, base_place in merges:
            own = base | own
            place.children = base_place.children | place.children
            place.keys = base_place.keys | place.keys
        return own

    def _key(self, event: yaml.Event) -> str | None:
        """The key, or None when it is no text at all, which is a fault."""
        if isinstance(event, yaml.CollectionStartEvent):
            # An unquoted {{name}} is, to YAML, a mapping whose key is a mapping.
            index = event.start_mark.index if event.start_mark else 0
            template = self._text[max(index - 1, 0) : index + 1] == "{{"
            self._note(
                event,
                "a key must be text, not a mapping or a list",
                "put a text that begins with {{ in quotes" if template else "",
            )
            self._path.append("?")
            self._node(event)
            self._path.pop()
            return None
        key, _ = self._node(event)
        if isinstance(key, str):
            return key
        written = event.value if isinstance(event, yaml.ScalarEvent) else ""
        self._note(event, f"the key {written} is not text" if written else "a key without text", "put it in quotes")
        return written or None

    def _merged(self, event: yaml.Event, value: Any, place: _Place) -> list[tuple[dict[str, Any], _Place]]:
        bases = value if isinstance(value, list) else [value]
        if not all(isinstance(base, dict) for base in bases):
            self._note(event, "`<<` takes a mapping, or a list of mappings")
            return []
        return list(zip(bases, place.children.values() if isinstance(value, list) else [place], strict=True))

    def _alias(self, event: yaml.AliasEvent) -> tuple[Any, _Place]:
        name = event.anchor or ""
        here = _Place(_position(event))
        if name not in self._anchors:
            self._note(
                event,
                f"*{name} names nothing",
                f"write &{name} in front of an earlier value, or quote the text",
            )
            return None, here
        target = self._anchors[name]
        if target is None:
            self._note(event, f"*{name} stands inside the value that it names")
            return None, here
        value, place = target
        size, levels = _measure(place)
        self._aliased += size
        if self._aliased > MAX_ALIASED_VALUES:
            raise self._stop(event, f"aliases repeat more than {MAX_ALIASED_VALUES:,} values", "write out what differs")
        if len(self._path) + levels > MAX_DEPTH:
            raise self._stop(event, f"with its aliases nested more than {MAX_DEPTH} levels deep")
        return value, _Place(here.position, place.children, place.keys)


def _measure(place: _Place) -> tuple[int, int]:
    """How many values an alias repeats (counted to just above the limit), and in how many levels."""
    size = levels = 0
    todo = [(place, 0)]
    while todo and size <= MAX_ALIASED_VALUES:
        inner, level = todo.pop()
        size += 1
        levels = max(levels, level)
        todo.extend((child, level + 1) for child in inner.children.values())
    return size, levels


def _is_nothing(scalar: yaml.ScalarEvent) -> bool:
    return scalar.implicit[0] and not scalar.value and scalar.anchor is None


def _position(event: yaml.Event) -> Position:
    mark = event.start_mark
    return Position(mark.line + 1, mark.column + 1) if mark else Position(0, 0)


_WORDS: Mapping[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **{sign + word: math.inf for sign in ("", "+") for word in (".inf", ".Inf", ".INF")},
    **{"-" + word: -math.inf for word in (".inf", ".Inf", ".INF")},
}
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def _plain(text: str) -> Any:
    """What an unquoted scalar means in the core schema of YAML 1.2.

    Raises:
        OverflowError: a number that is too large to be meant as one.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    number: float
    if _DECIMAL.fullmatch(text) or _OCTAL.fullmatch(text) or _HEXADECIMAL.fullmatch(text):
        if len(text) > MAX_DIGITS:
            raise OverflowError
        return int(text[2:], {"o": 8, "x": 16}[text[1]]) if text[1:2] in ("o", "x") else int(text)
    if not _FLOAT.fullmatch(text):
        return text
    number = float(text)
    if math.isinf(number):
        raise OverflowError
    return number


_BAD_CHARACTER = ("an escape that stands for no character", "write the character itself")
_INDENT = "check the indentation, and quote texts that hold quotes or begin with one of [ ] {{ }} , & * ! | > % @ `"

# What libyaml and the pure Python parser say, each by a part of its words; then ours.
_SYNTAX: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("mapping values are not",),
        'a second ": " in one value',
        "quote a text that holds a colon and a blank",
    ),
    (
        ("expected ':'",),
        "a key without a colon",
        "write `key: value`, or indent the line as part of a longer text",
    ),
    (("escape code",), *_BAD_CHARACTER),
    (
        ("unknown escape", "hexdecimal", "hexadecimal"),
        "a backslash escape that YAML does not know",
        "in double quotes write two backslashes, or use single quotes",
    ),
    (("unexpected end of stream",), "the quotes that open here are never closed", ""),
    (("sequence entries are not",), "a list cannot begin here", "begin it on a line of its own"),
    (
        ("expected ',' or ']'",),
        "a `,` or `]` is missing in the list from line {line}",
        "quote texts that hold them",
    ),
    (
        ("expected ',' or '}'",),
        "a `,` or `}}` is missing in the mapping from line {line}",
        "quote texts that hold them",
    ),
    (
        ("expected key", "expected '-'", "<block end>"),
        "this does not continue what began in line {line}",
        _INDENT,
    ),
    (
        ("start any token", "node content", "alphabetic or numeric"),
        "the character {found} cannot stand here",
        "quote the text",
    ),
    (
        ("comment or line break", "chomping", "comment or a line break"),
        "after {found} a longer text begins on the next line",
        "quote the text when {found} is its beginning",
    ),
    (("undefined tag handle",), "tags (`!`) are not supported", "quote what is text"),
    (("document start>",), "this follows the end of the document", "one file holds one mapping or list"),
)

_NOTICED_LATE = ("end of stream", "expected ':'", "alphabetic or numeric", "line break", "chomping")
"""Problems whose cause is where the parser's context begins."""


def _syntax_fault(error: yaml.MarkedYAMLError, text: str, display: str) -> Fault:
    """The parser's own error, in our words where we know it, at the place that must be changed."""
    problem = error.problem or "unknown problem"
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return Fault(display, 0, 0, "", f"not valid YAML: {problem}")
    if error.context_mark and any(part in problem for part in _NOTICED_LATE):
        mark = error.context_mark
    position = mark.line + 1, mark.column + 1
    found, before = text[mark.index : mark.index + 1], text[mark.index - mark.column : mark.index]
    if found == "\t":
        message = "a tab stands where a blank is needed" if before.strip() else "a tab is used for indentation"
        return Fault(display, *position, "", message, "use spaces")
    if not found and "node content" in problem:
        return Fault(display, *position, "", "the file ends inside a list or mapping", "close every bracket")
    for parts, message, hint in _SYNTAX:
        if any(part in problem for part in parts):
            words = {
                "line": error.context_mark.line + 1 if error.context_mark else mark.line + 1,
                "found": found,
            }
            return Fault(display, *position, "", message.format(**words), hint.format(**words))
    return Fault(display, *position, "", f"not valid YAML: {problem}")

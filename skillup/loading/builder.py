"""Builds plain data and its marks from the parser's events; every bound is checked before anything is kept.

The composer of libyaml overflows the C stack on deep input, so it is never used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml

from skillup.errors import Fault, InputError
from skillup.loading.document import Place, Position
from skillup.loading.scalars import plain_value
from skillup.loading.syntax import BAD_CHARACTER
from skillup.spec.problems import key_text, quoted

MAX_DEPTH = 64
"""Several times deeper than any suite, and shallow enough for every recursion further on."""

MAX_VALUES = 100_000
"""Keys and values written out in one file; a suite of a thousand cases in one file has about half of it."""

MAX_ALIASED_VALUES = 20_000
"""What aliases may add; with MAX_VALUES it bounds what later steps walk through."""

_MAX_FAULTS = 100
"""Nobody reads more, and a hostile file could hold one per byte."""


class Builder:
    """Builds data from events. Faults that it can read on after are collected, the others raised at once."""

    def __init__(self, next_event: Callable[[], yaml.Event], text: str, display: str) -> None:
        self.faults: list[Fault] = []
        self._next = next_event
        self._text = text
        self._display = display
        self._path: list[str | int] = []
        self._anchors: dict[str, tuple[Any, Place] | None] = {}  # None while the value has not ended
        self._values = 0
        self._aliased = 0

    def document(self) -> tuple[Any, Place]:
        """The only document of the stream."""
        self._next()
        first = self._next()
        root = first if isinstance(first, yaml.StreamEndEvent) else self._next()
        if root is first or (isinstance(root, yaml.ScalarEvent) and _is_nothing(root)):
            raise InputError([Fault(self._display, 1, 1, "", "the file is empty")])
        built = self._node(root)
        self._next()
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            raise self._stop(after, "a second document begins here", "one file holds one document: remove the `---`")
        return built

    def _note(self, event: yaml.Event, message: str, hint: str = "") -> None:
        self.faults.append(Fault(self._display, *_position(event), key_text(self._path), message, hint))
        if len(self.faults) >= _MAX_FAULTS:
            raise InputError(self.faults)

    def _stop(self, event: yaml.Event, message: str, hint: str = "") -> InputError:
        return InputError([*self.faults, Fault(self._display, *_position(event), "", message, hint)])

    def _node(self, event: yaml.Event) -> tuple[Any, Place]:
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._stop(event, f"more than {MAX_VALUES:,} keys and values in one file", "split the file")
        match event:
            case yaml.AliasEvent():
                return self._alias(event)
            case yaml.ScalarEvent() | yaml.CollectionStartEvent():
                return self._value(event)
        raise AssertionError(f"unreachable: {event} begins no value")

    def _value(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> tuple[Any, Place]:
        if event.tag is not None:
            tag = quoted(event.tag.replace("tag:yaml.org,2002:", "!!"))
            self._note(event, f"the tag {tag} is not supported", "remove it, and quote what is text")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        place = Place(_position(event))
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
                return plain_value(text)
            except OverflowError:
                self._note(event, f"the number {quoted(text)} is too large", "quote it when it is text")
        elif not text.isascii() and re.search("[\ud800-\udfff]", text):
            self._note(event, *BAD_CHARACTER)  # libyaml refuses these itself
        return text

    def _sequence(self, place: Place) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            self._path.append(len(items))
            value, place.children[len(items)] = self._node(event)
            self._path.pop()
            items.append(value)
        return items

    def _mapping(self, place: Place) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merges: list[tuple[dict[str, Any], Place]] = []
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            is_merge = isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value == "<<"
            key = self._key(event)
            self._path.append("?" if key is None else key)
            if key in place.keys:
                self._note(event, f"{quoted(key)} is given twice, first in line {place.keys[key].line}", "keep one")
            value_event = self._next()
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

    def _merged(self, event: yaml.Event, value: Any, place: Place) -> list[tuple[dict[str, Any], Place]]:
        bases = value if isinstance(value, list) else [value]
        if not all(isinstance(base, dict) for base in bases):
            self._note(event, "`<<` takes a mapping, or a list of mappings")
            return []
        return list(zip(bases, place.children.values() if isinstance(value, list) else [place], strict=True))

    def _alias(self, event: yaml.AliasEvent) -> tuple[Any, Place]:
        name = event.anchor or ""
        here = Place(_position(event))
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
        return value, Place(here.position, place.children, place.keys)


def _measure(place: Place) -> tuple[int, int]:
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

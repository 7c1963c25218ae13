"""What reading a YAML file gives: plain data, and the place of every value and every key in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from skillup.errors import Fault
from skillup.loading.rendering import render_faults
from skillup.spec.problems import key_text

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
        return Fault(self.display, *self._position(path, on_key=on_key), key_text(path), message, hint)

    def note(self, path: KeyPath, message: str) -> str:
        """A warning about what stands at `path`, on one line that is safe to print."""
        position = self._position(path, on_key=True)
        return render_faults([Fault(self.display, *position, key_text(path), message)])

    def _position(self, path: KeyPath, *, on_key: bool) -> Position:
        known = path
        while known not in self.marks:
            known = known[:-1]
        mark = self.marks[known]
        return mark.key if on_key and mark.key else mark.value


@dataclass(slots=True)
class Place:
    """Where a value begins, where its keys do, and the places inside it."""

    position: Position
    children: dict[str | int, Place] = field(default_factory=dict)
    keys: dict[str | int, Position] = field(default_factory=dict)


class Marks(Mapping[KeyPath, Mark]):
    """Marks by path, read from the tree of places: a file without faults never needs one."""

    def __init__(self, root: Place) -> None:
        self._root = root

    def __getitem__(self, path: KeyPath) -> Mark:
        place, key = self._root, None
        for part in path:
            key, place = place.keys.get(part), place.children[part]
        return Mark(place.position, key)

    def __iter__(self) -> Iterator[KeyPath]:
        todo: list[tuple[KeyPath, Place]] = [((), self._root)]
        while todo:
            path, place = todo.pop()
            yield path
            todo.extend(((*path, part), inner) for part, inner in place.children.items())

    def __len__(self) -> int:
        return sum(1 for _ in self)

"""Snapshots of a trial on disk: `snapshots.jsonl` (the first whole, then differences) and `contents.bin`.

A line of `snapshots.jsonl` is `{"turn": N, "set": {path: entry}, "removed": [path], "whole": bool}`; turn 0 is the
workspace before the first turn, and one that is not `whole` holds more than could be looked at. `contents.bin` holds
the contents of text files one after another, so that a trial of many small files costs one file; `contents.jsonl`
says `{"digest", "offset", "length"}` of each. Digests are those of the original; contents, names and the targets of
links are masked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

from skillup.environments.snapshot import Entry, Snapshot
from skillup.errors import RunDirectoryError

BASE_BUDGET = 8 * 1024 * 1024
"""Bytes of the first snapshot whose contents are kept: enough for fixtures of source code, little for a disk."""

_SNAPSHOTS, _CONTENTS, _INDEX = "snapshots.jsonl", "contents.bin", "contents.jsonl"


class SavedEntry(NamedTuple):
    """One entry of a workspace: `digest` is None for what has no content or was too large to be read."""

    kind: Literal["file", "dir", "symlink", "special"]
    size: int
    digest: str | None
    mode: int
    target: str | None
    note: str | None


class SnapshotLog:
    """Writes the snapshots of one trial as they are taken."""

    def __init__(self, folder: Path, mask: Callable[[bytes], bytes], wanted: frozenset[str]) -> None:
        self.wanted = wanted
        self._mask = mask
        self._budget = BASE_BUDGET
        self._known: set[str] = set()
        self._last: Mapping[str, Entry] = {}
        self._turn = 0
        with _writing(folder):
            self._snapshots = (folder / _SNAPSHOTS).open("w", encoding="utf-8")
            self._contents = (folder / _CONTENTS).open("wb")
            self._index = (folder / _INDEX).open("w", encoding="utf-8")
        self._folder = folder

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in (self._snapshots, self._contents, self._index):
            with suppress(OSError):  # what was saved is on disk; what could not be was told then
                file.close()

    def keep(self, path: str, content: bytes, digest: str) -> None:
        """Stores a content once; of the first snapshot only what rules name and what fits the budget.

        Raises:
            RunDirectoryError: it cannot be written.
        """
        if digest in self._known:
            return
        if self._turn == 0 and path not in self.wanted:
            if len(content) > self._budget:
                return
            self._budget -= len(content)
        self._known.add(digest)
        masked = self._mask(content)
        with _writing(self._folder):
            offset = self._contents.tell()
            self._contents.write(masked)
            self._index.write(json.dumps({"digest": digest, "offset": offset, "length": len(masked)}) + "\n")

    def save(self, turn: int, snapshot: Snapshot) -> None:
        """Writes what is different from the snapshot before.

        Raises:
            RunDirectoryError: it cannot be written.
        """
        # Files that did not change are the same objects: of 10,000 files only those that differ cost anything.
        changed = {
            self._masked(path): self._saved(entry)._asdict()
            for path, entry in snapshot.entries.items()
            if (was := self._last.get(path)) is not entry and (was is None or self._saved(was) != self._saved(entry))
        }
        removed = sorted(map(self._masked, self._last.keys() - snapshot.entries.keys()))
        line: dict[str, Any] = {"turn": turn, "set": changed, "removed": removed, "whole": not snapshot.truncated}
        with _writing(self._folder):
            self._snapshots.write(json.dumps(line) + "\n")
            for file in (self._snapshots, self._contents, self._index):
                file.flush()
        self._last = snapshot.entries
        self._turn = turn + 1

    def _masked(self, name: str) -> str:
        return self._mask(name.encode()).decode()

    def _saved(self, entry: Entry) -> SavedEntry:
        target = None if entry.target is None else self._masked(entry.target)
        return SavedEntry(entry.kind, entry.size, entry.digest, entry.mode, target, entry.note)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    # Never an OSError: whoever looks through a workspace takes those for the workspace's.
    try:
        yield
    except OSError as error:
        raise RunDirectoryError(f"{folder} cannot be written: {error.strerror}") from error


@dataclass(frozen=True)
class SavedSnapshots:
    """The snapshots of a trial, read back; empty when none was taken."""

    folder: Path
    trees: Mapping[int, Mapping[str, SavedEntry]]
    index: Mapping[str, tuple[int, int]]
    in_part: frozenset[int] = frozenset()

    @classmethod
    def load(cls, folder: Path) -> SavedSnapshots:
        """Reads what `SnapshotLog` wrote; a torn last line is left out."""
        trees: dict[int, Mapping[str, SavedEntry]] = {}
        current: dict[str, SavedEntry] = {}
        in_part: set[int] = set()
        for line in _lines(folder / _SNAPSHOTS):
            removed = frozenset(line["removed"])
            current = {path: entry for path, entry in current.items() if path not in removed}
            current |= {path: SavedEntry(**entry) for path, entry in line["set"].items()}
            trees[line["turn"]] = current
            if not line.get("whole", True):
                in_part.add(line["turn"])
        index = {line["digest"]: (line["offset"], line["length"]) for line in _lines(folder / _INDEX)}
        return cls(folder, trees, index, frozenset(in_part))

    @property
    def last_turn(self) -> int | None:
        """The last turn with a snapshot."""
        return max(self.trees) if self.trees else None

    def tree(self, turn: int) -> Mapping[str, SavedEntry] | None:
        """The workspace after a turn."""
        return self.trees.get(turn)

    def whole(self, turn: int) -> bool:
        """Whether the snapshot after a turn holds everything: only then does a missing path prove anything."""
        unknown = (entry.kind == "dir" and entry.note is not None for entry in self.trees.get(turn, {}).values())
        return turn in self.trees and turn not in self.in_part and not any(unknown)

    def content(self, digest: str) -> bytes | None:
        """The content with this digest, or None when it was not kept."""
        if digest not in self.index:
            return None
        offset, length = self.index[digest]
        with (self.folder / _CONTENTS).open("rb") as file:
            file.seek(offset)
            return file.read(length)


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found

"""Snapshots of a trial on disk: `snapshots.jsonl` (the first whole, then differences) and `contents.bin`.

A line of `snapshots.jsonl` is `{"turn": N, "set": {path: entry}, "removed": [path]}`; turn 0 is the workspace before
the first turn. `contents.bin` holds the contents of text files one after another, so that a trial of many small files
costs one file; `contents.jsonl` says `{"digest", "offset", "length"}` of each. Digests are those of the original,
contents are masked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

from skillup.environments.snapshot import Snapshot

BASE_BUDGET = 8 * 1024 * 1024
"""Bytes of the first snapshot whose contents are kept: enough for fixtures of source code, little beside a model run."""

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
        self._saved: dict[str, SavedEntry] = {}
        self._snapshots = (folder / _SNAPSHOTS).open("w", encoding="utf-8")
        self._contents = (folder / _CONTENTS).open("wb")
        self._index = (folder / _INDEX).open("w", encoding="utf-8")
        self._turn = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in (self._snapshots, self._contents, self._index):
            file.close()

    def keep(self, path: str, content: bytes, digest: str) -> None:
        """Stores a content once; of the first snapshot only what rules name and what fits the budget."""
        if digest in self._known:
            return
        if self._turn == 0 and path not in self.wanted:
            if len(content) > self._budget:
                return
            self._budget -= len(content)
        self._known.add(digest)
        masked = self._mask(content)
        offset = self._contents.tell()
        self._contents.write(masked)
        self._index.write(json.dumps({"digest": digest, "offset": offset, "length": len(masked)}) + "\n")

    def save(self, turn: int, snapshot: Snapshot) -> None:
        """Writes what is different from the snapshot before."""
        now = {
            path: SavedEntry(entry.kind, entry.size, entry.digest, entry.mode, entry.target, entry.note)
            for path, entry in snapshot.entries.items()
        }
        changed = {path: entry._asdict() for path, entry in now.items() if self._saved.get(path) != entry}
        removed = sorted(self._saved.keys() - now.keys())
        line: dict[str, Any] = {"turn": turn, "set": changed, "removed": removed}
        self._snapshots.write(json.dumps(line) + "\n")
        for file in (self._snapshots, self._contents, self._index):
            file.flush()
        self._saved = now
        self._turn = turn + 1


@dataclass(frozen=True)
class SavedSnapshots:
    """The snapshots of a trial, read back; empty when none was taken."""

    folder: Path
    trees: Mapping[int, Mapping[str, SavedEntry]]
    index: Mapping[str, tuple[int, int]]

    @classmethod
    def load(cls, folder: Path) -> SavedSnapshots:
        """Reads what `SnapshotLog` wrote; a torn last line is left out."""
        trees: dict[int, Mapping[str, SavedEntry]] = {}
        current: dict[str, SavedEntry] = {}
        for line in _lines(folder / _SNAPSHOTS):
            current = {path: entry for path, entry in current.items() if path not in set(line["removed"])}
            current |= {path: SavedEntry(**entry) for path, entry in line["set"].items()}
            trees[line["turn"]] = current
        index = {line["digest"]: (line["offset"], line["length"]) for line in _lines(folder / _INDEX)}
        return cls(folder, trees, index)

    @property
    def last_turn(self) -> int | None:
        """The last turn with a snapshot."""
        return max(self.trees) if self.trees else None

    def tree(self, turn: int) -> Mapping[str, SavedEntry] | None:
        """The workspace after a turn."""
        return self.trees.get(turn)

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

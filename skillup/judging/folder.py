"""The workspace as a judge finds it that can open files: made again from what was saved of the trial, masked.

The agent may have written anything into it, names of files included; so what is missing is told among the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from skillup.environments.snapshot_log import SavedEntry
from skillup.judging.evidence import Evidence
from skillup.judging.shown import About, Piece, listed_paths


@dataclass(frozen=True)
class SavedFolder:
    """A workspace after a turn, as far as its contents were saved.

    `touched` are files that the agent made or changed in what the criteria are about; `missing` is everything that the
    folder does not hold: links, what is no text, and what was too large to be kept.
    """

    turn: int | None
    files: Mapping[str, bytes]
    folders: tuple[str, ...]
    touched: frozenset[str]
    missing: tuple[str, ...]

    @classmethod
    def of(cls, evidence: Evidence, about: About) -> SavedFolder:
        """The workspace as the criteria's turn left it; at the end, where they are about no single turn."""
        last = about.turn if about.turn is not None else evidence.snapshots.last_turn
        after = (evidence.tree(last) if last is not None else None) or {}
        before = evidence.tree((last or 1) - 1 if about.turn is not None else 0) or {}
        files: dict[str, bytes] = {}
        missing: list[str] = []
        for path, entry in after.items():
            content = _content(evidence, path, entry)
            if content is not None:
                files[path] = content
            elif entry.kind != "dir":
                missing.append(path)
        folders = tuple(path for path, entry in after.items() if entry.kind == "dir" and _inside(path))
        touched = frozenset(path for path in files if before.get(path) != after[path])
        return cls(about.turn, files, folders, touched, tuple(missing))

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """What a quote may come from besides the record: a file is the agent's where it made or changed it."""
        return tuple(
            Piece("agent" if path in self.touched else "user", self.turn, {"file": path, "content": content.decode()})
            for path, content in self.files.items()
            if _is_text(content)
        )

    @property
    def gaps(self) -> tuple[Piece, ...]:
        """What is missing, as the record shows it."""
        if not self.missing:
            return ()
        return (Piece("agent", self.turn, {"files that your folder does not hold": listed_paths(self.missing)}),)

    def write(self, place: Path) -> None:
        """Puts everything into an empty folder.

        Raises:
            OSError: it cannot be written.
        """
        for folder in self.folders:
            (place / folder).mkdir(parents=True, exist_ok=True)
        for path, content in self.files.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_bytes(content)


def _content(evidence: Evidence, path: str, entry: SavedEntry) -> bytes | None:
    """What a regular file held; None for anything else, and for what was not kept."""
    if entry.kind != "file" or entry.digest is None or not _inside(path):
        return None
    return evidence.snapshots.content(entry.digest)


def _inside(path: str) -> bool:
    """Whether a path stays in the folder: a run directory may be a stranger's."""
    pure = PurePosixPath(path)
    return not pure.is_absolute() and ".." not in pure.parts and "\0" not in path


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True

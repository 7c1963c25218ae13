"""Paths in files of the user's: relative to the suite's root, and not out of it, links resolved."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from skillup.spec.values import path_matches

LONGEST_WALK = 20_000
"""Entries below a folder that are looked at, for a glob, a fixture or a skill; more is refused."""


class TooManyEntriesError(Exception):
    """A folder holds more than LONGEST_WALK entries."""


@dataclass(frozen=True)
class Ground:
    """Where paths may lead: below the suite's root, or below a folder that `--allow-path` names."""

    root: Path
    allowed: tuple[Path, ...] = ()

    @cached_property
    def _places(self) -> tuple[Path, ...]:
        return tuple(Path(os.path.realpath(place)) for place in (self.root, *self.allowed))

    def holds(self, path: Path) -> bool:
        """Whether a path, all links resolved, lies on this ground."""
        real = Path(os.path.realpath(path))
        return any(real.is_relative_to(place) for place in self._places)

    def complaint(self, written: str) -> tuple[str, str] | None:
        """Message and hint when a written path leaves the ground; None when it does not."""
        path = self.root / written
        if self.holds(path):
            return None
        real = os.path.realpath(path)
        link = f" (a link leads to {real})" if Path(os.path.normpath(path)).is_relative_to(self.root) else ""
        return (
            f"{written} leaves the suite's folder {self.root}{link}",
            "move it inside, or pass --allow-path DIR",
        )

    def link_out(self, folder: Path) -> str | None:
        """The first symbolic link below a folder that leads off this ground, or why it cannot be told."""
        try:
            for entry in walk(folder):
                if entry.is_symlink() and not self.holds(Path(entry.path)):
                    return f"the link {os.path.relpath(entry.path, folder)} leads out of the suite's folder"
        except TooManyEntriesError:
            return f"it has more than {LONGEST_WALK:,} entries"
        except OSError as error:
            return f"{error.filename} cannot be read: {error.strerror}"
        return None


def _everywhere(_: os.DirEntry[str]) -> bool:
    return True


def walk(
    folder: Path,
    *,
    deepest: int | None = None,
    enter: Callable[[os.DirEntry[str]], bool] = _everywhere,
    most: int = LONGEST_WALK,
) -> Iterator[os.DirEntry[str]]:
    """Everything below a folder, links not followed, in no particular order.

    `deepest` counts levels from 1; `enter` says which folders to look into.

    Raises:
        TooManyEntriesError: there are more than `most` entries.
        OSError: a folder cannot be read.
    """
    seen = 0
    todo = [(str(folder), 1)]
    while todo:
        place, level = todo.pop()
        with os.scandir(place) as entries:
            for entry in entries:
                seen += 1
                if seen > most:
                    raise TooManyEntriesError
                yield entry
                if entry.is_dir(follow_symlinks=False) and (deepest is None or level < deepest) and enter(entry):
                    todo.append((entry.path, level + 1))


def suite_root(start: Path) -> Path:
    """The nearest folder at or above `start` that holds SKILL.md, else `start` itself."""
    return next((place for place in (start, *start.parents) if (place / "SKILL.md").is_file()), start)


def shown(path: Path, base: Path | None = None) -> str:
    """A path as messages show it: relative to the working folder where it lies below it."""
    relative = os.path.relpath(path, base or Path.cwd())
    return relative if not relative.startswith("..") else str(path)


def expand(pattern: str, root: Path) -> Sequence[Path]:
    """The files that an entry of `cases.files` names: itself, or what its glob matches, sorted; no hidden ones.

    Raises:
        TooManyEntriesError: the glob would look at more than LONGEST_WALK entries.
    """
    parts = Path(pattern).parts
    fixed = next((at for at, part in enumerate(parts) if any(mark in part for mark in "*?[")), len(parts))
    base = Path(os.path.normpath(root.joinpath(*parts[:fixed])))
    rest = "/".join(parts[fixed:])
    if not rest:
        return [base]
    deepest = None if "**" in rest else rest.count("/") + 1
    found = []
    try:
        for entry in walk(base, deepest=deepest, enter=lambda folder: not folder.name.startswith(".")):
            relative = entry.path[len(str(base)) + 1 :]
            if not entry.name.startswith(".") and path_matches(relative, rest) and entry.is_file():
                found.append(Path(entry.path))
    except OSError:
        return []  # there is no such folder: nothing matches
    return sorted(found)

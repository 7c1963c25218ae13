"""Paths in files of the user's: relative to the suite's root, and not out of it, links resolved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LONGEST_WALK = 20_000
"""Entries of a fixture that are looked at for links leading out; a fixture of more is refused."""


@dataclass(frozen=True)
class Ground:
    """Where paths may lead: below the suite's root, or below a folder that `--allow-path` names."""

    root: Path
    allowed: tuple[Path, ...] = ()

    def holds(self, path: Path) -> bool:
        """Whether a path, all links resolved, lies on this ground."""
        real = Path(os.path.realpath(path))
        return any(real.is_relative_to(os.path.realpath(place)) for place in (self.root, *self.allowed))

    def complaint(self, written: str) -> tuple[str, str] | None:
        """Message and hint when a written path leaves the ground; None when it does not."""
        if self.holds(self.root / written):
            return None
        return f"{written} leaves the suite's folder {self.root}", "move it inside, or pass --allow-path DIR"

    def link_out(self, folder: Path) -> str | None:
        """The first symbolic link below a folder that leads off this ground, or why it cannot be told."""
        seen = 0
        for here, folders, names in os.walk(folder):
            for name in (*folders, *names):
                seen += 1
                place = Path(here) / name
                if place.is_symlink() and not self.holds(place):
                    return f"the link {place.relative_to(folder)} leads out of the suite's folder"
            if seen > LONGEST_WALK:
                return f"it has more than {LONGEST_WALK} entries"
        return None


def suite_root(start: Path) -> Path:
    """The nearest folder at or above `start` that holds SKILL.md, else `start` itself."""
    return next((place for place in (start, *start.parents) if (place / "SKILL.md").is_file()), start)


def shown(path: Path, base: Path | None = None) -> str:
    """A path as messages show it: relative to the working folder where that is shorter."""
    relative = os.path.relpath(path, base or Path.cwd())
    return relative if not relative.startswith("..") else str(path)


def expand(pattern: str, root: Path) -> Sequence[Path]:
    """The files that an entry of `cases.files` names: itself, or what its glob matches, sorted."""
    if not any(character in pattern for character in "*?["):
        return [root / pattern]
    return sorted(path for path in root.glob(pattern) if path.is_file())

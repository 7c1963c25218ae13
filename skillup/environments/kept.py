"""What is kept of a workspace in the run directory: all of it as the agent left it, or chosen files."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from skillup.environments.copying import Copy, on_one_line
from skillup.masking import Masker
from skillup.spec.values import path_matches

MAX_ARTIFACTS = 1_000
MAX_NOTES = 20
"""How many files are collected, and how many of those that were left out are named: results list both."""


def keep_workspace(workspace: Path, folder: Path, masker: Masker) -> None:
    """Copies a workspace, masked, to `folder/workspace`; `folder/left-out.txt` names what is not there, and why.

    Raises:
        OSError: the copy cannot be written.
    """
    copy = Copy(masker)
    copy.begin(workspace, folder / "workspace")
    if copy.left_out:
        lines = "".join(f"{line}\n" for line in copy.told())
        (folder / "left-out.txt").write_text(lines, encoding="utf-8")


@dataclass(frozen=True)
class Artifacts:
    """Files that were collected, by their paths in the workspace, sorted; `notes` say what was not, and why."""

    paths: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def collect_artifacts(workspace: Path, folder: Path, masker: Masker, patterns: tuple[str, ...]) -> Artifacts:
    """Copies the files that match one of the globs, masked, to `folder/artifacts`. Nothing below a `.git` does.

    Raises:
        OSError: the copy cannot be written.
    """
    if not patterns:
        return Artifacts()
    copy = _Collection(masker, patterns)
    looked = copy.begin(workspace, folder / "artifacts")
    unmatched = [f"{pattern} matched {copy.instead(pattern)}" for pattern in patterns if pattern not in copy.matched]
    left_out = (f"left out: {line}" for line in copy.told())
    return Artifacts(tuple(sorted(set(copy.collected))), (*(unmatched if looked else ()), *left_out))


class _Collection(Copy):
    """A copy of the files alone that match a glob; folders are made where a file is to lie in them."""

    max_named = MAX_NOTES

    def __init__(self, masker: Masker, patterns: tuple[str, ...]) -> None:
        super().__init__(masker)
        self.patterns = patterns
        self.matched: set[str] = set()
        self.matched_folders: set[str] = set()
        self.collected: list[str] = []

    def instead(self, pattern: str) -> str:
        """What a pattern matched that no file does."""
        return (
            f"a folder and no file; {pattern}/** takes what is in it" if pattern in self.matched_folders else "no file"
        )

    def folder(self, source: int, target: Path, prefix: str) -> None:
        """Looks at what a folder holds, and makes none of its own."""
        self.contents(source, target, prefix)

    def entry(self, source: int, name: str, target: Path, path: str) -> str | None:
        """Copies one entry when it matches; folders are looked into in any case, but for those of git."""
        if name == ".git":
            return None
        matching = {pattern for pattern in self.patterns if path_matches(path, pattern)}
        mode = os.stat(name, dir_fd=source, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            self.matched_folders |= matching
            return super().entry(source, name, target, path)
        if not matching:
            return None
        self.matched |= matching
        if stat.S_ISLNK(mode):
            return "a link"  # not followed, and alone it says nothing
        if len(self.collected) >= MAX_ARTIFACTS:
            return f"more than {MAX_ARTIFACTS} files"
        reason = super().entry(source, name, target, path)
        if reason is None:
            self.collected.append(on_one_line(self.masker.text(path)))
        return reason

    def write(self, target: Path, content: bytes) -> None:
        """Writes the copy of a file, with the folders that it lies in."""
        target.parent.mkdir(parents=True, exist_ok=True)
        super().write(target, content)

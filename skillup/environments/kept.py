"""The workspace as the agent left it, or chosen files of it, copied into the run directory.

An agent can leave anything behind: links out of the workspace or in its place, pipes that nobody writes to, files
of gigabytes, folders deeper than any path. Links are copied as links, only regular files are opened, everything is
bounded, and what is left out is named.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from skillup.masking import Masker
from skillup.spec.values import path_matches

FILE_LIMIT = 64 * 1024 * 1024
TOTAL_LIMIT = 1024 * 1024 * 1024
"""Bytes of one file, and of all: more is a build or a dump, and fills the disk of whoever runs a hundred trials."""

MAX_ENTRIES = 50_000
MAX_DEPTH = 100
"""One descriptor is open per level, and the copy's own path must not become longer than a path can be."""

MAX_NAMED = 1_000
"""How many of the entries left out are named; then only their number is told."""

MAX_ARTIFACTS = 1_000
MAX_NOTES = 20
"""The same for files that are collected, and for what was left out of them: results list both."""

_DISK_FAULTS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})
"""What can only be the run directory's own trouble; every other fault is an entry that cannot be copied."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def keep_workspace(workspace: Path, folder: Path, masker: Masker) -> None:
    """Copies a workspace, masked, to `folder/workspace`; `folder/left-out.txt` names what is not there, and why.

    Raises:
        OSError: the copy cannot be written.
    """
    copy = _Copy(masker)
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


def _on_one_line(text: str) -> str:
    """A text without control characters, and without what is no UTF-8: names of files may hold both."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


class _Copy:
    """One copy being made: how much of what is allowed is left, and what was left out."""

    max_named = MAX_NAMED

    def __init__(self, masker: Masker) -> None:
        self.masker = masker
        self.entries = MAX_ENTRIES
        self.bytes = TOTAL_LIMIT
        self.left_out: list[str] = []
        self.unnamed = 0

    def begin(self, workspace: Path, target: Path) -> bool:
        """Copies the workspace; False when there is none any more."""
        try:
            descriptor = os.open(workspace, _FOLDER)
        except OSError as error:
            self.left_out.append(f". ({'it is a link now' if workspace.is_symlink() else error.strerror})")
            return False
        try:
            self.folder(descriptor, target, "")
        finally:
            os.close(descriptor)
        return True

    def told(self) -> tuple[str, ...]:
        """What was left out, a line each, and how much more there is."""
        more = [f"and {self.unnamed} more"] if self.unnamed else []
        return tuple(_on_one_line(line) for line in (*sorted(self.left_out), *more))

    def folder(self, source: int, target: Path, prefix: str) -> None:
        """Copies what the folder opened as `source` holds."""
        target.mkdir(parents=True, exist_ok=True)
        self.contents(source, target, prefix)

    def contents(self, source: int, target: Path, prefix: str) -> None:
        """Copies one entry after another; those that cannot be are left out."""
        for name in sorted(entry.name for entry in os.scandir(source)):
            try:
                self.entries -= 1
                if self.entries < 0:
                    reason: str | None = f"more than {MAX_ENTRIES} entries"
                else:
                    reason = self.entry(source, name, target / self.masker.text(name), prefix + name)
            except OSError as error:
                if error.errno in _DISK_FAULTS:
                    raise
                reason = error.strerror
            if reason is not None and len(self.left_out) < self.max_named:
                self.left_out.append(f"{self.masker.text(prefix + name)} ({reason})")
            elif reason is not None:
                self.unnamed += 1

    def entry(self, source: int, name: str, target: Path, path: str) -> str | None:
        """Copies one entry; why not, when it was left out."""
        status = os.stat(name, dir_fd=source, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            target.symlink_to(self.masker.text(os.readlink(name, dir_fd=source)))
        elif stat.S_ISDIR(status.st_mode):
            if path.count("/") >= MAX_DEPTH:
                return f"more than {MAX_DEPTH} folders deep"
            with _opened(name, _FOLDER, source) as folder:
                self.folder(folder, target, f"{path}/")
        elif stat.S_ISREG(status.st_mode):
            if status.st_size > min(FILE_LIMIT, self.bytes):
                return f"{status.st_size} bytes"
            with _opened(name, _FILE, source) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
                content = self.masker.data(file.read(FILE_LIMIT))
            self.bytes -= len(content)
            self.write(target, content)
        else:
            return "not a regular file"
        return None

    def write(self, target: Path, content: bytes) -> None:
        """Writes the copy of a file."""
        target.write_bytes(content)


class _Collection(_Copy):
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
            self.collected.append(_on_one_line(self.masker.text(path)))
        return reason

    def write(self, target: Path, content: bytes) -> None:
        """Writes the copy of a file, with the folders that it lies in."""
        target.parent.mkdir(parents=True, exist_ok=True)
        super().write(target, content)


@contextmanager
def _opened(name: str, flags: int, parent: int) -> Iterator[int]:
    descriptor = os.open(name, flags, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)

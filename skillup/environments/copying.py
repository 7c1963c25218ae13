"""Copying what an agent left behind: masked into the run directory, or as it is for a command to look at.

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
from pathlib import Path

from skillup.environments.untrusted import FOLDER_FLAGS, open_regular
from skillup.masking import Masker

FILE_LIMIT = 64 * 1024 * 1024
TOTAL_LIMIT = 1024 * 1024 * 1024
"""Bytes of one file, and of all: more is a build or a dump, and fills the disk of whoever runs a hundred trials."""

MAX_ENTRIES = 50_000
MAX_DEPTH = 100
"""One descriptor is open per level, and the copy's own path must not become longer than a path can be."""

MAX_NAMED = 1_000
"""How many of the entries left out are named; then only their number is told."""

_DISK_FAULTS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})
"""What can only be the run directory's own trouble; every other fault is an entry that cannot be copied."""


def copy_workspace(workspace: Path, target: Path) -> tuple[str, ...]:
    """Copies a workspace as it is, permissions and all, but for pipes, sockets and devices; what else is missing.

    Links that lead into the workspace lead into the copy.

    Raises:
        OSError: there is no workspace any more, or the copy cannot be written.
    """
    copy = _ExactCopy(workspace, target)
    descriptor = os.open(workspace, FOLDER_FLAGS)
    try:
        copy.folder(descriptor, target, "")
    finally:
        os.close(descriptor)
    return tuple(on_one_line(line) for line in copy.left_out)


def on_one_line(text: str) -> str:
    """A text without control characters, and without what is no UTF-8: names of files may hold both."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


class Copy:
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
            descriptor = os.open(workspace, FOLDER_FLAGS)
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
        return tuple(on_one_line(line) for line in (*sorted(self.left_out), *more))

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
                    reason = self.entry(source, name, target / self.text(name), prefix + name)
            except OSError as error:
                if error.errno in _DISK_FAULTS:
                    raise
                reason = error.strerror
            if reason is not None and len(self.left_out) < self.max_named:
                self.left_out.append(f"{self.text(prefix + name)} ({reason})")
            elif reason is not None:
                self.unnamed += 1

    def entry(self, source: int, name: str, target: Path, path: str) -> str | None:
        """Copies one entry; why not, when it was left out."""
        status = os.stat(name, dir_fd=source, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            target.symlink_to(self.link(os.readlink(name, dir_fd=source)))
        elif stat.S_ISDIR(status.st_mode):
            if path.count("/") >= MAX_DEPTH:
                return f"more than {MAX_DEPTH} folders deep"
            with _opened_folder(name, source) as folder:
                self.folder(folder, target, f"{path}/")
            self.permit(target, status.st_mode)
        elif stat.S_ISREG(status.st_mode):
            if status.st_size > min(FILE_LIMIT, self.bytes):
                return f"{status.st_size} bytes"
            with open_regular(name, folder=source) as file:
                content = self.data(file.read(FILE_LIMIT))
            self.bytes -= len(content)
            self.write(target, content)
            self.permit(target, status.st_mode)
        else:
            return self.special()
        return None

    def write(self, target: Path, content: bytes) -> None:
        """Writes the copy of a file."""
        target.write_bytes(content)

    def text(self, text: str) -> str:
        """A name, as the copy has it."""
        return self.masker.text(text)

    def data(self, data: bytes) -> bytes:
        """A content, as the copy has it."""
        return self.masker.data(data)

    def link(self, target: str) -> str:
        """Where a link leads in the copy."""
        return self.masker.text(target)

    def permit(self, target: Path, mode: int) -> None:
        """Run directories are for reading: nothing in them is executable."""

    def special(self) -> str | None:
        """Why what is neither file, folder nor link is left out; None where it is not missed."""
        return "not a regular file"


class _ExactCopy(Copy):
    """A copy for programs to work in."""

    def __init__(self, source: Path, target: Path) -> None:
        super().__init__(Masker())
        self._from, self._to = str(source), str(target)

    def text(self, text: str) -> str:
        return text

    def data(self, data: bytes) -> bytes:
        return data

    def link(self, target: str) -> str:
        inside = target == self._from or target.startswith(f"{self._from}/")
        return self._to + target[len(self._from) :] if inside else target

    def permit(self, target: Path, mode: int) -> None:
        own = 0o700 if stat.S_ISDIR(mode) else 0o600  # what its owner cannot enter or read no program could look at
        target.chmod(mode & 0o777 | own)

    def special(self) -> str | None:
        return None


@contextmanager
def _opened_folder(name: str, parent: int) -> Iterator[int]:
    descriptor = os.open(name, FOLDER_FLAGS, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)

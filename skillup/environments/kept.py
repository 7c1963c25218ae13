"""The workspace as the agent left it, copied into the run directory.

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

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def keep_workspace(workspace: Path, folder: Path, masker: Masker) -> None:
    """Copies a workspace, masked, to `folder/workspace`; `folder/left-out.txt` names what is not there, and why.

    Raises:
        OSError: the copy cannot be written.
    """
    copy = _Copy(masker)
    try:
        descriptor = os.open(workspace, _FOLDER)
    except OSError as error:
        copy.left_out.append(f". ({'it is a link now' if workspace.is_symlink() else error.strerror})")
    else:
        try:
            copy.folder(descriptor, folder / "workspace", "")
        finally:
            os.close(descriptor)
    if copy.left_out:
        more = [f"and {copy.unnamed} more"] if copy.unnamed else []
        lines = "".join(f"{_on_one_line(line)}\n" for line in (*sorted(copy.left_out), *more))
        (folder / "left-out.txt").write_text(lines, encoding="utf-8")


def _on_one_line(text: str) -> str:
    """A text without control characters, and without what is no UTF-8: names of files may hold both."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


class _Copy:
    """One copy being made: how much of what is allowed is left, and what was left out."""

    def __init__(self, masker: Masker) -> None:
        self.masker = masker
        self.entries = MAX_ENTRIES
        self.bytes = TOTAL_LIMIT
        self.left_out: list[str] = []
        self.unnamed = 0

    def folder(self, source: int, target: Path, prefix: str) -> None:
        """Copies what the folder opened as `source` holds."""
        target.mkdir(parents=True, exist_ok=True)
        for name in sorted(entry.name for entry in os.scandir(source)):
            try:
                reason = self.entry(source, name, target / self.masker.text(name), prefix + name)
            except OSError as error:
                if error.errno in _DISK_FAULTS:
                    raise
                reason = error.strerror
            if reason is not None and len(self.left_out) < MAX_NAMED:
                self.left_out.append(f"{self.masker.text(prefix + name)} ({reason})")
            elif reason is not None:
                self.unnamed += 1

    def entry(self, source: int, name: str, target: Path, path: str) -> str | None:
        """Copies one entry; why not, when it was left out."""
        self.entries -= 1
        if self.entries < 0:
            return f"more than {MAX_ENTRIES} entries"
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
            target.write_bytes(content)
        else:
            return "not a regular file"
        return None


@contextmanager
def _opened(name: str, flags: int, parent: int) -> Iterator[int]:
    descriptor = os.open(name, flags, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)

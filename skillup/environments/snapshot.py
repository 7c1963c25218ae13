"""What a folder holds, taken without leaving a trace in it, and what has changed between two looks.

Nothing is followed and nothing is opened but regular files: symbolic links are recorded with their target, FIFOs,
sockets and devices by their kind. Folders are walked through descriptors, so that a folder that is swapped for a
link meanwhile leads nowhere. `.git` folders are left out, at any depth: agents commit, and what git keeps there is
not their work.

A file is read again only when its status has changed. The change time is part of that status, because a program can
set the modification time back and cannot set this one; a file that changed within the kernel's clock tick of the
last look is read again, because a second change in that tick leaves the same status.

In this order: what a snapshot is, taking one, comparing two, and the difference of one file in words.
"""

import difflib
import errno
import hashlib
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from skillup.environments.untrusted import FILE_FLAGS, FOLDER_FLAGS

HASH_LIMIT = 64 * 1024 * 1024  # larger files are seen by size and time alone: hashing 2 GB takes seconds a turn
TEXT_LIMIT = 256 * 1024  # contents up to this size are handed out for diffs; more is not read by anyone
MAX_ENTRIES = 200_000  # a runaway program's millions of files must not fill our memory; 50,000 take 0.5 s
MAX_DEPTH = 200  # one descriptor is open per level, and a process has 1,024
CLOCK_TICK_NS = 20_000_000  # file times are as coarse as the kernel's tick, 1 to 10 ms; twice that for safety
CONTEXT_LINES = 3  # as every diff tool shows
MAX_DIFF_LINE = 500  # characters of a line shown in a diff; minified files have lines of megabytes

Keep = Callable[[str, bytes, str], None]

_SPECIAL_KINDS = {
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}
# Scans in several threads slow each other down: four at once take 8 times as long as one, in turn only 4 times.
_ONE_SCAN = threading.Lock()


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder. `size` in bytes, `mode` the permission bits.

    digest: SHA-256 of a file's content; None for what has no content, or was not read (`note` says why:
        ``unhashed`` for files over 64 MiB, ``unreadable``).
    target: where a symbolic link points, as it is written there.
    note: for special files their kind; for folders ``unreadable`` when what is in them is unknown.
    stat_key: modification and change time (ns), size, inode, type and mode; equal means not changed since.
    """

    kind: Literal["file", "dir", "symlink", "special"]
    size: int
    digest: str | None
    mode: int
    target: str | None
    stat_key: tuple[int, ...]
    note: str | None


@dataclass(frozen=True)
class Snapshot:
    """All entries below a folder, by path relative to it, sorted; `truncated` when there were too many.

    Paths are text that JSON can hold: bytes that are not UTF-8 are written in hexadecimal, after a backslash and x.
    """

    entries: Mapping[str, Entry]
    taken_at_ns: int
    truncated: bool


@dataclass(frozen=True)
class Changes:
    """Paths of files, links and special files (folders do not count), sorted.

    `changed` includes a change of permissions or of kind. `complete` is False when a part of either snapshot is
    unknown (truncated, unreadable folder): nothing is claimed about that part, so a missing path proves nothing.
    """

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    complete: bool = True


def take(
    root: Path,
    previous: Snapshot | None = None,
    keep: Keep | None = None,
    *,
    wanted: frozenset[str] = frozenset(),
    text_limit: int = TEXT_LIMIT,
    max_entries: int = MAX_ENTRIES,
) -> Snapshot:
    """Look at everything below `root`; files that are as in `previous` are not read again.

    `keep(path, content, digest)` is called for each file that was read and is text (no NUL byte, at most
    `text_limit` bytes), or is named in `wanted` (text or not, up to 64 MiB). It must not take a snapshot.
    A root that is gone, or no folder any more, is empty when there is a previous snapshot: then the agent did it.
    Raises: OSError when there is none and `root` is not a folder that can be read.
    """
    with _ONE_SCAN:
        scan = _Scan(previous, keep, wanted=wanted, text_limit=text_limit, max_entries=max_entries)
        taken_at_ns = time.time_ns()
        try:
            fd = os.open(root, FOLDER_FLAGS)
            try:
                scan.folder(fd, "", 0)
            finally:
                os.close(fd)
        except OSError as error:
            if previous is None:
                raise
            # A link where the folder was gives ELOOP or ENOTDIR.
            scan.truncated = error.errno not in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
        return Snapshot(dict(sorted(scan.entries.items())), taken_at_ns, scan.truncated)


class _Scan:
    """One walk. What has vanished meanwhile is left out; what cannot be read is noted."""

    def __init__(
        self,
        previous: Snapshot | None,
        keep: Keep | None,
        *,
        wanted: frozenset[str],
        text_limit: int,
        max_entries: int,
    ) -> None:
        self.keep, self.wanted, self.text_limit, self.max_entries = keep, wanted, text_limit, max_entries
        self.known: Mapping[str, Entry] = previous.entries if previous else {}
        self.settled_before = previous.taken_at_ns - CLOCK_TICK_NS if previous else 0
        self.entries: dict[str, Entry] = {}
        self.truncated = False

    def folder(self, fd: int, prefix: str, depth: int) -> None:
        """Record what the folder opened as `fd` holds. Raises: OSError when it cannot be looked into."""
        folders: list[tuple[str, str, os.stat_result]] = []
        undecodable: list[os.DirEntry[str]] = []
        with os.scandir(fd) as listing:
            for item in listing:
                if len(self.entries) >= self.max_entries:
                    self.truncated = True
                    return
                if _is_text(item.name):
                    self.name(fd, item, prefix + item.name, folders)
                else:
                    undecodable.append(item)
        for item in undecodable:
            self.name(fd, item, self.free_path(prefix + _json_text(item.name)), folders)
        for name, path, status in folders:
            self.entries[path] = _entry("dir", status, note=self.subfolder(fd, name, path, depth + 1))

    def name(self, fd: int, item: os.DirEntry[str], path: str, folders: list[tuple[str, str, os.stat_result]]) -> None:
        """Record one name of the folder `fd`; folders are put off until the listing is closed."""
        try:
            status = item.stat(follow_symlinks=False)
        except FileNotFoundError:
            return
        form = stat.S_IFMT(status.st_mode)
        if form == stat.S_IFREG:
            entry = self.file(fd, item.name, path, status)
            if entry is None:
                return
        elif form == stat.S_IFDIR:
            if item.name == ".git":
                return
            folders.append((item.name, path, status))
            entry = _entry("dir", status)
        elif form == stat.S_IFLNK:
            try:
                entry = _entry("symlink", status, target=_json_text(os.readlink(item.name, dir_fd=fd)))
            except OSError:
                return  # it was one a moment ago
        else:
            entry = _entry("special", status, note=_SPECIAL_KINDS.get(form, "unknown"))
        self.entries[path] = entry

    def subfolder(self, parent: int, name: str, path: str, depth: int) -> str | None:
        """Record what is in a folder; ``unreadable`` when that cannot be known."""
        if depth > MAX_DEPTH:
            return "unreadable"
        try:
            fd = os.open(name, FOLDER_FLAGS, dir_fd=parent)
        except OSError:
            return "unreadable"
        try:
            self.folder(fd, path + "/", depth)
        except OSError:
            return "unreadable"
        finally:
            os.close(fd)
        return None

    def file(self, fd: int, name: str, path: str, status: os.stat_result) -> Entry | None:
        """A regular file, read when its status does not say that it is unchanged; None when it has vanished."""
        known = self.known.get(path)
        if (
            known is not None
            and known.stat_key == _stat_key(status)
            and status.st_ctime_ns < self.settled_before
            and known.note != "unreadable"
        ):
            return known
        if status.st_size > HASH_LIMIT:
            return _entry("file", status, note="unhashed")
        try:
            status, content = _read(fd, name)
        except FileNotFoundError:
            return None
        except OSError:
            return _entry("file", status, note="unreadable")
        if content is None:
            return _entry("file", status, note="unhashed")
        digest = hashlib.sha256(content).hexdigest()
        if self.keep is not None and (
            path in self.wanted or (len(content) <= self.text_limit and b"\0" not in content)
        ):
            self.keep(path, content, digest)
        return _entry("file", status, digest=digest)

    def free_path(self, path: str) -> str:
        """`path`, or when a file is really called so something near it: neither may hide the other."""
        while path in self.entries:
            path += "'"
        return path


def _entry(
    kind: Literal["file", "dir", "symlink", "special"],
    status: os.stat_result,
    *,
    digest: str | None = None,
    target: str | None = None,
    note: str | None = None,
) -> Entry:
    return Entry(kind, status.st_size, digest, stat.S_IMODE(status.st_mode), target, _stat_key(status), note)


def _stat_key(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode)


def _read(folder: int, name: str) -> tuple[os.stat_result, bytes | None]:
    """Status and content of a regular file; no content when it is, or grows, over the limit. Raises: OSError."""
    handle = os.open(name, FILE_FLAGS, dir_fd=folder)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "no regular file any more", name)
        content = os.read(handle, status.st_size + 1)  # one byte more: when it did not grow, one call is enough
        if len(content) == status.st_size:
            return status, content
        parts, total = [content], len(content)
        while part := os.read(handle, 1024 * 1024):
            parts.append(part)
            total += len(part)
            if total > HASH_LIMIT:
                return status, None
        return status, b"".join(parts)
    finally:
        os.close(handle)


def _is_text(name: str) -> bool:
    """Whether a file name is UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _json_text(name: str) -> str:
    """A name or link target with what is not UTF-8 in it written out."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")


def diff(before: Snapshot, after: Snapshot) -> Changes:
    """What has been created, changed and deleted between two snapshots of the same folder."""
    created, changed, deleted = [], [], []
    unknown_before, unknown_after = _unknown_folders(before), _unknown_folders(after)
    for path, now in after.entries.items():
        if now.kind == "dir":
            continue
        was = before.entries.get(path)
        if was is None or was.kind == "dir":
            if not before.truncated and not _is_below(path, unknown_before):
                created.append(path)
        elif was is not now and _differ(was, now):
            changed.append(path)
    for path, was in before.entries.items():
        if was.kind == "dir":
            continue
        now_there = after.entries.get(path)
        if (now_there is None or now_there.kind == "dir") and not (after.truncated or _is_below(path, unknown_after)):
            deleted.append(path)
    complete = not (before.truncated or after.truncated or unknown_before or unknown_after)
    return Changes(tuple(created), tuple(changed), tuple(deleted), complete)


def _differ(was: Entry, now: Entry) -> bool:
    """Whether a name stands for something else now. What was not read counts as changed with its status."""
    if (was.kind, was.mode, was.target) != (now.kind, now.mode, now.target):
        return True
    if was.kind == "file":
        if was.digest is None or now.digest is None:
            return was.stat_key != now.stat_key
        return was.digest != now.digest
    return was.note != now.note


def _unknown_folders(snapshot: Snapshot) -> frozenset[str]:
    return frozenset(path for path, entry in snapshot.entries.items() if entry.kind == "dir" and entry.note)


def _is_below(path: str, folders: frozenset[str]) -> bool:
    return bool(folders) and any(str(parent) in folders for parent in PurePosixPath(path).parents)


def text_diff(path: str, before: bytes | None, after: bytes | None, max_lines: int = 4000) -> str:
    """A unified diff of two contents (None: not there), of at most about `max_lines` lines; empty when equal.

    Says in words when contents are binary, and when something was left out. The text is the agent's.
    """
    if before == after:
        return ""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in path)
    header = f"--- {'/dev/null' if before is None else f'a/{shown}'}\n"
    header += f"+++ {'/dev/null' if after is None else f'b/{shown}'}\n"
    old, new = before or b"", after or b""
    if b"\0" in old or b"\0" in new:
        return f"{header}binary content: {len(old)} bytes before, {len(new)} bytes after\n"
    old_lines, new_lines = _lines(old), _lines(new)
    start = _common(old_lines, new_lines)
    tail = _common(old_lines[start:][::-1], new_lines[start:][::-1])
    first = max(0, start - CONTEXT_LINES)
    old_part = old_lines[first : len(old_lines) - max(0, tail - CONTEXT_LINES)]
    new_part = new_lines[first : len(new_lines) - max(0, tail - CONTEXT_LINES)]
    notes = []
    if max(len(old_part), len(new_part)) > max_lines:
        notes.append(f"only the first {max_lines} of {len(old_part)} and {len(new_part)} lines were compared")
    hunks = list(difflib.unified_diff(old_part[:max_lines], new_part[:max_lines], n=CONTEXT_LINES))[2:]
    if len(hunks) > max_lines:
        notes.append(f"{len(hunks) - max_lines} lines of this diff were left out")
    body = "".join(_shift(line, first) for line in hunks[:max_lines])
    return header + body + "".join(f"(cut: {note})\n" for note in notes)


def _lines(content: bytes) -> list[str]:
    """Lines with their ends; the last one says so when it has none, so that this is seen as a difference."""
    lines = [f"{line}\n" for line in content.decode("utf-8", "backslashreplace").split("\n")]
    last = lines.pop()
    return lines if last == "\n" else [*lines, f"{last}\\ No newline at end of file\n"]


def _common(old: list[str], new: list[str]) -> int:
    """How many lines two lists have in common at their start."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(old), len(new)))


def _shift(line: str, offset: int) -> str:
    """A line of a diff as it is shown: numbers moved by the lines skipped before it, and not too long."""
    if line.startswith("@@"):
        return re.sub(r"(?<=[-+])\d+", lambda number: str(int(number[0]) + offset), line)
    more = len(line) - MAX_DIFF_LINE
    return line if more <= 0 else f"{line[:MAX_DIFF_LINE]}… ({more} more characters)\n"

"""Locks on folders that several processes share, which say who holds them.

The lock is the system's own (`filelock`), so that of a process that died, however it did, is free at once. What the
holder says of itself stands in a file of its own beside it, because taking a lock empties its file.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from skillup.errors import Cancelled

LOCK_NAME = ".skillup.lock"
HOLDER_NAME = ".skillup.holder"

_WAKE_SECONDS = 0.2
"""How long a wait lasts before it looks whether the user has stopped the run."""


class FolderBusyError(Exception):
    """Somebody else kept the folder for longer than was waited; the message names them."""


@contextmanager
def hold_folder(folder: Path, command: str, seconds: float, cancelled: threading.Event) -> Iterator[float]:
    """Holds a folder's lock, and gives the seconds that were waited for it. `command` is what the holder runs.

    Raises:
        FolderBusyError: it was not free within `seconds`.
        Cancelled: the user stopped the run meanwhile.
        OSError: the folder is not there, or cannot be written.
    """
    began = time.monotonic()
    if not folder.is_dir():
        raise FileNotFoundError(f"No such folder: {folder}")  # the library would make it
    lock = FileLock(folder / LOCK_NAME, mode=0o600)
    while True:
        left = began + seconds - time.monotonic()
        try:
            lock.acquire(timeout=max(0.0, min(_WAKE_SECONDS, left)))
            break
        except Timeout:
            if cancelled.is_set():
                raise Cancelled from None
            if left <= 0:
                raise FolderBusyError(f"{folder} is in use by {holder_of(folder)}") from None
    try:
        _say(folder, command)
        yield time.monotonic() - began
    finally:
        with suppress(OSError):
            (folder / HOLDER_NAME).unlink(missing_ok=True)
        lock.release()


def holder_of(folder: Path) -> str:
    """Who holds a folder's lock, as far as it has said so: process, command and since when."""
    place = folder / HOLDER_NAME
    try:
        if not place.is_file():  # an agent on a shared home can put a pipe there, and reading it would never end
            raise FileNotFoundError(place)
        said = json.loads(place.read_text(encoding="utf-8"))
        pid, command, since = int(said["pid"]), str(said["command"]), str(said["since"])
        os.kill(pid, 0)
    except PermissionError:
        return f"process {pid} of another user ({command}, since {since})"
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return "a process that does not say which"
    return f"process {pid} ({command}, since {since})"


def _say(folder: Path, command: str) -> None:
    since = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    text = json.dumps({"pid": os.getpid(), "command": command, "since": since})
    partial = folder / f"{HOLDER_NAME}.{os.getpid()}.{threading.get_ident()}"
    partial.write_text(text, encoding="utf-8")
    partial.replace(folder / HOLDER_NAME)

"""Where runs are kept: a directory each, taken by one run alone, and never overwritten."""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from skillup.environments.locks import HOLDER_NAME, LOCK_NAME, FolderBusyError, hold_folder
from skillup.errors import RunDirectoryError

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
"""What a suite's name may hold and a folder's name should not."""

_LONGEST_NAME = 60

_ELSEWHERE = "use --output-dir DIR"

_UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


def new_directory(name: str, chosen: Path | None) -> Path:
    """A fresh run directory: the chosen one, or the next `<name>-workspace/iteration-N`.

    Raises:
        RunDirectoryError: it cannot be made, or the chosen one is not empty.
    """
    with _making():
        return _workspace_iteration(name) if chosen is None else _fresh(chosen)


def new_directories(name: str, chosen: Path | None, times: int) -> Iterator[Path]:
    """A fresh run directory for each of several runs, made when its turn comes.

    They are the next iterations of the suite's workspace, or of the chosen folder, which must be empty at first.

    Raises:
        RunDirectoryError: as `new_directory`.
    """
    base = None
    if chosen is not None:
        with _making():
            base = _fresh(chosen)
    for _ in range(times):
        with _making():
            made = _workspace_iteration(name) if base is None else _next_iteration(base)
        yield made


def refuse_used(chosen: Path | None) -> None:
    """Says now, without making anything, what `new_directory` would say of a chosen folder that is not empty.

    Raises:
        RunDirectoryError: it is not empty, or is no folder.
    """
    if chosen is not None and chosen.exists():
        with _making():
            _refuse(chosen)


def not_empty(directory: Path) -> RunDirectoryError:
    """What is said of a directory that another run, or somebody else, has filled."""
    hint = "results are never overwritten: name another folder, or remove it"
    return RunDirectoryError(f"{directory} is not empty", hint=hint)


@contextmanager
def held(directory: Path, command: str, *, hint: str = _ELSEWHERE, writes: bool = True) -> Iterator[None]:
    """Keeps everybody else from writing into a run directory. `command` is what others are told that its holder does.

    Where nothing can be written, whoever may not have to write (`writes=False`) needs nobody kept away. `hint` says
    what else can be done where it can be neither locked nor left unlocked.

    Raises:
        RunDirectoryError: somebody else holds it, or it cannot be locked.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(hold_folder(directory, command, 0.0, threading.Event()))
        except FolderBusyError as error:
            busy = "wait until it has ended, or end it; to read is always possible: `skillup report`"
            raise RunDirectoryError(str(error), hint=busy) from error
        except FileNotFoundError as error:
            raise RunDirectoryError(f"there is no folder {directory}", hint="name the folder of a run") from error
        except (OSError, NotImplementedError) as error:
            if writes or not isinstance(error, OSError) or error.errno not in _UNWRITABLE:
                why = error.strerror if isinstance(error, OSError) else "its file system knows no locks"
                raise RunDirectoryError(f"{directory} cannot be locked: {why}", hint=hint) from error
        yield


def private_umask() -> None:
    """Run directories hold what agents saw: readable by their owner only where the file system can say so."""
    os.umask(0o077)


@contextmanager
def _making() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        what = f"{error.filename}: {error.strerror}"
        raise RunDirectoryError(f"no run directory can be made: {what}", hint=_ELSEWHERE) from error


def _fresh(chosen: Path) -> Path:
    chosen.mkdir(parents=True, exist_ok=True)
    _refuse(chosen)
    return chosen


def _refuse(chosen: Path) -> None:
    if {path.name for path in chosen.iterdir()} - {
        LOCK_NAME,
        HOLDER_NAME,
    }:  # a lock alone: whoever died had begun nothing
        raise not_empty(chosen)


def _workspace_iteration(name: str) -> Path:
    safe = _UNSAFE.sub("-", name)[:_LONGEST_NAME].strip("-.")
    return _next_iteration(Path(f"{safe or 'suite'}-workspace"))


def _next_iteration(base: Path) -> Path:
    """Two runs that start at once get two numbers: making a folder succeeds for one of them only."""
    base.mkdir(exist_ok=True)
    taken = [re.fullmatch(r"iteration-([0-9]+)", path.name) for path in base.iterdir()]
    number = 1 + max((int(match[1]) for match in taken if match), default=0)
    while True:
        try:
            directory = base / f"iteration-{number}"
            directory.mkdir()
        except FileExistsError:
            number += 1
        else:
            return directory

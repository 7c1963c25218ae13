"""Removing a folder that an agent had: whatever it made of it, that folder goes, and nothing else."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from skillup.environments.untrusted import FOLDER_FLAGS

_NAMED = getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(path: Path) -> bool:
    """Removes a folder with all that is in it; False when something of it is left.

    Folders are opened one at a time and never by a path, so that no link leads out of them. Those that lie in them
    are first moved up into `path` itself: an agent may have made them deeper than a path or the stack can be.
    Permissions that were taken away are given back.
    """
    try:
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode):
            path.unlink()
            return True
        _unlock(os.fspath(path), None, status)
        with _opened(os.fspath(path), None) as root:
            # Each round takes one level away: what lay below it lies in the root now.
            while names := _names(root):
                removed = [_take_apart(root, name) for name in names]
                if not any(removed):
                    return False
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _take_apart(root: int, name: str) -> bool:
    """Removes one name of the root, moving the folders in it up; whether anything could be done."""
    try:
        status = os.stat(name, dir_fd=root, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode):
            os.unlink(name, dir_fd=root)
            return True
        _unlock(name, root, status)
        with _opened(name, root) as folder:
            for inner in _names(folder):
                _empty(root, folder, inner)
        os.rmdir(name, dir_fd=root)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _empty(root: int, folder: int, name: str) -> None:
    """Removes a name from a folder, or moves it to the root when it is a folder itself."""
    with suppress(OSError):  # what stays makes its folder stay, and that is told
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            _unlock(name, folder, status)  # a folder that may not be written to cannot be moved either
            os.rename(name, secrets.token_hex(12), src_dir_fd=folder, dst_dir_fd=root)
        else:
            os.unlink(name, dir_fd=folder)


@contextmanager
def _opened(name: str, parent: int | None) -> Iterator[int]:
    descriptor = os.open(name, FOLDER_FLAGS, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _names(folder: int) -> list[str]:
    return [entry.name for entry in os.scandir(folder)]


def _unlock(name: str, parent: int | None, status: os.stat_result) -> None:
    """Gives the owner of a folder the permissions back that removing needs."""
    if status.st_mode & stat.S_IRWXU == stat.S_IRWXU:
        return
    if not hasattr(os, "O_PATH"):
        os.chmod(name, stat.S_IRWXU, dir_fd=parent, follow_symlinks=False)
        return
    # Linux changes no mode without following links, but it does by a descriptor that was opened for nothing else.
    descriptor = os.open(name, _NAMED, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{descriptor}").chmod(stat.S_IRWXU)
    finally:
        os.close(descriptor)

"""Opening what an agent may have put there: never through a link, never waiting at a pipe or a device."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def open_regular(path: Path | str, *, folder: int | None = None) -> BinaryIO:
    """A regular file, open for reading; `folder` is the descriptor that a relative `path` starts from.

    Raises:
        OSError: it cannot be opened, or is a link, a pipe, a device or a folder by now.
    """
    file = open(path, "rb", opener=lambda name, _: os.open(name, FILE_FLAGS, dir_fd=folder))  # noqa: SIM115 - handed on
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "no regular file any more", str(path))
    return file

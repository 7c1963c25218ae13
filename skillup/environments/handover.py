"""Giving a trial's files to the user that works on them, where root has written them for somebody else."""

from __future__ import annotations

import os
from contextlib import suppress

from skillup.environments.host import TrialRoot
from skillup.environments.untrusted import FOLDER_FLAGS


def hand_over(root: TrialRoot, user: tuple[int, int]) -> None:
    """Gives the container's user what root has written for a trial; nothing where skillup runs as that user.

    Raises:
        OSError: it cannot be given away.
    """
    if user[0] == os.getuid():
        return
    for top in (root.path, root.scratch):
        os.chown(top, *user, follow_symlinks=False)
        _give_away(os.open(top, FOLDER_FLAGS), user)


def _give_away(top: int, user: tuple[int, int]) -> None:
    """Gives away what is ours below a folder. The descriptor is closed.

    Folders are opened one below the other and never by a path: a service of the container could put a link into it,
    and an agent may have made them deeper than a path or the stack can be.
    """
    ours = os.getuid()
    levels = [(top, [""])]
    try:
        while levels:
            opened, inner = levels[-1]
            if inner == [""]:
                inner[:] = []
                for entry in os.scandir(opened):
                    with suppress(FileNotFoundError):
                        if entry.stat(follow_symlinks=False).st_uid == ours:
                            os.chown(entry.name, *user, dir_fd=opened, follow_symlinks=False)
                        if entry.is_dir(follow_symlinks=False):
                            inner.append(entry.name)
            elif inner:
                with suppress(FileNotFoundError, NotADirectoryError):
                    levels.append((os.open(inner.pop(), FOLDER_FLAGS, dir_fd=opened), [""]))
            else:
                os.close(levels.pop()[0])
    finally:
        for opened, _ in levels:
            os.close(opened)

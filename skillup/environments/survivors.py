"""Processes that a run left behind because it and its supervisors were killed: how they are known, found and ended.

A run marks itself before it starts anything. The mark is a resource limit that no program has a use for: how long a
*real-time* process may compute without a pause (RLIMIT_RTTIME), set to a hundred thousand years. Whatever the
run starts inherits it: over double forks, new sessions, cleared environments and closed files. Without privileges
nobody can raise it again.

The number names the run's own process and the PID namespace that this id is of. So `/proc` alone tells to which run a
process belongs, and whether that run lives: then the process of that id has the same mark. Ids that were given to
others do no harm, as only what carries a mark is ever touched.

Only Linux has this limit and `/proc`. Elsewhere nothing is marked, and nothing is found.
"""

from __future__ import annotations

import os
import resource
import secrets
import signal
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_LIMIT = getattr(resource, "RLIMIT_RTTIME", None) if sys.platform == "linux" else None
_LIMIT_NAME = b"Max realtime timeout"

_MAGIC = 0x2D3
"""Tells a mark from a limit that somebody means; 10 bits."""
_SPACE_BITS, _PID_BITS, _CHANCE_BITS = 16, 22, 14
"""Parts of a mark below the magic: of the PID namespace, the process id (Linux has none beyond), and by chance."""

TERMINATE_SECONDS = 1.0
"""What a process is given after SIGTERM, as in a turn."""
KILL_SECONDS = 3.0
"""As long as is waited for SIGKILL to work; a process in uninterruptible sleep may never go."""
_LOOK_SECONDS = 0.02
_MAX_COMMAND = 300
"""Characters of a command line: enough to recognise it. It is the agent's text."""


@dataclass(frozen=True)
class Survivor:
    """A living process of a dead run. `run` is the process id that skillup had then."""

    pid: int
    run: int
    mark: int
    command: str


def mark_this_process() -> int | None:
    """Marks this process and all that it will start; the mark, or None where there is no such thing.

    A process that carries the mark of another run keeps it: what it starts is a part of that run.
    """
    if _LIMIT is None:
        return None
    carried = _mark_of(os.getpid())
    if carried is not None:
        return carried
    chance = secrets.randbits(_CHANCE_BITS)
    mark = ((_MAGIC << _SPACE_BITS | _space()) << _PID_BITS | os.getpid()) << _CHANCE_BITS | chance
    try:
        resource.setrlimit(_LIMIT, (mark, mark))
    except (OSError, ValueError):  # somebody has set a lower limit, and means it
        return None
    return mark


def survivors() -> tuple[Survivor, ...]:
    """The processes of all dead runs that this user may end, by their ids."""
    marks = dict(_marked())
    living = {mark for pid, mark in marks.items() if pid == _run_of(mark)}
    return tuple(
        Survivor(pid, _run_of(mark), mark, _command(pid)) for pid, mark in sorted(marks.items()) if mark not in living
    )


def end_survivors(marks: Collection[int]) -> tuple[tuple[Survivor, ...], tuple[Survivor, ...]]:
    """Ends what is left of the dead runs with these marks, with SIGTERM and then SIGKILL: all found, and those left.

    It takes no longer than TERMINATE_SECONDS and KILL_SECONDS together.
    """
    found: dict[int, Survivor] = {}
    for number, seconds in ((signal.SIGTERM, TERMINATE_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
        until = time.monotonic() + seconds
        told: set[int] = set()
        while alive := [one for one in survivors() if one.mark in marks]:
            found |= {one.pid: one for one in alive if one.pid not in found}
            for one in alive:
                if number == signal.SIGKILL or one.pid not in told:
                    _signal(one, number)
                    told.add(one.pid)
            if time.monotonic() >= until:
                break
            time.sleep(_LOOK_SECONDS)
    return tuple(found.values()), tuple(alive)


def _signal(one: Survivor, number: signal.Signals) -> None:
    """Signals a process, unless its id has gone to another one since it was found."""
    with suppress(OSError):
        descriptor = os.pidfd_open(one.pid)
        try:
            if _mark_of(one.pid) == one.mark:
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def _marked() -> Iterator[tuple[int, int]]:
    """Living processes with a mark of this PID namespace, which this user may end."""
    if _LIMIT is None:
        return
    own = os.geteuid()
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - a path for each of hundreds is not needed
        with suppress(OSError):
            mark = _mark_of(int(name))
            if mark is not None and own in (0, Path("/proc", name).stat().st_uid):
                yield int(name), mark


def _mark_of(pid: int) -> int | None:
    """The mark of a process that lives; None for one without, of another PID namespace, or gone."""
    try:
        limits = Path(f"/proc/{pid}/limits").read_bytes()
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return None
    line = next((line for line in limits.splitlines() if line.startswith(_LIMIT_NAME)), b"")
    written = line.removeprefix(_LIMIT_NAME).split()[1:2]  # the hard limit: anybody may change the soft one
    if not written or not written[0].isdigit() or state in b"ZX":
        return None
    mark = int(written[0])
    magic, space = divmod(mark >> _PID_BITS + _CHANCE_BITS, 1 << _SPACE_BITS)
    return mark if (magic, space) == (_MAGIC, _space()) else None


def _run_of(mark: int) -> int:
    return mark >> _CHANCE_BITS & (1 << _PID_BITS) - 1


def _space() -> int:
    """The last bits of the number of our PID namespace: ids of another one say nothing here."""
    return os.stat("/proc/self/ns/pid").st_ino & (1 << _SPACE_BITS) - 1  # noqa: PTH116 - as below /proc


def _command(pid: int) -> str:
    for name in ("cmdline", "comm"):
        with suppress(OSError):
            text = Path(f"/proc/{pid}/{name}").read_bytes()[: 4 * _MAX_COMMAND].replace(b"\0", b" ")
            if text.strip():
                return text.decode(errors="replace").strip()[:_MAX_COMMAND]
    return "?"

"""Watching over a turn while it runs: reads along, and ends a CLI that is stuck, gives no sense, or does not exit.

A CLI that is stuck is told from one that works by what can be seen of it: its events, a tool that runs, the file that
it keeps of its session, and, where the model is the loopback model, whether a reply is being sent to it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from skillup.engines.events import EngineFault
from skillup.environments.process import Ended, Running
from skillup.errors import Cancelled
from skillup.execution.reading import StreamReader
from skillup.modelserver.route import Route

POLL_SECONDS = 0.05
"""How often the growing output is looked at; the end of the process wakes us at once."""

STALL_SECONDS = 60.0
"""An agent that shows no sign of work for so long (or for half of a shorter limit) is waiting, not working."""

_FILE_SECONDS = 1.0
"""How often the session's file is looked at: it is looked for, too."""

Cut = Literal["nonsense", "patience", "waits", "late", "idle"]
"""Why we ended a CLI before its time: no output of its format, retries without end, a pause that is longer than the
turn may be, no exit, no sign of life."""


@dataclass(frozen=True)
class Patience:
    """Seconds after which a turn is ended: in all, without a sign of life, and after the final word.

    `retrying` is how long the CLI may go on retrying without progress, None where it gives up by itself.
    """

    turn: float
    idle: float
    exit: float
    retrying: float | None


@dataclass(frozen=True)
class Doing:
    """What the agent was doing the last time we looked before its time was up.

    `silent` says who kept silent, where that can be seen. `cut` is why we ended it, at `cut_at` seconds, if we did.
    """

    at_work: bool = False
    trouble: EngineFault | None = None
    silent: str = ""
    cut: Cut | None = None
    cut_at: float = 0.0


class Signs:
    """Signs of life that the stream does not show. Times are seconds since the turn began.

    `pattern` gives a glob below the CLI's home for the file of its session, empty while there is none to look at.
    """

    def __init__(self, started: float, home: Path, pattern: Callable[[], str], route: Route | None) -> None:
        self._started = started
        self._home, self._pattern = home, pattern
        self._route = route
        self._seen: frozenset[tuple[str, int, int]] = frozenset()
        self._looked_at = self._grew_at = 0.0

    def last(self, now: float) -> float:
        """When the last one was seen; 0 when there was none."""
        if now - self._looked_at >= _FILE_SECONDS:
            self._looked_at = now
            seen = frozenset(self._files())
            if seen != self._seen:
                self._seen, self._grew_at = seen, now
        return max(self._grew_at, self.last_sent)

    @property
    def last_sent(self) -> float:
        """When the loopback model last sent a part of a reply; 0 when it did not."""
        return max(0.0, self._route.sent_at - self._started) if self._route else 0.0

    def silent(self, now: float) -> str:
        """Who keeps silent, where that can be seen."""
        if self._route is None:
            return ""
        since = self._route.open_since(self._started)
        if since is None:
            return "the CLI had stalled: no request of it to the model was open"
        return f"the model was silent: a request had been open for {now - (since - self._started):.0f} s"

    def _files(self) -> list[tuple[str, int, int]]:
        found = []
        pattern = self._pattern()
        for path in self._home.glob(pattern) if pattern else ():
            try:
                status = path.lstat()
            except OSError:
                continue  # the agent can reach it
            found.append((path.name, status.st_size, status.st_mtime_ns))
        return found


def follow(
    running: Running, reader: StreamReader, patience: Patience, signs: Signs, cancelled: threading.Event
) -> tuple[Ended, Doing]:
    """Reads along until the process and all that it started are gone.

    Raises:
        Cancelled: the user stopped the run.
        ProcessError: the supervisor was lost.
    """
    stream, doing = reader.stream, Doing()
    window = min(STALL_SECONDS, patience.turn / 2)
    asked = behind = False
    try:
        while True:
            ended = running.wait(0 if behind else POLL_SECONDS)
            stream.closing = stream.closing or reader.elapsed >= patience.turn
            behind = reader.read()
            if ended is not None and (not behind or stream.hopeless):
                reader.finish()
                break
            if ended is not None and cancelled.is_set():
                raise Cancelled  # what it has printed in seconds may take minutes to be read
            now = reader.elapsed
            if ended is not None or asked or now >= patience.turn:
                # What comes later is the CLI's answer to being interrupted, not the agent's work.
                continue
            at_work = stream.at_work(now, window) or (signs.last_sent > 0 and now - signs.last_sent <= window)
            doing = Doing(at_work and stream.trouble is None, stream.trouble, signs.silent(now))
            cut = None if cancelled.is_set() else _cut(reader, patience, signs, now)
            if cut is not None:
                doing = replace(doing, cut=cut, cut_at=now, at_work=doing.at_work and cut != "idle")
                stream.closing = cut in ("late", "idle", "waits")
            if cut is not None or cancelled.is_set():
                running.end("deadline" if cut in ("idle", "waits") else "cancelled")
                asked = True
    finally:
        reader.close()
    if ended.how == "cancelled" and doing.cut is None:
        raise Cancelled
    return ended, doing


def _cut(reader: StreamReader, patience: Patience, signs: Signs, now: float) -> Cut | None:
    """Whether, and why, the CLI is to be ended now."""
    stream = reader.stream
    if stream.hopeless:
        return "nonsense"
    if patience.retrying is not None and stream.in_trouble_for(now) > patience.retrying:
        return "patience"  # some CLIs reconnect for ever; what they say of the reason is all that will ever come
    if stream.finished is not None:
        return "late" if now - stream.finished_at > patience.exit else None
    if stream.waits_until is not None and stream.waits_until > patience.turn:
        return "waits"
    idle = not stream.tool_runs and now - max(stream.last_event, signs.last(now)) > patience.idle
    return "idle" if idle else None

"""What ^C and SIGTERM mean: before a run begins they end the command, then the first stops the run, a second us."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self

INTERRUPTED = 130

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STOPPING = b"\nstopping: running turns are ended, finished trials stay (again: at once)\n"
_SHOW_CURSOR = b"\x1b[?25h"
"""A live display hides it; whoever leaves at once must give it back."""


class Interrupts:
    """A context manager that has the signals. `stopping` is set once a run is to stop."""

    def __init__(self) -> None:
        self._kill: Callable[[], None] | None = None
        self.stopping = threading.Event()
        self._before: list[Callable[[int, FrameType | None], Any] | int | None] = []

    def __enter__(self) -> Self:
        self._before = [signal.signal(number, self._handle) for number in _SIGNALS]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in zip(_SIGNALS, self._before, strict=True):
            signal.signal(number, handler)

    def run_begins(self, kill: Callable[[], None]) -> None:
        """From now on there is something to be stopped in order, and to be kept; `kill` ends it without any grace."""
        self._kill = kill

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._kill is None:
            raise KeyboardInterrupt
        if self.stopping.is_set():
            # The next run sweeps the trial roots.
            with suppress(Exception):
                self._kill()
            with suppress(OSError):
                os.write(2, _SHOW_CURSOR if sys.stderr.isatty() else b"")
            os._exit(INTERRUPTED)
        self.stopping.set()
        with suppress(OSError):  # a reader of ours (`| tee log`) has had the same ^C
            os.write(2, _STOPPING)


def mute_dead_ends() -> None:
    """Lets what is printed to a reader that has gone go nowhere: it must cost neither a report nor the exit code."""
    for descriptor in (1, 2):
        look = select.poll()
        look.register(descriptor, 0)
        if any(event & select.POLLERR for _, event in look.poll(0)):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)

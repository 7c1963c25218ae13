"""What starts processes: turns, set-up steps, commands, scripts, and evaluators when a saved trial is judged."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skillup.environments.process import Command, Ended, Nursery
from skillup.errors import Cancelled


@dataclass(frozen=True)
class Processes:
    """The owner of the processes, the variables of whoever called us, and whether the user has stopped it all."""

    nursery: Nursery
    host: Mapping[str, str]
    cancelled: threading.Event

    def run(self, command: Command, *, stdout: Path, stderr: Path, seconds: float) -> Ended:
        """Runs a command to its end, at most `seconds` long; its output goes to the files, which may be one.

        Raises:
            Cancelled: the user stopped the run.
            ProcessError: it could not be started, or its end is unknown.
        """
        ended = self.nursery.run(
            command, stdout=stdout, stderr=stderr, deadline_seconds=seconds, cancelled=self.cancelled
        )
        if ended.how == "cancelled":
            raise Cancelled
        return ended

    def pause(self, seconds: float) -> None:
        """Waits, unless the user stops the run.

        Raises:
            Cancelled: the user stopped it.
        """
        if self.cancelled.wait(seconds):
            raise Cancelled

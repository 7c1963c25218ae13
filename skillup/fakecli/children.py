"""Processes that the fake CLI starts: tools, background tasks, and daemons that nobody is meant to find."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from skillup.fakecli.plan import PlanError

_OUTPUT_BYTES = 100_000


def signals(names: object) -> tuple[signal.Signals, ...]:
    """Signals by their names without SIG.

    Raises:
        PlanError: there is no such signal.
    """
    named = [names] if isinstance(names, str) else names if isinstance(names, list) else []
    try:
        return tuple(signal.Signals[f"SIG{name}"] for name in named)
    except KeyError as error:
        raise PlanError(f"there is no signal {error}") from None


def remember(memory: Path | None, pid: int) -> None:
    """Writes a process down, so that whoever tests can look for it later; without a memory nobody will."""
    if memory is not None:
        memory.mkdir(parents=True, exist_ok=True)
        with (memory / "pids").open("a", encoding="ascii") as file:
            file.write(f"{pid}\n")


def run_tool(command: str) -> tuple[str, bool]:
    """Runs a shell command to its end; gives what it printed, and whether it failed."""
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.stdout[:_OUTPUT_BYTES].decode(errors="replace"), done.returncode != 0


class BackgroundTask:
    """A shell command that runs on while the agent talks, in a session of its own."""

    def __init__(self, command: str) -> None:
        self.command = command
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", command], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
        )

    @property
    def pid(self) -> int:
        """Its process id, which is that of its group."""
        return self._process.pid

    def end(self) -> bool:
        """Ends it, if it still runs; True when it did."""
        if self._process.poll() is not None:
            return False
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        return True


def start_daemon(seconds: float, ignored: Sequence[int], memory: Path | None, *, holds_output: bool) -> None:
    """A process that hides: forked twice, in a session of its own, without a variable of ours, deaf to some signals.

    With `holds_output` it keeps our stdout and stderr open.
    """
    middle = os.fork()
    if middle:
        os.waitpid(middle, 0)
        return
    try:
        os.setsid()
        daemon = os.fork()
        if daemon:
            remember(memory, daemon)
            os._exit(0)
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)  # this outlives the change of the program
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0,) if holds_output else (0, 1, 2):
            os.dup2(nothing, descriptor)
        os.execve("/bin/sleep", ["sleep", str(seconds)], {})
    finally:
        os._exit(127)

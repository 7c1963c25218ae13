"""What a dead run left behind is known by its mark, however it hides, and nothing else is ever touched."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skillup.environments.survivors import end_survivors, survivors
from tests.support import processes_mentioning

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has marks")

RUN = """
import subprocess, sys
from skillup.environments.survivors import mark_this_process
print(mark_this_process(), mark_this_process(), flush=True)
subprocess.Popen(["sh", "-c", sys.argv[1]], stdout=subprocess.DEVNULL)
print("started", flush=True)
sys.stdin.read()
"""
"""A run that starts something and then waits."""

DAEMON = "env -i setsid -f sh -c '%s cd /; exec sleep %s' < /dev/null > /dev/null 2>&1"


@contextmanager
def run_of(command: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A run that lives, and its mark; whatever it started is ended at the last."""
    arguments = [sys.executable, "-c", RUN, command]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first, second = map(int, process.stdout.readline().split())
        assert first == second, "a process is marked once"
        assert process.stdout.readline() == "started\n"
        try:
            yield process, first
        finally:
            process.kill()
            process.wait()
            end_survivors({first})


def alive(sleep: str) -> list[str]:
    return processes_mentioning(f"sleep\0{sleep}")


def until_alive(*sleeps: str) -> None:
    end = time.monotonic() + 30
    while not all(alive(sleep) for sleep in sleeps):
        assert time.monotonic() < end
        time.sleep(0.02)


def unique(number: int) -> str:
    return f"86401.{time.monotonic_ns() % 10**9}{number}"


def test_a_daemon_without_anything_is_found_when_its_run_is_dead_and_ended_when_it_is_asked_for() -> None:
    polite, stubborn = unique(1), unique(2)
    deaf = 'trap "" TERM;'
    command = f"{DAEMON % ('', polite)}; {DAEMON % (deaf, stubborn)}"
    with run_of(command) as (process, mark):
        until_alive(polite, stubborn)
        assert [one for one in survivors() if one.mark == mark] == [], "its run lives"
        assert end_survivors({mark}) == ((), ())
        process.kill()
        process.wait()
        found = [one for one in survivors() if one.mark == mark]
        assert sorted(one.command for one in found) == sorted([f"sleep {polite}", f"sleep {stubborn}"])
        assert {one.run for one in found} == {process.pid}
        assert end_survivors({mark + 1}) == ((), ()), "another run's"
        assert (len(alive(polite)), len(alive(stubborn))) == (1, 1)
        before = time.monotonic()
        ended, left = end_survivors({mark})
        assert time.monotonic() - before < 4
        assert (set(ended), left) == (set(found), ())
        assert alive(polite) + alive(stubborn) == []


def test_a_run_within_a_run_belongs_to_it() -> None:
    """The inner one keeps the mark, so that what it starts is found by the outer one's."""
    sleep = unique(3)
    waiting = RUN.replace("sys.stdin.read()", "import time; time.sleep(600)")
    with run_of(f"{sys.executable} -c '{waiting}' 'sleep {sleep} & wait'") as (process, mark):
        until_alive(sleep)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert f"sleep {sleep}" in [one.command for one in survivors() if one.mark == mark]
        end_survivors({mark})
        assert alive(sleep) == []


def test_a_limit_that_somebody_means_is_no_mark() -> None:
    limit = 200_000  # as a sound server has it
    sleep = subprocess.Popen(
        ["sleep", unique(4)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_RTTIME, (limit, limit)),  # noqa: PLW1509 - nothing else runs
    )
    try:
        assert str(limit) in Path(f"/proc/{sleep.pid}/limits").read_text()
        assert sleep.pid not in [one.pid for one in survivors()]
        assert end_survivors({limit}) == ((), ())
        assert sleep.poll() is None
    finally:
        sleep.kill()
        sleep.wait()

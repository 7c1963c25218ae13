"""The lock of a shared folder: held by the living, free after the dead, and always naming who has it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from skillup.environments.locks import HOLDER_NAME, FolderBusyError, hold_folder, holder_of
from skillup.errors import Cancelled

HOLDS = """
import sys, threading, time
from pathlib import Path
from skillup.environments.locks import hold_folder
with hold_folder(Path(sys.argv[1]), "skillup run evals", 5, threading.Event()):
    print("held", flush=True)
    time.sleep(600)
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    """Another process that holds the folder, once this returns."""
    process = subprocess.Popen([sys.executable, "-c", HOLDS, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_living_holder_is_named_and_waited_for_as_long_as_was_said(tmp_path: Path) -> None:
    other = holder(tmp_path)
    began = time.monotonic()
    try:
        with pytest.raises(FolderBusyError) as raised, hold_folder(tmp_path, "me", 0.6, threading.Event()):
            pass
        assert 0.6 <= time.monotonic() - began < 5
        assert str(raised.value).startswith(f"{tmp_path} is in use by process {other.pid} (skillup run evals, since 20")
    finally:
        other.kill()
        other.communicate()


def test_the_lock_of_a_holder_that_was_killed_is_free(tmp_path: Path) -> None:
    other = holder(tmp_path)
    other.send_signal(signal.SIGKILL)
    other.communicate()
    assert holder_of(tmp_path) == "a process that does not say which", "the dead one is not named"
    with hold_folder(tmp_path, "me", 0.0, threading.Event()) as waited:
        assert waited < 1
        assert holder_of(tmp_path).startswith(f"process {os.getpid()} (me, since 20")


def test_whoever_waits_gets_it_when_it_is_free_and_is_told_how_long_it_took(tmp_path: Path) -> None:
    free = threading.Event()
    waited: list[float] = []

    def first() -> None:
        with hold_folder(tmp_path, "first", 1, threading.Event()):
            free.set()
            time.sleep(0.5)

    thread = threading.Thread(target=first)
    thread.start()
    assert free.wait(5)
    with hold_folder(tmp_path, "second", 5, threading.Event()) as seconds:
        waited.append(seconds)
    thread.join()
    assert 0.2 < waited[0] < 4


def test_a_wait_ends_when_the_user_stops_the_run(tmp_path: Path) -> None:
    stopping = threading.Event()
    stopping.set()
    with (
        hold_folder(tmp_path, "first", 1, threading.Event()),
        pytest.raises(Cancelled),
        hold_folder(tmp_path, "second", 600, stopping),
    ):
        pass


def test_many_holders_come_one_after_another(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        with hold_folder(tmp_path, "many", 30, threading.Event()):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.01)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 16


@pytest.mark.parametrize("said", ["", "[]", "{}", '{"pid": "x", "command": 1, "since": 2}', '{"pid": 1e99}', "\0"])
def test_rubbish_in_the_holders_file_hurts_nobody(tmp_path: Path, said: str) -> None:
    (tmp_path / ".skillup.holder").write_text(said)
    assert holder_of(tmp_path) == "a process that does not say which"


def test_nobody_waits_at_a_pipe_that_stands_in_its_place(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / HOLDER_NAME)
    assert holder_of(tmp_path) == "a process that does not say which"


def test_a_folder_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with (
        pytest.raises(OSError, match="No such folder"),
        hold_folder(tmp_path / "none" / "deep", "me", 0, threading.Event()),
    ):
        pass

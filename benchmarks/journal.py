"""What a line of the journal costs: on disk, on disk while sixty-four trials write theirs, and without waiting for it.

The file system decides; the line says which one it was.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from benchmarks.measure import spread
from skillup.execution.journal import Journal, JournalFile
from skillup.masking import Masker

LINES = 200
ROUNDS = 5
TRIALS = 64
TRIAL = Path("a-case/an-agent/with_skill/trial-1")


def main(folder: Path) -> None:
    """Prints what a line costs."""
    alone, together, written = [], [], []
    for number in range(ROUNDS):
        place = folder / str(number)
        place.mkdir()
        with JournalFile(place, Masker(["a-secret-of-the-agent"])) as journal:
            alone.append(_seconds(journal, 1))
            together.append(_seconds(journal, TRIALS))
            with (place / "plain").open("ab", buffering=0) as file:
                line = (place / "journal.jsonl").read_bytes().splitlines(keepends=True)[0]
                began = time.perf_counter()
                for _ in range(LINES):
                    file.write(line)
                written.append((time.perf_counter() - began) / LINES)
    print(f"journal: a line, on disk: {spread(alone, 'ms', 1000, 2)}")
    print(f"journal: the same while {TRIALS} trials write: {spread(together, 'ms', 1000, 2)}")
    print(f"journal: a line that is only handed to the system: {spread(written, 'ms', 1000, 3)}")
    print(f"journal: on the file system of {folder}, block size {os.statvfs(folder).f_bsize}")


def _seconds(journal: Journal, trials: int) -> float:
    """Seconds that a trial waits for one of its lines."""
    lines = max(10, LINES // trials)

    def write() -> None:
        for turn in range(lines):
            journal.write("turn_ended", TRIAL, attempt=1, turn=turn, status="completed")

    threads = [threading.Thread(target=write) for _ in range(trials)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (time.perf_counter() - began) / lines

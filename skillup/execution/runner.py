"""Many trials at once: worker threads, the end of a run, and what happens when the user stops it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from skillup.errors import Cancelled
from skillup.execution.attempts import run_attempts
from skillup.execution.order import Queue
from skillup.execution.task import Progress, Services, TrialTask
from skillup.results import TrialResult

_WAKE_SECONDS = 0.2
"""How long the main thread sleeps at a time: signals reach Python code only between its waits."""


def run_all(tasks: Sequence[TrialTask], services: Services, parallelism: int) -> tuple[TrialResult, ...]:
    """Runs every trial, at most `parallelism` at once; the results stand in the order of the tasks.

    When `services.cancelled` is set no further trial starts, the running ones are ended, and only finished ones are
    in the result. When `services.budget` is reached no further trial or attempt starts, and the running ones go on; a
    trial that another attempt was withheld from is not in the result, either. Each is on disk the moment it ends.

    Raises:
        RunDirectoryError: a trial could not be saved. The others were stopped: what cannot be kept need not be run.
    """
    waiting = Queue(tasks, services.pools)
    done: dict[int, TrialResult] = {}
    broken: list[Exception] = []

    def work() -> None:
        while (taken := waiting.take(services.begins_no_more)) is not None:
            index, task = taken
            try:
                result = run_attempts(task, services)
            except Cancelled:
                return
            except Exception as error:  # noqa: BLE001 - raised by the main thread: here nobody would see it
                broken.append(error)
                services.cancelled.set()
                return
            if result is None:
                continue  # the queue knows whether any other may begin
            done[index] = result
            waiting.ended(task, result.status)
            total = len(task.case.turns)
            services.tell(Progress(task.label, total, total, result.status, result.grading.reason))

    _in_threads(work, min(parallelism, len(tasks)))
    if broken:
        raise broken[0]
    return tuple(done[index] for index in sorted(done))


def _in_threads(work: Callable[[], None], count: int) -> None:
    threads = [threading.Thread(target=work, name=f"trial-{n}", daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(_WAKE_SECONDS)

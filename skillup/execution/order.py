"""Which trial comes next: in the order of the plan, none before those that it depends on have ended.

None begins either while its provider is left alone, or in a run whose provider cannot be waited for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from skillup.execution.store import read_model
from skillup.execution.task import TrialTask
from skillup.execution.waiting import Pools
from skillup.results import Ending, Status, TrialResult

_WAKE_SECONDS = 0.2
"""How long a thread waits at a time for a trial to end, before it looks whether the run was stopped, or may go on."""


class Queue:
    """The trials that have not begun. May be used from any thread.

    Of a trial that is not among them what the run directory holds counts: it ended before, or was never run.
    """

    def __init__(self, tasks: Sequence[TrialTask], pools: Pools) -> None:
        self._pools = pools
        self._open = dict(enumerate(tasks))
        planned = {task.folder for task in tasks}
        earlier = {place for task in tasks for place in task.after} - planned
        self._ended = {place: status for place in earlier if (status := _saved(place)) is not None}
        self._settled = earlier
        self._changed = threading.Condition()

    def take(self, stopped: Callable[[], bool]) -> tuple[int, TrialTask] | None:
        """The next trial and its number; None when there is none left that may begin, or the run has stopped."""
        with self._changed:
            while not stopped():
                left = {number: task for number, task in self._open.items() if not self._pools.is_closed(task.agent)}
                if not left:
                    break
                free: dict[str, bool] = {}
                for number, task in left.items():
                    if task.agent.name not in free:
                        free[task.agent.name] = not self._pools.seconds_left(task.agent)
                    settled = all(place in self._ended or place in self._settled for place in task.after)
                    if free[task.agent.name] and settled:
                        del self._open[number]
                        return number, withheld(task, self._ended)
                self._changed.wait(_WAKE_SECONDS)
        return None

    def ended(self, task: TrialTask, status: Status) -> None:
        """A trial has ended: those that wait for it may begin."""
        with self._changed:
            self._ended[task.folder] = status
            self._changed.notify_all()


def _saved(trial: Path) -> Status | None:
    """How a trial ended that was not run now; None when it did not end."""
    path = trial / "result.json"
    return read_model(path, TrialResult).status if path.is_file() else None


def withheld(task: TrialTask, ended: Mapping[Path, Status]) -> TrialTask:
    """The task, and why it does not run where those that it depends on did not pass.

    Only what the agent did makes it FAIL, and only where the case wants that; a dependency that could not be measured
    never does.
    """
    missed = [(name, ended.get(place)) for place, name in task.after.items() if ended.get(place) != "PASS"]
    if not missed or task.case.on_dependency_failure == "run":
        return task
    told = "; ".join(f"{name} is {status}" if status else f"{name} was not run" for name, status in missed)
    fails = task.case.on_dependency_failure == "fail" and "FAIL" in (status for _, status in missed)
    how = "dependency_failed" if fails else "dependency_skipped"
    return replace(task, withheld=Ending(how=how, reason=f"the case depends on others, and {told}"))

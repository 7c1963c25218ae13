"""Programs that look at what the agent left: each runs on a copy of the workspace, in a trial root of its own.

The agent is gone by then, and what a program does to its copy changes nothing: neither what is kept, nor what another
program sees.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from skillup.environments.base import Site
from skillup.environments.copying import copy_workspace
from skillup.environments.host import TrialRoot, open_trial_root
from skillup.environments.kinds import ENVIRONMENTS
from skillup.environments.process import Command, ProcessError
from skillup.errors import TrialError
from skillup.execution.task import Services, TrialTask
from skillup.results import Executed, ProgramRecord, ScriptRecord

Record = TypeVar("Record", bound=Executed)

MAX_OUTPUT = 64 * 1024
"""Bytes of a stream that are kept, half from each end: the beginning says what it is, the end how it went."""


def run_on_copy(
    record: Record,
    command: Callable[[TrialRoot], Command],
    task: TrialTask,
    services: Services,
    workspace: Path,
) -> Record:
    """The record, filled with what `command`, made for the root that holds the copy, did there.

    Raises:
        Cancelled: the user stopped the run.
    """
    clock = time.monotonic()
    try:
        kind = ENVIRONMENTS[task.environment.type]
        with open_trial_root(task.trial_base) as root:
            left_out = copy_workspace(workspace, root.workspace)
            if left_out:
                found: dict[str, Any] = {"problem": f"the workspace cannot be copied whole: {left_out[0]}"}
            else:
                asked = command(root)
                site = Site(task.environment, root, services.host, services.nursery, reads=asked.reads)
                with kind.open(site) as environment:
                    found = _run(environment.command(asked), root, services, record)
    except (TrialError, ProcessError, OSError) as error:
        found = {"problem": f"it could not be run: {error}"}
    return record.model_copy(update={**found, "duration_ms": round((time.monotonic() - clock) * 1000)})


def _run(command: Command, root: TrialRoot, services: Services, record: Executed) -> dict[str, Any]:
    """How the program ended and what it printed, by the names of a record."""
    out = root.scratch / "stdout"
    err = root.scratch / "stderr" if isinstance(record, (ScriptRecord, ProgramRecord)) else out
    ended = services.run(command, stdout=out, stderr=err, seconds=record.timeout_seconds)
    output, cut = both_ends(out)
    found = {
        "exit_code": ended.exit_code,
        "signal": ended.signal,
        "timed_out": ended.how == "deadline",
        "output": output,
        "cut": cut,
    }
    if err != out:
        errors, cut_errors = both_ends(err)
        found |= {"errors": errors, "cut": cut or cut_errors}
    return found


def both_ends(log: Path) -> tuple[str, bool]:
    """What was printed, without its middle when it is long, and whether any of it is missing."""
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if size <= MAX_OUTPUT:
            return file.read().decode("utf-8", errors="replace"), False
        begin = file.read(MAX_OUTPUT // 2)
        file.seek(-MAX_OUTPUT // 2, os.SEEK_END)
        end = file.read()
    # Between lines, where there are any: what is masked later on must be there whole.
    begin = begin[: begin.rfind(b"\n") + 1] or begin
    end = end[end.find(b"\n") + 1 :] or end
    middle = f"\n… ({size - len(begin) - len(end)} bytes left out) …\n"
    return begin.decode("utf-8", errors="replace") + middle + end.decode("utf-8", errors="replace"), True

"""The commands of a case's rules: run when the conversation has ended, each on a copy of the workspace of its own.

The agent is gone by then, and what a command does to its copy changes nothing: neither what is kept, nor what another
command sees. What it says is saved with the trial, so that judging again starts nothing.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from skillup.environments.copying import copy_workspace
from skillup.environments.host import child_variables, open_trial_root
from skillup.environments.process import Command, Ended, ProcessError
from skillup.errors import Cancelled, TrialError
from skillup.execution.task import Services, TrialTask
from skillup.results import CommandRecord, Ending
from skillup.spec.command_rule import CommandHolds

MAX_OUTPUT = 64 * 1024
"""Bytes of a command's output that are kept, half from each end: the beginning says what it is, the end how it went."""


def run_commands(task: TrialTask, services: Services, workspace: Path, ending: Ending) -> tuple[CommandRecord, ...]:
    """Runs every command of the case once; none after a fault, because then nothing is judged by it.

    Raises:
        Cancelled: the user stopped the run.
    """
    if ending.how == "error":
        return ()
    rules = [rule for rule in task.case.all_rules if isinstance(rule, CommandHolds)]
    wanted = dict.fromkeys((rule.run, rule.timeout_seconds) for rule in rules)
    return tuple(_run(run, seconds, task, services, workspace) for run, seconds in wanted)


def _run(run: str, seconds: float, task: TrialTask, services: Services, workspace: Path) -> CommandRecord:
    clock = time.monotonic()
    record = CommandRecord(run=run, timeout_seconds=seconds)
    try:
        with open_trial_root(task.trial_base) as root:
            left_out = copy_workspace(workspace, root.workspace)
            if left_out:
                return record.model_copy(update={"problem": f"the workspace cannot be copied whole: {left_out[0]}"})
            variables = child_variables(services.host, root, task.environment.env)
            log = root.scratch / "command.log"
            ended = services.nursery.run(
                Command(("/bin/sh", "-c", run), variables, root.workspace),
                stdout=log,
                stderr=log,
                deadline_seconds=seconds,
                cancelled=services.cancelled,
            )
            record = _recorded(record, ended, log)
    except (TrialError, ProcessError, OSError) as error:
        record = record.model_copy(update={"problem": f"the command could not be run: {error}"})
    return record.model_copy(update={"duration_ms": round((time.monotonic() - clock) * 1000)})


def _recorded(record: CommandRecord, ended: Ended, log: Path) -> CommandRecord:
    if ended.how == "cancelled":
        raise Cancelled
    output, cut = both_ends(log)
    return record.model_copy(
        update={
            "exit_code": ended.exit_code,
            "signal": ended.signal,
            "timed_out": ended.how == "deadline",
            "output": output,
            "cut": cut,
        }
    )


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
    middle = f"\n… ({size - len(begin) - len(end)} bytes left out) …\n"
    return begin.decode("utf-8", errors="replace") + middle + end.decode("utf-8", errors="replace"), True

"""The commands of a case's rules: run when the conversation has ended, each on a copy of the workspace of its own.

What a command says is saved with the trial, so that judging again starts nothing.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from skillup.environments.host import TrialRoot, child_variables
from skillup.environments.process import Command
from skillup.execution.copies import run_on_copy
from skillup.execution.task import Services, TrialTask
from skillup.results import CommandRecord, Ending
from skillup.spec.command_rule import CommandHolds


def run_commands(task: TrialTask, services: Services, workspace: Path, ending: Ending) -> tuple[CommandRecord, ...]:
    """Runs every command of the case once; none after a fault, because then nothing is judged by it.

    Raises:
        Cancelled: the user stopped the run.
    """
    if ending.how == "error":
        return ()
    rules = [rule for rule in task.case.all_rules if isinstance(rule, CommandHolds)]
    wanted = dict.fromkeys((rule.run, rule.timeout_seconds) for rule in rules)
    return tuple(
        run_on_copy(
            CommandRecord(run=run, timeout_seconds=seconds),
            partial(_command, run, task, services),
            task,
            services,
            workspace,
        )
        for run, seconds in wanted
    )


def _command(run: str, task: TrialTask, services: Services, root: TrialRoot) -> Command:
    variables = child_variables(services.host, root, task.environment.env)
    return Command(("/bin/sh", "-c", run), variables, root.workspace)

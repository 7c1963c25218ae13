"""A run that was planned, once or several times: trials, tables, reports, and the exit code."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillup.cli.interrupts import INTERRUPTED
from skillup.cli.output import show, show_iterations, write_reports

if TYPE_CHECKING:
    from skillup.environments.process import Nursery
    from skillup.execution.plan import Plan
    from skillup.execution.task import TrialTask
    from skillup.results import RunResult
    from skillup.spec.suite import Suite

BROKEN_OFF = 3
"""Exit code when the run directory could not be written any more: a run with holes is no measurement."""


@dataclass(frozen=True)
class Work:
    """What a run needs. `options` are those of the command; `expected` how its cases are to end, if that was given."""

    suites: Sequence[Suite]
    plan: Plan
    nursery: Nursery
    stopping: threading.Event
    host: Mapping[str, str]
    options: Mapping[str, Any]
    expected: Mapping[str, str] | None

    @property
    def as_json(self) -> bool:
        """Whether stdout is for a machine."""
        return bool(self.options["as_json"])


@dataclass(frozen=True)
class Outcome:
    """One run that is over. `run` is None when it was broken off, `goes_on` whether another may follow."""

    directory: Path
    run: RunResult | None
    code: int
    goes_on: bool


def once(work: Work) -> int:
    """Runs everything once, and gives the exit code.

    Raises:
        RunDirectoryError: there is no run directory to be had; nothing was run.
    """
    from skillup.execution.directories import new_directory

    return _run(work, new_directory(work.suites[0].name, work.options["output_dir"])).code


def iterate(work: Work, times: int) -> int:
    """Runs everything several times, each in a directory of its own; the exit code is the worst of theirs.

    Raises:
        RunDirectoryError: there is no run directory to be had.
    """
    from skillup.errors import RunDirectoryError
    from skillup.execution.directories import new_directories
    from skillup.judging.stability import stability_of
    from skillup.results import Iterations

    outcomes: list[Outcome] = []
    codes: list[int] = []
    try:
        for directory in new_directories(work.suites[0].name, work.options["output_dir"], times):
            click.echo(f"iteration {len(outcomes) + 1} of {times}: {directory}", err=work.as_json)
            outcomes.append(_run(work, directory, shows=not work.as_json))
            if not work.as_json:
                click.echo()
            if not outcomes[-1].goes_on:
                break
    except RunDirectoryError as error:
        if not outcomes:
            raise
        click.echo(f"no further iteration: {error.message}\n{error.hint}", err=True)
        codes.append(BROKEN_OFF)
    if len(outcomes) < times and work.stopping.is_set():
        click.echo(f"interrupted: {len(outcomes)} of {times} iterations were run", err=True)
        codes.append(INTERRUPTED)
    ended = [(str(outcome.directory), outcome.run) for outcome in outcomes if outcome.run is not None]
    runs = tuple(run for _, run in ended)
    found = Iterations(
        iterations_planned=times,
        directories=tuple(directory for directory, _ in ended),
        cases=stability_of(runs),
        runs=runs,
    )
    show_iterations(found, as_json=work.as_json)
    return max([*codes, *(outcome.code for outcome in outcomes)])  # 130 beats 3, 3 beats 1


def carry_out(work: Work, directory: Path) -> RunResult | None:
    """Runs everything once in this directory, and shows no more than progress.

    None when the results could not be kept; a run that the user stopped has fewer results than trials.
    """
    from skillup.cli.progress import open_progress
    from skillup.errors import RunDirectoryError
    from skillup.execution import rundir
    from skillup.execution.runner import run_all
    from skillup.execution.services import open_services

    rundir.write_manifest(directory, work.suites, work.plan, rundir.command_line(), datetime.now(UTC))
    tasks = work.plan.below(directory)
    try:
        with ExitStack() as stack, open_progress(len(tasks)) as tell:
            services = stack.enter_context(open_services(work.nursery, work.stopping, work.host, tell))
            results = run_all(tasks, services, work.plan.parallelism)
        return rundir.finish(directory, results, "interrupted" if len(results) < len(tasks) else "finished")
    except (RunDirectoryError, OSError) as error:
        _say_broken_off(directory, tasks, error)
        return None


def _run(work: Work, directory: Path, *, shows: bool = True) -> Outcome:
    """Runs everything once in this directory, shows it, and writes the reports."""
    from skillup.judging.totals import exit_code

    run = carry_out(work, directory)
    if run is None:
        return Outcome(directory, None, BROKEN_OFF, goes_on=False)
    if shows:
        show(run, as_json=work.as_json, verbosity=work.options["verbose"])
    click.echo(f"report: {directory / 'result.json'}", err=work.as_json)
    asked = [name for suite in work.suites for name in suite.formats]
    write_reports(directory, run, [*work.options["formats"], *asked], quiet=work.as_json)
    if run.status == "interrupted":
        ended = len(run.case_results)
        click.echo(f"interrupted: {ended} of {run.trials_planned} trials ended and are on disk", err=True)
        code = exit_code(run.totals, interrupted=True)
    else:
        code = exit_code(run.totals) if work.expected is None else _hold_against(run, work)
    return Outcome(directory, run, code, goes_on=not work.stopping.is_set())


def _say_broken_off(directory: Path, tasks: tuple[TrialTask, ...], error: Exception) -> None:
    """Says that a run cannot go on because its results cannot be kept, and what there is."""
    ended = sum((task.folder / "result.json").exists() for task in tasks)
    click.echo(f"the run was stopped: {error}\nmake room, or run again with another --output-dir", err=True)
    shown = f"; `skillup report {directory}` shows them" if ended else ""
    click.echo(f"{ended} of {len(tasks)} trials had ended{shown}", err=True)


def _hold_against(run: RunResult, work: Work) -> int:
    from skillup.reports.expected import mismatches

    wrong = mismatches(run.case_results, work.expected or {})
    for line in wrong:
        click.echo(f"unexpected: {line}", err=True)
    if not wrong:
        click.echo(f"all {len(run.case_results)} results are as expected", err=work.as_json)
    return 1 if wrong else 0

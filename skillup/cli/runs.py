"""A run that was planned, once or several times: trials, tables, reports, and the exit code."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from skillup.cli.interrupts import INTERRUPTED, mute_dead_ends
from skillup.cli.output import show, show_iterations, write_reports

if TYPE_CHECKING:
    from skillup.environments.process import Nursery
    from skillup.execution.budget import RunBudget
    from skillup.execution.journal import Journal
    from skillup.execution.plan import Plan
    from skillup.results import RunManifest, RunResult, TrialResult
    from skillup.spec.suite import Suite

BROKEN_OFF = 3
"""Exit code when the run directory could not be written any more: a run with holes is no measurement."""


@dataclass(frozen=True)
class Work:
    """What a run needs. `options` are those of the command; `expected` how its cases are to end, if that was given.

    `mark` is what all its processes carry (`skillup.environments.survivors`).
    """

    suites: Sequence[Suite]
    plan: Plan
    nursery: Nursery
    stopping: threading.Event
    host: Mapping[str, str]
    options: Mapping[str, Any]
    expected: Mapping[str, str] | None
    mark: int | None
    budget: RunBudget

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

    return _fresh(work, new_directory(work.suites[0].name, work.options["output_dir"])).code


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
            number = len(outcomes) + 1
            click.echo(f"iteration {number} of {times}: {directory}", err=work.as_json)
            outcomes.append(_fresh(work, directory, number, times))
            if not work.as_json:
                click.echo()
            if not outcomes[-1].goes_on:
                break
    except RunDirectoryError as error:
        if not outcomes:
            raise
        click.echo(f"no further iteration: {error.message}\n{error.hint}", err=True)
        codes.append(BROKEN_OFF)
    reached = work.budget.reached or (outcomes[-1].run.stopped_by if outcomes[-1].run else "")
    if len(outcomes) < times and reached:
        click.echo(f"no further iteration: {reached}", err=True)
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


@contextmanager
def fresh(work: Work, directory: Path, iteration: int = 1, iterations: int = 1) -> Iterator[RunResult | None]:
    """Runs everything in a new directory, which is held meanwhile, and gives what `carry_out` does.

    Raises:
        RunDirectoryError: it cannot be written, or another run has taken it meanwhile; nothing was run.
    """
    from skillup.execution import rundir
    from skillup.execution.directories import held
    from skillup.execution.journal import JournalFile
    from skillup.execution.manifest import Started, masker_of

    started = Started(tuple(rundir.command_line()), datetime.now(UTC), iteration, iterations)
    with held(directory, "skillup run"):
        manifest = rundir.begin(directory, work.suites, work.plan, started)
        with JournalFile(directory, masker_of(work.plan)) as journal:
            journal.write("run_started", pid=os.getpid(), mark=work.mark, command=started.command)
            run = carry_out(work, directory, manifest, journal, {})
        yield run


def _fresh(work: Work, directory: Path, iteration: int = 1, iterations: int = 1) -> Outcome:
    """Runs everything in a new directory, and shows it.

    Raises:
        RunDirectoryError: as `fresh`.
    """
    with fresh(work, directory, iteration, iterations) as run:
        if run is None:
            return Outcome(directory, None, BROKEN_OFF, goes_on=False)
        code = conclude(work, directory, run, shows=iterations == 1 or not work.as_json)
    over = run.status == "stopped" or work.stopping.is_set() or bool(work.budget.reached)
    return Outcome(directory, run, code, goes_on=not over)


def carry_out(
    work: Work, directory: Path, manifest: RunManifest, journal: Journal, ended: Mapping[str, TrialResult]
) -> RunResult | None:
    """Runs every trial that is not among those that have `ended`, and shows no more than progress.

    None when the results could not be kept; a run that was stopped has fewer results than trials.
    """
    from skillup.cli.progress import open_progress
    from skillup.errors import RunDirectoryError
    from skillup.execution import rundir
    from skillup.execution.runner import run_all
    from skillup.execution.saved import ended_attempts, torn_attempts
    from skillup.execution.services import open_services

    tasks = tuple(task for task in work.plan.below(directory) if str(task.folder.relative_to(directory)) not in ended)
    try:
        with ExitStack() as stack, open_progress(len(tasks)) as tell:
            services = stack.enter_context(
                open_services(work.nursery, work.stopping, work.host, tell, journal, budget=work.budget)
            )
            for result in ended.values():
                for tried in (*(result.attempt_results or (result,)), *result.torn_attempts):
                    work.budget.add(directory / tried.folder, tried, earlier=True)
                for session in result.session_ids:
                    services.sessions.owner(session, directory / result.folder)
            for task in tasks:  # what was spent on a trial without an end was spent, too
                for torn in torn_attempts(task.folder):
                    work.budget.add(directory / torn.folder, torn, earlier=True)
                for folder, attempt in ended_attempts(task.folder).items():
                    work.budget.add(folder, attempt, earlier=True)
            new = run_all(tasks, services, work.plan.parallelism)
        results = rundir.in_order(manifest, (*ended.values(), *new))
        reached = work.budget.reached or services.pools.closed
        how = _how_it_ended(work, reached, whole=len(results) == len(manifest.trials))
        run = rundir.finish(directory, results, *how, changed_files=work.plan.inputs.changed())
        journal.write("run_ended", status=run.status)
    except (RunDirectoryError, OSError) as error:
        _say_broken_off(directory, manifest, error)
        with suppress(RunDirectoryError):
            journal.write("run_ended", status="stopped")
        return None
    return run


def _how_it_ended(
    work: Work, reached: str, *, whole: bool
) -> tuple[Literal["finished", "interrupted", "stopped"], str]:
    """The status of a run, and what stopped it, if it was a budget or a provider's limit, which are `reached`."""
    if whole:
        return "finished", ""
    return ("stopped", reached) if reached and not work.stopping.is_set() else ("interrupted", "")


def conclude(work: Work, directory: Path, run: RunResult, *, shows: bool = True) -> int:
    """Shows a run that is over, writes its reports, and gives its exit code."""
    from skillup.judging.totals import exit_code

    if work.stopping.is_set():
        mute_dead_ends()
    if shows:
        show(run, as_json=work.as_json, verbosity=work.options["verbose"])
    click.echo(f"report: {directory / 'result.json'}", err=work.as_json)
    asked = [name for suite in work.suites for name in suite.formats]
    write_reports(directory, run, [*work.options["formats"], *asked], quiet=work.as_json)
    if run.status == "finished":
        return exit_code(run.totals) if work.expected is None else _hold_against(run, work)
    ended, total = len(run.case_results), run.trials_planned
    if run.status == "stopped":
        click.echo(f"stopped by {run.stopped_by}; {total - ended} of {total} trials were not run", err=True)
        click.echo(f"`skillup run --resume {directory}` goes on{_how_to_go_on(work, run)}", err=True)
        return exit_code(run.totals, stopped=True)
    click.echo(f"interrupted: {ended} of {total} trials ended and are on disk", err=True)
    click.echo(f"`skillup run --resume {directory}` goes on", err=True)
    return exit_code(run.totals, interrupted=True)


def _how_to_go_on(work: Work, run: RunResult) -> str:
    """How a run that was stopped goes on when it is resumed."""
    if not work.budget.reached:
        return " then"  # the provider's limit is over
    return " without knowing that" if run.stopped_by == work.budget.unknown else " under a larger budget"


def _say_broken_off(directory: Path, manifest: RunManifest, error: Exception) -> None:
    """Says that a run cannot go on because its results cannot be kept, and what there is."""
    ended = sum((directory / name / "result.json").exists() for name in manifest.trials)
    click.echo(f"the run was stopped: {error}", err=True)
    click.echo(f"make room, and go on with `skillup run --resume {directory}`", err=True)
    shown = f"; `skillup report {directory}` shows them" if ended else ""
    click.echo(f"{ended} of {len(manifest.trials)} trials had ended{shown}", err=True)


def _hold_against(run: RunResult, work: Work) -> int:
    from skillup.reports.expected import mismatches

    wrong = mismatches(run.case_results, work.expected or {})
    for line in wrong:
        click.echo(f"unexpected: {line}", err=True)
    if not wrong:
        click.echo(f"all {len(run.case_results)} results are as expected", err=work.as_json)
    return 1 if wrong else 0

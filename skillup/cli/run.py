"""`skillup run`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillup.cli.common import agent_option, case_filters, expected_errors, format_option, suite_arguments
from skillup.cli.interrupts import INTERRUPTED, Interrupts

if TYPE_CHECKING:
    from skillup.execution.task import TrialTask
    from skillup.results import RunResult
    from skillup.spec.suite import Suite

BROKEN_OFF = 3
"""Exit code when the run directory could not be written any more: a run with holes is no measurement."""


@click.command("run")
@suite_arguments
@case_filters
@agent_option("An agent profile; may be repeated.")
@click.option("--model", metavar="NAME", help="Another model than the profile's; `scripted` plays the case's script.")
@click.option(
    "--fallback",
    type=click.Choice(["single_shot"]),
    help="Let agents that cannot resume a session get all turns of a case in one message.",
)
@click.option("--parallelism", type=click.IntRange(1, 256), metavar="N", help="Trials at once (default: the suite's).")
@click.option("--output-dir", type=click.Path(path_type=Path), metavar="DIR", help="The run directory; must be empty.")
@click.option(
    "--keep",
    type=click.Choice(["failed", "all", "none"]),
    default="failed",
    show_default=True,
    help="Whose workspaces to keep.",
)
@click.option(
    "--expected",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Exit 0 exactly when every case ends as FILE says (`case: STATUS`).",
)
@format_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("-v", "--verbose", count=True, help="Show every check (-v) and every turn (-vv).")
def command(paths: tuple[Path, ...], allowed: tuple[Path, ...], **options: Any) -> None:
    """Run cases on an agent and judge them.

    PATH is a suite (eval.yaml or its folder), a case file, or a folder of cases; by default evals/eval.yaml,
    eval.yaml or cases/.
    """
    with Interrupts() as interrupts:
        try:
            with expected_errors(), ExitStack() as stack:
                code = _run(paths, allowed, options, interrupts, stack)
        except KeyboardInterrupt:
            click.echo("interrupted: nothing was run", err=True)
            code = INTERRUPTED
    sys.exit(code)


def _run(
    paths: tuple[Path, ...],
    allowed: tuple[Path, ...],
    options: Mapping[str, Any],
    interrupts: Interrupts,
    stack: ExitStack,
) -> int:
    from skillup.cli.progress import open_progress
    from skillup.environments.host import sweep, trial_base
    from skillup.environments.process import Nursery
    from skillup.errors import RunDirectoryError
    from skillup.execution import directories, rundir
    from skillup.execution.plan import Choices, make_plan
    from skillup.execution.runner import run_all
    from skillup.execution.services import open_services
    from skillup.judging.totals import exit_code
    from skillup.loading.native import load_suites
    from skillup.loading.selection import select

    host = dict(os.environ)
    expected = _read_expected(options["expected"])
    loaded = load_suites(paths, allowed)
    suites = select(loaded, options["include"], options["exclude"])
    if expected is not None:
        left_out = _ids(loaded) - _ids(suites)
        expected = {name: wanted for name, wanted in expected.items() if name not in left_out}
    nursery = stack.enter_context(Nursery())
    choices = Choices(options["agents"], options["model"], options["parallelism"], options["keep"], options["fallback"])
    plan = make_plan(suites, choices, host, nursery)
    for warning in plan.warnings:
        click.echo(f"warning: {warning}", err=True)
    for root in sweep(trial_base(host)):
        click.echo(f"warning: {root}, of a run that died, cannot be removed", err=True)
    interrupts.run_begins(nursery.kill)
    started = datetime.now(UTC)
    directories.private_umask()
    directory = directories.new_directory(suites[0].name, options["output_dir"])
    rundir.write_manifest(directory, suites, plan, rundir.command_line(), started)
    tasks = plan.below(directory)
    try:
        with open_progress(len(tasks)) as tell:
            services = stack.enter_context(open_services(nursery, interrupts.stopping, host, tell))
            results = run_all(tasks, services, plan.parallelism)
        interrupted = len(results) < len(tasks)
        run = rundir.finish(directory, results, "interrupted" if interrupted else "finished")
    except (RunDirectoryError, OSError) as error:
        return _broken_off(directory, tasks, error)
    show(run, as_json=options["as_json"], verbosity=options["verbose"])
    click.echo(f"report: {directory / 'result.json'}", err=bool(options["as_json"]))
    asked = [name for suite in suites for name in suite.formats]
    write_reports(directory, run, [*options["formats"], *asked], quiet=options["as_json"])
    if interrupted:
        click.echo(f"interrupted: {len(results)} of {len(tasks)} trials ended and are on disk", err=True)
        return exit_code(run.totals, interrupted=True)
    return exit_code(run.totals) if expected is None else _hold_against(run, expected)


def _broken_off(directory: Path, tasks: tuple[TrialTask, ...], error: Exception) -> int:
    """Says that a run cannot go on because its results cannot be kept, and what there is."""
    ended = sum((task.folder / "result.json").exists() for task in tasks)
    click.echo(f"the run was stopped: {error}\nmake room, or run again with another --output-dir", err=True)
    shown = f"; `skillup report {directory}` shows them" if ended else ""
    click.echo(f"{ended} of {len(tasks)} trials had ended{shown}", err=True)
    return BROKEN_OFF


def show(run: RunResult, *, as_json: bool, verbosity: int) -> None:
    """Prints a run on stdout: the table, or JSON."""
    if as_json:
        click.echo(run.model_dump_json(indent=2))
        return
    from rich.console import Console

    from skillup.reports.console import print_run

    print_run(run, Console(), verbosity=verbosity)


def write_reports(directory: Path, run: RunResult, formats: Sequence[str], *, quiet: bool) -> None:
    """Writes the reports that are asked for, each once, and names them; on stderr where stdout is for a machine."""
    from skillup.execution.store import write_atomically
    from skillup.reports.formats import REPORTS

    for name in dict.fromkeys(formats):
        if name in REPORTS:
            file, make = REPORTS[name]
            write_atomically(directory / file, make(run))
            click.echo(f"report: {directory / file}", err=quiet)


def _ids(suites: Sequence[Suite]) -> set[str]:
    return {case.id for suite in suites for case in suite.cases}


def _read_expected(path: Path | None) -> dict[str, str] | None:
    if path is None:
        return None
    from skillup.errors import InputError
    from skillup.loading.yamlfile import read_yaml

    document = read_yaml(path, str(path))
    data = document.data
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise InputError([document.fault((), "expected lines of the form `case: STATUS` or `case: STATUS code`")])
    return data


def _hold_against(run: RunResult, expected: dict[str, str]) -> int:
    from skillup.reports.expected import mismatches

    wrong = mismatches(run.case_results, expected)
    for line in wrong:
        click.echo(f"unexpected: {line}", err=True)
    if not wrong:
        click.echo(f"all {len(run.case_results)} results are as expected")
    return 1 if wrong else 0

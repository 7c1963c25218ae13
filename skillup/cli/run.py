"""`skillup run`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillup.cli.common import expected_errors, suite_arguments

if TYPE_CHECKING:
    from skillup.results import RunResult


@click.command("run")
@suite_arguments
@click.option("--agent", "agents", multiple=True, metavar="NAME|FILE", help="An agent profile; may be repeated.")
@click.option("--model", metavar="NAME", help="Another model than the profile's; `scripted` plays the case's script.")
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
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("-v", "--verbose", count=True, help="Show every check (-v) and every turn (-vv).")
def command(paths: tuple[Path, ...], allowed: tuple[Path, ...], **options: Any) -> None:
    """Run cases on an agent and judge them.

    PATH is a suite (eval.yaml or its folder), a case file, or a folder of cases; by default evals/eval.yaml,
    eval.yaml or cases/.
    """
    with expected_errors(), ExitStack() as stack:
        code = _run(paths, allowed, options, stack)
    sys.exit(code)


def _run(paths: tuple[Path, ...], allowed: tuple[Path, ...], options: Mapping[str, Any], stack: ExitStack) -> int:
    from skillup.cli.progress import open_progress  # noqa: PLC0415 - a wrong option must not wait for all this
    from skillup.environments.process import Nursery  # noqa: PLC0415
    from skillup.execution import rundir  # noqa: PLC0415
    from skillup.execution.plan import Choices, make_plan  # noqa: PLC0415
    from skillup.execution.runner import run_all  # noqa: PLC0415
    from skillup.execution.services import open_services  # noqa: PLC0415
    from skillup.loading.native import load_suites  # noqa: PLC0415
    from skillup.judging.totals import exit_code  # noqa: PLC0415

    host = dict(os.environ)
    expected = _read_expected(options["expected"])
    suites = load_suites(paths, allowed)
    nursery = stack.enter_context(Nursery())
    cancelled = stack.enter_context(_interrupts(nursery.close))
    choices = Choices(options["agents"], options["model"], options["parallelism"], options["keep"])
    plan = make_plan(suites, choices, host, nursery)
    for warning in plan.warnings:
        click.echo(f"warning: {warning}", err=True)
    started = datetime.now(UTC)
    rundir.private_umask()
    directory = rundir.new_directory(suites[0].name, options["output_dir"])
    rundir.write_manifest(directory, suites, plan, rundir.command_line(), started)
    with open_progress(len(plan.tasks)) as tell:
        services = stack.enter_context(open_services(nursery, cancelled, host, tell))
        results = run_all(plan.below(directory), services, plan.parallelism)
    interrupted = cancelled.is_set()
    run = rundir.finish(directory, results, "interrupted" if interrupted else "finished")
    show(run, as_json=options["as_json"], verbosity=options["verbose"])
    click.echo(f"report: {directory / 'result.json'}", err=bool(options["as_json"]))
    if interrupted:
        click.echo(f"interrupted: {len(results)} of {len(plan.tasks)} trials ended and are on disk", err=True)
        return exit_code(run.totals, interrupted=True)
    return exit_code(run.totals) if expected is None else _hold_against(run, expected)


def show(run: RunResult, *, as_json: bool, verbosity: int) -> None:
    """Prints a run on stdout: the table, or JSON."""
    if as_json:
        click.echo(run.model_dump_json(indent=2))
        return
    from rich.console import Console  # noqa: PLC0415 - not needed for JSON

    from skillup.reports.console import print_run  # noqa: PLC0415

    print_run(run, Console(), verbosity=verbosity)


def _read_expected(path: Path | None) -> dict[str, str] | None:
    if path is None:
        return None
    from skillup.errors import InputError  # noqa: PLC0415
    from skillup.loading.yamlfile import read_yaml  # noqa: PLC0415

    document = read_yaml(path, str(path))
    data = document.data
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise InputError([document.fault((), "expected lines of the form `case: STATUS` or `case: STATUS code`")])
    return data


def _hold_against(run: RunResult, expected: dict[str, str]) -> int:
    from skillup.reports.expected import mismatches  # noqa: PLC0415

    wrong = mismatches(run.case_results, expected)
    for line in wrong:
        click.echo(f"unexpected: {line}", err=True)
    if not wrong:
        click.echo(f"all {len(run.case_results)} results are as expected")
    return 1 if wrong else 0


@contextmanager
def _interrupts(end_at_once: Any) -> Iterator[threading.Event]:
    """Sets the event at the first ^C or SIGTERM; at the second, ends everything and leaves at once."""
    cancelled = threading.Event()

    def handle(_number: int, _frame: object) -> None:
        if cancelled.is_set():
            end_at_once()
            os._exit(130)
        cancelled.set()
        os.write(2, b"\nstopping: running turns are ended, finished trials stay (again: at once)\n")

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield cancelled
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)

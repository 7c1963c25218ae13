"""`skillup conformance`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from skillup.cli.common import expected_errors
from skillup.cli.interrupts import INTERRUPTED, Interrupts
from skillup.cli.runs import BROKEN_OFF, Work, fresh

if TYPE_CHECKING:
    from skillup.conformance.scenario import Scenario


@click.command("conformance")
@click.option("--only", multiple=True, metavar="NAME", help="Only scenarios, or failures, of this name; a glob.")
@click.option("--parallelism", type=click.IntRange(1, 256), default=16, show_default=True, help="Trials at once.")
@click.option("--output-dir", type=click.Path(path_type=Path), metavar="DIR", help="Keep the run here; must be empty.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(only: tuple[str, ...], parallelism: int, output_dir: Path | None, *, as_json: bool) -> None:
    """Hold skillup against the failures of real agent CLIs, played by a fake one.

    Every scenario is a case that runs as any other does, on a program that does what some CLI was seen to do. The exit
    code is 0 when all end as they must, and 1 when one does not.
    """
    with Interrupts() as interrupts:
        try:
            with expected_errors(), ExitStack() as stack:
                from skillup.conformance.scenario import choose, load_scenarios

                scenarios = choose(load_scenarios(), only)
                code = _run(scenarios, parallelism, output_dir, as_json=as_json, interrupts=interrupts, stack=stack)
        except KeyboardInterrupt:
            click.echo("interrupted: nothing was run", err=True)
            code = INTERRUPTED
    sys.exit(code)


def _run(
    scenarios: tuple[Scenario, ...],
    parallelism: int,
    kept: Path | None,
    *,
    as_json: bool,
    interrupts: Interrupts,
    stack: ExitStack,
) -> int:
    from skillup import __version__
    from skillup.conformance.outcome import ConformanceResult, outcome_of
    from skillup.conformance.suites import PARENT_AGENT, write_suites
    from skillup.environments.host import sweep, trial_base
    from skillup.environments.process import Nursery
    from skillup.environments.survivors import mark_this_process
    from skillup.execution import directories
    from skillup.execution.budget import RunBudget
    from skillup.execution.plan import Choices, make_plan
    from skillup.loading.native import load_suites

    started = time.monotonic()
    directories.private_umask()
    host = {**os.environ, **PARENT_AGENT}
    place = stack.enter_context(_place(kept))
    suites = load_suites(write_suites(scenarios, place))
    mark = mark_this_process()
    nursery = stack.enter_context(Nursery())
    plan = make_plan(suites, Choices(parallelism=parallelism, keep="none"), host, nursery)
    sweep(trial_base(host))
    interrupts.run_begins(nursery.kill)
    directory = directories.new_directory("conformance", place / "run")
    work = Work(suites, plan, nursery, interrupts.stopping, host, {}, None, mark, RunBudget(plan.budget))
    run = stack.enter_context(fresh(work, directory))
    if run is None:
        return BROKEN_OFF
    if run.status == "interrupted":
        click.echo("interrupted: not every scenario was run", err=True)
        return INTERRUPTED
    outcomes = tuple(outcome_of(scenario, run.case_results, place) for scenario in scenarios)
    result = ConformanceResult(
        skillup_version=__version__,
        directory=str(directory) if kept else None,
        seconds=round(time.monotonic() - started, 3),
        passed=sum(outcome.ok for outcome in outcomes),
        scenarios=outcomes,
    )
    if as_json:
        click.echo(result.model_dump_json(indent=2))
    else:
        from rich.console import Console

        from skillup.reports.conformance import print_conformance

        print_conformance(result, Console())
    return 0 if result.passed == len(outcomes) else 1


@contextmanager
def _place(kept: Path | None) -> Iterator[Path]:
    """The folder for suites and run: the one to be kept, or one that is gone afterwards."""
    if kept is not None:
        from skillup.execution.directories import new_directory

        yield new_directory("conformance", kept).absolute()
        return
    with TemporaryDirectory(prefix="skillup-conformance-", ignore_cleanup_errors=True) as folder:
        yield Path(os.path.realpath(folder))

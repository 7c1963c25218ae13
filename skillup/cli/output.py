"""What the commands print of runs, and the reports that they write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from skillup.execution.plan import Plan
    from skillup.results import Agreement, Iterations, RunResult, TrialResult


def show(run: RunResult, *, as_json: bool, verbosity: int) -> None:
    """Prints a run on stdout: the table, or JSON."""
    if as_json:
        click.echo(run.model_dump_json(indent=2))
        return
    from rich.console import Console

    from skillup.reports.console import print_run

    print_run(run, Console(), verbosity=verbosity)


def show_iterations(found: Iterations, *, as_json: bool) -> None:
    """Prints how steady the cases are over several runs; as JSON, all runs with it."""
    if as_json:
        click.echo(found.model_dump_json(indent=2))
        return
    from rich.console import Console

    from skillup.reports.overview import print_stability

    print_stability(found.cases, len(found.runs), Console())


def show_agreement(found: Agreement, *, as_json: bool) -> None:
    """Prints how steady a model judges."""
    if as_json:
        click.echo(found.model_dump_json(indent=2))
        return
    from rich.console import Console

    from skillup.reports.agreement import print_agreement

    print_agreement(found, Console())


def show_plan(plan: Plan, suite: str, iterations: int, *, as_json: bool) -> None:
    """Prints what a run would do."""
    from skillup.results import PlannedTrial, RunPlan

    trials = tuple(
        PlannedTrial(
            case_id=task.case.id,
            trial=task.trial,
            agent=task.agent.name,
            engine=task.agent.engine,
            engine_version=task.engine_version,
            model=task.agent.model.name,
            configuration=task.variant,
            would="SKIP" if task.unmet else "ERROR" if task.obstacle else "run",
            code="requires" if task.unmet else task.obstacle.kind if task.obstacle else "",
            reason=task.unmet or (task.obstacle.message if task.obstacle else ""),
            hint=task.obstacle.hint if task.obstacle else "",
        )
        for task in plan.tasks
    )
    whole = RunPlan(suite=suite, parallelism=plan.parallelism, iterations=iterations, trials=trials)
    if as_json:
        click.echo(whole.model_dump_json(indent=2))
        return
    from rich.console import Console

    from skillup.reports.overview import print_plan

    print_plan(whole, Console())


def write_reports(directory: Path, run: RunResult, formats: Sequence[str], *, quiet: bool) -> None:
    """Writes the reports that are asked for, each once, and names them; on stderr where stdout is for a machine."""
    from skillup.execution.store import read_model, write_atomically
    from skillup.reports.formats import REPORTS
    from skillup.results import TrialRecord

    def record_of(result: TrialResult) -> TrialRecord:
        return read_model(directory / result.folder / "record.json", TrialRecord)

    for name in dict.fromkeys(formats):
        if name in REPORTS:
            report = REPORTS[name]
            write_atomically(directory / report.file, report.make(run, record_of))
            click.echo(f"report: {directory / report.file}", err=quiet)

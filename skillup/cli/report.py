"""`skillup report`."""

from __future__ import annotations

from pathlib import Path

import click

from skillup.cli.common import expected_errors, format_option
from skillup.cli.output import show, write_reports


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path))
@format_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("-v", "--verbose", count=True, help="Show every check (-v) and every turn (-vv).")
def command(run: Path, formats: tuple[str, ...], as_json: bool, verbose: int) -> None:
    """Show the results of a run from its saved trials alone; also of one that was interrupted, or is still going on."""
    with expected_errors():
        from skillup.execution import rundir
        from skillup.execution.directories import held

        saved = rundir.saved_run(run)
        show(saved, as_json=as_json, verbosity=verbose)
        if formats:
            with held(run, "skillup report", hint="report on a copy of the run"):
                write_reports(run, saved, formats, quiet=as_json)

"""`skillup report`."""

from __future__ import annotations

from pathlib import Path

import click

from skillup.cli.common import expected_errors


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("-v", "--verbose", count=True, help="Show every check (-v) and every turn (-vv).")
def command(run: Path, as_json: bool, verbose: int) -> None:  # noqa: FBT001 - click passes by name
    """Show the results of a finished or interrupted run, from its saved trials alone."""
    with expected_errors():
        from skillup.cli.run import show  # noqa: PLC0415 - the command line starts without it
        from skillup.execution import rundir  # noqa: PLC0415

        saved = rundir.saved_run(run)
        show(saved, as_json=as_json, verbosity=verbose)
        if saved.status != "finished":
            click.echo(f"this run is {saved.status}: {len(saved.case_results)} trials ended", err=True)

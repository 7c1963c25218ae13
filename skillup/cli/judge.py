"""`skillup judge`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from skillup.cli.common import expected_errors


@click.command("judge")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("-v", "--verbose", count=True, help="Show every check (-v) and every turn (-vv).")
def command(run: Path, as_json: bool, verbose: int) -> None:  # noqa: FBT001 - click passes by name
    """Judge a run again from what it saved. No agent is started; the checks are those that the run was made with."""
    with expected_errors():
        from skillup.cli.run import show  # noqa: PLC0415 - the command line starts without it
        from skillup.execution import rundir  # noqa: PLC0415
        from skillup.execution.grading import grade  # noqa: PLC0415
        from skillup.execution.store import write_json  # noqa: PLC0415
        from skillup.judging.totals import exit_code  # noqa: PLC0415

        for folder in rundir.trial_folders(run):
            grade(folder)
        judged = rundir.saved_run(run)
        write_json(run / "result.json", judged)
        show(judged, as_json=as_json, verbosity=verbose)
    sys.exit(exit_code(judged.totals, interrupted=judged.status == "interrupted"))

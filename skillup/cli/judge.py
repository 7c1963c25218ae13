"""`skillup judge`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from skillup.cli.common import expected_errors
from skillup.cli.output import show
from skillup.errors import RunDirectoryError


@click.command("judge")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("-v", "--verbose", count=True, help="Show every check (-v) and every turn (-vv).")
def command(run: Path, as_json: bool, verbose: int) -> None:
    """Judge a run again from what it saved. No agent is started; the checks are those that the run was made with.

    The exit code is that of the verdicts; 3 also when not every trial of the run has ended.
    """
    with expected_errors():
        from skillup.execution import rundir
        from skillup.execution.attempts import judge_attempts
        from skillup.execution.store import write_json
        from skillup.judging.totals import SOME_ERROR, exit_code

        try:
            for folder in rundir.trial_folders(run):
                judge_attempts(folder)
            judged = rundir.saved_run(run)
            write_json(run / "result.json", judged)
        except OSError as error:
            message = f"the verdicts cannot be written: {error.filename}: {error.strerror}"
            raise RunDirectoryError(message, hint="judge a copy of the run that you may write to") from error
        show(judged, as_json=as_json, verbosity=verbose)
    whole = len(judged.case_results) == judged.trials_planned
    sys.exit(exit_code(judged.totals) if whole else SOME_ERROR)

"""`skillup judge`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillup.cli.common import expected_errors
from skillup.cli.interrupts import INTERRUPTED
from skillup.cli.output import show
from skillup.errors import RunDirectoryError

if TYPE_CHECKING:
    from skillup.execution.criteria import Ask


@click.command("judge")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--ask",
    "how",
    type=click.Choice(["saved", "missing", "all"]),
    default="saved",
    show_default=True,
    help="What the model is asked: nothing, the criteria without a verdict, or all of them anew.",
)
@click.option("--judge-model", metavar="[PROVIDER/]NAME", help="The model to ask; `local` needs no key.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("-v", "--verbose", count=True, help="Show every check (-v) and every turn (-vv).")
def command(run: Path, how: Ask, judge_model: str | None, as_json: bool, verbose: int) -> None:
    """Judge a run again from what it saved. No agent is started; the checks are those that the run was made with.

    What a model said about criteria is taken from the run, too, unless --ask says otherwise; then the earlier
    verdicts are kept beside the new ones.

    The exit code is that of the verdicts; 3 also when not every trial of the run has ended.
    """
    with expected_errors():
        from skillup.execution import rundir
        from skillup.execution.attempts import judge_attempts
        from skillup.execution.judges import JudgeChoice, steps_of
        from skillup.execution.store import write_json
        from skillup.judging.totals import SOME_ERROR, exit_code

        if judge_model is not None and how == "saved":
            raise click.UsageError("--judge-model asks a model: say --ask missing, or --ask all")
        folders = rundir.trial_folders(run)
        try:
            for folder, step in zip(folders, steps_of(folders, how, JudgeChoice(judge_model), os.environ), strict=True):
                judge_attempts(folder, step)
            judged = rundir.saved_run(run)
            write_json(run / "result.json", judged)
        except OSError as error:
            message = f"the verdicts cannot be written: {error.filename}: {error.strerror}"
            raise RunDirectoryError(message, hint="judge a copy of the run that you may write to") from error
        except KeyboardInterrupt:
            click.echo("interrupted: the trials that were judged before are saved", err=True)
            sys.exit(INTERRUPTED)
        show(judged, as_json=as_json, verbosity=verbose)
    whole = len(judged.case_results) == judged.trials_planned
    sys.exit(exit_code(judged.totals) if whole else SOME_ERROR)

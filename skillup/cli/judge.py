"""`skillup judge`."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillup.cli.common import expected_errors
from skillup.cli.interrupts import INTERRUPTED, Interrupts
from skillup.cli.output import show, show_agreement
from skillup.errors import Cancelled, RunDirectoryError

if TYPE_CHECKING:
    from skillup.execution.criteria import Ask

COPY = "judge a copy of the run that you may write to"


@click.command("judge")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--ask",
    "how",
    type=click.Choice(["saved", "missing", "all"]),
    help="What the model is asked: nothing (the default), the criteria without a verdict (the default with --judge), "
    "or all of them anew.",
)
@click.option("--judge-model", metavar="[PROVIDER/]NAME", help="The model to ask; `local` needs no key.")
@click.option("--judge", type=click.Path(path_type=Path), metavar="FILE", help="Judge by the `judge:` of this file.")
@click.option("--only", metavar="CASE[/JUDGE]", help="Only cases that match this glob, or one of their several judges.")
@click.option(
    "--agreement",
    type=click.IntRange(2, 100),
    metavar="N",
    help="Ask all criteria N times and show how far the answers agree; verdicts stay as they are.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("-v", "--verbose", count=True, help="Show every check (-v) and every turn (-vv).")
def command(
    run: Path,
    *,
    how: Ask | None,
    judge_model: str | None,
    judge: Path | None,
    only: str | None,
    agreement: int | None,
    as_json: bool,
    verbose: int,
) -> None:
    """Judge a run again from what it saved. No agent is started but one that judges; the checks are those of the run.

    --judge FILE judges by another judge. What a model said about criteria is taken from the run, too, unless --ask
    says otherwise. Verdicts that are replaced are kept beside the new ones.

    The exit code is that of the verdicts; 3 also when not every trial of the run has ended.
    """
    with Interrupts() as interrupts, ExitStack() as stack, expected_errors():
        from skillup.environments.process import Nursery
        from skillup.execution import rundir
        from skillup.execution.again import Again, trials_again
        from skillup.execution.agreement import measure
        from skillup.execution.attempts import judge_attempts
        from skillup.execution.directories import held
        from skillup.execution.services import open_services
        from skillup.execution.store import write_json
        from skillup.judging.totals import SOME_ERROR, exit_code

        if agreement is not None and (how is not None or judge is not None):
            raise click.UsageError("--agreement measures the judge of the run: leave --ask and --judge out")
        how = how or ("all" if agreement else "missing" if judge else "saved")
        if judge_model is not None and how == "saved":
            raise click.UsageError("--judge-model asks a model: say --ask missing, or --ask all")
        nursery = stack.enter_context(Nursery())
        services = stack.enter_context(open_services(nursery, interrupts.stopping, dict(os.environ), lambda _: None))
        trials = trials_again(run, Again(how, judge_model, judge, only), services)
        interrupts.run_begins(nursery.kill)
        try:
            if agreement is not None:
                show_agreement(measure(trials, agreement), as_json=as_json)
                return
            stack.enter_context(held(run, "skillup judge", hint=COPY, writes=False))
            for trial in trials:
                services.pause(0)  # whoever judges by rules alone waits for nothing that notices a stop
                judge_attempts(trial.folder, trial.step, trial.case)
            judged = rundir.saved_run(run)
            write_json(run / "result.json", judged)
        except OSError as error:
            message = f"the verdicts cannot be written: {error.filename}: {error.strerror}"
            raise RunDirectoryError(message, hint=COPY) from error
        except Cancelled:
            click.echo("interrupted: the trials that were judged before are saved", err=True)
            sys.exit(INTERRUPTED)
        show(judged, as_json=as_json, verbosity=verbose)
    whole = len(judged.case_results) == judged.trials_planned
    sys.exit(exit_code(judged.totals) if whole else SOME_ERROR)

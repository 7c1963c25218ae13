"""`skillup run`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillup.cli.common import agent_option, case_filters, expected_errors, format_option, suite_arguments
from skillup.cli.interrupts import INTERRUPTED, Interrupts
from skillup.cli.output import show_plan
from skillup.cli.resuming import Statuses, check_usage, resume, take_up
from skillup.cli.runs import Work, iterate, once

if TYPE_CHECKING:
    from skillup.spec.suite import Suite


_BUDGET = "Begin no further trial once the run has taken N {}."


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
@click.option("--judge-model", metavar="[PROVIDER/]NAME", help="The model that judges criteria; `local` needs no key.")
@click.option("--no-model-judge", is_flag=True, help="Ask no model: criteria stay unknown, and their trials unchecked.")
@click.option("--trials", type=click.IntRange(1, 1000), metavar="N", help="Trials of each case (default: the case's).")
@click.option(
    "--retries",
    type=click.IntRange(0, 10),
    metavar="N",
    help="Try a trial up to N times again after a fault that may pass (default: the suite's).",
)
@click.option("--parallelism", type=click.IntRange(1, 256), metavar="N", help="Trials at once (default: the suite's).")
@click.option(
    "--max-cost-usd", type=click.FloatRange(min=0, min_open=True), metavar="N", help=_BUDGET.format("dollars")
)
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help=_BUDGET.format("tokens"))
@click.option("--max-seconds", type=click.FloatRange(min=0, min_open=True), metavar="N", help=_BUDGET.format("seconds"))
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
@click.option(
    "--iteration",
    type=click.IntRange(0, 1000),
    default=0,
    metavar="N",
    help="Run everything N times, each as an iteration of its own, and say which cases are flaky.",
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="RUN",
    help="Go on with the run in this directory: what ended is not run again.",
)
@click.option("--resume-anyway", is_flag=True, help="With --resume: although suite, agents or CLIs have changed.")
@click.option(
    "--only-status",
    type=Statuses(),
    metavar="STATUS,…",
    help="With --resume: run the trials that ended so once more, too; their results so far are kept.",
)
@click.option("--dry-run", is_flag=True, help="Plan everything, print what would run, and write nothing.")
@format_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("-v", "--verbose", count=True, help="Show every check (-v) and every turn (-vv).")
def command(paths: tuple[Path, ...], allowed: tuple[Path, ...], **options: Any) -> None:
    """Run cases on an agent and judge them.

    PATH is a suite (eval.yaml or its folder), a case file, or a folder of cases; by default evals/eval.yaml,
    eval.yaml or cases/.
    """
    check_usage(options)
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
    from skillup.environments.container_engine import sweep_containers
    from skillup.environments.host import sweep, trial_base
    from skillup.environments.process import Nursery
    from skillup.environments.survivors import mark_this_process
    from skillup.execution import directories
    from skillup.execution.budget import RunBudget
    from skillup.execution.judges import JudgeChoice
    from skillup.execution.plan import Choices, make_plan
    from skillup.loading.native import load_suites
    from skillup.loading.selection import select
    from skillup.spec.budget import Budget

    host = dict(os.environ)
    directories.private_umask()
    unfinished = None
    if options["resume"] is not None:
        unfinished, paths, allowed, options = take_up(paths, allowed, options, stack)
    expected = _read_expected(options["expected"])
    loaded = load_suites(paths, allowed)
    suites = select(loaded, options["include"], options["exclude"])
    if expected is not None:
        left_out = _ids(loaded) - _ids(suites)
        expected = {name: wanted for name, wanted in expected.items() if name not in left_out}
    mark = mark_this_process()
    nursery = stack.enter_context(Nursery())
    judge = JudgeChoice(options["judge_model"], without=options["no_model_judge"])
    budget = Budget(**{name: options[name] for name in Budget.model_fields})
    choices = Choices(
        agents=options["agents"],
        model=options["model"],
        parallelism=options["parallelism"],
        keep=options["keep"],
        fallback=options["fallback"],
        judge=judge,
        trials=options["trials"],
        retries=options["retries"],
        budget=budget,
    )
    plan = make_plan(suites, choices, host, nursery)
    for warning in plan.warnings:
        click.echo(f"warning: {warning}", err=True)
    if options["dry_run"]:
        directories.refuse_used(options["output_dir"])
        plan = unfinished.left_of(plan, options["only_status"] or ()) if unfinished else plan
        show_plan(plan, suites[0].name, options["iteration"] or 1, as_json=options["as_json"])
        return 0
    if any(suite.environment.type == "docker" for suite in suites):
        for line in sweep_containers(trial_base(host), host, nursery):
            click.echo(f"warning: {line}", err=True)
    for root in sweep(trial_base(host)):
        click.echo(f"warning: {root}, of a run that died, cannot be removed", err=True)
    interrupts.run_begins(nursery.kill)
    work = Work(suites, plan, nursery, interrupts.stopping, host, options, expected, mark, RunBudget(plan.budget))
    if unfinished is not None:
        return resume(work, unfinished)
    return iterate(work, options["iteration"]) if options["iteration"] > 1 else once(work)


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

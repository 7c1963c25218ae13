"""`skillup validate`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillup.cli.common import agent_option, case_filters, expected_errors, show_warnings, suite_arguments

if TYPE_CHECKING:
    from skillup.spec.suite import Suite

VACUOUS = 1
"""Exit code when a case would pass without an agent."""


@click.command("validate")
@suite_arguments
@case_filters
@agent_option("Check this agent profile, too.")
@click.option(
    "--vacuity", is_flag=True, help="Also name the cases that would pass with an agent that does nothing; then exit 1."
)
def command(
    *,
    paths: tuple[Path, ...],
    allowed: tuple[Path, ...],
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    agents: tuple[str, ...],
    vacuity: bool,
) -> None:
    """Check suites, cases and agents without running anything; every fault of every file at once.

    Filters are checked as well: they say how many cases a run would take, but every file is read.
    """
    with expected_errors():
        from skillup.execution.agents import agents_of
        from skillup.execution.evaluators import check_evaluators
        from skillup.loading.native import load_suites
        from skillup.loading.selection import select

        suites = load_suites(paths, allowed)
        chosen = select(suites, include, exclude)
        agents_of(suites, agents, None, os.environ, required=False)
        check_evaluators(suites)
    show_warnings(warning for suite in suites for warning in suite.warnings)
    count = sum(len(suite.cases) for suite in suites)
    click.echo(f"{count} case{'' if count == 1 else 's'} in order")
    if include or exclude:
        click.echo(f"{sum(len(suite.cases) for suite in chosen)} of them chosen")
    if vacuity and _show_vacuity(chosen):
        sys.exit(VACUOUS)


def _show_vacuity(suites: Sequence[Suite]) -> int:
    """Prints what holds without an agent; how many cases would pass and do not say that they may."""
    from skillup.execution.vacuity import idle_cases
    from skillup.loading.rendering import printable

    passing = 0
    for idle in idle_cases(suites):
        name, note = idle.case.id, f" ({idle.trouble})" if idle.trouble else ""
        if idle.passes and idle.case.vacuous_ok is None:
            passing += 1
            click.echo(f"{name}: would PASS with an agent that does nothing{note}; these checks hold:")
            _show_texts(idle.all_held)
        elif idle.passes:
            click.echo(f"{name}: may PASS with an agent that does nothing: {printable(str(idle.case.vacuous_ok))}")
        elif idle.case.vacuous_ok is not None:
            click.echo(f"{name}: `vacuous_ok` is not needed: without an agent the case is {idle.verdict.status}{note}")
        elif idle.holding:
            click.echo(f"{name}: these checks hold before the agent has done anything{note}:")
            _show_texts(idle.holding)
    click.echo(f"{passing} would PASS with an agent that does nothing")
    return passing


def _show_texts(texts: Iterable[str]) -> None:
    for text in texts:
        click.echo(f"  {text}")

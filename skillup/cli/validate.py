"""`skillup validate`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from skillup.cli.common import agent_option, case_filters, expected_errors, show_warnings, suite_arguments


@click.command("validate")
@suite_arguments
@case_filters
@agent_option("Check this agent profile, too.")
def command(
    paths: tuple[Path, ...],
    allowed: tuple[Path, ...],
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    agents: tuple[str, ...],
) -> None:
    """Check suites, cases and agents without running anything; every fault of every file at once.

    Filters are checked as well: they say how many cases a run would take, but every file is read.
    """
    with expected_errors():
        from skillup.execution.agents import agents_of
        from skillup.loading.native import load_suites
        from skillup.loading.selection import select

        suites = load_suites(paths, allowed)
        chosen = select(suites, include, exclude)
        agents_of(suites, agents, None, os.environ, required=False)
    show_warnings(warning for suite in suites for warning in suite.warnings)
    count = sum(len(suite.cases) for suite in suites)
    click.echo(f"{count} case{'' if count == 1 else 's'} in order")
    if include or exclude:
        click.echo(f"{sum(len(suite.cases) for suite in chosen)} of them chosen")

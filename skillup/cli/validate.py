"""`skillup validate`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from skillup.cli.common import expected_errors, show_warnings, suite_arguments


@click.command("validate")
@suite_arguments
@click.option(
    "--agent", "--engine", "agents", multiple=True, metavar="NAME|FILE", help="Check this agent profile, too."
)
def command(paths: tuple[Path, ...], allowed: tuple[Path, ...], agents: tuple[str, ...]) -> None:
    """Check suites, cases and agents without running anything; every fault of every file at once."""
    with expected_errors():
        from skillup.execution.agents import agents_of
        from skillup.loading.native import load_suites

        suites = load_suites(paths, allowed)
        agents_of(suites, agents, None, os.environ, required=False)
    show_warnings(warning for suite in suites for warning in suite.warnings)
    count = sum(len(suite.cases) for suite in suites)
    click.echo(f"{count} case{'' if count == 1 else 's'} in order")

"""`skillup validate`."""

from __future__ import annotations

from pathlib import Path

import click

from skillup.cli.common import expected_errors, suite_arguments


@click.command("validate")
@suite_arguments
def command(paths: tuple[Path, ...], allowed: tuple[Path, ...]) -> None:
    """Check suites and cases without running anything; every fault of every file at once."""
    with expected_errors():
        from skillup.loading.native import load_suites  # noqa: PLC0415 - the command line starts without it

        suites = load_suites(paths, allowed)
    for warning in [warning for suite in suites for warning in suite.warnings]:
        click.echo(f"warning: {warning}", err=True)
    count = sum(len(suite.cases) for suite in suites)
    click.echo(f"{count} case{'' if count == 1 else 's'} in order")

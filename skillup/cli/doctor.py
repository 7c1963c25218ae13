"""`skillup doctor`."""

from __future__ import annotations

import os
import sys

import click

from skillup.cli.common import expected_errors


@click.command("doctor")
def command() -> None:
    """Show which engines are installed here, whether they could log in, and whether trials can be isolated."""
    with expected_errors():
        from skillup.engines import ENGINES  # noqa: PLC0415 - the command line starts without it
        from skillup.environments.host import ROOT_VARIABLE, instructions_above, trial_base  # noqa: PLC0415
        from skillup.environments.process import Nursery  # noqa: PLC0415
        from skillup.execution.plan import engine_version  # noqa: PLC0415

        host = dict(os.environ)
        with Nursery() as nursery:
            for name, engine in ENGINES.items():
                version, failure = engine_version(engine, {}, host, nursery)
                found = version if failure is None else f"missing: {failure.message}"
                held = [variable for variable in engine.credentials if variable in host]
                key = f"credential in {', '.join(held)}" if held else "no credential (scripted models need none)"
                click.echo(f"{name:<12} {found}\n{'':<12} {key}")
        base = trial_base(host)
        above = instructions_above(base)
        state = f"unusable: {above[0]} lies above it; set {ROOT_VARIABLE}" if above else "ok"
        click.echo(f"{'trial root':<12} {base}: {state}")
        owned = "whole trees are ended" if sys.platform == "linux" else "process groups only (no subreaper here)"
        click.echo(f"{'processes':<12} {owned}")

"""The command line: the only place that prints and exits. Commands are imported when they are called."""

from __future__ import annotations

import importlib

import click

from skillup import __version__

_COMMANDS = {
    "run": "run cases on an agent and judge them",
    "validate": "check suites and cases without running anything",
    "list-cases": "list the cases that a run would run",
    "judge": "judge a finished run again, without any agent",
    "report": "show the results of a finished run",
    "doctor": "what is installed here, and what is missing",
    "conformance": "hold skillup against the failures of real agent CLIs",
}


class _Lazy(click.Group):
    """A group whose commands live in modules of their own, so that `--version` imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"skillup.cli.{cmd_name.replace('-', '_')}")
        command = module.command
        assert isinstance(command, click.Command)  # noqa: S101 - every module of this package defines one
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.command(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="skillup", message="%(prog)s %(version)s")
def main() -> None:
    """Evaluate agent skills over several turns on the real agent CLIs.

    Exit codes: 0 all PASS or SKIP and at least one valid trial; 1 some FAIL; 2 bad input, nothing was run;
    3 some ERROR, or no valid trial at all; 130 interrupted.
    """

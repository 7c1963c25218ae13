"""What the commands share: how errors end a command, and the arguments that name suites."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from skillup.errors import InputError, SkillupError

BAD_INPUT = 2

_F = TypeVar("_F", bound=Callable[..., Any])


@contextmanager
def expected_errors() -> Iterator[None]:
    """Turns what the user can mend into a message on stderr and exit code 2; bugs pass through."""
    try:
        yield
    except InputError as error:
        from skillup.loading.rendering import render_faults

        click.echo(render_faults(error.faults), err=True)
        count = len(error.faults)
        click.echo(f"\n{count} fault{'' if count == 1 else 's'}; nothing was run.", err=True)
        sys.exit(BAD_INPUT)
    except SkillupError as error:
        click.echo(error.message + (f"\n{error.hint}" if error.hint else ""), err=True)
        sys.exit(BAD_INPUT)


def show_warnings(warnings: Iterable[str]) -> None:
    """Prints warnings on stderr, each once and in its order."""
    for warning in dict.fromkeys(warnings):
        click.echo(f"warning: {warning}", err=True)


def suite_arguments(command: _F) -> _F:
    """`[PATH…]` and `--allow-path`, the same for every command that reads suites."""
    path = click.Path(path_type=Path)
    command = click.argument("paths", nargs=-1, type=path, metavar="[PATH]...")(command)
    return click.option(
        "--allow-path", "allowed", multiple=True, type=path, metavar="DIR", help="Let case files refer to DIR, too."
    )(command)


def agent_option(text: str) -> Callable[[_F], _F]:
    """`--agent`, under this name and under that of the public tool."""
    return click.option("--agent", "--engine", "agents", multiple=True, metavar="NAME|FILE", help=text)


def case_filters(command: _F) -> _F:
    """`--include-case-name` and `--exclude-case-name`, the same for every command that takes cases."""
    command = click.option(
        "--exclude-case-name",
        "exclude",
        multiple=True,
        metavar="GLOB",
        help="Leave out cases by their id; may be repeated.",
    )(command)
    return click.option(
        "--include-case-name",
        "include",
        multiple=True,
        metavar="GLOB",
        help="Only cases with such an id; may be repeated.",
    )(command)


def format_option(command: _F) -> _F:
    """`--format`, the same for every command that writes reports."""
    return click.option(
        "--format",
        "formats",
        multiple=True,
        type=click.Choice(["json", "junit", "taskresult", "taskresult_flat", "agentv"]),
        help="A report to write into the run directory; may be repeated. JSON is always written.",
    )(command)

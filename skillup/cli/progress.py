"""Progress on stderr while trials run: a live line on a terminal, a line for each trial elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Column
from rich.text import Text

from skillup.execution.task import Progress
from skillup.execution.waiting import Paused
from skillup.reports.lines import STYLES, say
from skillup.reports.plain import plain

_REASON = 160
_BAR = 20
"""Columns of the bar: narrow, because what is running says more."""


@contextmanager
def open_progress(total: int) -> Iterator[Callable[[Progress | Paused], None]]:
    """A function that trials tell how far they are; safe from any thread."""
    console = Console(stderr=True)
    with _live(console, total) if console.is_terminal else _lines(total) as tell:
        yield tell


@contextmanager
def _lines(total: int) -> Iterator[Callable[[Progress | Paused], None]]:
    lock = threading.Lock()
    width = len(str(total))
    ended = 0

    def tell(progress: Progress | Paused) -> None:
        nonlocal ended
        if isinstance(progress, Paused):
            with lock:
                click.echo(_pause(progress), err=True)
            return
        if progress.status is None:
            return
        with lock:
            ended += 1
            click.echo(f"[{ended:>{width}}/{total}] {progress.status:<5} {_what(progress)}", err=True)

    yield tell


@contextmanager
def _live(console: Console, total: int) -> Iterator[Callable[[Progress | Paused], None]]:
    """One line with what runs now; whatever does not pass is told above it when it ends."""
    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    whole = Column(no_wrap=True, min_width=2 * len(str(total)) + 1)
    columns = (
        MofNCompleteColumn(table_column=whole),
        BarColumn(bar_width=_BAR),
        TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=7)),
        TextColumn("{task.description}", markup=False, table_column=rest),
    )
    running: dict[str, str] = {}
    lock = threading.Lock()
    with Bar(*columns, console=console, transient=True, expand=True) as bar:
        trials = bar.add_task("", total=total)

        def tell(progress: Progress | Paused) -> None:
            with lock:
                if isinstance(progress, Paused):
                    say(bar.console, Text(_pause(progress), style="yellow"))
                elif progress.status is None:
                    running[progress.label] = f"{plain(progress.label, 40)} {progress.turn}/{progress.turns}"
                else:
                    running.pop(progress.label, None)
                    bar.advance(trials)
                    if progress.status != "PASS":
                        label = Text(progress.status, style=STYLES[progress.status])
                        say(bar.console, Text(_what(progress)), label=label, width=6)
                bar.update(trials, description="   ".join(running.values()))

        yield tell


def _pause(paused: Paused) -> str:
    return f"paused until {paused.until:%H:%M:%S}: {paused.kind} on {plain(paused.agent)}; trials that run go on"


def _what(progress: Progress) -> str:
    why = "" if progress.status == "PASS" else f": {plain(progress.reason, _REASON)}"
    return f"{plain(progress.label)}{why}"

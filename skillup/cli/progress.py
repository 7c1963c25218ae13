"""Progress on stderr while trials run: a live line on a terminal, a line for each trial elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from skillup.execution.task import Progress
from skillup.reports.plain import plain


@contextmanager
def open_progress(total: int) -> Iterator[Callable[[Progress], None]]:
    """A function that trials tell how far they are; safe from any thread."""
    console = Console(stderr=True)
    with _live(console, total) if console.is_terminal else _lines(total) as tell:
        yield tell


@contextmanager
def _lines(total: int) -> Iterator[Callable[[Progress], None]]:
    lock = threading.Lock()
    ended = 0

    def tell(progress: Progress) -> None:
        nonlocal ended
        if progress.status is None:
            return
        with lock:
            ended += 1
            why = "" if progress.status == "PASS" else f": {plain(progress.reason, 160)}"
            click.echo(f"[{ended}/{total}] {progress.status:<5} {plain(progress.label)}{why}", err=True)
            sys.stderr.flush()

    yield tell


@contextmanager
def _live(console: Console, total: int) -> Iterator[Callable[[Progress], None]]:
    columns = (MofNCompleteColumn(), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    running: dict[str, str] = {}
    lock = threading.Lock()
    with Bar(*columns, console=console, transient=True) as bar:
        whole = bar.add_task("", total=total)

        def tell(progress: Progress) -> None:
            with lock:
                if progress.status is None:
                    running[progress.label] = f"{plain(progress.label, 40)} {progress.turn}/{progress.turns}"
                else:
                    running.pop(progress.label, None)
                    bar.advance(whole)
                bar.update(whole, description="   ".join(running.values()))

        yield tell

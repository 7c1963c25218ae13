"""Lines on a console: wrapped and indented on a terminal, whole and searchable everywhere else."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from skillup.judging.totals import is_fallback
from skillup.results import Status, TrialResult

STYLES: dict[Status, str] = {
    "PASS": "green",
    "FAIL": "red",
    "ERROR": "magenta",
    "SKIP": "yellow",
    "UNCHECKED": "dim",
}


_PLAINER = str.maketrans("✓✗→·×…", "+x>-x.")
"""What our own signs become where the encoding has none: a check that failed must not look like one that held."""


def shown_status(result: TrialResult) -> str:
    """The status as tables show it, with what must not be overlooked: sent as one message, best of several."""
    status = f"{result.status}*" if is_fallback(result) else result.status
    return f"{status} best-of-{result.best_of_n}" if result.best_of_n else status


def say(console: Console, line: Text, *, indent: int = 0, label: Text | None = None, width: int = 0) -> None:
    """Prints a line, with a label of `width` columns before it; wrapped lines stand below the line, not the label."""
    line = _encodable(line, console.encoding)
    if label is not None:
        label = _encodable(label, console.encoding)
        label.append(" " * (width - label.cell_len))
    if not console.is_terminal or not line:
        whole = line if label is None else Text.assemble(label, line)
        console.print(Text.assemble(" " * indent, whole), soft_wrap=True)
        return
    shown: RenderableType = line
    if label is not None:
        shown = Table.grid()
        shown.add_column(width=width, no_wrap=True)
        shown.add_column(overflow="fold")
        shown.add_row(label, line)
    console.print(Padding(shown, (0, 0, 0, indent), expand=False), overflow="fold")


def _encodable(line: Text, encoding: str) -> Text:
    """The line without what the console's encoding does not have, so that printing it cannot fail."""
    shown = line.copy()
    try:
        shown.plain.encode(encoding)
    except UnicodeEncodeError:
        plainer = shown.plain.translate(_PLAINER)
        shown.plain = plainer.encode(encoding, errors="replace").decode(encoding, errors="replace")
    return shown

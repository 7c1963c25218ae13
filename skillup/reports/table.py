"""Tables on a console: as wide as their contents, and on a terminal that is too narrow the names give way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.text import Text

GAP = "  "

NARROWEST = 12
"""A name is not cut to less than this, however narrow the terminal."""


@dataclass(frozen=True)
class Column:
    """A column of `width` cells of the terminal; `narrowest` is what it may be cut to."""

    width: int
    right: bool = False
    narrowest: int | None = None


def widest(cells: Sequence[str]) -> int:
    """The width of the widest cell."""
    return max(map(cell_len, cells))


def width_of(columns: Sequence[Column]) -> int:
    """What a line of these columns takes."""
    return sum(column.width for column in columns) + len(GAP) * (len(columns) - 1)


def fitted(columns: Sequence[Column], width: int | None) -> tuple[Column, ...]:
    """The columns, those that may be cut first to last, until they fit into `width`; None is as wide as needed."""
    over = width_of(columns) - width if width is not None else 0
    fits: list[Column] = []
    for column in columns:
        least = column.width if column.narrowest is None else min(column.width, column.narrowest)
        cut = max(least, column.width - max(over, 0))
        over -= column.width - cut
        fits.append(Column(cut, column.right, column.narrowest))
    return tuple(fits)


def line(cells: Sequence[str], columns: Sequence[Column], styles: Sequence[str]) -> Text:
    """One line of a table, each cell in its style; what is too wide is cut."""
    whole = Text()
    for index, (cell, column, style) in enumerate(zip(cells, columns, styles, strict=True)):
        shown = cell if cell_len(cell) <= column.width else set_cell_size(cell, column.width - 1) + "…"
        blanks = " " * (column.width - cell_len(shown))
        whole.append(GAP if index else "")
        whole.append(blanks + shown if column.right else shown + blanks, style)
    whole.rstrip()
    return whole

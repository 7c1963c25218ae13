"""Agents side by side: a row a case, a column an agent, and below the row the reasons, each with its agent's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from skillup.reports.lines import STYLES, say, shown_status
from skillup.reports.names import trial_names
from skillup.reports.plain import plain
from skillup.reports.reasons import reasons
from skillup.reports.table import NARROWEST, Column, fitted, line, widest, width_of
from skillup.results import TrialResult

_NOT_RUN = "-"

_NARROWEST_AGENT = 6
"""An agent's name above the shortest form of its results (`ERROR*`) is not cut to less."""

_Row = Mapping[str, TrialResult]
"""The results of one case by agent."""


def side_by_side(results: Sequence[TrialResult], console: Console) -> bool:
    """Prints the table, in as much detail as the terminal is wide.

    Nothing is printed, and the answer is False, where no case was run by two agents, or where not even the statuses
    fit beside each other.
    """
    rows = _rows(results)
    if all(len(row) < 2 for _, row in rows):
        return False
    agents = list(dict.fromkeys(result.agent.name for result in results))
    names = [plain(name) for name, _ in rows]
    titles = ["case", *map(plain, agents)]
    limit = console.width if console.is_terminal else None
    for detail in (3, 2, 1):
        cells = [_cells([row.get(agent) for _, row in rows], detail) for agent in agents]
        columns = [Column(widest(["case", *names]), narrowest=NARROWEST)]
        for title, column in zip(titles[1:], cells, strict=True):
            least = max(_NARROWEST_AGENT, widest(column)) if detail == 1 else None
            columns.append(Column(widest([title, *column]), narrowest=least))
        fits = fitted(columns, limit)
        if limit is None or width_of(fits) <= limit:
            break
    else:
        return False
    say(console, line(titles, fits, ["bold"] * len(titles)))
    for index, (name, row) in enumerate(zip(names, (row for _, row in rows), strict=True)):
        found = [row.get(agent) for agent in agents]
        styles = ["", *(STYLES[result.status] if result else "dim" for result in found)]
        say(console, line([name, *(column[index] for column in cells)], fits, styles))
        for result in found:
            _why(result, console)
    return True


def _rows(results: Sequence[TrialResult]) -> list[tuple[str, _Row]]:
    """The results of each case, in the order in which the cases come first; further trials have rows of their own."""
    rows: dict[tuple[str, str], dict[str, TrialResult]] = {}
    for name, result in zip(trial_names(results), results, strict=True):
        rows.setdefault((name, result.configuration), {})[result.agent.name] = result
    return [(name, row) for (name, _), row in rows.items()]


def _cells(results: Sequence[TrialResult | None], detail: int) -> list[str]:
    """One column: the status (1), with its code (2), with turns and time, each below the other (3)."""
    parts = [_parts(result, detail) for result in results if result]
    widths = [max(map(len, column)) for column in zip(*parts, strict=True)]
    shown = iter(parts)
    return [_aligned(next(shown), widths) if result else _NOT_RUN for result in results]


def _parts(result: TrialResult, detail: int) -> tuple[str, ...]:
    grading = result.grading
    status = shown_status(result)
    if detail > 1 and result.status in ("FAIL", "ERROR", "SKIP"):
        status = f"{status} {grading.code}"
    if detail < 3:
        return (status,)
    return status, f"{grading.turns_executed}/{grading.turns_total}", f"{result.duration_ms / 1000:.1f} s"


def _aligned(parts: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = parts
    columns = [first.ljust(widths[0]), *(part.rjust(width) for part, width in zip(rest, widths[1:], strict=True))]
    return " ".join(columns).rstrip()


def _why(result: TrialResult | None, console: Console) -> None:
    """The reasons of one result; the first line names the agent, the others stand below it."""
    for number, reason in enumerate(reasons(result) if result else ()):
        name = f"{plain(result.agent.name)}: " if result and not number else ""
        say(console, Text.assemble(name, reason), indent=8 if number else 4)

"""The conformance kit's result, for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from skillup.conformance.outcome import ConformanceResult, ScenarioResult
from skillup.reports.lines import say
from skillup.reports.plain import plain
from skillup.reports.table import NARROWEST, Column, fitted, line, widest

_TITLES = ("failure", "scenario", "expected", "got", "ok", "time")


def print_conformance(result: ConformanceResult, console: Console) -> None:
    """Prints a line a scenario, below it what is not as it must be, and how many are."""
    rows = [_row(one) for one in result.scenarios]
    wanted = [
        Column(widest(cells), right=title == "time", narrowest=NARROWEST if index < 2 else None)
        for index, (title, *cells) in enumerate(zip(_TITLES, _TITLES, *rows, strict=True))
    ]
    columns = fitted(wanted, console.width if console.is_terminal else None)
    say(console, line(_TITLES, columns, ["bold"] * len(_TITLES)))
    for row, one in zip(rows, result.scenarios, strict=True):
        style = "green" if one.ok else "red"
        say(console, line(row, columns, ["", "", "", "", style, ""]))
        for problem in one.problems:
            say(console, Text(plain(problem, 400)), indent=4)
    say(console, Text())
    total = len(result.scenarios)
    say(console, Text(f"{result.passed} of {total} scenarios ended as they must, in {result.seconds:.1f} s"))
    if result.directory is not None:
        say(console, Text(f"run: {plain(result.directory)}"))


def _row(one: ScenarioResult) -> tuple[str, ...]:
    got = ", ".join((plain(one.got), *map(plain, one.notes)))
    expected = ", ".join((one.expected, *one.expected_notes))
    return (one.row, one.name, expected, got, "✓" if one.ok else "✗", f"{one.seconds:.1f} s")

"""The table that a person reads after a run: a line a trial, and below it why it did not simply pass.

On a terminal long lines are wrapped and indented; anywhere else a line stays a line, so that tools can search them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from skillup.reports.details import details
from skillup.reports.lines import STYLES, say
from skillup.reports.plain import plain
from skillup.results import RunResult, Status, Totals, TrialResult

MEANINGS: dict[Status, str] = {
    "PASS": "every check was made and held",
    "FAIL": "the agent did not do what the case asks",
    "ERROR": "no measurement: a fault of the set-up, the CLI or the provider, not of the agent",
    "SKIP": "the conversation was meant to stop early; what would have come after was not checked",
    "UNCHECKED": "the case says that nothing is to be checked",
}

REQUIRES = "the agent has not what the case requires; nothing was run"
"""What SKIP means where the code is `requires`."""

_REASON = 400
"""Characters of a reason in the table; `-v` shows the evidence of every check."""

_SHOWN_REMARKS = 3
_MEANING = 11
_TITLES = ("case", "agent", "result", "turns", "checks", "time")
_GAP = "  "
_NARROWEST = 12
"""A name is not cut to less than this, however narrow the terminal."""


def print_run(run: RunResult, console: Console, *, verbosity: int = 0) -> None:
    """Prints the table, what the statuses mean, and with `verbosity` the checks (1) and the turns (2)."""
    rows = [_row(result) for result in run.case_results]
    columns = _columns(rows, console)
    say(console, _line(_TITLES, columns, "bold"))
    for row, result in zip(rows, run.case_results, strict=True):
        say(console, _line(row, columns, STYLES[result.status]))
        for line in _below(result):
            say(console, line, indent=4)
    if verbosity:
        for result in run.case_results:
            details(result, console, turns=verbosity > 1)
    say(console, Text())
    for status, meaning in _meanings(run.case_results):
        say(console, Text(meaning), label=Text(status, style=STYLES[status]), width=_MEANING)
    say(console, Text())
    say(console, Text(_totals(run.totals) + _unfinished(run)))


def _meanings(results: Sequence[TrialResult]) -> Iterator[tuple[Status, str]]:
    """What the statuses of this run mean; a SKIP can mean either of two things."""
    for status, meaning in MEANINGS.items():
        codes = {result.grading.code for result in results if result.status == status}
        if codes - {"requires"}:
            yield status, meaning
        if "requires" in codes:
            yield status, REQUIRES


def _row(result: TrialResult) -> tuple[str, ...]:
    summary, grading = result.grading.summary, result.grading
    return (
        plain(result.case_id),
        plain(result.agent.name),
        f"{result.status} {grading.code}" if result.status in ("FAIL", "ERROR", "SKIP") else result.status,
        f"{grading.turns_executed}/{grading.turns_total}",
        f"{summary.passed}/{summary.total}",
        f"{result.duration_ms / 1000:.1f} s",
    )


@dataclass(frozen=True)
class _Column:
    width: int
    right: bool = False


def _columns(rows: Sequence[Sequence[str]], console: Console) -> tuple[_Column, ...]:
    """As wide as their contents; on a terminal that is too narrow the names give way, the case's first."""
    widths = [max(cell_len(cell) for cell in column) for column in zip(_TITLES, *rows, strict=True)]
    over = sum(widths) + len(_GAP) * (len(widths) - 1) - console.width if console.is_terminal else 0
    for index in (0, 1):
        shrunk = max(min(widths[index], _NARROWEST), widths[index] - max(over, 0))
        over -= widths[index] - shrunk
        widths[index] = shrunk
    return tuple(_Column(width, right=index > 2) for index, width in enumerate(widths))


def _line(cells: Sequence[str], columns: Sequence[_Column], style: str) -> Text:
    """One line of the table; the style is that of the result, or of the whole line of titles."""
    line = Text()
    for index, (cell, column) in enumerate(zip(cells, columns, strict=True)):
        shown = cell if cell_len(cell) <= column.width else set_cell_size(cell, column.width - 1) + "…"
        blanks = " " * (column.width - cell_len(shown))
        whole = blanks + shown if column.right else shown + blanks
        line.append(_GAP if index else "")
        line.append(whole, style if index == 2 or style == "bold" else "")
    line.rstrip()
    return line


def _below(result: TrialResult) -> Iterator[Text]:
    """Why a trial did not simply pass, and what a pass does not show."""
    if result.status not in ("PASS", "UNCHECKED"):
        yield Text(plain(result.grading.reason, _REASON))
    elif any(check.skipped for check in result.grading.assertion_results):
        yield Text(plain(result.grading.reason, _REASON), style="yellow")
    if result.error is not None and result.error.hint:
        yield Text(f"→ {plain(result.error.hint, _REASON)}")
    said = list(_remarks(result))
    for remark in said[:_SHOWN_REMARKS]:
        yield Text(f"note: {plain(remark, _REASON)}", style="yellow")
    if len(said) > _SHOWN_REMARKS:
        yield Text(f"note: {len(said) - _SHOWN_REMARKS} more; -vv shows them", style="yellow")


def _remarks(result: TrialResult) -> Iterator[str]:
    """What was out of the ordinary: nothing of it changes the verdict, and none of it should go unseen."""
    if result.best_of_n is not None:
        yield f"best of {result.best_of_n} attempts; rates count the first valid one, which was FAIL"
    for tried in result.attempt_results[:-1]:
        yield f"attempt {tried.attempt} was {tried.status} {tried.code}: {tried.reason}"
    for violation in (broken for tried in result.attempt_results for broken in tried.violations_before_error):
        yield f"violated before an error: {violation}"
    if result.execution_mode == "single_shot_fallback":
        yield "all turns were sent as one message"
    for turn in result.turn_results:
        where = f"turn {turn.turn_number}"
        for note in turn.notes:
            yield f"{where}: {note}"
        for capture in turn.captures:
            if capture.defaulted:
                yield f"{where}: the default was used for {capture.variable}"
        if turn.unmatched:
            count = f"{len(turn.unmatched)} request{'' if len(turn.unmatched) == 1 else 's'}"
            yield f"{where}: the script had no answer to {count}: {turn.unmatched[0]}"
    for note in result.artifact_notes:
        yield f"collect_artifacts: {note}"


def _totals(totals: Totals) -> str:
    kinds = ", ".join(f"{number} {kind}" for kind, number in totals.errors_by_kind.items())
    counted = (
        (totals.passed, "passed"),
        (totals.failed, "failed"),
        (totals.errors, f"{'error' if totals.errors == 1 else 'errors'} ({kinds})"),
        (totals.skipped, "skipped"),
        (totals.unchecked, "unchecked"),
    )
    words = ", ".join(f"{number} {word}" for number, word in counted if number) or "nothing was run"
    if totals.pass_rate_valid is None:
        return f"{words}; no valid trial: nothing was measured"
    percent = math.floor(totals.pass_rate_valid * 100)  # 999 of 1000 are not 100%
    first = ", counting first attempts" if totals.best_of_n else ""
    return f"{words}; {totals.passed_first} of {totals.valid} valid trials passed{first} ({percent}%)"


def _unfinished(run: RunResult) -> str:
    ended = len(run.case_results)
    if ended == run.trials_planned:
        return ""
    why = "it goes on, or was killed" if run.status == "running" else f"it was {run.status}"
    return f"\nThis run is not whole ({why}): only {ended} of {run.trials_planned} planned trials ended."

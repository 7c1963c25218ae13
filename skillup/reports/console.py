"""The table that a person reads after a run. Texts of agents are hostile: no control character gets through."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from skillup.results import RunResult, Status, Totals, TrialResult

STYLES: dict[Status, str] = {
    "PASS": "green",
    "FAIL": "red",
    "ERROR": "magenta",
    "SKIP": "yellow",
    "UNCHECKED": "dim",
}

MEANINGS: dict[Status, str] = {
    "PASS": "every check was made and held",
    "FAIL": "the agent did not do what the case asks",
    "ERROR": "no measurement: a fault of the set-up, the CLI or the provider, not of the agent",
    "SKIP": "the conversation was meant to stop here; what came later was not checked",
    "UNCHECKED": "the case says that nothing is to be checked",
}

_REASON = 300


def plain(text: str, limit: int | None = None) -> str:
    """A text on one line without control characters, cut to a limit."""
    line = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(line.split())
    return line if limit is None or len(line) <= limit else line[: limit - 1] + "…"


def print_run(run: RunResult, console: Console, *, verbosity: int = 0) -> None:
    """Prints the table, what the statuses mean, and with `verbosity` the checks (1) and the turns (2)."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("case", "agent", "result", "turns", "checks", "time", "why"):
        table.add_column(title, overflow="fold" if title == "why" else "ellipsis", no_wrap=title != "why")
    for result in run.case_results:
        table.add_row(*_row(result))
    console.print(table)
    if verbosity:
        for result in run.case_results:
            _print_checks(result, console, turns=verbosity > 1)
    console.print()
    for status, meaning in MEANINGS.items():
        if any(result.status == status for result in run.case_results):
            console.print(Text.assemble((f"{status:<9}", STYLES[status]), meaning))
    console.print(Text(f"\n{_totals(run.totals)}"))


def _row(result: TrialResult) -> tuple[Text, ...]:
    summary, grading = result.grading.summary, result.grading
    word = f"{result.status} {grading.code}" if result.status in ("ERROR", "FAIL") else result.status
    return (
        Text(plain(result.case_id)),
        Text(plain(result.agent.name)),
        Text(word, style=STYLES[result.status]),
        Text(f"{grading.turns_executed}/{grading.turns_total}"),
        Text(f"{summary.passed}/{summary.total}"),
        Text(f"{result.duration_ms / 1000:.1f} s"),
        Text("" if result.status == "PASS" else plain(grading.reason, _REASON)),
    )


def _print_checks(result: TrialResult, console: Console, *, turns: bool) -> None:
    console.print(Text(f"\n{plain(result.case_id)} · {plain(result.agent.name)}", style="bold"))
    if turns:
        for turn in result.turn_results:
            console.print(Text(f"  {turn.turn_number} user   {plain(turn.content, _REASON)}", style="dim"))
            console.print(Text(f"    {turn.status:<8}{plain(turn.response or turn.reason, _REASON)}", style="dim"))
            for note in turn.notes:
                console.print(Text(f"    note    {plain(note, _REASON)}", style="yellow"))
    for check in result.grading.assertion_results:
        mark, style = ("?", "yellow") if check.skipped else ("✓", "green") if check.passed else ("✗", "red")
        line = f"  {mark} {plain(check.text, _REASON)}: {plain(check.evidence, _REASON)}"
        console.print(Text(line, style=style))
    if result.error is not None:
        console.print(Text(f"  ! {result.error.kind}: {plain(result.error.message)}", style="magenta"))
        if result.error.hint:
            console.print(Text(f"    {plain(result.error.hint)}"))
        if result.error.tail:
            console.print(Text(f"    it said: {plain(result.error.tail, _REASON)}", style="dim"))
    for violation in result.grading.violations_before_error:
        console.print(Text(f"  ✗ before the error: {plain(violation)}", style="red"))


def _totals(totals: Totals) -> str:
    counted = {
        "passed": totals.passed,
        "failed": totals.failed,
        "errors": totals.errors,
        "skipped": totals.skipped,
        "unchecked": totals.unchecked,
    }
    words = ", ".join(f"{number} {word}" for word, number in counted.items() if number)
    if totals.pass_rate_valid is None:
        return f"{words or 'nothing was run'}; no valid trial"
    return f"{words}; {totals.pass_rate_valid:.0%} of {totals.valid} valid trials passed"


def sorted_results(results: Sequence[TrialResult]) -> tuple[TrialResult, ...]:
    """Results in a stable order: case, agent, variant, trial."""
    return tuple(sorted(results, key=lambda r: (r.case_id, r.agent.name, r.configuration, r.trial)))

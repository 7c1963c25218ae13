"""The table that a person reads after a run: a line a trial, and below it why it did not simply pass.

Agents that ran the same cases stand side by side. On a terminal long lines are wrapped and indented; anywhere else a
line stays a line, so that tools can search them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from skillup.judging.totals import count, count_by_agent, is_fallback
from skillup.reports.details import details
from skillup.reports.lines import STYLES, say, shown_status
from skillup.reports.matrix import side_by_side
from skillup.reports.names import trial_names
from skillup.reports.plain import plain
from skillup.reports.reasons import reasons
from skillup.reports.scores import average_lines
from skillup.reports.table import NARROWEST, Column, fitted, line, widest
from skillup.results import AgentTotals, JudgingTotals, RetryCosts, RunResult, Status, Totals, TrialResult

MEANINGS: dict[Status, str] = {
    "PASS": "every check was made and held",
    "FAIL": "the agent did not do what the case asks",
    "ERROR": "no measurement: a fault of the set-up, the CLI or the provider, not of the agent",
    "SKIP": "the conversation was meant to stop early; what would have come after was not checked",
    "UNCHECKED": "nothing was to be checked, or not all of it was; in no rate",
}

SKIPPED_BEFORE = {
    "requires": "the agent has not what the case requires; nothing was run",
    "dependency": "a case that this one depends on did not pass; nothing was run",
}
"""What SKIP means where one of these is the code."""

FALLBACK = "single-shot fallback: all turns were sent as one message; counted apart from the others"
"""What the mark of a status means."""

_MEANING = 11
_TITLES = ("case", "agent", "result", "turns", "checks", "time")


def print_run(run: RunResult, console: Console, *, verbosity: int = 0) -> None:
    """Prints the table, what the statuses mean, and with `verbosity` the checks (1) and the turns (2)."""
    if not side_by_side(run.case_results, console):
        _one_below_the_other(run.case_results, console)
    if verbosity:
        for name, result in zip(trial_names(run.case_results), run.case_results, strict=True):
            details(name, result, console, turns=verbosity > 1)
    say(console, Text())
    for word, style, meaning in _meanings(run.case_results):
        say(console, Text(meaning), label=Text(word, style=style), width=_MEANING)
    say(console, Text())
    for total in (*_totals(run.case_results), *average_lines(run.case_results)):
        say(console, Text(total))
    if run.totals.retries.attempts:
        say(console, Text(_retried(run.totals.retries)))
    if run.judging is not None:
        say(console, Text(_judging(run.judging)))
    if len(run.case_results) != run.trials_planned:
        say(console, Text(_unfinished(run)))
    for difference in run.resumed_anyway:  # the trials of this run are of two kinds
        say(console, Text(f"resumed anyway: {plain(difference)}"))
    for path in run.changed_files:
        say(console, Text(f"changed while the run went on: {plain(path)}; no trial was made from it after that"))


def _one_below_the_other(results: Sequence[TrialResult], console: Console) -> None:
    """A row a trial."""
    rows = [(plain(name), *_row(result)) for name, result in zip(trial_names(results), results, strict=True)]
    names = (NARROWEST, NARROWEST, None, None, None, None)
    columns = fitted(
        [
            Column(widest(cells), index > 2, narrowest)
            for index, (cells, narrowest) in enumerate(zip(zip(_TITLES, *rows, strict=True), names, strict=True))
        ],
        console.width if console.is_terminal else None,
    )
    say(console, line(_TITLES, columns, ["bold"] * len(_TITLES)))
    for row, result in zip(rows, results, strict=True):
        say(console, line(row, columns, ["", "", STYLES[result.status], "", "", ""]))
        for reason in reasons(result):
            say(console, reason, indent=4)


def _row(result: TrialResult) -> tuple[str, ...]:
    summary, grading = result.grading.summary, result.grading
    status = shown_status(result)
    return (
        plain(result.agent.name),
        f"{status} {grading.code}" if result.status in ("FAIL", "ERROR", "SKIP") else status,
        f"{grading.turns_executed}/{grading.turns_total}",
        f"{summary.passed}/{summary.total}",
        f"{result.duration_ms / 1000:.1f} s",
    )


def _meanings(results: Sequence[TrialResult]) -> Iterator[tuple[str, str, str]]:
    """Each word of the table with its style and what it means; a SKIP can mean several things."""
    for status, meaning in MEANINGS.items():
        codes = {result.grading.code for result in results if result.status == status}
        before = SKIPPED_BEFORE if status == "SKIP" else {}
        if codes - before.keys():
            yield status, STYLES[status], meaning
        yield from ((status, STYLES[status], said) for code, said in before.items() if code in codes)
    if any(map(is_fallback, results)):
        yield "*", "yellow", FALLBACK


def _totals(results: Sequence[TrialResult]) -> Iterator[str]:
    """A line for all; where agents, or ways to run them, are to be told apart, a line for each and none for all."""
    groups = count_by_agent(results)
    if len(groups) < 2:
        yield _counted(groups[0].totals if groups else count(results))
        return
    for group in groups:
        mode = ", single-shot fallback" if group.single_shot_fallback else ""
        yield f"{plain(group.agent)}{mode}: {_counted(group.totals)}; {_spent(group)}"


def _counted(totals: Totals) -> str:
    kinds = ", ".join(f"{number} {kind}" for kind, number in totals.errors_by_kind.items())
    counted = (
        (totals.passed, "passed"),
        (totals.failed, "failed"),
        (totals.errors, f"{'error' if totals.errors == 1 else 'errors'} ({kinds})"),
        (totals.skipped, "skipped"),
        (totals.unchecked, "unchecked"),
    )
    words = ", ".join(f"{number} {word}" for number, word in counted if number) or "no trial ended"
    if totals.pass_rate_valid is None:
        return f"{words}; no valid trial: nothing was measured"
    percent = math.floor(totals.pass_rate_valid * 100)  # 999 of 1000 are not 100%
    first = ", counting first attempts" if totals.best_of_n else ""
    return f"{words}; {totals.passed_first} of {totals.valid} valid trials passed{first} ({percent}%)"


def _spent(group: AgentTotals) -> str:
    """What the agent's trials took together; what is unknown is left out."""
    parts = [f"{group.duration_ms / 1000:.1f} s"]
    parts += [] if group.total_tokens is None else [f"{group.total_tokens} tokens"]
    parts += [] if group.cost_usd is None else [f"${group.cost_usd:.4f}"]
    return ", ".join(parts)


def _judging(spent: JudgingTotals) -> str:
    """What judging took; of what is not known as a whole, the part that is."""
    return f"judging, besides: {spent.calls} call{'' if spent.calls == 1 else 's'}, {_paid(spent)}"


def _retried(costs: RetryCosts) -> str:
    """What was spent on attempts that were tried again; of what is not known as a whole, the part that is."""
    trials = f"{costs.trials} trial{'' if costs.trials == 1 else 's'}"
    attempts = f"{costs.attempts} attempt{'' if costs.attempts == 1 else 's'}"
    seconds = f"{costs.duration_ms / 1000:.1f} s and {costs.waited_ms / 1000:.1f} s of waiting"
    return f"tried again: {trials}; given up for it: {attempts}, {seconds}, {_paid(costs)}"


def _paid(spent: JudgingTotals | RetryCosts) -> str:
    tokens = f"{spent.total_tokens} tokens"
    if spent.total_tokens is None:
        tokens = f"tokens unknown ({spent.known_tokens} known)" if spent.known_tokens else "tokens unknown"
    cost = f"${spent.cost_usd or 0:.4f}"
    if spent.cost_usd is None:
        cost = f"cost unknown (${spent.known_cost_usd:.4f} known)" if spent.known_cost_usd else "cost unknown"
    return f"{tokens}, {cost}"


def _unfinished(run: RunResult) -> str:
    why = "it goes on, or was killed" if run.status == "running" else f"it was {run.status}"
    why += f" by {plain(run.stopped_by)}" if run.stopped_by else ""
    ended = len(run.case_results)
    return f"This run is not whole ({why}): only {ended} of {run.trials_planned} planned trials ended."

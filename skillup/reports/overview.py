"""What a person reads instead of, or after, the tables of runs: a plan of what would run, and how steady cases are."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from skillup.reports.lines import STYLES, say
from skillup.reports.names import trial_names
from skillup.reports.plain import plain
from skillup.reports.table import NARROWEST, Column, fitted, line, widest
from skillup.results import PlannedTrial, RunPlan, Stability

_STEADINESS = {"steady": "green", "flaky": "red", "unmeasured": "magenta"}


def print_plan(plan: RunPlan, console: Console) -> None:
    """Prints a line a trial, and below it why it would not run."""
    names = trial_names(plan.trials)
    rows = [
        (plain(name), plain(one.agent), f"{one.would} {one.code}".rstrip())
        for name, one in zip(names, plan.trials, strict=True)
    ]
    styles = ["" if one.would == "run" else STYLES[one.would] for one in plan.trials]
    reasons = [_reasons(one) for one in plan.trials]
    _table(("case", "agent", "would"), rows, styles, reasons, console)
    would_run = sum(one.would == "run" for one in plan.trials)
    times = f", {plan.iterations} times" if plan.iterations > 1 else ""
    say(console, Text())
    say(console, Text(f"{would_run} of {len(plan.trials)} trials would run{times}, {plan.parallelism} at once"))
    say(console, Text("nothing was run and nothing was written"))


def _reasons(one: PlannedTrial) -> list[str]:
    return [plain(one.reason)] * bool(one.reason) + [f"→ {plain(one.hint)}"] * bool(one.hint)


def print_stability(found: Sequence[Stability], iterations: int, console: Console) -> None:
    """Prints how each case ended over several runs."""
    rows = [(plain(one.case_id), _who(one), _outcomes(one), one.stability) for one in found]
    say(console, Text(f"{iterations} iteration{'' if iterations == 1 else 's'}", style="bold"))
    _table(("case", "agent", "outcomes", ""), rows, [_STEADINESS[one.stability] for one in found], [], console)
    flaky = sum(one.stability == "flaky" for one in found)
    say(console, Text())
    say(console, Text(f"{flaky} of {len(found)} {'case is' if len(found) == 1 else 'cases are'} flaky"))


def _who(one: Stability) -> str:
    return plain(one.agent) + (", single-shot fallback" if one.single_shot_fallback else "")


def _outcomes(one: Stability) -> str:
    return ", ".join(f"{status} ×{one.outcomes[status]}" for status in STYLES if one.outcomes.get(status))


def _table(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    styles: Sequence[str],
    below: Sequence[Sequence[str]],
    console: Console,
) -> None:
    """A table whose last column is styled and whose first two give way on a narrow terminal."""
    wanted = [
        Column(widest(cells), narrowest=NARROWEST if index < 2 else None)
        for index, cells in enumerate(zip(titles, *rows, strict=True))
    ]
    columns = fitted(wanted, console.width if console.is_terminal else None)
    unstyled = [""] * (len(titles) - 1)
    say(console, line(titles, columns, ["bold"] * len(titles)))
    for index, (row, style) in enumerate(zip(rows, styles, strict=True)):
        say(console, line(row, columns, [*unstyled, style]))
        for text in below[index] if below else ():
            say(console, Text(text), indent=4)

"""How far a model that judges agrees with itself, for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from skillup.reports.lines import say
from skillup.reports.plain import plain
from skillup.results import Agreement


def print_agreement(found: Agreement, console: Console) -> None:
    """Prints every criterion with its answers, and what all come to."""
    for trial in found.trials:
        counted = ", ".join(f"{count}× {status}" for status, count in sorted(trial.statuses.items()))
        say(console, Text(f"{plain(trial.case_id)} · {plain(trial.agent)}: {counted}"))
        for one in trial.criteria:
            answers = ", ".join(f"{count}× {answer.replace('_', ' ')}" for answer, count in sorted(one.answers.items()))
            share = "no verdict" if one.agreement is None else f"agreement {one.agreement:.2f}"
            name = f"{one.judge}.{one.id}" if one.judge else one.id
            spread = "" if one.score_min == one.score_max else f", scores {one.score_min:.2f} to {one.score_max:.2f}"
            say(console, Text(f"{plain(name)}: {answers}; {share}{spread}"), indent=2)
    tokens = "" if found.usage.total_tokens is None else f", {found.usage.total_tokens} tokens"
    if not found.trials:
        say(console, Text("no trial of this run has criteria that a model could be asked about"))
        return
    mean = "no verdict" if found.agreement is None else f"agreement {found.agreement:.2f}"
    say(console, Text(f"asked {found.repeats} times: {mean}; {found.calls} calls{tokens}; nothing was changed"))

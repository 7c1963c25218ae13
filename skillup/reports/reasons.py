"""Why a trial did not simply pass, and what a pass does not show: the lines below its row."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from skillup.judging.totals import is_fallback
from skillup.reports.plain import plain
from skillup.results import TrialResult

_REASON = 400
"""Characters of a reason in the table; `-v` shows the evidence of every check."""

_SHOWN_REMARKS = 3


def reasons(result: TrialResult) -> Iterator[Text]:
    """The lines, the verdict's reason first."""
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
    if is_fallback(result):
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

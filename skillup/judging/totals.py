"""Counts and rates of a run, and the exit code that they amount to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from skillup.results import Totals, TrialResult

ALL_GOOD, SOME_FAIL, SOME_ERROR, INTERRUPTED = 0, 1, 3, 130


def count(results: Sequence[TrialResult]) -> Totals:
    """Trials by status. Rates are over valid trials (PASS + FAIL) and over all (valid + ERROR), else None.

    They count the first valid attempt of each trial: whoever tries again after a FAIL does not pass more often.
    """
    by_status = Counter(result.status for result in results)
    first = Counter(result.first_valid_status or result.status for result in results)
    valid, passed = first["PASS"] + first["FAIL"], first["PASS"]
    everything = valid + by_status["ERROR"]
    kinds = Counter(result.error.kind for result in results if result.error is not None)
    return Totals(
        passed=by_status["PASS"],
        failed=by_status["FAIL"],
        errors=by_status["ERROR"],
        errors_by_kind=dict(sorted(kinds.items())),
        skipped=by_status["SKIP"],
        unchecked=by_status["UNCHECKED"],
        best_of_n=sum(result.best_of_n is not None for result in results),
        passed_first=passed,
        valid=valid,
        pass_rate_valid=passed / valid if valid else None,
        pass_rate_all=passed / everything if everything else None,
    )


def exit_code(totals: Totals, *, interrupted: bool = False) -> int:
    """The exit code of a run: a run with holes is not a measurement, so 3 beats 1."""
    if interrupted:
        return INTERRUPTED
    if totals.errors or not totals.valid:
        return SOME_ERROR
    return SOME_FAIL if totals.failed else ALL_GOOD

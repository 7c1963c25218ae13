"""Counts and rates of a run, and the exit code that they amount to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from skillup.results import Totals, TrialResult

ALL_GOOD, SOME_FAIL, SOME_ERROR, INTERRUPTED = 0, 1, 3, 130


def count(results: Sequence[TrialResult]) -> Totals:
    """Trials by status. Rates are over valid trials (PASS + FAIL) and over all (valid + ERROR), else None."""
    by_status = Counter(result.status for result in results)
    valid = by_status["PASS"] + by_status["FAIL"]
    everything = valid + by_status["ERROR"]
    kinds = Counter(result.error.kind for result in results if result.error is not None)
    return Totals(
        passed=by_status["PASS"],
        failed=by_status["FAIL"],
        errors=by_status["ERROR"],
        errors_by_kind=dict(sorted(kinds.items())),
        skipped=by_status["SKIP"],
        unchecked=by_status["UNCHECKED"],
        valid=valid,
        pass_rate_valid=by_status["PASS"] / valid if valid else None,
        pass_rate_all=by_status["PASS"] / everything if everything else None,
    )


def exit_code(totals: Totals, *, interrupted: bool = False) -> int:
    """The exit code of a run: a run with holes is not a measurement, so 3 beats 1."""
    if interrupted:
        return INTERRUPTED
    if totals.errors or not totals.valid:
        return SOME_ERROR
    return SOME_FAIL if totals.failed else ALL_GOOD

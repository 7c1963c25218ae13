"""Counts, rates and the exit code of a run."""

from __future__ import annotations

import pytest

from skillup.judging.totals import exit_code
from skillup.results import Totals


def totals(passed: int = 0, failed: int = 0, errors: int = 0, skipped: int = 0, unchecked: int = 0) -> Totals:
    return Totals(
        passed=passed,
        failed=failed,
        errors=errors,
        errors_by_kind={},
        skipped=skipped,
        unchecked=unchecked,
        passed_first=passed,
        valid=passed + failed,
        pass_rate_valid=None,
        pass_rate_all=None,
    )


@pytest.mark.parametrize(
    ("counted", "code"),
    [
        (totals(passed=3), 0),
        (totals(passed=1, skipped=5, unchecked=5), 0),
        (totals(passed=9, failed=1), 1),
        (totals(failed=1), 1),
        (totals(passed=9, errors=1), 3),
        (totals(passed=9, failed=1, errors=1), 3),  # a run with holes is no measurement
        (totals(skipped=3), 3),  # nothing was measured
        (totals(unchecked=3), 3),
        (totals(), 3),
    ],
)
def test_exit_code(counted: Totals, code: int) -> None:
    assert exit_code(counted) == code
    assert exit_code(counted, interrupted=True) == 130

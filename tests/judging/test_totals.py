"""Counts, rates and the exit code of a run."""

from __future__ import annotations

import pytest

from skillup.judging.totals import add_judging, exit_code
from skillup.results import JudgingTotals, Totals


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


def test_what_judging_took_is_unknown_as_soon_as_a_part_is_and_says_what_is_known() -> None:
    known = JudgingTotals(calls=2, total_tokens=100, known_tokens=100, cost_usd=0.5, known_cost_usd=0.5)
    unpriced = JudgingTotals(calls=1, total_tokens=30, known_tokens=30, cost_usd=None, known_cost_usd=0.25)
    assert add_judging([]) is None
    assert add_judging([known, known]) == JudgingTotals(
        calls=4, total_tokens=200, known_tokens=200, cost_usd=1.0, known_cost_usd=1.0
    )
    assert add_judging([known, unpriced]) == JudgingTotals(
        calls=3, total_tokens=130, known_tokens=130, cost_usd=None, known_cost_usd=0.75
    )

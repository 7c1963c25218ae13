"""Results held against a file that says what they should be."""

from __future__ import annotations

from pathlib import Path

from skillup.reports.expected import mismatches
from tests.reports.saved import OVERLOADED, Trials, every_status


def test_a_status_alone_or_with_its_code(tmp_path: Path) -> None:
    results = every_status(Trials(tmp_path)).case_results
    good = {"holds": "PASS", "lacks": "FAIL expect", "broken": "ERROR", "stops": "SKIP gate", "unchecked": "UNCHECKED"}
    assert mismatches(results, good) == ()


def test_what_is_not_as_the_file_says(tmp_path: Path) -> None:
    results = every_status(Trials(tmp_path)).case_results
    expected = {"holds": "FAIL", "lacks": "FAIL gate", "broken": "ERROR overloaded", "stops": "SKIP", "gone": "PASS"}
    assert mismatches(results, expected) == (
        "holds: expected FAIL, got PASS all_met: the check held",
        f"lacks: expected FAIL gate, got FAIL expect: {results[1].grading.reason}",
        "unchecked: UNCHECKED unchecked, but the file does not name it",
        "gone: expected PASS, but it was not run",
    )
    assert results[2].error == OVERLOADED

"""Results held against a file that says what they should be: `case: STATUS` or `case: STATUS code`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skillup.results import TrialResult


def mismatches(results: Sequence[TrialResult], expected: Mapping[str, str]) -> tuple[str, ...]:
    """What is not as the file says, one sentence each; cases that only one side has count, too."""
    said: list[str] = []
    for result in results:
        actual = f"{result.status} {result.grading.code}"
        wanted = expected.get(result.case_id)
        if wanted is None:
            said.append(f"{result.case_id}: {actual}, but the file does not name it")
        elif wanted not in (result.status, actual):
            said.append(f"{result.case_id}: expected {wanted}, got {actual}: {result.grading.reason}")
    ran = {result.case_id for result in results}
    said += [f"{name}: expected {wanted}, but it was not run" for name, wanted in expected.items() if name not in ran]
    return tuple(said)

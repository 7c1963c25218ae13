"""Whether a case ends the same every time: the outcomes of several runs of the same, side by side and never pooled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from skillup.judging.totals import is_fallback
from skillup.results import RunResult, Stability, Status


def stability_of(runs: Sequence[RunResult]) -> tuple[Stability, ...]:
    """One entry for each case and agent, in the order in which they come first.

    Like rates, outcomes count the first valid attempt of each trial; every attempt can show that a case is flaky.
    """
    found: dict[tuple[str, str, bool], Counter[Status]] = {}
    seen: dict[tuple[str, str, bool], set[Status]] = {}
    for run in runs:
        for result in run.case_results:
            place = (result.case_id, result.agent.name, is_fallback(result))
            found.setdefault(place, Counter())[result.first_valid_status or result.status] += 1
            seen.setdefault(place, set()).update([result.status, *(tried.status for tried in result.attempt_results)])
    return tuple(
        Stability(
            case_id=case,
            agent=agent,
            single_shot_fallback=fallback,
            outcomes=dict(outcomes),
            stability=_stability(seen[case, agent, fallback]),
        )
        for (case, agent, fallback), outcomes in found.items()
    )


def _stability(outcomes: set[Status]) -> Literal["steady", "flaky", "unmeasured"]:
    """An ERROR says nothing about the agent, so it makes no case flaky; SKIP does: an agent can choose it."""
    valid = [status for status in outcomes if status != "ERROR"]
    if not valid:
        return "unmeasured"
    return "steady" if len(valid) == 1 else "flaky"

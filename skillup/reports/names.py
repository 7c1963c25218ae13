"""What reports call a trial: its case, and where a case has several, the number of the trial."""

from __future__ import annotations

from collections.abc import Sequence

from skillup.results import PlannedTrial, TrialResult


def trial_names(results: Sequence[TrialResult | PlannedTrial]) -> list[str]:
    """A name for each result: `heron`, or `heron #2` where a trial of that case is not the only one."""
    several = {result.case_id for result in results if result.trial > 1}
    return [f"{one.case_id} #{one.trial}" if one.case_id in several else one.case_id for one in results]

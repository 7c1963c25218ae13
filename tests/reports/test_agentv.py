"""Rows in AgentV's shape: which trials have one, and what those of a case come to together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from skillup.execution.grading import grade_unjudged
from skillup.reports.agentv import evaluations
from tests.reports.saved import OVERLOADED, Trials

GRADERS = [{"name": "says", "rules": [{"output_contains": {"all": ["done"]}}]}]
SCORED = {
    "id": "a",
    "expect": {},
    "judge": {"type": "rule_based", "scoring": {"parts": [{"name": "turn-1", "turn": 1, "graders": GRADERS}]}},
}


def rows(trials: Trials) -> list[dict[str, Any]]:
    return [json.loads(line) for line in evaluations(trials.run()).splitlines()]


def test_a_trial_without_scores_has_no_row_and_counts(tmp_path: Path) -> None:
    trials = Trials(tmp_path)
    trials.add("a", case=SCORED)
    trials.add("a", case=SCORED, trial=2)
    trials.results[1] = grade_unjudged(tmp_path / trials.results[1].folder, OVERLOADED)
    (row,) = rows(trials)
    assert (row["trial"], row["trials"]["count"], row["trials"]["valid"], row["trials"]["passed"]) == (1, 2, 1, 1)
    assert (row["trials"]["pass_at_k"], row["trials"]["pass_all"]) == (True, False)


def test_trials_that_measure_something_else_are_not_counted_together(tmp_path: Path) -> None:
    trials = Trials(tmp_path)
    trials.add("a", case=SCORED)
    trials.add("a", case=SCORED, trial=2)
    trials.add("a", {"response": "no"}, case=SCORED, execution_mode="single_shot_fallback", trial=3)
    trials.add("a", {"response": "no"}, case=SCORED, configuration="without_skill")
    told = [row["trials"] and (row["trials"]["count"], row["trials"]["pass_all"]) for row in rows(trials)]
    assert told == [(2, True), (2, True), None, None]

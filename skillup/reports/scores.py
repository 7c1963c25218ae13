"""The scores that a trial's evaluators gave, by their names, and what they come to over a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillup.judging.totals import count_by_agent, is_fallback
from skillup.reports.plain import plain
from skillup.results import Assertion, Status, TrialResult
from skillup.spec.judge import TRAJECTORY_THRESHOLD

_JUDGED: frozenset[Status] = frozenset({"PASS", "FAIL", "UNCHECKED"})
"""Trials that say something about the agent: what a fault left over is in no average."""

_CRITERION = "judge.criteria."

TRAJECTORY = frozenset({"tool_order", "tools_avoided"})
"""Scores that every task of the trajectory harness has: a trial with both is one of its kind."""


@dataclass(frozen=True)
class Scored:
    """What one evaluator gave, the worst of several; `value` is None when it cannot be told."""

    value: float | None
    reasoning: str


def scores_of(result: TrialResult) -> dict[str, Scored]:
    """The scores of a trial: those of evaluators, and of criteria by their ids."""
    found: dict[str, Scored] = {}
    for check in result.grading.assertion_results:
        name = _name(check)
        if name is not None:
            one = Scored(check.score, check.reasoning or check.evidence)
            known = found.get(name)
            found[name] = one if known is None else min(known, one, key=_worst)
    return found


def is_trajectory(result: TrialResult) -> bool:
    """Whether a trial was judged as the trajectory harness judges."""
    return scores_of(result).keys() >= TRAJECTORY


def average_lines(results: Sequence[TrialResult]) -> Iterator[str]:
    """The averages and the tasks that passed, for each agent; nothing unless all trials are of the harness's kind."""
    if not results or not all(map(is_trajectory, results)):
        return
    groups = count_by_agent(results)
    for group in groups:
        own = [
            result
            for result in results
            if (result.agent.name, is_fallback(result)) == (group.agent, group.single_shot_fallback)
        ]
        mode = ", single-shot fallback" if group.single_shot_fallback else ""
        prefix = f"{plain(group.agent)}{mode}: " if len(groups) > 1 else ""
        yield f"{prefix}Averages: {', '.join(_averages(own)) or 'none'}"
        passed, valid = group.totals.passed, group.totals.passed + group.totals.failed
        without = len(own) - valid
        rest = f"; {without} without a verdict" if without else ""
        yield f"{prefix}{passed}/{valid} cases passed (overall >= {TRAJECTORY_THRESHOLD:g}){rest}"


def _name(check: Assertion) -> str | None:
    if check.role == "criterion":
        return check.id.removeprefix(_CRITERION)
    return check.evaluator


def _worst(one: Scored) -> float:
    return -1.0 if one.value is None else one.value


def _averages(results: Sequence[TrialResult]) -> Iterator[str]:
    found = [scores_of(result) for result in results if result.status in _JUDGED]
    for name in dict.fromkeys(name for scores in found for name in scores):
        asked = [scores[name] for scores in found if name in scores]
        known = [one.value for one in asked if one.value is not None]
        if not known:
            yield f"{name}=unknown"
            continue
        some = f" ({len(known)} of {len(asked)})" if len(known) < len(asked) else ""
        yield f"{name}={sum(known) / len(known):.3f}{some}"

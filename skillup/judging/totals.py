"""Counts and rates of a run, and the exit code that they amount to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from skillup.results import AgentTotals, AttemptResult, JudgingTotals, RetryCosts, Totals, TrialResult
from skillup.transcript import Usage, add_usage

ALL_GOOD, SOME_FAIL, SOME_ERROR, INTERRUPTED = 0, 1, 3, 130


def count(results: Sequence[TrialResult]) -> Totals:
    """Trials by status. Rates are over valid trials (PASS + FAIL) and over all (valid + ERROR), else None.

    They count the first valid attempt of each trial: whoever tries again after a FAIL does not pass more often. They
    are None, too, where only some of the trials ran as `single_shot_fallback`: there is no rate of both.
    """
    by_status = Counter(result.status for result in results)
    first = Counter(result.first_valid_status or result.status for result in results)
    valid, passed = first["PASS"] + first["FAIL"], first["PASS"]
    everything = valid + by_status["ERROR"]
    comparable = len({is_fallback(result) for result in results}) < 2
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
        pass_rate_valid=passed / valid if valid and comparable else None,
        pass_rate_all=passed / everything if everything and comparable else None,
        retries=_retry_costs(results),
    )


def _retry_costs(results: Sequence[TrialResult]) -> RetryCosts:
    """What the attempts took that are not the one that a trial's result shows; without any it is nothing."""
    again = [result for result in results if result.attempt_results]
    given_up = [tried for result in again for tried in result.attempt_results if tried.folder != result.folder]
    if not given_up:
        return RetryCosts()
    usage = add_usage([tried.usage for tried in given_up])
    return RetryCosts(
        trials=len(again),
        attempts=len(given_up),
        duration_ms=sum(tried.duration_ms for tried in given_up),
        waited_ms=sum(tried.waited_ms for result in again for tried in result.attempt_results),
        total_tokens=usage.total_tokens,
        known_tokens=sum(tried.usage.total_tokens or 0 for tried in given_up),
        cost_usd=usage.cost_usd,
        known_cost_usd=sum(tried.usage.cost_usd or 0.0 for tried in given_up),
    )


def is_fallback(result: TrialResult) -> bool:
    """Whether all turns of the trial were sent as one message."""
    return result.execution_mode == "single_shot_fallback"


def usage_of(results: Sequence[TrialResult]) -> Usage:
    """What trials used together, in all their attempts; one that was kept from running used nothing.

    Nobody knows it where an attempt was torn: what its last turn used was never told.
    """
    ran = [result for result in results if result.grading.code not in ("requires", "dependency")]
    ended = [tried.usage for result in ran for tried in _tries(result)]
    return add_usage([*ended, *(Usage() for result in results for _ in result.torn_attempts)])


def judging_of(results: Sequence[TrialResult]) -> JudgingTotals | None:
    """What judging trials took, in all their attempts; None where no model and no agent was asked."""
    return add_judging([tried.judging for result in results for tried in _tries(result) if tried.judging])


def add_judging(parts: Sequence[JudgingTotals]) -> JudgingTotals | None:
    """The sum; a figure is unknown as soon as one of its parts is. None of nothing."""
    if not parts:
        return None
    tokens, costs = [part.total_tokens for part in parts], [part.cost_usd for part in parts]
    return JudgingTotals(
        calls=sum(part.calls for part in parts),
        total_tokens=None if None in tokens else sum(filter(None, tokens)),
        known_tokens=sum(part.known_tokens for part in parts),
        cost_usd=None if None in costs else sum(filter(None, costs)),
        known_cost_usd=sum(part.known_cost_usd for part in parts),
    )


def _tries(result: TrialResult) -> Sequence[AttemptResult | TrialResult]:
    """All attempts at a trial: what they took was spent, whichever of them counts."""
    return result.attempt_results or (result,)


def count_by_agent(results: Sequence[TrialResult]) -> tuple[AgentTotals, ...]:
    """The totals of each agent, in the order in which they come first; fallback trials apart, after its others."""
    groups: dict[tuple[str, bool], list[TrialResult]] = {}
    for agent in dict.fromkeys(result.agent.name for result in results):
        groups |= {(agent, False): [], (agent, True): []}
    for result in results:
        groups[result.agent.name, is_fallback(result)].append(result)
    return tuple(_agent_totals(agent, group, fallback=fallback) for (agent, fallback), group in groups.items() if group)


def _agent_totals(agent: str, results: Sequence[TrialResult], *, fallback: bool) -> AgentTotals:
    usage = usage_of(results)
    return AgentTotals(
        agent=agent,
        single_shot_fallback=fallback,
        totals=count(results),
        duration_ms=sum(tried.duration_ms for result in results for tried in _tries(result)),
        total_tokens=usage.total_tokens,
        cost_usd=usage.cost_usd,
    )


def exit_code(totals: Totals, *, interrupted: bool = False, stopped: bool = False) -> int:
    """The exit code of a run: a run with holes is not a measurement, so 3 beats 1."""
    if interrupted:
        return INTERRUPTED
    if stopped or totals.errors or not totals.valid:
        return SOME_ERROR
    return SOME_FAIL if totals.failed else ALL_GOOD

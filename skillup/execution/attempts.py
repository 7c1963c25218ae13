"""A trial and its attempts: when one more is made, and what they mean together. Every attempt is kept.

Where the judging alone broke, it alone is repeated: the agent has done its work, and would be paid twice for it.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from skillup.errors import Cancelled, ErrorKind, RunDirectoryError
from skillup.execution.criteria import CriteriaStep
from skillup.execution.grading import grade
from skillup.execution.saved import has_record, saved_trial, torn_attempts
from skillup.execution.setup import secrets_of
from skillup.execution.spending import used_up
from skillup.execution.store import read_model, write_json
from skillup.execution.task import Services, TrialTask
from skillup.execution.trial import give_up, run_trial
from skillup.execution.waiting import Chance, pause_after
from skillup.masking import Masker
from skillup.results import AttemptResult, Failure, TrialResult
from skillup.spec.case import Case
from skillup.spec.suite import RetryPolicy

PASSING_FAULTS: Final[frozenset[ErrorKind]] = frozenset(
    {"network", "rate_limit", "overloaded", "timeout", "crash", "output", "simulator"}
)
"""Kinds that a later attempt may be spared; the others would come again, or are the case's own."""

VALID = ("PASS", "FAIL")


def run_attempts(task: TrialTask, services: Services) -> TrialResult | None:
    """Runs a trial, or its judging, again where that is called for and allowed; `result.json` of the trial is last.

    Attempts that are there from before count: those that ended are not made again, those that were torn stay as they
    are, and the next one has the next number. None where another is called for and the run withholds it: the trial
    has no result, so that the run can be resumed with it.

    Raises:
        Cancelled: the user stopped the run; the attempts that had ended are on disk, the trial has no result.
        RunDirectoryError: the trial cannot be saved, or what is saved of it is damaged.
    """
    before = saved_trial(task.folder)
    services.journal.write("trial_started", task.folder)
    results = [_attempt(replace(task, attempt=number), services) for number in before.whole]
    settled = sum(number <= before.settled for number in before.whole)
    number, repeated = before.last, before.repeated
    while (pause := pause_before_next(results[settled:], task.retry, repeated)) is not None:
        again, waited = bool(results[settled:]), 0.0
        if again:
            if used_up(task.case, task.agent, [result.usage for result in results[settled:]]):
                break
            asked = None if _lacks_answers(results[-1]) else task.agent
            if services.withholds(asked):
                return None
            if pause:
                services.journal.write("retry_wait", task.folder, attempt=number, seconds=round(pause, 3))
            waited = services.wait_for(asked, pause)
            if services.withholds(asked):
                return None  # the run's seconds passed meanwhile, say
        if again and _lacks_answers(results[-1]):
            repeated += 1
            results[-1] = _made(replace(task, attempt=results[-1].attempts), services, _judge_again)
        else:
            number += 1
            results.append(_attempt(replace(task, attempt=number, waited_seconds=waited), services))
            services.pools.heard(task.agent, results[-1].error)
    result = _save(task.folder, results)
    services.journal.ended("trial_ended", task.folder, result)
    return result


def judge_attempts(folder: Path, criteria: CriteriaStep, other: Case | None = None) -> TrialResult | None:
    """Judges the saved attempts of a trial again, with `other` instead of the saved case; None where there is none.

    Raises:
        Cancelled: the user stopped it while a model was asked.
        RunDirectoryError: an attempt is damaged.
    """
    results = [grade(folder / f"attempt-{number}", criteria, other) for number in saved_trial(folder).whole]
    return _save(folder, results) if results else None


def _judge_again(task: TrialTask, services: Services) -> TrialResult:
    """Asks for what has no verdict; the judging that broke stays as a revision."""
    masker = Masker(secrets_of(task, services.host))
    return grade(task.attempt_folder, CriteriaStep("missing", task.judges, services, masker=masker))


def _attempt(task: TrialTask, services: Services) -> TrialResult:
    """Makes an attempt, or takes it as it is when it has ended before."""
    if (task.attempt_folder / "result.json").exists():
        return read_model(task.attempt_folder / "result.json", TrialResult)
    if not has_record(task.attempt_folder):
        services.journal.write("attempt_started", task.folder, attempt=task.attempt)
    result = _made(task, services)
    services.journal.ended("attempt_ended", task.folder, result, task.attempt)
    return result


def _made(
    task: TrialTask, services: Services, run: Callable[[TrialTask, Services], TrialResult] = run_trial
) -> TrialResult:
    try:
        result = run(task, services)
    except (Cancelled, RunDirectoryError):
        raise
    except OSError as error:
        # What the machine refuses an agent is in its trial's record; this was refused when the record was written.
        raise RunDirectoryError(f"{task.attempt_folder} cannot be written: {error.strerror or error}") from error
    except Exception as error:  # noqa: BLE001 - the one broad net: a bug of ours costs one trial, not the night's run
        message = f"a bug in skillup: {type(error).__name__}: {error}"
        tail = traceback.format_exc()[-4000:]
        result = give_up(task, services, Failure(kind="internal", phase="conversation", message=message, tail=tail))
    services.budget.add(task.attempt_folder, result)
    return result


def _save(folder: Path, results: Sequence[TrialResult]) -> TrialResult:
    result = together(results).model_copy(update={"torn_attempts": torn_attempts(folder)})
    try:
        write_json(folder / "result.json", result)
    except OSError as error:
        raise RunDirectoryError(f"{folder} cannot be written: {error.strerror or error}") from error
    return result


def pause_before_next(
    results: Sequence[TrialResult], policy: RetryPolicy, repeated: int = 0, chance: Chance = random.uniform
) -> float | None:
    """Seconds to wait before one more attempt, or judging, 0 before the first; None when there is none to be made.

    `repeated` is how often the judging alone has been; the policy counts both.
    """
    if not results:
        return 0.0
    last, done = results[-1], len(results) + repeated
    if done > policy.max_retries or not _calls_for_another(last, policy):
        return None
    return pause_after(done, last.error.retry_after if last.error else None, chance)


def _calls_for_another(result: TrialResult, policy: RetryPolicy) -> bool:
    if result.status == "FAIL":
        return result.grading.code == "gate" and "turn_precondition_fail" in policy.retry_on
    if result.error is None:
        return False
    kind = result.error.kind
    # A judge that fails in the middle of a conversation has ended it: there is nothing left that it could judge alone.
    if _lacks_answers(result) or (kind, result.error.phase) == ("judge", "conversation"):
        return "error" in policy.retry_on
    return (kind in PASSING_FAULTS and "error" in policy.retry_on) or (
        kind == "timeout" and "timeout" in policy.retry_on
    )


def _lacks_answers(result: TrialResult) -> bool:
    """Whether all that is wrong is that a judge has given no answer, and it could be asked again."""
    if result.error is None or (result.error.kind, result.error.phase) != ("judge", "judging"):
        return False
    checks = result.grading.assertion_results
    return any(check.cause == "judging" and check.role in ("criterion", "evaluator") for check in checks)


def together(results: Sequence[TrialResult]) -> TrialResult:
    """What the attempts of a trial mean: the last valid one, else the last; marked where a FAIL was tried again."""
    if len(results) == 1:
        return results[0].model_copy(update={"attempts": 1})
    valid = [result for result in results if result.status in VALID]
    shown = valid[-1] if valid else results[-1]
    first = valid[0].status if valid else None
    return shown.model_copy(
        update={
            "attempts": len(results),
            "attempt_results": tuple(_short(result) for result in results),
            "best_of_n": len(results) if first == "FAIL" and results[-1] is not valid[0] else None,
            "first_valid_status": first,
        }
    )


def _short(result: TrialResult) -> AttemptResult:
    return AttemptResult(
        attempt=result.attempts,  # of one attempt it is its number
        status=result.status,
        code=result.grading.code,
        reason=result.grading.reason,
        error=result.error,
        violations_before_error=result.grading.violations_before_error,
        duration_ms=result.duration_ms,
        usage=result.usage,
        cost_usd=result.cost_usd,
        judging=result.judging,
        waited_ms=result.waited_ms,
        folder=result.folder,
    )

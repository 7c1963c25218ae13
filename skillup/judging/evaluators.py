"""Evaluators written in Python: what they return, and the check that comes of it. Nothing of theirs is run here."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from skillup.judging.calls import counted
from skillup.judging.evidence import Evidence
from skillup.judging.outcome import Outcome, bounded
from skillup.results import Check, Evaluated
from skillup.spec.case import Case
from skillup.transcript import Value

Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class TurnEvaluation(Value):
    """What an evaluator says about one turn; `score` is in [0, 1]."""

    turn: int
    score: Score | None = None
    reasoning: str = ""


class Evaluation(Value):
    """What an evaluator returns. `score` is in [0, 1]; without a `status` the judge's `pass_threshold` decides.

    `not_evaluated` declines: it is no verdict, and counts in no mean. `turns` is empty, or has exactly one entry for
    every turn that ran.
    """

    status: Literal["passed", "failed", "not_evaluated"] | None = None
    score: Score | None = None
    reasoning: str
    turns: tuple[TurnEvaluation, ...] = ()


def complaint(evaluation: Evaluation, evidence: Evidence) -> str:
    """Why what an evaluator returned cannot be taken; empty when it can."""
    if evaluation.status is None and evaluation.score is None:
        return "it returned neither a status nor a score"
    ran, told = [turn.number for turn in evidence.turns], [one.turn for one in evaluation.turns]
    if told and len(told) != len(ran):
        given = f"{counted(len(told), 'result')} of turns, and {counted(len(ran), 'turn')} ran"
        return f"it returned {given}: give none, or one for each"
    if told and sorted(told) != ran:
        return f"it returned results for the turns {told}, and {ran} ran"
    return ""


def evaluator_checks(case: Case, evidence: Evidence, said: Evaluated | None) -> tuple[Check, ...]:
    """The check of the judge's evaluator; nothing where the judge has none."""
    judge = case.judge
    if judge is None or judge.evaluator is None:
        return ()
    found = _outcome(said, evidence, judge.threshold)
    counts = found.state != "unknown" and said is not None
    check = Check(
        id="judge.evaluator",
        role="evaluator",
        text=f"the evaluator {judge.evaluator} passes it",
        state=found.state,
        evidence=bounded(found.evidence),
        cause=found.cause,
        scope="conversation",
        required=found.cause != "not_evaluated",
        evaluator=judge.evaluator if counts and said and said.score is not None else None,
        score=said.score if counts and said else None,
        reasoning=(said.reasoning or None) if said else None,
    )
    return (check,)


def _outcome(said: Evaluated | None, evidence: Evidence, threshold: float) -> Outcome:
    missing = evidence.missing()
    if missing is not None:
        return missing
    if said is None:
        return Outcome("unknown", "the evaluator was not run", "not_asked")
    if said.error:
        return Outcome("unknown", f"the evaluator: {said.error}", "judging")
    score = "" if said.score is None else f"{said.score:.2f}: "
    if said.status == "not_evaluated":
        return Outcome("unknown", f"not evaluated: {said.reasoning}", "not_evaluated")
    reached = said.score is not None and said.score >= threshold
    passed = said.status == "passed" or (said.status is None and reached)
    return Outcome("met" if passed else "not_met", f"{score}{said.reasoning}")

"""From what a model said about a trial's criteria to checks: pure, and the same whenever it is done."""

from __future__ import annotations

from collections.abc import Sequence

from skillup.judging.describe import MAX_TEXT
from skillup.judging.evidence import Evidence
from skillup.judging.outcome import Outcome, bounded
from skillup.results import Check, CheckState, Criteria, CriterionResult, Judging, PartAssertion
from skillup.spec.case import Case
from skillup.spec.criteria import Criterion

_NOT_ASKED = "no model was asked"


def criteria_checks(case: Case, evidence: Evidence, said: Criteria | None) -> tuple[Check, ...]:
    """A check for each criterion, then one for the score that they reach together; nothing without criteria.

    Where parts of the conversation are scored, the score is theirs and is made elsewhere.
    """
    if case.judge is None or not case.criteria:
        return ()
    results = {result.id: result for result in said.results} if said else {}
    checks = tuple(_check(one, absent(one, evidence), results.get(one.id)) for one in case.criteria)
    if case.scoring is not None:
        negated = {f"judge.criteria.{identity}" for identity in case.scoring.negated}
        return tuple(turned_round(check) if check.id in negated else check for check in checks)
    return (*checks, _score(case.criteria, checks, case.judge.threshold))


def turned_round(check: Check) -> Check:
    """The check of a negated grader: it is met when what it asks is not; what is unknown stays unknown."""
    states: dict[CheckState, CheckState] = {"met": "not_met", "not_met": "met", "unknown": "unknown"}
    return check.model_copy(
        update={
            "text": f"must not hold: {check.text}",
            "state": states[check.state],
            "score": None if check.score is None else 1.0 - check.score,
            "share": None if check.share is None else 1.0 - check.share,
            "assertions": tuple(_turned_assertion(one) for one in check.assertions),
        }
    )


def _turned_assertion(one: PartAssertion) -> PartAssertion:
    state: CheckState = "not_met" if one.passed else "met"
    return one.model_copy(update={"passed": not one.passed, "score": float(not one.passed), "state": state})


def absent(criterion: Criterion, evidence: Evidence) -> Outcome | None:
    """Why a criterion is about nothing that took place, or None when it can be judged.

    Of a conversation that was meant to stop early only single turns are judged: the whole of it does not exist.
    """
    if criterion.turn is not None:
        return None if evidence.turn(criterion.turn) else evidence.absent(criterion.turn)
    if evidence.record.ending.by_skip:
        return evidence.missing()
    return None if evidence.turns else evidence.absent(1)


def _check(criterion: Criterion, missing: Outcome | None, result: CriterionResult | None) -> Check:
    found = missing or _outcome(result)
    return Check(
        id=f"judge.criteria.{criterion.id}",
        role="criterion",
        text=bounded(criterion.text, MAX_TEXT),
        state=found.state,
        evidence=bounded(found.evidence),
        turn=criterion.turn,
        cause=found.cause,
        scope="conversation" if criterion.turn is None else "turn",
        required=criterion.required,
        score=result.score if result and not missing else None,
        reasoning=result.reason or None if result and not missing else None,
    )


def _outcome(result: CriterionResult | None) -> Outcome:
    if result is None or (result.verdict is None and not result.error):
        return Outcome("unknown", _NOT_ASKED, "not_asked")
    if result.verdict is None:
        return Outcome("unknown", result.error, "judging")
    quotes = " … ".join(f"'{quote}'" for quote in result.evidence)
    said = quotes or result.reason
    if result.verdict == "cannot_determine":
        return Outcome("unknown", f"the judge cannot determine it: {result.reason}", "undetermined")
    partly = result.score is not None and 0 < result.score < 1
    return Outcome(result.verdict, f"{result.score:.2f}: {said}" if partly else said)


def _score(criteria: Sequence[Criterion], checks: Sequence[Check], threshold: float) -> Check:
    """Whether the weighted mean reaches the threshold, as far as it is certain: what is unknown could be 0 or 1."""
    low, high = score_range(criteria, checks)
    value = f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}"
    missed = [_id(check) for check in checks if check.score is not None and check.score < 1]
    below = f"; below 1: {', '.join(missed)}" if missed else ""
    unknown = [(check, _id(check)) for check in checks if check.score is None]
    return score_check("criteria", threshold, (low, high), f"{value}{below}", unknown)


def _id(check: Check) -> str:
    return check.id.removeprefix("judge.criteria.")


def score_check(
    whose: str, threshold: float, ends: tuple[float, float], shown: str, unknown: Sequence[tuple[Check, str]]
) -> Check:
    """Whether a score between two ends reaches the threshold, as far as it is certain.

    `unknown` are the checks that leave it open, each with what it is called.
    """
    low, high = ends
    state: CheckState = "unknown"
    if low >= threshold:
        state = "met"
    elif high < threshold:
        state = "not_met"
    ordered = sorted(unknown, key=lambda pair: pair[0].cause != "judging")
    first = f"; not known: {ordered[0][1]}: {ordered[0][0].evidence}" if ordered else ""
    return Check(
        id="judge.score",
        role="score",
        text=f"the score of the {whose} is at least {threshold:g}",
        state=state,
        evidence=bounded(f"{shown}{first}"),
        cause=ordered[0][0].cause if ordered and state == "unknown" else None,
        scope="conversation",
        score=low if low == high else None,
    )


def score_range(criteria: Sequence[Criterion], checks: Sequence[Check]) -> tuple[float, float]:
    """The weighted mean when everything that is unknown were 0, and when it were 1; rounded against float noise."""
    total = sum(criterion.weight for criterion in criteria)
    pairs = list(zip(criteria, checks, strict=True))
    low = sum(one.weight * (check.score or 0.0) for one, check in pairs) / total
    high = sum(one.weight * (1.0 if check.score is None else check.score) for one, check in pairs) / total
    return round(low, 9), round(high, 9)


def judging_of(said: Criteria | None) -> Judging | None:
    """The model's part in the verdict; None when no model was asked."""
    if said is None or said.judge is None or not said.calls:
        return None
    agreements = [result.agreement for result in said.results if result.agreement is not None]
    several = any(len(result.samples) > 1 for result in said.results)
    return Judging(
        judge=said.judge,
        revision=said.revision,
        calls=said.calls,
        usage=said.usage,
        agreement=min(agreements) if agreements and several else None,
        notes=said.notes,
    )


def reasoning_of(checks: Sequence[Check]) -> str | None:
    """What the judge said about the whole conversation."""
    scripts = [check.reasoning for check in checks if check.role in ("script", "evaluator") and check.reasoning]
    whole = [check for check in checks if check.role == "criterion" and check.turn is None and check.reasoning]
    said = [f"{check.id.removeprefix('judge.criteria.')}: {check.reasoning}" for check in whole]
    return "\n".join((*scripts, *said)) or None

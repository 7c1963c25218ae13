"""The verdict on a trial by all its judges: each decides for itself, and then they are combined.

ERROR outranks FAIL, FAIL outranks SKIP, SKIP outranks PASS: a judge that could not judge leaves a hole, whatever the
others say. What fails without any judge (a gate, a limit, `expect`) is FAIL before any of them is heard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from skillup.judging.criteria import criteria_checks, judging_of, reasoning_of
from skillup.judging.evaluators import evaluator_checks
from skillup.judging.evidence import Evidence
from skillup.judging.judge import judge, own_checks, standing_checks, verdict_from
from skillup.judging.verdict import Decision, decide
from skillup.results import Check, Criteria, Evaluated, JudgeVerdict, Verdict
from skillup.spec.case import Case
from skillup.spec.judges import Combine, JudgeMember

_ABOUT_THE_SCORE = ("score", "criterion", "evaluator")
"""Codes of a FAIL that the score of the criteria, or the evaluator's, already says."""

_NONE: Mapping[str, Evaluated | None] = MappingProxyType({})


def judge_all(
    case: Case,
    evidence: Evidence,
    said: Mapping[str, Criteria | None],
    evaluations: Mapping[str, Evaluated | None] = _NONE,
) -> Verdict:
    """The verdict on one trial.

    `said` is what models have said, by the id of the judge, and `evaluations` what evaluators have; "" is the only
    judge's.
    """
    if not case.judges:
        return judge(case, evidence, said.get(""), evaluations.get(""))
    parts = [_part(case, one, evidence, said.get(one.id), evaluations.get(one.id)) for one in case.judges]
    standing = standing_checks(case, evidence)
    checks = (*standing, *(check for part in parts for check in part.checks))
    combined = _combined(case.combine or Combine(), standing, checks, parts, evidence)
    verdict = verdict_from(evidence, checks, combined.decision)
    reasons = [f"{part.result.id}: {part.result.reasoning}" for part in parts if part.result.reasoning]
    return verdict.model_copy(
        update={
            "judges": tuple(part.result for part in parts),
            "score": combined.score,
            "pass_threshold": combined.threshold,
            "reasoning": "\n".join(reasons) or None,
            "partial": combined.decision.code == "partial",
        }
    )


@dataclass(frozen=True)
class _Part:
    """What one judge says; its checks have the ids that they have in the whole."""

    member: JudgeMember
    decision: Decision
    checks: tuple[Check, ...]
    result: JudgeVerdict


@dataclass(frozen=True)
class _Combined:
    """What all say together; the score is there where one counts, and None where it is not certain."""

    decision: Decision
    score: float | None = None
    threshold: float | None = None


def _part(
    case: Case, member: JudgeMember, evidence: Evidence, said: Criteria | None, evaluation: Evaluated | None
) -> _Part:
    alone = case.judged_by(member)
    criteria = criteria_checks(alone, evidence, said)
    asked = (*evaluator_checks(alone, evidence, evaluation), *criteria)
    checks = (*own_checks(alone, evidence), *asked)
    decision = decide(evidence.record.ending, checks, evidence.record.failures)
    score = next((check.score for check in asked if check.role in ("score", "evaluator")), None)
    against = decision.status == "FAIL" and decision.code not in _ABOUT_THE_SCORE
    if decision.status in ("PASS", "FAIL") and (score is None or against):
        certain = not criteria or against
        score = float(decision.status == "PASS") if certain else None
    result = JudgeVerdict(
        id=member.id,
        type=member.type,
        status=decision.status,
        code=decision.code,
        reason=decision.reason,
        score=score if decision.status in ("PASS", "FAIL") else None,
        pass_threshold=member.threshold if asked else None,
        weight=member.weight,
        required=member.required,
        reasoning=reasoning_of(checks),
        judging=judging_of(said),
    )
    prefix = f"judges.{member.id}."
    named = tuple(check.model_copy(update={"id": prefix + check.id.removeprefix("judge.")}) for check in checks)
    return _Part(member, decision, named, result)


def _combined(
    combine: Combine, standing: Sequence[Check], checks: Sequence[Check], everybody: Sequence[_Part], evidence: Evidence
) -> _Combined:
    parts = [part for part in everybody if part.decision.code != "not_evaluated"]
    ending, failures = evidence.record.ending, evidence.record.failures
    if ending.how == "error" or ending.never_began:
        return _Combined(decide(ending, checks, failures))
    before = decide(ending, standing, failures) if standing or ending.how != "completed" else None
    if before is not None and before.status in ("FAIL", "ERROR"):
        return _Combined(before)
    if not parts and before is None:
        return _Combined(_first(everybody, "UNCHECKED") or everybody[0].decision)
    if not parts and before is not None:
        return _Combined(before)
    broken = _first(parts, "ERROR")
    if broken is not None:
        return _Combined(broken)
    voters = parts if combine.by == "all_required" else [part for part in parts if part.member.required]
    refused = _first(voters, "FAIL")
    low, high = _scores(combine, parts)
    scored = combine.by != "all_required"
    score, threshold = (low if low == high else None, combine.threshold) if scored else (None, None)
    if refused is not None:
        return _Combined(refused, score, threshold)
    if scored and high < combine.threshold:
        return _Combined(Decision("FAIL", "score", _told(combine, high, parts)), score, threshold)
    skipped = before if before is not None and before.status == "SKIP" else _first(parts, "SKIP")
    open_ = skipped or _first(parts, "UNCHECKED")
    if open_ is not None:
        return _Combined(open_, score, threshold)
    reason = _told(combine, low, parts) if scored else f"all {len(parts)} judges pass it"
    if len(parts) == 1 and not scored:
        reason = "the judge passes it"
    return _Combined(Decision("PASS", "all_met", reason), score, threshold)


def _first(parts: Sequence[_Part], status: str) -> Decision | None:
    """The first judge that says so, as the decision of all; None when none does."""
    saying = [part for part in parts if part.decision.status == status]
    if not saying:
        return None
    decision, more = saying[0].decision, len(saying) - 1
    others = f" ({more} more {'judge says' if more == 1 else 'judges say'} {status})" if more else ""
    reason = f"judge {saying[0].member.id}{others}: {decision.reason}"
    error = decision.error.model_copy(update={"message": reason}) if decision.error else None
    return Decision(decision.status, decision.code, reason, error, decision.violations_before_error)


def _scores(combine: Combine, parts: Sequence[_Part]) -> tuple[float, float]:
    """The score of all if every judge that gave none had given 0, and 1; rounded against float noise."""
    ends = []
    for unknown in (0.0, 1.0):
        scores = [unknown if part.result.score is None else part.result.score for part in parts]
        if combine.by == "mean":
            weights = [part.member.weight for part in parts]
            total = sum(w * s for w, s in zip(weights, scores, strict=True))
            ends.append(total / sum(weights) if sum(weights) else unknown)
        else:
            ends.append(min(scores))
    return round(ends[0], 9), round(ends[1], 9)


def _told(combine: Combine, score: float, parts: Sequence[_Part]) -> str:
    what = "weighted mean" if combine.by == "mean" else "least score"
    each = ", ".join(
        f"{part.result.id} {'?' if part.result.score is None else f'{part.result.score:.2f}'}" for part in parts
    )
    held = "reaches" if score >= combine.threshold else "is under"
    return f"the {what} of the judges, {score:.2f}, {held} {combine.threshold:g}: {each}"

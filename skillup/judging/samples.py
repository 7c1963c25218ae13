"""What several answers to one criterion come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from skillup.results import CriterionResult, CriterionSample, CriterionVerdict
from skillup.spec.criteria import Criterion


def together(criterion: Criterion, samples: Sequence[CriterionSample], threshold: float) -> CriterionResult:
    """What the samples say together: the verdict of most of them, with the first that says so as its witness.

    As many for one verdict as for another is no verdict: it cannot be determined. The scores that are there are
    averaged, unless most of the samples have none.
    """
    counted = Counter(sample.verdict for sample in samples).most_common()
    tied = len(counted) > 1 and counted[0][1] == counted[1][1]
    scores = [sample.score for sample in samples if sample.score is not None]
    verdict: CriterionVerdict = "cannot_determine" if tied else counted[0][0]
    score = {"met": 1.0, "not_met": 0.0}.get(verdict)
    if criterion.scored and scores and (verdict != "cannot_determine" or len(scores) == len(samples)):
        score = sum(scores) / len(scores)
        verdict = "met" if score >= threshold else "not_met"
    agreeing = [sample for sample in samples if sample.verdict == verdict]
    said = ", ".join(f"{count}× {name}" for name, count in counted)
    return CriterionResult(
        id=criterion.id,
        verdict=verdict,
        score=score,
        evidence=agreeing[0].evidence if agreeing else samples[0].evidence,
        reason=agreeing[0].reason if agreeing else f"the samples do not agree: {said}",
        agreement=counted[0][1] / len(samples),
        samples=tuple(samples),
    )

"""Several judges of one case, and how their verdicts make one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import model_validator

from skillup.spec.criteria import CriterionId, Weight
from skillup.spec.judge import DEFAULT_THRESHOLD, Judge
from skillup.spec.problems import fault_at
from skillup.spec.values import Flag, Spec, Threshold

Combination = Literal["all_required", "mean", "min"]


class JudgeMember(Judge):
    """One of several judges. `weight` counts in a mean; a `required` one must say yes whatever the score is."""

    id: CriterionId
    weight: Weight = 1.0
    required: Flag = False


class Combine(Spec):
    """How several verdicts make one: all must pass, or their scores' weighted mean or least reaches a threshold.

    A word alone is `by`.
    """

    by: Combination = "all_required"
    pass_threshold: Threshold | None = None

    @property
    def threshold(self) -> float:
        """The score that must be reached, above 0 and at most 1."""
        return DEFAULT_THRESHOLD if self.pass_threshold is None else self.pass_threshold

    @model_validator(mode="before")
    @classmethod
    def _word(cls, value: Any) -> Any:
        return {"by": value} if isinstance(value, str) else value


def refuse_unclear(judge: Judge | None, judges: Sequence[JudgeMember], combine: Combine | None) -> None:
    """Raises a fault where it is not clear who judges, or where a judge could change nothing."""
    if judge is not None and judges:
        raise fault_at("`judge` and `judges` together: which of them counts is not clear", "judges", hint="keep one")
    seen: dict[str, int] = {}
    for index, member in enumerate(judges):
        if member.id in seen:
            message = f"the id {member.id} is taken by judge {seen[member.id] + 1}"
            raise fault_at(message, "judges", index, "id", hint="give each its own")
        seen[member.id] = index
        if member.type == "none":
            raise fault_at("one of several judges that checks nothing", "judges", index, "type", hint="remove it")
        if member.scoring is not None:
            hint = "write it below `judge`, with all that is to be scored"
            raise fault_at(
                "the parts of a conversation are scored by one judge alone", "judges", index, "scoring", hint=hint
            )
    by = combine.by if combine else "all_required"
    if by == "all_required" and combine is not None and combine.pass_threshold is not None:
        hint = "write `by: mean` or `by: min`, or remove it"
        raise fault_at("where all must pass there is no score to reach", "combine", "pass_threshold", hint=hint)
    for index, member in enumerate(judges):
        unread = {"weight"} if by == "min" else {"weight", "required"} if by == "all_required" else set()
        for key in sorted(unread & member.model_fields_set):
            hint = "write `combine: mean`, or remove it"
            raise fault_at(
                f"`{key}` changes nothing where judges are combined by {by}", "judges", index, key, hint=hint
            )
    if by == "mean" and judges and not sum(member.weight for member in judges):
        raise fault_at("the weights sum to 0, so no judge could change the score", "judges", hint="weigh one of them")

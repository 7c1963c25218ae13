"""What users write about the money, tokens and time of a whole run."""

from __future__ import annotations

from collections.abc import Sequence

from skillup.spec.values import LimitCount, LimitDollars, LimitSeconds, Spec


class Budget(Spec):
    """What all trials of a run may take together; once it is used up no further one begins."""

    max_cost_usd: LimitDollars = None
    max_tokens: LimitCount = None
    max_seconds: LimitSeconds = None


def tightest(budgets: Sequence[Budget], above_all: Budget) -> Budget:
    """The budget of a run of several suites: the least of each figure, unless `above_all` says another."""

    def least(name: str) -> float | None:
        said = getattr(above_all, name)
        given = [value for budget in budgets if (value := getattr(budget, name)) is not None]
        return said if said is not None else min(given, default=None)

    return Budget.model_validate({name: least(name) for name in Budget.model_fields})

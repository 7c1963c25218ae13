"""What a turn and a trial may cost in money and tokens, held against what the CLI says that they did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from skillup.engines.base import TurnRequest
from skillup.errors import TrialError
from skillup.execution.turn import Limit
from skillup.spec.agent import Agent
from skillup.spec.case import DEFAULT_CASE_SECONDS, Case
from skillup.spec.turn import Turn
from skillup.transcript import Usage, add_usage

LEAST_DOLLARS = 0.0001
"""What a CLI is told when nothing is left: it ends after its first request, and says that it was the limit."""

_Figure = Literal["cost_usd", "total_tokens"]


@dataclass(frozen=True)
class Allowance:
    """At most so much of one figure, for one turn or for all of a case together; `key` raises it."""

    figure: _Figure
    whole_case: bool
    most: float
    key: str

    @property
    def name(self) -> str:
        """The name in results, such as `turn_cost_usd` or `case_tokens`."""
        return f"{'case' if self.whole_case else 'turn'}_{self.figure.removeprefix('total_')}"

    def used(self, usages: Sequence[Usage]) -> float | None:
        """How much of it the turns so far have used, the last one last; None when one of them does not say."""
        value = getattr(add_usage(list(usages if self.whole_case else usages[-1:])), self.figure)
        return None if value is None else float(value)

    def limit(self, used: float) -> Limit:
        """The limit that was reached, for messages."""
        return Limit(0.0, self.name, f"{self._say(used)} of {self._say(self.most)}", self.key)

    def _say(self, amount: float) -> str:
        return f"${amount:.4f}" if self.figure == "cost_usd" else f"{amount:,.0f} tokens"


def used_up(case: Case, agent: Agent, attempts: Sequence[Usage]) -> bool:
    """Whether the attempts at a trial have together taken what one may take, as far as they said it."""
    for allowance in allowances(1, case.turns[0], case, agent):
        figures = (getattr(usage, allowance.figure) for usage in attempts)
        if allowance.whole_case and sum(figure for figure in figures if figure is not None) >= allowance.most:
            return True
    return False


def allowances(number: int, turn: Turn, case: Case, agent: Agent) -> Iterator[Allowance]:
    """All that hold for a turn: its own, the case's and the agent's."""
    place = f"input.turns[{number - 1}]"
    written: tuple[tuple[_Figure, bool, float | None, str], ...] = (
        ("cost_usd", False, turn.max_cost_usd, f"{place}.max_cost_usd"),
        ("total_tokens", False, turn.max_tokens, f"{place}.max_tokens"),
        ("cost_usd", True, case.constraints.max_cost_usd, "constraints.max_cost_usd"),
        ("total_tokens", True, case.constraints.max_tokens, "constraints.max_tokens"),
        ("cost_usd", True, agent.limits.max_cost_usd, "limits.max_cost_usd of the agent"),
        ("total_tokens", True, agent.limits.max_tokens, "limits.max_tokens of the agent"),
    )
    for figure, whole_case, most, key in written:
        if most is not None:
            yield Allowance(figure, whole_case, most, key)


def case_limit(case: Case, agent: Agent) -> tuple[float, str]:
    """Seconds that all turns of a case may take together, and the key that raises them."""
    seconds = case.constraints.timeout_seconds or DEFAULT_CASE_SECONDS
    own = agent.limits.max_seconds
    if own is not None and own < seconds:
        return own, "limits.max_seconds of the agent"
    return seconds, "constraints.timeout_seconds"


def step_limit(case: Case, agent: Agent) -> tuple[int, str] | None:
    """Replies of the model that a turn may take, and the key that raises them, where the case or the agent says it."""
    written = (
        (case.constraints.max_steps, "constraints.max_steps"),
        (agent.limits.max_steps, "limits.max_steps of the agent"),
    )
    return min(((most, key) for most, key in written if most is not None), default=None)


def bounded(
    request: TurnRequest, held: Sequence[Allowance], steps: tuple[int, str] | None, before: Sequence[Usage]
) -> tuple[TurnRequest, dict[str, Limit]]:
    """The request with what a CLI that can bound itself is told, and these limits by the names that it ends with."""
    bounds = {"steps": Limit(0.0, "steps", f"{steps[0]}", steps[1])} if steps else {}
    dollars = _dollars_left(held, before)
    if dollars is not None:
        bounds["cost"] = dollars[1]
    around = replace(
        request.around,
        max_steps=steps[0] if steps else None,
        max_cost_usd=dollars[0] if dollars else None,
    )
    return replace(request, around=around), bounds


def _dollars_left(held: Sequence[Allowance], before: Sequence[Usage]) -> tuple[float, Limit] | None:
    """What the next turn may cost, and the limit that this is; None when there is none.

    A turn that did not say what it cost has ended the conversation, so all of `before` is known.
    """
    left: list[tuple[float, Allowance]] = []
    for allowance in held:
        if allowance.figure == "cost_usd":
            used = allowance.used(before) if allowance.whole_case and before else 0.0
            left.append((max(allowance.most - (used or 0.0), LEAST_DOLLARS), allowance))
    if not left:
        return None
    dollars, tightest = min(left, key=lambda one: one[0])
    return dollars, Limit(0.0, tightest.name, f"${tightest.most:g}", tightest.key)


def overspent(
    number: int, held: Sequence[Allowance], usages: Sequence[Usage], engine: str
) -> Limit | TrialError | None:
    """The limit that a turn has reached, the last of `usages`; a fault where nobody can tell; else None."""
    for allowance in held:
        used = allowance.used(usages)
        if used is not None and used > allowance.most:
            return allowance.limit(used)
    unknown = next((allowance for allowance in held if allowance.used(usages) is None), None)
    if unknown is None:
        return None
    what = "cost" if unknown.figure == "cost_usd" else "used"
    message = f"{engine} did not say what turn {number} {what}, so {unknown.key} cannot be held to"
    return TrialError("unobservable", message, turn=number, hint=f"remove {unknown.key}, or see why in turn-N/stdout")

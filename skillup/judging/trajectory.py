"""Trajectory evaluators: rules on the course of a conversation, as scores in [0, 1].

An evaluator and its rule are the same thing and are judged once: what holds scores 1.0, what does not 0.0, and what
nobody can tell has no score. With nothing to check the score is 1.0, and the reasoning says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from skillup.judging.outcome import Outcome
from skillup.spec.call_rules import NothingToCheck
from skillup.spec.judge import TRAJECTORY_THRESHOLD
from skillup.spec.rules import Rule

EVALUATORS: Mapping[str, str] = MappingProxyType(
    {
        "tool_order": "tool_order",
        "tool_not_called": "tools_avoided",
        "tools_only": "tools_only",
        "max_tool_calls": "max_tool_calls",
        "no_repeated_calls": "no_repeated_calls",
        "max_calls_after": "max_calls_after",
        "no_premature_stop": "no_premature_stop",
    }
)
"""The name of the score that a rule gives, by the rule's kind."""

_HARNESS_NAMES: Mapping[str, str] = MappingProxyType({"tool_order_correct": "tool_order"})


@dataclass(frozen=True)
class Score:
    """What one evaluator says of a conversation; `value` is None when it cannot be told."""

    evaluator: str
    value: float | None
    reasoning: str

    @property
    def passed(self) -> bool:
        """Whether the score is good enough; what cannot be told is not."""
        return self.value is not None and self.value >= TRAJECTORY_THRESHOLD


def score(rule: Rule, outcome: Outcome) -> Score | None:
    """The score that a judged rule amounts to; None for rules that are no trajectory evaluators."""
    if isinstance(rule, NothingToCheck):
        name: str | None = _HARNESS_NAMES.get(rule.evaluator, rule.evaluator)
    else:
        name = EVALUATORS.get(rule.kind)
    if name is None:
        return None
    value = {"met": 1.0, "not_met": 0.0}.get(outcome.state)
    return Score(name, value, outcome.evidence)

"""Rules on what a conversation may cost: tokens, money, time. What is not known is never within a limit."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from skillup.spec.rules import Rule
from skillup.spec.values import Dollars, Seconds, Whole


class _Limit(Rule):
    """The shape that the limits share: `max`, and a bare number for it."""

    refused_in_failure = "write it as a success rule: there it fails when there is more"

    @model_validator(mode="before")
    @classmethod
    def _bare_number(cls, value: Any) -> Any:
        return {"max": value} if isinstance(value, (int, float)) and not isinstance(value, bool) else value

    @property
    def forbids(self) -> bool:
        return True


class MaxTokens(_Limit):
    """At most so many tokens; `total` is input and output together, caches left out."""

    kind = "max_tokens"
    max: Whole = Field(ge=1)
    of: Literal["total", "input", "output"] = "total"


class MaxCostUsd(_Limit):
    """At most so much money, as the CLI claims it."""

    kind = "max_cost_usd"
    max: Dollars


class MaxSeconds(_Limit):
    """At most so many seconds at work: the turns, without set-up and without waiting between them."""

    kind = "max_seconds"
    max: Seconds

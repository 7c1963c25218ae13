"""`max_calls_after`: once something is done, the agent must stop."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from skillup.spec.problems import fault_at
from skillup.spec.rules import (
    FileContains,
    FilesExist,
    OutputContains,
    OutputMatches,
    Rule,
    ToolCalled,
)
from skillup.spec.values import Spec, Whole


class Milestone(Spec):
    """The rule that says when the work is done: one, without a `turn`, that something must come about to meet."""

    tool_called: ToolCalled | None = None
    output_contains: OutputContains | None = None
    output_matches: OutputMatches | None = None
    files_exist: FilesExist | None = None
    file_contains: FileContains | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        written = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(written) != 1:
            names = ", ".join(type(self).model_fields)
            raise fault_at("exactly one rule says when the work is done", hint=f"give one of {names}")
        if self.rule.turn is not None:
            raise fault_at("the rule is looked for in every turn", written[0], "turn", hint="remove `turn`")
        if self.rule.forbids:
            raise fault_at("this holds before the agent has done anything", written[0], hint="say what must be there")
        return self

    @property
    def rule(self) -> Rule:
        """The one rule."""
        found = next(rule for name in type(self).model_fields if (rule := getattr(self, name)) is not None)
        assert isinstance(found, Rule)  # noqa: S101 - every field above is one
        return found


class MaxCallsAfter(Rule):
    """Once `rule` holds, at most `n` more calls are made."""

    kind = "max_calls_after"
    refused_in_failure = "write it as a success rule: there it fails when the agent goes on"
    rule: Milestone
    n: Whole = Field(ge=0)

    @model_validator(mode="before")
    @classmethod
    def _bare_name(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("rule"), str):
            return {**value, "rule": {"tool_called": value["rule"]}}
        return value

    @property
    def forbids(self) -> bool:
        return True

    @property
    def by_turn(self) -> bool:
        """Whether the milestone is looked for after each turn; that of a call is found within one, too."""
        return not isinstance(self.rule.rule, ToolCalled)

    @property
    def files_read(self) -> tuple[str, ...]:
        return self.rule.rule.files_read

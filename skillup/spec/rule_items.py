"""One item of a list of rules, such as `- tool_called: {name: bash}`, with exactly one rule in it.

The per-turn names of SUP-0001 (`turn_response_contains`, …) and the evaluators of the trajectory harness are further
names that turn into the same rules, so that below loading only one form of each rule exists: `item.rule`.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from skillup.spec.call_rules import (
    AskedUser,
    MaxToolCalls,
    NoPrematureStop,
    NoRepeatedCalls,
    NothingToCheck,
    Step,
    ToolOrder,
    ToolsOnly,
)
from skillup.spec.command_rule import CommandHolds
from skillup.spec.content_rules import FileEquals, FileMatches, OutputEquals
from skillup.spec.json_rules import JsonFields, JsonPath, JsonSchema
from skillup.spec.limit_rules import MaxCostUsd, MaxSeconds, MaxTokens
from skillup.spec.milestones import MaxCallsAfter
from skillup.spec.problems import fault_at
from skillup.spec.rules import (
    FileContains,
    FilesExist,
    FilesNotExist,
    OutputContains,
    OutputMatches,
    Rule,
    ToolCalled,
    ToolNotCalled,
    WorkspaceChanged,
)
from skillup.spec.skill_rules import SkillUsed
from skillup.spec.values import Flag, Pattern, Spec, Text, TurnReference, Whole


class _InTurn(Spec):
    turn: Whole = Field(ge=1)


class TurnResponseContains(_InTurn):
    """SUP-0001: texts in the answer of one turn."""

    contains_all: tuple[Text, ...] = ()
    contains_any: tuple[Text, ...] = ()
    ignore_case: Flag | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not (self.contains_all or self.contains_any):
            raise fault_at("the rule checks nothing", hint="give contains_all or contains_any")
        return self


class TurnResponseNotContains(_InTurn):
    """SUP-0001: texts that the answer of one turn must not hold."""

    not_contains: tuple[Text, ...] = Field(min_length=1)
    ignore_case: Flag | None = None


class TurnResponseMatches(_InTurn):
    """Patterns in the answer of one turn."""

    matches_all: tuple[Pattern, ...] = ()
    matches_any: tuple[Pattern, ...] = ()
    ignore_case: Flag | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not (self.matches_all or self.matches_any):
            raise fault_at("the rule checks nothing", hint="give matches_all or matches_any")
        return self


class ToolCalledInTurn(ToolCalled):
    """SUP-0001: `tool_called` of one turn."""

    turn: TurnReference = Field()


class ToolNotCalledInTurn(ToolNotCalled):
    """SUP-0001: `tool_not_called` of one turn."""

    turn: TurnReference = Field()


class WorkspaceInTurn(WorkspaceChanged):
    """`workspace_changed` of one turn."""

    turn: TurnReference = Field()


class ToolOrderCorrect(Spec):
    """The trajectory harness's name of `tool_order`; with nothing expected it scores 1.0."""

    expected: tuple[Step, ...]
    mode: Literal["in_order", "any_order", "exact"] = "in_order"
    turn: TurnReference | None = None


class ToolsAvoided(Spec):
    """The trajectory harness's name of `tool_not_called`; with nothing forbidden it scores 1.0."""

    forbidden: tuple[Text, ...]
    turn: TurnReference | None = None


class ExitCode(Spec):
    """Read only to be refused with the reason."""

    @model_validator(mode="before")
    @classmethod
    def _refuse(cls, _value: Any) -> Any:
        raise fault_at(
            "`exit_code` can never differ on a built-in engine: a turn that ends with another code is ERROR",
            hint="check the answer, the workspace or a tool call instead",
        )


class RuleItem(Spec):
    """One item of a list of rules: exactly one rule."""

    output_contains: OutputContains | None = None
    output_matches: OutputMatches | None = None
    output_equals: OutputEquals | None = None
    tool_called: ToolCalled | None = None
    tool_not_called: ToolNotCalled | None = None
    tool_order: ToolOrder | None = None
    tools_only: ToolsOnly | None = None
    max_tool_calls: MaxToolCalls | None = None
    no_repeated_calls: NoRepeatedCalls | None = None
    max_calls_after: MaxCallsAfter | None = None
    no_premature_stop: NoPrematureStop | None = None
    asked_user: AskedUser | None = None
    max_tokens: MaxTokens | None = None
    max_cost_usd: MaxCostUsd | None = None
    max_seconds: MaxSeconds | None = None
    files_exist: FilesExist | None = None
    files_not_exist: FilesNotExist | None = None
    file_contains: FileContains | None = None
    file_matches: FileMatches | None = None
    file_equals: FileEquals | None = None
    json_path: JsonPath | None = None
    json_schema: JsonSchema | None = None
    json_fields: JsonFields | None = None
    workspace_changed: WorkspaceChanged | None = None
    skill_used: SkillUsed | None = None
    command: CommandHolds | None = None
    turn_response_contains: TurnResponseContains | None = None
    turn_response_not_contains: TurnResponseNotContains | None = None
    turn_response_matches: TurnResponseMatches | None = None
    tool_called_in_turn: ToolCalledInTurn | None = None
    tool_not_called_in_turn: ToolNotCalledInTurn | None = None
    workspace_in_turn: WorkspaceInTurn | None = None
    tool_order_correct: ToolOrderCorrect | None = None
    tools_avoided: ToolsAvoided | None = None
    exit_code: ExitCode | None = None

    @model_validator(mode="before")
    @classmethod
    def _exactly_one(cls, value: Any) -> Any:
        if isinstance(value, dict):
            if not value:
                raise fault_at("the rule is empty", hint="write one rule, such as output_contains")
            if len(value) > 1 and set(value) <= set(cls.model_fields):
                names = ", ".join(sorted(map(str, value)))
                raise fault_at(f"two rules in one list item: {names}", hint="give each rule its own `-`")
            if "turn" in value:
                rule = next((name for name in value if name in cls.model_fields), "the rule")
                raise fault_at("`turn` belongs inside the rule", "turn", hint=f"indent it below {rule}")
            for name, body in value.items():
                if body is None:
                    raise fault_at("the rule has no body", str(name), hint="write what it checks below it")
        return value

    @property
    def name(self) -> str:
        """The name that the user wrote."""
        return next(iter(self.model_fields_set))

    @property
    def rule(self) -> Rule:
        """The one rule of this item, in its only form."""
        written = getattr(self, self.name)
        match written:
            case TurnResponseContains():
                texts = {"all": written.contains_all, "any": written.contains_any}
                return OutputContains(turn=written.turn, ignore_case=written.ignore_case, **texts)
            case TurnResponseNotContains():
                return OutputContains(
                    turn=written.turn, ignore_case=written.ignore_case, **{"not": written.not_contains}
                )
            case TurnResponseMatches():
                patterns = {"all": written.matches_all, "any": written.matches_any}
                return OutputMatches(turn=written.turn, ignore_case=written.ignore_case, **patterns)
            case ToolOrderCorrect() if written.expected:
                return ToolOrder(order=written.expected, mode=written.mode, turn=written.turn)
            case ToolsAvoided() if written.forbidden:
                return ToolNotCalled(name=written.forbidden, turn=written.turn)
            case ToolOrderCorrect() | ToolsAvoided():
                return NothingToCheck(evaluator=self.name)
            case Rule():
                return written
        raise AssertionError(f"unreachable: {self.name} has no rule")

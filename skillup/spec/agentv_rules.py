"""The assertions of AgentV's files that need no model, as they are written there."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from skillup.spec.criteria import Weight
from skillup.spec.problems import fault_at, quoted
from skillup.spec.scoring import Gated
from skillup.spec.values import Dollars, Flag, Message, Pattern, Spec, Text, Whole, Words, compile_pattern, number


class AgentVGrader(Gated):
    """What all assertions share."""

    name: Words | None = None
    weight: Weight = 1.0
    negate: Flag = False


class OneText(AgentVGrader):
    """One text that the reply holds."""

    type: Literal["contains", "icontains"]
    value: Text


class SeveralTexts(AgentVGrader):
    """Several texts of which one, or each, is in the reply."""

    type: Literal["contains-any", "contains-all", "icontains-any", "icontains-all"]
    value: tuple[Text, ...] = Field(min_length=1)


class WholeText(AgentVGrader):
    """How the reply begins or ends, or all of it; blanks at both ends are left out."""

    type: Literal["starts-with", "ends-with", "equals"]
    value: Message


class Regex(AgentVGrader):
    """A pattern that is found in the reply."""

    type: Literal["regex"]
    value: Pattern
    flags: str = ""

    @model_validator(mode="after")
    def _known_flags(self) -> Self:
        unknown = sorted(set(self.flags) - set("imsgu"))
        if unknown:
            raise fault_at(
                f"the flag {quoted(unknown[0])} is not known", "flags", hint="i, m and s mean something here"
            )
        compile_pattern(self.pattern)
        return self

    @property
    def pattern(self) -> str:
        """The pattern with those flags that make a difference."""
        flags = "".join(flag for flag in "ims" if flag in self.flags)
        return f"(?{flags}){self.value}" if flags else self.value


class IsJson(AgentVGrader):
    """The reply is JSON."""

    type: Literal["is-json"]


class AgentVField(Spec):
    """One field that is compared: a path such as `items[0].price`, and how."""

    path: Words
    match: Literal["exact", "numeric_tolerance", "date"] = "exact"
    required: Flag = True
    weight: Weight = 1.0
    tolerance: Annotated[float, BeforeValidator(number), Field(ge=0, allow_inf_nan=False)] | None = None
    relative: Flag | None = None
    formats: tuple[Text, ...] = ()


class FieldAccuracy(AgentVGrader):
    """The reply is JSON whose fields are those of the turn's `expected_output`."""

    type: Literal["field-accuracy"]
    fields: tuple[AgentVField, ...] = Field(min_length=1)
    aggregation: Literal["weighted_average", "all_or_nothing"] = "weighted_average"


ArgsMatch = Literal["exact", "ignore", "subset", "superset"] | tuple[Words, ...]
"""How arguments are held against those that are expected; names are those that count."""


class ExpectedCall(Spec):
    """One call of an expected trajectory."""

    later = frozenset({"max_duration_ms"})

    tool: Words
    args: dict[str, Any] | Literal["any"] = "any"
    args_match: ArgsMatch | None = None


class ToolTrajectory(AgentVGrader):
    """Which tools were called, in which order."""

    type: Literal["tool-trajectory"]
    mode: Literal["any_order", "in_order", "exact", "subset", "superset"]
    minimums: dict[Words, Annotated[Whole, Field(ge=1)]] = {}
    expected: tuple[ExpectedCall, ...] = ()
    args_match: ArgsMatch = "exact"

    @model_validator(mode="after")
    def _translatable(self) -> Self:
        if bool(self.minimums) == bool(self.expected):
            raise fault_at("what the trajectory is held against is not clear", hint="give `minimums`, or `expected`")
        if self.minimums and self.mode != "any_order":
            raise fault_at("`minimums` belongs to `mode: any_order`", "minimums")
        return self


Milliseconds = Annotated[float, BeforeValidator(number), Field(gt=0, le=6e8, allow_inf_nan=False)]


class Latency(AgentVGrader):
    """At most so many milliseconds."""

    type: Literal["latency"]
    threshold: Milliseconds


class Cost(AgentVGrader):
    """At most so many US dollars."""

    type: Literal["cost"]
    budget: Dollars


class TokenUsage(AgentVGrader):
    """At most so many tokens; each limit that is given counts alike."""

    type: Literal["token-usage"]
    max_total: Annotated[Whole, Field(ge=1)] | None = None
    max_input: Annotated[Whole, Field(ge=1)] | None = None
    max_output: Annotated[Whole, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _some(self) -> Self:
        if self.max_total is None and self.max_input is None and self.max_output is None:
            raise fault_at("the grader checks nothing", hint="give max_total, max_input or max_output")
        return self


class ExecutionMetrics(AgentVGrader):
    """Limits of several kinds; each that is given counts alike."""

    later = frozenset({"max_llm_calls", "target_exploration_ratio", "exploration_tolerance"})

    type: Literal["execution-metrics"]
    max_tool_calls: Annotated[Whole, Field(ge=0)] | None = None
    max_tokens: Annotated[Whole, Field(ge=1)] | None = None
    max_cost_usd: Dollars | None = None
    max_duration_ms: Milliseconds | None = None

    @model_validator(mode="after")
    def _some(self) -> Self:
        limits = (self.max_tool_calls, self.max_tokens, self.max_cost_usd, self.max_duration_ms)
        if all(limit is None for limit in limits):
            raise fault_at(
                "the grader checks nothing", hint="give max_tool_calls, max_tokens, max_cost_usd or max_duration_ms"
            )
        return self


class SkillTrigger(AgentVGrader):
    """The agent used a skill, or did not."""

    type: Literal["skill-trigger"]
    skill: Words
    should_trigger: Flag = True

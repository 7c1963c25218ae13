"""The assertions of AgentV's files as they are written there; `loading/agentv_graders.py` translates them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, StrictInt, model_validator

from skillup.spec.criteria import CriterionId, Weight
from skillup.spec.limit_rules import Dollars
from skillup.spec.problems import fault_at, quoted
from skillup.spec.scoring import Gated
from skillup.spec.values import Flag, Message, Pattern, Spec, Text, Whole, Words, compile_pattern, number

REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "code-grader": "write a rule, or check the workspace with `command` in a native case",
        "code-judge": "write a rule, or check the workspace with `command` in a native case",
        "composite": "write its members as assertions with weights",
        "field-accuracy": "check the fields with `json_path` in a native case",
        "include": "write the assertions of the template here",
        "llm-judge": "it is called llm-grader",
        "llm-rubric": "it is a name of version 5: write a text, or type: rubrics",
        "agent-rubric": "it is a name of version 5: write a text, or type: rubrics",
        "script": "it is a name of version 5: write a rule, or `command` in a native case",
        "rubric": "it is called rubrics",
    }
)
"""Types that are known and not read, and what to write instead."""


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


Points = Annotated[StrictInt, Field(ge=0, le=10)]


class ScoreRange(Spec):
    """What scores from the first to the second, of 10, mean."""

    score_range: tuple[Points, Points]
    outcome: Words

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.score_range[0] > self.score_range[1]:
            raise fault_at("the range ends before it begins", "score_range")
        return self


class Rubric(Gated):
    """One statement that a model judges; a text alone is its outcome."""

    id: CriterionId | None = None
    outcome: Words | None = None
    weight: Weight = 1.0
    operator: Literal["correctness", "contradiction"] = "correctness"
    score_ranges: tuple[ScoreRange, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _bare_text(cls, value: Any) -> Any:
        return {"outcome": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.outcome is None and not self.score_ranges:
            raise fault_at("the criterion says nothing", hint="give `outcome`, or `score_ranges`")
        if self.min_score is not None and not self.score_ranges:
            raise fault_at("without `score_ranges` the answer is yes or no", "min_score", hint="remove it")
        return self


def _check_rubrics(rubrics: tuple[Rubric, ...], key: str) -> None:
    ids = [rubric.id for rubric in rubrics if rubric.id]
    for index, rubric in enumerate(rubrics):
        if rubric.id and ids.count(rubric.id) > 1 and rubric.id in [other.id for other in rubrics[:index]]:
            raise fault_at(f"the id {rubric.id} is taken by another criterion", key, index, "id")
    if rubrics and not sum(rubric.weight for rubric in rubrics):
        raise fault_at("the weights sum to 0, so no answer could change the score", key, hint="weigh one of them")


class Rubrics(AgentVGrader):
    """Statements that a model judges, each by itself."""

    type: Literal["rubrics"]
    criteria: tuple[Rubric, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _useful(self) -> Self:
        _check_rubrics(self.criteria, "criteria")
        return self


class LlmGrader(AgentVGrader):
    """A score that a model gives for what a prompt asks, or statements as those of `rubrics`."""

    later = frozenset({"target", "max_steps", "temperature", "preprocessors", "model"})

    type: Literal["llm-grader"]
    prompt: Words | None = None
    rubrics: tuple[Rubric, ...] = ()

    @model_validator(mode="after")
    def _useful(self) -> Self:
        if self.prompt is not None and self.prompt.startswith("file://"):
            raise fault_at("a prompt in a file is not read", "prompt", hint="write the text here")
        if self.prompt is not None and self.rubrics:
            raise fault_at("`prompt` and `rubrics` are two ways to ask", "prompt", hint="keep one of them")
        _check_rubrics(self.rubrics, "rubrics")
        return self


class ExpectedCall(Spec):
    """One call of an expected trajectory."""

    later = frozenset({"max_duration_ms"})

    tool: Words
    args: dict[str, Any] | Literal["any"] = "any"
    args_match: Literal["exact", "ignore", "subset", "superset"] | tuple[Words, ...] | None = None


class ToolTrajectory(AgentVGrader):
    """Which tools were called, in which order."""

    type: Literal["tool-trajectory"]
    mode: Literal["any_order", "in_order", "exact", "subset", "superset"]
    minimums: dict[Words, Annotated[Whole, Field(ge=1)]] = {}
    expected: tuple[ExpectedCall, ...] = ()
    args_match: Literal["exact", "ignore", "subset", "superset"] | tuple[Words, ...] = "exact"

    @model_validator(mode="after")
    def _translatable(self) -> Self:
        if bool(self.minimums) == bool(self.expected):
            raise fault_at("what the trajectory is held against is not clear", hint="give `minimums`, or `expected`")
        if self.minimums and self.mode != "any_order":
            raise fault_at("`minimums` belongs to `mode: any_order`", "minimums")
        for index, call in enumerate(self.expected):
            how = call.args_match or self.args_match
            if call.args == "any" or how == "ignore":
                continue
            if how != "superset" or self.mode == "subset":
                hint = "write `args_match: superset` (arguments in part), or `ignore`"
                problem = "arguments are matched in part here, and not otherwise"
                raise fault_at(problem, "expected", index, "args", hint=hint)
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


def _type_as_read(value: Any) -> Any:
    """An assertion with its type in the spelling of the format; types that are not read are refused by name."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        if isinstance(value, dict) and "include" in value:
            raise fault_at("templates of assertions are not read", "include", hint=REFUSED["include"])
        return value
    written = value["type"].replace("_", "-")
    if written in REFUSED:
        raise fault_at(f"the grader {quoted(written)} of AgentV is not read here", "type", hint=REFUSED[written])
    return {**value, "type": written}


AnyGrader = Annotated[
    OneText
    | SeveralTexts
    | WholeText
    | Regex
    | IsJson
    | Rubrics
    | LlmGrader
    | ToolTrajectory
    | Latency
    | Cost
    | TokenUsage
    | ExecutionMetrics
    | SkillTrigger,
    Field(discriminator="type"),
]

Assertion = Annotated[Words | AnyGrader, BeforeValidator(_type_as_read)]
"""A statement that a model judges, or a grader."""

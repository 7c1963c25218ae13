"""The assertions of AgentV's files as they are written there; `loading/agentv_graders.py` translates them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, StrictInt, model_validator

from skillup.spec.agentv_rules import (
    AgentVGrader,
    Cost,
    ExecutionMetrics,
    FieldAccuracy,
    IsJson,
    Latency,
    OneText,
    Regex,
    SeveralTexts,
    SkillTrigger,
    TokenUsage,
    ToolTrajectory,
    WholeText,
)
from skillup.spec.criteria import CriterionId, Weight
from skillup.spec.problems import fault_at, quoted
from skillup.spec.scoring import Gated
from skillup.spec.values import InnerPath, LimitSeconds, Spec, Threshold, Words

REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "code-judge": "it is called code-grader",
        "include": "write the assertions of the template here",
        "llm-judge": "it is called llm-grader",
        "llm-rubric": "it is a name of version 5: write a text, or type: rubrics",
        "agent-rubric": "it is a name of version 5: write a text, or type: rubrics",
        "script": "it is a name of version 5: it is called code-grader",
        "rubric": "it is called rubrics",
    }
)
"""Types that are known and not read, and what to write instead."""


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


_PROMPT_FILE = re.compile(r"file://(.+)|([\w./-]+\.(?:md|txt|prompt))")
"""What stands for a file: its address, or one word that ends as such files do."""


class LlmGrader(AgentVGrader):
    """A score that a model gives for what a prompt asks, or statements as those of `rubrics`."""

    later = frozenset({"target", "max_steps", "temperature", "preprocessors", "model"})

    type: Literal["llm-grader"]
    prompt: Words | None = None
    rubrics: tuple[Rubric, ...] = ()

    @model_validator(mode="after")
    def _useful(self) -> Self:
        if self.prompt is not None and self.rubrics:
            raise fault_at("`prompt` and `rubrics` are two ways to ask", "prompt", hint="keep one of them")
        _check_rubrics(self.rubrics, "rubrics")
        return self

    @property
    def prompt_file(self) -> str | None:
        """The file that holds the prompt, relative to the file that names it; None when it stands here."""
        found = _PROMPT_FILE.fullmatch((self.prompt or "").strip())
        return (found[1] or found[2]) if found else None


class CodeGrader(AgentVGrader):
    """A program that scores; a text is one line for the shell. `cwd` is relative to the file."""

    later = frozenset({"target", "preprocessors"})

    type: Literal["code-grader"]
    command: Words | Annotated[tuple[Words, ...], Field(min_length=1)]
    cwd: InnerPath | None = None
    config: dict[str, Any] = {}
    timeout_seconds: LimitSeconds = None


class Aggregator(Spec):
    """How the members of a `composite` make one score; `weights` are by their names."""

    later_values = MappingProxyType({"type": frozenset({"code-grader", "llm-grader"})})

    type: Literal["weighted_average", "threshold"] = "weighted_average"
    weights: dict[Words, Weight] = {}
    threshold: Threshold | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.type == "threshold") != (self.threshold is not None):
            raise fault_at(
                "`threshold` is the share of members that must pass", hint="give both it and type: threshold"
            )
        if self.type == "threshold" and self.weights:
            raise fault_at("members that pass or do not are counted, not weighed", "weights", hint="remove them")
        return self


class Composite(AgentVGrader):
    """Assertions that make one score."""

    type: Literal["composite"]
    assertions: tuple[Assertion, ...] = Field(min_length=1)
    aggregator: Aggregator = Aggregator()


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
    | FieldAccuracy
    | CodeGrader
    | Composite
    | Latency
    | Cost
    | TokenUsage
    | ExecutionMetrics
    | SkillTrigger,
    Field(discriminator="type"),
]

Assertion = Annotated[Words | AnyGrader, BeforeValidator(_type_as_read)]
"""A statement that a model judges, or a grader."""

Composite.model_rebuild()

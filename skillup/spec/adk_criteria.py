"""ADK's `test_config.json`: by which metrics its eval sets are judged, and what each must reach."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from skillup.spec.adk import AdkEntry, EvalRubric
from skillup.spec.judge import MAX_SAMPLES
from skillup.spec.problems import fault_at
from skillup.spec.values import Flag, Threshold, Whole, Words

_VERTEX: Final = "it is computed by a service of Google's cloud"

REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "response_evaluation_score": _VERTEX,
        "safety_v1": _VERTEX,
        "multi_turn_task_success_v1": _VERTEX,
        "multi_turn_trajectory_quality_v1": _VERTEX,
        "multi_turn_tool_use_quality_v1": _VERTEX,
        "hallucinations_v1": "it takes answers apart sentence by sentence, with prompts of its own",
        "per_turn_user_simulator_quality_v1": "it judges a simulated user, and there is none",
        "tool_call_count_v1": "it has no threshold in ADK either; every result has the calls",
        "inference_call_count_v1": "it has no threshold in ADK either; every result has the steps",
        "token_usage_v1": "it has no threshold in ADK either; every result has the tokens",
        "invocation_duration_v1": "it has no threshold in ADK either; every result has the times",
    }
)
"""Metrics of ADK that mean nothing here, each with the reason."""


class ThresholdMetric(AdkEntry):
    """What a metric must reach; a number alone is the threshold."""

    threshold: Threshold
    include_intermediate_responses_in_final: Literal[False] = False

    @model_validator(mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        return {"threshold": value} if isinstance(value, (int, float)) else value


def _match_type(value: Any) -> Any:
    """ADK takes the names of its match types in many spellings, and their numbers."""
    names = ("exact", "in_order", "any_order")
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names):
        return names[value]
    return value.strip().lower().replace("-", "_").replace(" ", "_") if isinstance(value, str) else value


class TrajectoryMetric(ThresholdMetric):
    """How tool calls are compared with the expected ones."""

    match_type: Annotated[Literal["exact", "in_order", "any_order"], BeforeValidator(_match_type)] = "exact"
    ignore_args: Flag = False


class JudgeOptions(AdkEntry):
    """Who judges, and how often each question is asked."""

    judge_model: Words | None = None
    num_samples: Annotated[Whole, Field(ge=1, le=MAX_SAMPLES)] = 5
    parallelism_limit: JsonValue = None


class JudgedMetric(ThresholdMetric):
    """A metric that a model decides."""

    judge_model_options: JudgeOptions = JudgeOptions()


class RubricMetric(JudgedMetric):
    """A metric by rubrics: these, and those of cases and turns that are of its type."""

    rubrics: tuple[EvalRubric, ...] = ()


class Criteria(AdkEntry):
    """The metrics that an eval set is judged by."""

    tool_trajectory_avg_score: TrajectoryMetric | None = None
    response_match_score: ThresholdMetric | None = None
    final_response_match_v2: JudgedMetric | None = None
    rubric_based_final_response_quality_v1: RubricMetric | None = None
    rubric_based_tool_use_quality_v1: RubricMetric | None = None
    rubric_based_multi_turn_trajectory_quality_v1: RubricMetric | None = None

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        for name in value if isinstance(value, dict) else ():
            if name in REFUSED:
                raise fault_at(f"`{name}` cannot be measured here: {REFUSED[name]}", name, hint="remove it")
        return value

    @model_validator(mode="after")
    def _not_empty(self) -> Criteria:
        if not any(getattr(self, name) is not None for name in type(self).model_fields):
            raise fault_at("no metric judges anything", hint="name one, or remove the file: ADK has defaults")
        return self


class EvalConfig(AdkEntry):
    """A `test_config.json`."""

    criteria: Criteria

    @model_validator(mode="before")
    @classmethod
    def _what_cannot_be(cls, value: Any) -> Any:
        reasons = {
            ("custom_metrics", "customMetrics"): (
                "a metric in Python gets values of ADK's, which there are not here",
                "write it as an evaluator: docs/evaluators.md",
            ),
            ("user_simulator_config", "userSimulatorConfig"): ("a simulated user is not supported yet", "remove it"),
            ("live_model_config", "liveModelConfig"): ("no agent here is spoken to over an open line", "remove it"),
        }
        for keys, (message, hint) in reasons.items():
            for key in keys:
                if isinstance(value, dict) and value.get(key):
                    raise fault_at(message, key, hint=hint)
        dropped = {key for keys in reasons for key in keys}
        return {key: one for key, one in value.items() if key not in dropped} if isinstance(value, dict) else value


DEFAULT: Final = EvalConfig.model_validate(
    {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}}
)
"""What ADK judges by where no file says it."""

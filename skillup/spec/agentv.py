"""AgentV's evaluation files as they are written: `tests:` with `mode: conversation` (version 4's words).

The shape alone; `loading/agentv.py` holds what one key means beside another, and turns a test into a case.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictInt, model_validator

from skillup.spec.agentv_graders import Assertion
from skillup.spec.case import CaseId, Trials, refuse_waiting
from skillup.spec.problems import fault_at, quoted
from skillup.spec.script import Script
from skillup.spec.turn import VariableName
from skillup.spec.values import Flag, Message, Spec, Threshold, Value, Words


class ContentPart(Spec):
    """One part of a structured text."""

    type: Literal["text"]
    value: str

    @model_validator(mode="before")
    @classmethod
    def _text_alone(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("type"), str) and value["type"] != "text":
            problem = f"a part of type {quoted(value['type'])} cannot be said to an agent"
            raise fault_at(problem, "type", hint="parts of type text are joined; put files into the workspace")
        if isinstance(value, dict) and "text" in value and "value" not in value:
            return {**{key: inner for key, inner in value.items() if key != "text"}, "value": value["text"]}
        return value


Content = Message | Annotated[tuple[ContentPart, ...], Field(min_length=1)]
"""A text, or parts of which the texts are joined."""


def text_of(content: str | tuple[ContentPart, ...] | dict[str, Any]) -> str:
    """The text of a content; parts stand on lines of their own, data is JSON."""
    if isinstance(content, dict):
        return json.dumps(content, ensure_ascii=False, indent=2)
    return content if isinstance(content, str) else "\n".join(part.value for part in content)


class _Says(Spec):
    """What holds a content that must say something."""

    @staticmethod
    def _check(content: str | tuple[ContentPart, ...], key: str) -> None:
        if not text_of(content).strip():
            raise fault_at("the text is blank", key, hint="write something in one of its parts")


class AgentVMessage(_Says):
    """One message of the context."""

    role: Literal["system", "user", "assistant"]
    content: Content

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        self._check(self.content, "content")
        return self


class AgentVTurn(_Says):
    """One message of the user, with what the reply is judged by."""

    input: Content
    expected_output: Content | dict[str, Any] | None = None
    assertions: tuple[Assertion, ...] = ()

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        self._check(self.input, "input")
        return self


class AgentVTrials(Spec):
    """How often a test is run. What the strategies come to is in every row; each trial is a result of its own."""

    later = frozenset({"cost_limit_usd"})
    later_values = MappingProxyType({"strategy": frozenset({"confidence_interval"})})

    count: Trials
    strategy: Literal["pass_at_k", "pass_all", "mean"] = "pass_at_k"


class AgentVExecution(Spec):
    """How tests are run; what stands here in AgentV beside these keys is chosen on our command line."""

    later = frozenset({"target", "targets", "workers", "cache", "budget_usd", "fail_on_error", "total_budget_usd"})

    threshold: Threshold | None = None
    skip_defaults: Flag = False
    trials: AgentVTrials | None = None


class AgentVTest(Spec):
    """One conversation. `script` is ours: what the scripted model answers."""

    later = frozenset(
        {
            "workspace",
            "input_files",
            "preprocessors",
            "trials",
            "conversation_id",
        }
    )

    id: CaseId
    description: str = ""
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    vars: dict[VariableName, Value] = {}
    mode: Literal["conversation"] | None = None
    criteria: Words | None = None
    input: Message | Annotated[tuple[AgentVMessage, ...], Field(min_length=1)] | None = None
    turns: tuple[AgentVTurn, ...] = ()
    expected_output: Any = None
    assertions: tuple[Assertion, ...] = ()
    aggregation: Literal["mean", "min", "max"] = "mean"
    on_turn_failure: Literal["continue", "stop"] = "continue"
    window_size: Annotated[StrictInt, Field(ge=1)] | None = None
    depends_on: tuple[CaseId, ...] = ()
    on_dependency_failure: Literal["skip", "fail", "run"] | None = None
    execution: AgentVExecution = AgentVExecution()
    script: Script | None = None

    @model_validator(mode="after")
    def _can_wait(self) -> Self:
        refuse_waiting(self.id, self.depends_on, decides=self.on_dependency_failure is not None)
        return self


class AgentVFile(Spec):
    """An evaluation file: its tests, and what all of them begin and end with."""

    later = frozenset(
        {"workspace", "input_files", "preprocessors", "targets", "providers", "default_test", "workers", "cache"}
    )

    name: str = ""
    description: str = ""
    version: str = ""
    author: str = ""
    license: str = ""
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    input: Message | Annotated[tuple[AgentVMessage, ...], Field(min_length=1)] | None = None
    assertions: tuple[Assertion, ...] = ()
    execution: AgentVExecution = AgentVExecution()
    tests: tuple[AgentVTest, ...] = Field(min_length=1)

"""One task of a data set in the form of the Agent Framework's harness for multi-turn evaluations.

`data` is what the agent gets, `target` what must come of it. `loading/datasets.py` makes a case of it; docs/datasets.md
shows which key becomes what.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AliasChoices, Field, JsonValue, model_validator

from skillup.spec.case import CaseId
from skillup.spec.chat import ChatMessage, Entry, conversation
from skillup.spec.mocks import ToolName
from skillup.spec.problems import fault_at, quoted
from skillup.spec.script import Script
from skillup.spec.values import Message, Text, Whole, Words


class DatasetTool(Entry):
    """A tool that gives back the same whatever it is called with.

    `parameters` is a JSON Schema of an object, or a mapping from each parameter to its description or its schema.
    """

    description: Words
    parameters: dict[str, JsonValue] = {}
    mock_return: JsonValue = Field(validation_alias=AliasChoices("mock_return", "result"))

    @model_validator(mode="after")
    def _parameters_are_described(self) -> Self:
        for name, said in {} if self._has_schema else self.parameters.items():
            if not isinstance(said, (str, dict)):
                hint = "describe the parameter in words, or by a JSON Schema"
                raise fault_at("this says nothing about the parameter", "parameters", name, hint=hint)
        return self

    @property
    def _has_schema(self) -> bool:
        return self.parameters.get("type") == "object"

    @property
    def schema_of_parameters(self) -> dict[str, Any]:
        """The parameters as the model is told of them: all of those that are only described are required texts."""
        if self._has_schema:
            return dict(self.parameters)
        properties = {
            name: {"type": "string", "description": said} if isinstance(said, str) else said
            for name, said in self.parameters.items()
        }
        required = [name for name, said in self.parameters.items() if isinstance(said, str)]
        return {"type": "object", "properties": properties, **({"required": required} if required else {})}


class TaskConfig(Entry):
    """How the agent is run."""

    max_steps: Annotated[Whole, Field(ge=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _not_the_model(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("model") is not None:
            hint = f"remove it, and choose the model by --model {value['model']}, or in an agent profile"
            raise fault_at("one run has one model an agent: a task cannot choose another", "model", hint=hint)
        return value


class TaskData(Entry):
    """What the agent gets: a message, or a conversation already under way, and tools that are not there."""

    prompt: Message | None = None
    messages: tuple[ChatMessage, ...] = ()
    mock_tools: dict[ToolName, DatasetTool] = {}
    config: TaskConfig = TaskConfig()

    @model_validator(mode="after")
    def _one_conversation(self) -> Self:
        if self.prompt is not None and self.messages:
            hint = "keep `messages`, and let its last one be what the user says"
            raise fault_at("both `prompt` and `messages` are given", "prompt", hint=hint)
        if self.messages:
            conversation(self.messages)
        elif self.prompt is None:
            raise fault_at("nothing is said to the agent", hint="write `prompt` or `messages`")
        return self


class TaskTarget(Entry):
    """What must come of it. `mock_tool_results` is for the judge alone."""

    original_task: Words | None = None
    expected_tool_order: tuple[Text, ...] = ()
    forbidden_tools: tuple[Text, ...] = ()
    mock_tool_results: dict[str, JsonValue] = {}
    category: Words | None = None

    @model_validator(mode="after")
    def _no_contradiction(self) -> Self:
        for index, name in enumerate(self.forbidden_tools):
            if name in self.expected_tool_order:
                raise fault_at(f"{quoted(name)} is expected and forbidden", "forbidden_tools", index)
        return self


class Task(Entry):
    """One task. `script` is an addition of ours, which other readers of the format pass over."""

    id: CaseId | None = Field(None, validation_alias=AliasChoices("id", "task_id"))
    data: TaskData
    target: TaskTarget
    metadata: dict[str, JsonValue] = {}
    script: Script | None = None

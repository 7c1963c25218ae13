"""Eval sets of Google's ADK: conversations with the answers and tool calls that are expected, as its files hold them.

`loading/adk.py` makes cases of them; docs/adk.md shows which key becomes what.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import AliasChoices, AliasGenerator, ConfigDict, Field, JsonValue, model_validator
from pydantic.alias_generators import to_camel

from skillup.spec.chat import Entry
from skillup.spec.mocks import MockTools
from skillup.spec.problems import fault_at
from skillup.spec.script import Script
from skillup.spec.values import Text, Words


def _both(name: str) -> str | AliasChoices:
    """ADK writes keys in snake case, and reads those in camel case, too."""
    camel = to_camel(name)
    return name if camel == name else AliasChoices(name, camel)


class AdkEntry(Entry):
    """A mapping of ADK's: keys in either spelling."""

    model_config = ConfigDict(alias_generator=AliasGenerator(validation_alias=_both))


class Part(AdkEntry):
    """One part of what was said. Only text can be said here; a part with nothing in it says nothing."""

    text: str = ""
    thought: bool = False

    @model_validator(mode="before")
    @classmethod
    def _only_text(cls, value: Any) -> Any:
        written = {key for key, one in value.items() if one is not None} if isinstance(value, dict) else set()
        other = sorted(written - {"text", "thought"})
        if other:
            hint = "only text can: say it in words, or run this case with ADK"
            raise fault_at(f"a part with `{other[0]}` cannot be said here", other[0], hint=hint)
        if isinstance(value, dict) and value.get("thought") is True:
            raise fault_at("a thought is nothing that anybody says", "thought", hint="remove the part")
        return value


class Content(AdkEntry):
    """What the user or the agent said."""

    parts: tuple[Part, ...] = Field(min_length=1)
    role: str = ""

    @property
    def text(self) -> str:
        """All of it, a line break between parts, as ADK's metrics read it."""
        return "\n".join(part.text for part in self.parts if part.text)


class UserContent(Content):
    """What the user says in a turn."""

    @model_validator(mode="after")
    def _says_something(self) -> UserContent:
        if not self.text.strip():
            raise fault_at("the user says nothing", "parts", hint="give a part with `text`")
        return self


class FunctionCall(AdkEntry):
    """A tool call that is expected."""

    id: str = ""
    name: Text
    args: dict[str, JsonValue] = {}


class _Loose(AdkEntry):
    """A record of an earlier run: only what is named is looked at."""

    model_config = ConfigDict(extra="ignore")


class EventPart(_Loose):
    """A part of an event; calls count, what was said on the way does not."""

    function_call: FunctionCall | None = None


class EventContent(_Loose):
    """The content of an event."""

    parts: tuple[EventPart, ...] = ()


class Event(_Loose):
    """One event of a run that was recorded."""

    content: EventContent = EventContent()


class IntermediateData(AdkEntry):
    """What happened before the final response: calls in `tool_uses`, or in the events of a run.

    What tools gave back and what sub-agents said on the way was recorded, and no metric compares it.
    """

    tool_uses: tuple[FunctionCall, ...] = ()
    tool_responses: tuple[JsonValue, ...] = ()
    intermediate_responses: tuple[JsonValue, ...] = ()
    invocation_events: tuple[Event, ...] = ()

    @property
    def calls(self) -> tuple[FunctionCall, ...]:
        """The calls that are expected, in order."""
        parts = (part for event in self.invocation_events for part in event.content.parts)
        return self.tool_uses or tuple(part.function_call for part in parts if part.function_call is not None)


class RubricContent(AdkEntry):
    """What is to hold."""

    text_property: Words


class EvalRubric(AdkEntry):
    """One statement that a model judges; `type` says for which metric, where it stands in a case or a turn."""

    rubric_id: Words
    rubric_content: RubricContent
    description: str = ""
    type: str = ""


class Invocation(AdkEntry):
    """One turn. Times and `app_details` record an earlier run."""

    invocation_id: str = ""
    user_content: UserContent
    final_response: Content | None = None
    intermediate_data: IntermediateData = IntermediateData()
    rubrics: tuple[EvalRubric, ...] = ()
    creation_timestamp: JsonValue = None
    duration: JsonValue = None
    model_duration: JsonValue = None
    tool_duration: JsonValue = None
    app_details: JsonValue = None


class SessionInput(AdkEntry):
    """Whose session it is in ADK; that says nothing about what an agent is told, and `state` would."""

    app_name: str = ""
    user_id: str = ""

    @model_validator(mode="before")
    @classmethod
    def _no_state(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("state"):
            hint = "write what the agent has to know into the first message, or into a native case"
            raise fault_at("agents here have no session state that could be set", "state", hint=hint)
        for key in ("session_id", "sessionId"):
            if isinstance(value, dict) and value.get(key) is not None:
                raise fault_at("every trial here has a session of its own", key, hint="remove it")
        return {key: one for key, one in value.items() if key != "state"} if isinstance(value, dict) else value


_SCENARIO: Final = ("conversation_scenario", "conversationScenario")
_FINAL_STATE: Final = ("final_session_state", "finalSessionState")


class EvalCase(AdkEntry):
    """One conversation. `mock_tools` and `script` are additions of ours, which ADK passes over."""

    eval_id: Words
    conversation: tuple[Invocation, ...] = Field(min_length=1)
    session_input: SessionInput = SessionInput()
    rubrics: tuple[EvalRubric, ...] = ()
    creation_timestamp: JsonValue = None
    mock_tools: MockTools = ()
    script: Script | None = None

    @model_validator(mode="before")
    @classmethod
    def _what_cannot_be(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        for key in _SCENARIO:
            if value.get(key) is not None:
                hint = "write what the user says as `conversation`"
                raise fault_at("a simulated user is not supported yet", key, hint=hint)
        for key in _FINAL_STATE:
            if value.get(key):
                hint = "remove it: no metric of ADK looks at it either"
                raise fault_at("agents here have no session state that could be compared", key, hint=hint)
        return {key: one for key, one in value.items() if key not in (*_SCENARIO, *_FINAL_STATE)}


class EvalSet(AdkEntry):
    """A file of eval cases."""

    eval_set_id: str = ""
    name: str = ""
    description: str = ""
    eval_cases: tuple[EvalCase, ...] = Field(min_length=1)
    creation_timestamp: JsonValue = None

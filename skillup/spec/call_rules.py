"""Rules on the course of a conversation: which calls in which order, how many, how often the same, and when to stop."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from skillup.spec.problems import fault_at
from skillup.spec.rules import CallPattern, Rule
from skillup.spec.values import Flag, Pattern, Text, Whole


def _wrapped(value: Any, key: str, *forms: type) -> Any:
    """A short form of a rule's body, as the key that it stands for."""
    short = isinstance(value, forms) and not (isinstance(value, bool) and bool not in forms)
    return {key: value} if short else value


def _one_text_as_list(value: Any, key: str) -> Any:
    if isinstance(value, dict) and isinstance(value.get(key), str):
        return {**value, key: [value[key]]}
    return value


class Step(CallPattern):
    """One call of an expected order; a text is its name, a list of texts are names of which each is good."""

    @model_validator(mode="before")
    @classmethod
    def _bare_names(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, list) else value


class ToolOrder(Rule):
    """These calls were made: in this order with others between them, in any order, or these and no others."""

    kind = "tool_order"
    order: tuple[Step, ...] = Field(min_length=1)
    mode: Literal["in_order", "any_order", "exact"] = "in_order"

    @model_validator(mode="before")
    @classmethod
    def _bare_list(cls, value: Any) -> Any:
        return _wrapped(value, "order", list)

    @property
    def needed_calls(self) -> tuple[tuple[str, ...], ...]:
        return tuple(step.name for step in self.order)


class ToolsOnly(Rule):
    """No tool was called but these, or as `calls` say; an empty list forbids every call."""

    kind = "tools_only"
    refused_in_failure = "write it as a success rule; to forbid a tool write `tool_called: NAME` as a failure rule"
    names: tuple[Text, ...] = ()
    calls: tuple[Step, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        value = _one_text_as_list(_wrapped(value, "names", list, str), "names")
        if isinstance(value, dict) and not {"names", "calls"} & set(value):
            raise fault_at(
                "the rule says nothing about which calls are good", hint="give `names`; `[]` forbids every call"
            )
        return value

    @property
    def forbids(self) -> bool:
        return True


class MaxToolCalls(Rule):
    """At most so many calls, of all tools or of those that are named."""

    kind = "max_tool_calls"
    refused_in_failure = "write it as a success rule: there it fails when there are more"
    max: Whole = Field(ge=0)
    name: tuple[Text, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return _one_text_as_list(_wrapped(value, "max", int), "name")

    @property
    def forbids(self) -> bool:
        return True


class NoRepeatedCalls(Rule):
    """No call was made more than `max` times with the same arguments; `consecutive` counts uninterrupted ones alone."""

    kind = "no_repeated_calls"
    refused_in_failure = "write it as a success rule: there it fails when calls are repeated"
    max: Whole = Field(1, ge=1)
    consecutive: Flag = False
    ignore: tuple[Text, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {} if value is True else _one_text_as_list(_wrapped(value, "max", int), "ignore")

    @property
    def forbids(self) -> bool:
        return True


class NoPrematureStop(Rule):
    """After the last call that failed, the agent tried on: it made a call of one of `must_attempt`."""

    kind = "no_premature_stop"
    refused_in_failure = "write it as a success rule: there it fails when the agent gave up"
    must_attempt: tuple[Step, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _bare_list(cls, value: Any) -> Any:
        return _wrapped(value, "must_attempt", list)

    @property
    def forbids(self) -> bool:
        return True


class AskedUser(Rule):
    """The agent asked the user something: by its tool for that, or by a question in its answer."""

    kind = "asked_user"
    by: Literal["any", "tool", "answer"] = "any"
    matches: Pattern | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        if value is False:
            raise fault_at("the rule checks nothing", hint="to forbid questions write `asked_user: {}` in `failure`")
        return {} if value is True else value

    @property
    def needed_calls(self) -> tuple[tuple[str, ...], ...]:
        return (("ask_user",),) if self.by == "tool" else ()


class NothingToCheck(Rule):
    """An evaluator of a data set that has nothing to check in this case: it scores 1.0 and says so."""

    kind = "nothing_to_check"
    evaluator: Text

    @property
    def forbids(self) -> bool:
        return True

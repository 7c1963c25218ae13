"""What users write about the conversation: the turns, the gate after each, and the values that they capture."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, model_validator

from skillup.spec.jsonpath import checked_path
from skillup.spec.mocks import HistoryMessage, check_history
from skillup.spec.problems import fault_at, quoted
from skillup.spec.rules import refuse_contradiction
from skillup.spec.values import (
    Delay,
    Flag,
    LimitCount,
    LimitDollars,
    LimitSeconds,
    Message,
    Pattern,
    Spec,
    Text,
    compile_pattern,
)

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def _variable(name: str) -> str:
    if not _VARIABLE.match(name):
        raise fault_at(
            f"{quoted(name)} is not a variable name", hint="use letters, digits and _, not starting with a digit"
        )
    return name


VariableName = Annotated[str, AfterValidator(_variable)]
JsonPath = Annotated[str, AfterValidator(checked_path)]


class Gate(Spec):
    """A turn's `post_condition`: texts that the answer must or must not hold before the conversation goes on."""

    must_contain_any: tuple[Text, ...] = ()
    must_contain_all: tuple[Text, ...] = ()
    must_not_contain: tuple[Text, ...] = ()
    must_match: tuple[Pattern, ...] = ()
    must_not_match: tuple[Pattern, ...] = ()
    on_fail: Literal["fail", "skip_remaining"] = "fail"
    ignore_case: Flag | None = None

    @model_validator(mode="before")
    @classmethod
    def _shorthand(cls, value: Any) -> Any:
        if isinstance(value, dict):
            value = dict(value)
            for key in ("must_match", "must_not_match"):
                if isinstance(value.get(key), str):
                    value[key] = [value[key]]
            if value.get("on_fail") == "":
                del value["on_fail"]  # the public format's spelling of the default
        return value

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        lists = (self.must_contain_any, self.must_contain_all, self.must_not_contain)
        if not any(lists) and not self.must_match and not self.must_not_match:
            raise fault_at(
                "the gate checks nothing",
                hint="give must_contain_any, must_contain_all, must_not_contain, must_match or must_not_match",
            )
        refuse_contradiction(self.must_contain_all, self.must_not_contain, "must_not_contain")
        refuse_contradiction(self.must_match, self.must_not_match, "must_not_match")
        return self


class Capture(Spec):
    """A value that later turns can use as `{{variable}}`."""

    variable: VariableName
    pattern: Pattern | None = None
    jsonpath: JsonPath | None = None
    default: str | None = None
    on_missing: Literal["error", "fail", "skip_remaining"] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.pattern is None) == (self.jsonpath is None):
            problem = "has neither `pattern` nor `jsonpath`" if self.pattern is None else "has `pattern` and `jsonpath`"
            raise fault_at(f"the capture {problem}", hint="give exactly one of the two")
        if self.default is not None and self.on_missing is not None:
            raise fault_at("`default` and `on_missing` contradict each other", "on_missing", hint="keep one of them")
        if self.pattern is not None:
            compiled = compile_pattern(self.pattern)
            if "value" not in compiled.groupindex and compiled.groups != 1:
                count = f"{compiled.groups} groups" if compiled.groups else "no group"
                raise fault_at(
                    f"the pattern has {count}, so what to take is not clear",
                    "pattern",
                    hint="put the part to take into (?P<value>…), or into the only group",
                )
        return self


def _refuse_no_command(text: str, *, slash_command: bool) -> None:
    if slash_command and not text.startswith(("/", "{{")):
        raise fault_at("the message is no slash command", "slash_command", hint="begin it with /, or remove the key")


class Turn(Spec):
    """One user message, and what happens after the answer."""

    later = frozenset({"respond", "criteria"})

    role: Literal["user"] = "user"
    content: Message
    post_condition: Gate | None = None
    capture: tuple[Capture, ...] = ()
    timeout_seconds: LimitSeconds = None
    max_cost_usd: LimitDollars = None
    max_tokens: LimitCount = None
    turn_delay: Delay | None = None
    slash_command: Flag = False

    @model_validator(mode="before")
    @classmethod
    def _instead_of_content(cls, value: Any) -> Any:
        if isinstance(value, dict) and "respond" in value:
            problem = "a simulated user is part of the format but not supported yet"
            raise fault_at(problem, "respond", hint="write what the user says as `content`")
        return value

    @model_validator(mode="after")
    def _is_a_command(self) -> Self:
        _refuse_no_command(self.content, slash_command=self.slash_command)
        return self


class Input(Spec):
    """`prompt`, or `turns`; a prompt is a conversation of one turn.

    `messages` is what was said before, `system` what the model is told about its part: instead of the agent's own
    instructions, or after them, as the engine has a way.
    """

    system: Message | None = None
    messages: tuple[HistoryMessage, ...] = ()
    prompt: Message | None = None
    turns: tuple[Turn, ...] = ()
    slash_command: Flag = False

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.prompt is not None and self.turns:
            hint = "a prompt is a conversation of one turn: keep one of the two"
            raise fault_at("both `prompt` and `turns` are given", hint=hint)
        if self.messages:
            check_history(self.messages, goes_on=self.prompt is not None or bool(self.turns))
        elif self.prompt is None and not self.turns:
            raise fault_at("nothing is said to the agent", hint="write `prompt`, or `turns` with at least one turn")
        if self.slash_command and self.turns:
            raise fault_at("`slash_command` belongs to each turn", "slash_command", hint="write it below the turn")
        said = self.prompt or (self.messages[-1].content if self.messages and not self.turns else None)
        _refuse_no_command(said or "/", slash_command=self.slash_command)
        return self

    @property
    def asked(self) -> tuple[Turn, ...]:
        """The user's messages that are sent: the turns, the prompt as one, or the last of `messages`."""
        if self.turns:
            return self.turns
        prompt = self.messages[-1].content if self.prompt is None else self.prompt
        return (Turn(content=prompt or "", slash_command=self.slash_command),)

    @property
    def history(self) -> tuple[HistoryMessage, ...]:
        """What was said before the first of them."""
        return self.messages if self.prompt is not None or self.turns else self.messages[:-1]

"""What the loopback model answers: a case's `script:`, a list of entries that match on what the user said.

Templates (`{{name}}`) are checked here against the names that the entry gives, and expanded when a request
comes (`modelserver/scripted.py`). docs/scripts.md shows the format by example.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, StrictStr, model_validator

from skillup.spec.problems import fault_at
from skillup.spec.script_parts import Faults, ScriptCall, always_fails, named
from skillup.spec.template import TEMPLATE
from skillup.spec.values import Pattern, Spec, Text, compile_pattern

__all__ = ["BUILT_IN_NAMES", "TEMPLATE", "Script", "ScriptEntry", "ScriptReply"]

BUILT_IN_NAMES: Final = frozenset({"user", "result"})
"""Template names that every entry has: the user's text, and the last tool results."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

Place = tuple[str | int, ...]


class ScriptReply(Spec):
    """One reply of the model: text, reasoning, tool calls, and the faults that come before it."""

    say: StrictStr | None = None
    think: Text | None = None
    calls: tuple[ScriptCall, ...] = ()
    stop: Literal["end_turn", "max_tokens", "refusal"] | None = None
    faults: Faults = ()

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        silent = self.say is None and self.think is None and not self.calls and self.stop is None
        if silent and not always_fails(self.faults):
            raise fault_at("the reply is empty", hint='give `say`, `think` or `calls`; `say: ""` answers nothing')
        return self


class ScriptEntry(Spec):
    """The replies to one user message: which message it is, and what the model does, step by step."""

    user: Text | None = None
    user_matches: Pattern | None = None
    after: Text | None = None
    find: dict[StrictStr, Pattern] = Field(default_factory=dict)
    say: StrictStr | None = None
    replies: tuple[ScriptReply, ...] | None = None
    faults: Faults = ()

    @property
    def steps(self) -> tuple[ScriptReply, ...]:
        """The replies in order; `say` alone is one reply. Empty when the entry does nothing but fail."""
        if self.replies is not None:
            return self.replies
        return () if self.say is None else (ScriptReply(say=self.say),)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.user is not None and self.user_matches is not None:
            raise fault_at(
                "`user` and `user_matches` cannot stand together",
                "user_matches",
                hint="write one pattern for both",
            )
        if self.say is not None and self.replies is not None:
            raise fault_at("`say` and `replies` cannot stand together", "say", hint="`say` is short for one reply")
        if self.replies == () or (not self.steps and not always_fails(self.faults)):
            raise fault_at("the entry answers nothing", hint="give `say`, `replies`, or a fault that happens always")
        if always_fails(self.faults):
            for at, reply in enumerate(self.steps):
                if any(fault.kind != "slow" for fault in reply.faults):
                    raise fault_at(
                        "the faults never come: one of the whole entry happens always",
                        "replies",
                        at,
                        "faults",
                    )
        self._check_templates(self._template_names())
        return self

    def _template_names(self) -> frozenset[str]:
        groups = frozenset(compile_pattern(self.user_matches).groupindex) if self.user_matches else frozenset()
        if taken := groups & BUILT_IN_NAMES:
            raise fault_at(f"the group name {named(taken)} is taken", "user_matches", hint="choose another name")
        for name, pattern in self.find.items():
            compiled = compile_pattern(pattern)
            if not _NAME.match(name):
                raise fault_at("not a name", "find", name, hint="letters, digits and _, not starting with a digit")
            if name in BUILT_IN_NAMES | groups:
                raise fault_at("the name is taken", "find", name, hint="choose another name")
            if compiled.groups > 1 and "value" not in compiled.groupindex:
                raise fault_at("the pattern has several groups", "find", name, hint="name one `(?P<value>…)`")
        return BUILT_IN_NAMES | groups | frozenset(self.find)

    def _check_templates(self, names: frozenset[str]) -> None:
        for place, text in self._texts():
            for match in TEMPLATE.finditer(text):
                literal, inner, name = match.groups()
                if not literal and name not in names:
                    raise fault_at(
                        f"nothing here is called `{name}`",
                        *place,
                        hint=f"known are {named(names)}; `{{{{!{inner}}}}}` writes the braces out",
                    )

    def _texts(self) -> Iterator[tuple[Place, str]]:
        for at, reply in enumerate(self.steps):
            place: Place = () if self.replies is None else ("replies", at)
            yield (*place, "say"), reply.say or ""
            yield (*place, "think"), reply.think or ""
            for number, call in enumerate(reply.calls):
                yield from _strings((*place, "calls", number, "args"), call.args)


def _strings(place: Place, value: object) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings((*place, key), item)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _strings((*place, at), item)


def _hides(earlier: ScriptEntry, later: ScriptEntry) -> bool:
    """Whether every request that `later` matches goes to `earlier`, as far as the texts alone can tell."""
    if earlier.after is not None and (later.after is None or earlier.after not in later.after):
        return False
    if earlier.user is not None:
        return later.user is not None and earlier.user in later.user
    return earlier.user_matches is None or earlier.user_matches == later.user_matches


def _reachable(entries: tuple[ScriptEntry, ...]) -> tuple[ScriptEntry, ...]:
    if not entries:
        raise fault_at("the script has no entry", hint='`- say: "hello"` answers everything')
    for at, later in enumerate(entries):
        for number, earlier in enumerate(entries[:at], start=1):
            if _hides(earlier, later):
                raise fault_at(
                    f"this entry never answers: entry {number} comes first and matches all that it matches",
                    at,
                    hint="put the special entry first, or tell the two apart by `after`",
                )
    return entries


Script = Annotated[tuple[ScriptEntry, ...], AfterValidator(_reachable)]
"""A case's `script:`."""

"""The two parts of a scripted reply that carry rules of their own: tool calls and planned faults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, StrictInt, StrictStr, model_validator

from skillup.spec.problems import fault_at
from skillup.spec.values import Delay, Seconds, Spec, Text

TOOL_ARGUMENTS: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = {
    "bash": (frozenset({"command"}), frozenset()),
    "read": (frozenset({"path"}), frozenset()),
    "write": (frozenset({"path", "content"}), frozenset()),
    "edit": (frozenset({"path", "old", "new"}), frozenset()),
    "glob": (frozenset({"pattern"}), frozenset({"path"})),
    "grep": (frozenset({"pattern"}), frozenset({"path"})),
    "list": (frozenset({"path"}), frozenset()),
    "web_fetch": (frozenset({"url"}), frozenset({"prompt"})),
    "web_search": (frozenset({"query"}), frozenset()),
    "skill": (frozenset({"name"}), frozenset({"args"})),
    "subagent": (frozenset({"prompt"}), frozenset({"description", "type"})),
    "todo": (frozenset({"text"}), frozenset()),
    "ask_user": (frozenset({"question"}), frozenset({"options"})),
}
"""Required and optional arguments of each canonical tool for scripts; all are text but `options`."""

_MCP_TOOL = re.compile(r"mcp:[^/\s]+/[^/\s]+\Z")


def named(names: frozenset[str]) -> str:
    """Names as messages list them."""
    return ", ".join(f"`{name}`" for name in sorted(names))


class ScriptCall(Spec):
    """One tool call of a reply: a canonical `tool`, or any tool of one engine by its own `name`."""

    tool: Text | None = None
    name: Text | None = None
    args: dict[StrictStr, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_tool(self) -> Self:
        if (self.tool is None) == (self.name is None):
            raise fault_at(
                "a call names its tool once",
                hint="`tool:` for a canonical tool (bash, write, …), or `name:` for an engine's own",
            )
        if self.tool is not None and not _MCP_TOOL.match(self.tool):
            self._check_arguments(self.tool)
        return self

    def _check_arguments(self, tool: str) -> None:
        if tool not in TOOL_ARGUMENTS:
            known = named(frozenset(TOOL_ARGUMENTS))
            raise fault_at(
                f"`{tool}` is not a canonical tool",
                "tool",
                hint=f"one of {known}, `mcp:SERVER/TOOL`; an engine's own tool goes by `name:`",
            )
        required, optional = TOOL_ARGUMENTS[tool]
        given = frozenset(self.args)
        takes = f"it takes {named(required | optional)}"
        if missing := required - given:
            raise fault_at(f"`{tool}` lacks the argument {named(missing)}", hint=takes)
        if unknown := given - required - optional:
            raise fault_at(f"`{tool}` has no argument {named(unknown)}", "args", min(unknown), hint=takes)
        for name, value in self.args.items():
            if name != "options" and not isinstance(value, str):
                raise fault_at(f"`{name}` must be text", "args", name, hint="put it in quotes")
        options = self.args.get("options", ["-"])
        if not (isinstance(options, list) and options and all(isinstance(item, str) for item in options)):
            raise fault_at("`options` must be a list of texts", "args", "options")


def _times(value: Any) -> Any:
    if value == "always" or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise fault_at("must be a whole number from 1, or `always`")


def _yes(value: Any) -> Any:
    if value is True:
        return True
    raise fault_at("must be `true`", hint="leave the key out for no fault")


Yes = Annotated[Literal[True], BeforeValidator(_yes)]
Times = Annotated[int | Literal["always"], BeforeValidator(_times)]
FaultKind = Literal["status", "drop", "malformed", "stall", "endless", "slow"]

_KINDS: Final[tuple[FaultKind, ...]] = ("status", "drop", "malformed", "stall", "endless", "slow")


class ScriptFault(Spec):
    """One planned fault, of exactly one kind, before the good reply (or, for `slow`, while it is written).

    `times` counts identical requests. `retry_after` and `slow` are in seconds.
    """

    status: Annotated[StrictInt, Field(ge=400, le=599)] | None = None
    drop: Yes | None = None
    malformed: Yes | None = None
    stall: Yes | None = None
    endless: Yes | None = None
    slow: Seconds | None = None
    times: Times = "always"
    retry_after: Delay | None = None
    message: Text | None = None

    @property
    def kind(self) -> FaultKind:
        """Which of the kinds this is."""
        return next(kind for kind in _KINDS if getattr(self, kind) is not None)

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            found = " and ".join(f"`{kind}`" for kind in kinds) or "none"
            raise fault_at(
                f"a fault has exactly one kind, found {found}",
                hint=f"one of {', '.join(_KINDS)}; a second fault is another list item",
            )
        if self.status is None and (self.retry_after is not None or self.message is not None):
            raise fault_at(f"`retry_after` and `message` belong to `status`, not to `{kinds[0]}`")
        if self.slow is not None and "times" in self.model_fields_set:
            raise fault_at("`slow` holds for every good reply", "times", hint="leave `times` out")
        return self


def always_fails(faults: tuple[ScriptFault, ...]) -> bool:
    """Whether no good reply can follow."""
    return any(fault.kind != "slow" and fault.times == "always" for fault in faults)


def _reachable(faults: tuple[ScriptFault, ...]) -> tuple[ScriptFault, ...]:
    endless = False
    slow = False
    for at, fault in enumerate(faults):
        if fault.kind == "slow":
            if slow:
                raise fault_at("`slow` is given twice", at)
            slow = True
        elif endless:
            raise fault_at(
                "the fault never comes: an earlier one happens always",
                at,
                hint="give the earlier one `times: 1`",
            )
        else:
            endless = fault.times == "always"
    return faults


Faults = Annotated[tuple[ScriptFault, ...], AfterValidator(_reachable)]
"""Planned faults in the order in which they come."""

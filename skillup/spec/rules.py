"""The rules that a case can check: fields only; `judging/rules.py` says when each is met.

A list item such as `- tool_called: {name: bash}` is a `RuleItem` with exactly one field set. The per-turn names of
SUP-0001 (`turn_response_contains`, …) are further fields that turn into the same rules, so that below loading only
one form of each rule exists: `item.rule`.

Adding a rule: a class here, a field of `RuleItem`, an entry in `judging/rules.py`, a row in docs/rules.md.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from skillup.spec.problems import fault_at
from skillup.spec.values import Flag, InnerPath, Pattern, Spec, Text, TurnReference, Whole, compile_pattern


class Rule(Spec):
    """What every rule has: the turn it looks at (default: see docs/rules.md)."""

    kind: ClassVar[str]
    turn: TurnReference | None = None

    @property
    def forbids(self) -> bool:
        """Whether absence is what the rule asks for."""
        return False


class _Texts(Rule):
    """The shape that the two text rules share."""

    ignore_case: Flag | None = None

    @property
    def parts(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """All-of, any-of and none-of texts or patterns."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not any(self.parts):
            raise fault_at("the rule checks nothing", hint="give at least one of all, any, not")
        return self

    @property
    def forbids(self) -> bool:
        required, either, forbidden = self.parts
        return bool(forbidden) and not required and not either


class OutputContains(_Texts):
    """Literal texts in the agent's answer."""

    kind = "output_contains"
    all_: tuple[Text, ...] = Field((), alias="all")
    any_: tuple[Text, ...] = Field((), alias="any")
    not_: tuple[Text, ...] = Field((), alias="not")

    @property
    def parts(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        return self.all_, self.any_, self.not_


class OutputMatches(_Texts):
    """RE2 patterns in the agent's answer."""

    kind = "output_matches"
    all_: tuple[Pattern, ...] = Field((), alias="all")
    any_: tuple[Pattern, ...] = Field((), alias="any")
    not_: tuple[Pattern, ...] = Field((), alias="not")

    @property
    def parts(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        return self.all_, self.any_, self.not_


class Count(Spec):
    """How often: `{min: 1, max: 3}`; a plain number means exactly that often."""

    min: Whole = Field(1, ge=0)
    max: Whole | None = Field(None, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _exact(cls, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            if value < 1:
                raise fault_at("a count of 0 asks for absence", hint="use tool_not_called")
            return {"min": value, "max": value}
        return value

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.max is not None and self.max < self.min:
            raise fault_at(f"max {self.max} is less than min {self.min}: the rule can never be met")
        return self


def _names(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _check_patterns(arguments: Any, *at: str | int) -> None:
    """Argument values of the form `{matches: PATTERN}` must be valid patterns."""
    if isinstance(arguments, dict):
        if set(arguments) == {"matches"} and isinstance(arguments["matches"], str):
            try:
                compile_pattern(arguments["matches"])
            except ValueError as error:
                raise fault_at(str(error), *at, "matches") from None
            return
        for key, inner in arguments.items():
            _check_patterns(inner, *at, key)
    elif isinstance(arguments, list):
        for index, inner in enumerate(arguments):
            _check_patterns(inner, *at, index)


class _Calls(Rule):
    """The shape that the two tool rules share: which calls they look for."""

    name: tuple[Text, ...] = Field(min_length=1)
    args: dict[str, Any] = {}
    raw_args: dict[str, Any] = {}
    status: Literal["ok", "error", "denied"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_name(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"name": [value]}
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            return {**value, "name": [value["name"]]}
        return value

    @model_validator(mode="after")
    def _patterns(self) -> Self:
        _check_patterns(self.args, "args")
        _check_patterns(self.raw_args, "raw_args")
        return self


class ToolCalled(_Calls):
    """The agent called a tool, as often as `count` says (default: at least once)."""

    kind = "tool_called"
    count: Count = Count(min=1, max=None)


class ToolNotCalled(_Calls):
    """The agent never made such a call."""

    kind = "tool_not_called"

    @property
    def forbids(self) -> bool:
        return True


class _Paths(Rule):
    """The shape of the two rules on the existence of files; a bare list means `{paths: [...]}`."""

    paths: tuple[InnerPath, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _bare_list(cls, value: Any) -> Any:
        return {"paths": value} if isinstance(value, list) else value


class FilesExist(_Paths):
    """Files or folders (globs allowed) that are there."""

    kind = "files_exist"


class FilesNotExist(_Paths):
    """Files or folders (globs allowed) that are not there."""

    kind = "files_not_exist"

    @property
    def forbids(self) -> bool:
        return True


class FileContains(Rule):
    """Literal texts in one file of the workspace."""

    kind = "file_contains"
    path: InnerPath
    content: Text | None = None
    all_: tuple[Text, ...] = Field((), alias="all")
    any_: tuple[Text, ...] = Field((), alias="any")
    not_: tuple[Text, ...] = Field((), alias="not")
    ignore_case: Flag | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not (self.content or self.all_ or self.any_ or self.not_):
            raise fault_at("the rule checks nothing", hint="give `content`, or at least one of all, any, not")
        return self

    @property
    def parts(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """All-of, any-of and none-of texts."""
        content = (self.content,) if self.content else ()
        return content + self.all_, self.any_, self.not_


class WorkspaceChanged(Rule):
    """What the turn (default: the whole conversation) did to the workspace; every entry is a path or a glob.

    `created`, `changed` and `deleted` must each be matched by such a change; every change must match one of `only`;
    no change may match `unchanged`.
    """

    kind = "workspace_changed"
    created: tuple[InnerPath, ...] = ()
    changed: tuple[InnerPath, ...] = ()
    deleted: tuple[InnerPath, ...] = ()
    only: tuple[InnerPath, ...] | None = None
    unchanged: tuple[InnerPath, ...] = ()

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not (self.created or self.changed or self.deleted or self.unchanged) and self.only is None:
            raise fault_at("the rule checks nothing", hint="give created, changed, deleted, only or unchanged")
        return self

    @property
    def forbids(self) -> bool:
        return not (self.created or self.changed or self.deleted)


# The per-turn names of SUP-0001. Each knows its turn and turns into one of the rules above.


class _InTurn(Spec):
    turn: Whole = Field(ge=1)


class TurnResponseContains(_InTurn):
    """SUP-0001: texts in the answer of one turn."""

    contains_all: tuple[Text, ...] = ()
    contains_any: tuple[Text, ...] = ()
    ignore_case: Flag | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not (self.contains_all or self.contains_any):
            raise fault_at("the rule checks nothing", hint="give contains_all or contains_any")
        return self


class TurnResponseNotContains(_InTurn):
    """SUP-0001: texts that the answer of one turn must not hold."""

    not_contains: tuple[Text, ...] = Field(min_length=1)
    ignore_case: Flag | None = None


class TurnResponseMatches(_InTurn):
    """Patterns in the answer of one turn."""

    matches_all: tuple[Pattern, ...] = ()
    matches_any: tuple[Pattern, ...] = ()
    ignore_case: Flag | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not (self.matches_all or self.matches_any):
            raise fault_at("the rule checks nothing", hint="give matches_all or matches_any")
        return self


class ToolCalledInTurn(ToolCalled):
    """SUP-0001: `tool_called` of one turn."""

    turn: TurnReference = Field()


class ToolNotCalledInTurn(ToolNotCalled):
    """SUP-0001: `tool_not_called` of one turn."""

    turn: TurnReference = Field()


class WorkspaceInTurn(WorkspaceChanged):
    """`workspace_changed` of one turn."""

    turn: TurnReference = Field()


class ExitCode(Spec):
    """Read only to be refused with the reason."""

    @model_validator(mode="before")
    @classmethod
    def _refuse(cls, _value: Any) -> Any:
        raise fault_at(
            "`exit_code` can never differ on a built-in engine: a turn that ends with another code is ERROR",
            hint="check the answer, the workspace or a tool call instead",
        )


class RuleItem(Spec):
    """One item of a list of rules: exactly one rule."""

    later = frozenset(
        {
            "tool_order",
            "tools_only",
            "file_matches",
            "file_equals",
            "json_path",
            "json_schema",
            "command",
            "skill_used",
            "asked_user",
            "max_tool_calls",
            "max_tokens",
            "max_cost_usd",
            "max_seconds",
            "no_repeated_calls",
        }
    )

    output_contains: OutputContains | None = None
    output_matches: OutputMatches | None = None
    tool_called: ToolCalled | None = None
    tool_not_called: ToolNotCalled | None = None
    files_exist: FilesExist | None = None
    files_not_exist: FilesNotExist | None = None
    file_contains: FileContains | None = None
    workspace_changed: WorkspaceChanged | None = None
    turn_response_contains: TurnResponseContains | None = None
    turn_response_not_contains: TurnResponseNotContains | None = None
    turn_response_matches: TurnResponseMatches | None = None
    tool_called_in_turn: ToolCalledInTurn | None = None
    tool_not_called_in_turn: ToolNotCalledInTurn | None = None
    workspace_in_turn: WorkspaceInTurn | None = None
    exit_code: ExitCode | None = None

    @model_validator(mode="before")
    @classmethod
    def _exactly_one(cls, value: Any) -> Any:
        if isinstance(value, dict):
            if not value:
                raise fault_at("the rule is empty", hint="write one rule, such as output_contains")
            if len(value) > 1 and set(value) <= set(cls.model_fields):
                names = ", ".join(sorted(map(str, value)))
                raise fault_at(f"two rules in one list item: {names}", hint="give each rule its own `-`")
            for name, body in value.items():
                if body is None:
                    raise fault_at("the rule has no body", str(name), hint="write what it checks below it")
        return value

    @property
    def name(self) -> str:
        """The name that the user wrote."""
        return next(iter(self.model_fields_set))

    @property
    def rule(self) -> Rule:
        """The one rule of this item, in its only form."""
        written = getattr(self, self.name)
        match written:
            case TurnResponseContains():
                texts = {"all": written.contains_all, "any": written.contains_any}
                return OutputContains(turn=written.turn, ignore_case=written.ignore_case, **texts)
            case TurnResponseNotContains():
                return OutputContains(
                    turn=written.turn, ignore_case=written.ignore_case, **{"not": written.not_contains}
                )
            case TurnResponseMatches():
                patterns = {"all": written.matches_all, "any": written.matches_any}
                return OutputMatches(turn=written.turn, ignore_case=written.ignore_case, **patterns)
            case Rule():
                return written
        raise AssertionError(f"unreachable: {self.name} has no rule")

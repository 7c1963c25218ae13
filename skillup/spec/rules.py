"""The rules that a case can check: fields only; `judging/rules.py` says when each is met.

Adding a rule: a class here, a field of `RuleItem` in `rule_items.py`, an entry in `judging/rules.py`, a row in
docs/rules.md.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from skillup.spec.problems import fault_at, quoted
from skillup.spec.values import Flag, InnerPath, Pattern, Spec, Text, TurnReference, Whole, compile_pattern


class Rule(Spec):
    """What every rule has: the turn it looks at (default: see docs/rules.md).

    `about_files` marks rules on the workspace. `refused_in_failure` says what to write instead, for rules that in a
    list of failure rules would say the opposite of what is meant.
    """

    kind: ClassVar[str]
    about_files: ClassVar[bool] = False
    refused_in_failure: ClassVar[str] = ""
    turn: TurnReference | None = None

    @property
    def forbids(self) -> bool:
        """Whether absence is all that it asks for, so that an agent which does nothing meets it."""
        return False

    @property
    def needed_calls(self) -> tuple[tuple[str, ...], ...]:
        """Calls without which it cannot be met, each by the names that are good for it."""
        return ()

    @property
    def files_read(self) -> tuple[str, ...]:
        """Files of the workspace whose content it reads."""
        return ()


def refuse_contradiction(required: tuple[str, ...], forbidden: tuple[str, ...], *at: str) -> None:
    """Raises a fault when one text is both required and forbidden."""
    for index, text in enumerate(forbidden):
        if text in required:
            raise fault_at(f"{quoted(text)} is both required and forbidden: this can never hold", *at, index)


class _Texts(Rule):
    """The shape that the two text rules share."""

    ignore_case: Flag | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare_text(cls, value: Any) -> Any:
        if isinstance(value, (str, list)):
            raise fault_at("the rule does not say how many of its texts are wanted", hint="write {all: [a, b]}, or any")
        return value

    @property
    def parts(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """All-of, any-of and none-of texts or patterns."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not any(self.parts):
            raise fault_at("the rule checks nothing", hint="give at least one of all, any, not")
        required, _, forbidden = self.parts
        refuse_contradiction(required, forbidden, "not")
        return self

    @property
    def forbids(self) -> bool:
        return not any(self.parts[:2])


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
        if self.min == 0 and self.max is None:
            raise fault_at("every number of calls is at least 0, so the rule is always met", "min", hint="give `max`")
        return self


def check_patterns(arguments: Any, *at: str | int) -> None:
    """Argument values of the form `{matches: PATTERN}` must be valid patterns."""
    if isinstance(arguments, dict):
        if set(arguments) == {"matches"} and isinstance(arguments["matches"], str):
            try:
                compile_pattern(arguments["matches"])
            except ValueError as error:
                raise fault_at(str(error), *at, "matches") from None
            return
        for key, inner in arguments.items():
            check_patterns(inner, *at, key)
    elif isinstance(arguments, list):
        for index, inner in enumerate(arguments):
            check_patterns(inner, *at, index)


class CallPattern(Spec):
    """Which calls are meant: a tool by one of its names, arguments, what came of it; a text is a name.

    `args_match` says whether a call may have more arguments than `args` (`part`), must have these (`exact`), or may
    have none but these (`within`).
    """

    name: tuple[Text, ...] = Field(min_length=1)
    args: dict[str, Any] = {}
    args_match: Literal["part", "exact", "within"] = "part"
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
        check_patterns(self.args, "args")
        check_patterns(self.raw_args, "raw_args")
        return self


class ToolCalled(CallPattern, Rule):
    """The agent called a tool, as often as `count` says (default: at least once)."""

    kind = "tool_called"
    count: Count = Count(min=1, max=None)

    @property
    def forbids(self) -> bool:
        return self.count.min == 0

    @property
    def needed_calls(self) -> tuple[tuple[str, ...], ...]:
        return (self.name,) if self.count.min else ()


class ToolNotCalled(CallPattern, Rule):
    """The agent never made such a call."""

    kind = "tool_not_called"

    @property
    def forbids(self) -> bool:
        return True


class _Paths(Rule):
    """The shape of the two rules on the existence of files; a bare list means `{paths: [...]}`."""

    about_files = True
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


class OneFile(Rule):
    """The shape of the rules that read one file of the workspace."""

    about_files = True
    path: InnerPath

    @model_validator(mode="after")
    def _one_file(self) -> Self:
        if "*" in self.path or "?" in self.path:
            raise fault_at("the rule reads one file and takes no pattern", "path", hint="name the file")
        return self

    @property
    def files_read(self) -> tuple[str, ...]:
        return (self.path,)


class FileContains(OneFile):
    """Literal texts in one file of the workspace."""

    kind = "file_contains"
    content: Text | None = None
    all_: tuple[Text, ...] = Field((), alias="all")
    any_: tuple[Text, ...] = Field((), alias="any")
    not_: tuple[Text, ...] = Field((), alias="not")
    ignore_case: Flag | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not (self.content or self.all_ or self.any_ or self.not_):
            raise fault_at("the rule checks nothing", hint="give `content`, or at least one of all, any, not")
        required, _, forbidden = self.parts
        refuse_contradiction(required, forbidden, "not")
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
    about_files = True
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

"""What users write in one case file: input, context, checks, script.

Semantics are the public skill-up format's (`v1alpha1`) where its documentation gives them; departures stand in
docs/departures.md.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from skillup.spec.problems import fault_at
from skillup.spec.rules import (
    FileContains,
    FilesExist,
    FilesNotExist,
    OutputContains,
    OutputMatches,
    Rule,
    RuleItem,
)
from skillup.spec.script import Script
from skillup.spec.values import Delay, Flag, InnerPath, Pattern, Seconds, Spec, Text, Whole, compile_pattern

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_CASE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")

DEFAULT_CASE_SECONDS = 300.0
"""Time limit of a case's turns when nothing says otherwise; the public format's default."""


def _variable(name: str) -> str:
    if not VARIABLE.match(name):
        raise fault_at(f"{name!r} is not a variable name", hint="use letters, digits and _, not starting with a digit")
    return name


def _case_id(text: str) -> str:
    if not _CASE_ID.match(text):
        raise fault_at(
            f"{text!r} cannot name a folder",
            hint="use letters, digits, `.`, `_` and `-`, at most 100 characters",
        )
    return text


VariableName = Annotated[str, AfterValidator(_variable)]
CaseId = Annotated[str, AfterValidator(_case_id)]


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
        return self


class Capture(Spec):
    """A value that later turns can use as `{{variable}}`."""

    variable: VariableName
    pattern: Pattern | None = None
    jsonpath: str | None = None
    default: str | None = None
    on_missing: Literal["error", "fail", "skip_remaining"] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.pattern is None) == (self.jsonpath is None):
            raise fault_at("a capture takes exactly one of `pattern` and `jsonpath`")
        if self.default is not None and self.on_missing is not None:
            raise fault_at("`default` and `on_missing` contradict each other", "on_missing", hint="keep one of them")
        if self.pattern is not None:
            compiled = compile_pattern(self.pattern)
            if "value" not in compiled.groupindex and compiled.groups != 1:
                raise fault_at(
                    f"the pattern has {compiled.groups} groups, so what to take is not clear",
                    "pattern",
                    hint="mark it with (?P<value>…), or use exactly one group",
                )
        return self


class Turn(Spec):
    """One user message, and what happens after the answer."""

    later = frozenset({"respond", "criteria", "assertions", "attachments"})

    role: Literal["user"] = "user"
    content: Text
    post_condition: Gate | None = None
    capture: tuple[Capture, ...] = ()
    timeout_seconds: Seconds | None = None
    turn_delay: Delay | None = None
    slash_command: Flag = False


class Input(Spec):
    """`prompt`, or `turns`; a prompt is a conversation of one turn."""

    later = frozenset({"conversation", "messages"})

    prompt: Text | None = None
    turns: tuple[Turn, ...] = ()
    slash_command: Flag = False

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.prompt is None) == (not self.turns):
            raise fault_at("the input takes exactly one of `prompt` and `turns`, and at least one turn")
        if self.slash_command and self.turns:
            raise fault_at("`slash_command` belongs to each turn", "slash_command", hint="write it below the turn")
        return self


class Git(Spec):
    """Whether the workspace is a git repository with the fixture as its first commit."""

    later = frozenset({"checkout", "apply_diff", "remotes"})

    init: Flag = False


class Context(Spec):
    """What the workspace holds before the first turn: a fixture folder, then files, then git."""

    repo_fixture: Text | None = None
    files: dict[InnerPath, str] = {}
    git: Git = Git()


class Constraints(Spec):
    """Limits of the case; `on_limit` says what reaching one means (see docs/cases.md)."""

    later = frozenset({"max_cost_usd", "max_tokens", "max_steps"})

    timeout_seconds: Seconds | None = None
    max_turns: Whole | None = Field(None, ge=1)
    on_limit: Literal["fail", "judge", "error"] | None = None


class ExpectedContent(Spec):
    """One entry of `expect.file_contains`."""

    path: InnerPath
    content: Text


class Expect(Spec):
    """The gate in front of the judge; each entry becomes one check."""

    later = frozenset({"golden_file"})

    must_contain: tuple[Text, ...] = ()
    must_not_contain: tuple[Text, ...] = ()
    files_exist: tuple[InnerPath, ...] = ()
    files_not_exist: tuple[InnerPath, ...] = ()
    file_contains: tuple[ExpectedContent, ...] = ()
    exit_code: Whole | None = None

    @model_validator(mode="after")
    def _refuse_exit_code(self) -> Self:
        if self.exit_code is not None:
            raise fault_at(
                "`exit_code` can never differ on a built-in engine: a turn that ends with another code is ERROR",
                "exit_code",
                hint="check the answer, the workspace or a tool call instead",
            )
        return self

    def rules(self) -> tuple[tuple[str, Rule], ...]:
        """Each entry as (its key, the rule that checks it)."""
        found: list[tuple[str, Rule]] = []
        for i, text in enumerate(self.must_contain):
            found.append((f"must_contain[{i}]", OutputContains(all=(text,))))
        for i, text in enumerate(self.must_not_contain):
            found.append((f"must_not_contain[{i}]", OutputContains(**{"not": (text,)})))
        for i, path in enumerate(self.files_exist):
            found.append((f"files_exist[{i}]", FilesExist(paths=(path,))))
        for i, path in enumerate(self.files_not_exist):
            found.append((f"files_not_exist[{i}]", FilesNotExist(paths=(path,))))
        for i, entry in enumerate(self.file_contains):
            found.append((f"file_contains[{i}]", FileContains(path=entry.path, content=entry.content)))
        return tuple(found)

    def merged_over(self, defaults: Expect) -> Expect:
        """Lists of both, the defaults' first, without duplicates."""

        def joined(name: str) -> tuple[Any, ...]:
            return tuple(dict.fromkeys((*getattr(defaults, name), *getattr(self, name))))

        return Expect(
            must_contain=joined("must_contain"),
            must_not_contain=joined("must_not_contain"),
            files_exist=joined("files_exist"),
            files_not_exist=joined("files_not_exist"),
            file_contains=joined("file_contains"),
        )


class Judge(Spec):
    """What turns the rules into a verdict: any `failure` rule that matches is FAIL, every `success` rule must hold."""

    later = frozenset(
        {
            "model",
            "criteria",
            "pass_threshold",
            "timeout_seconds",
            "context",
            "attachments",
            "skills",
            "script_path",
        }
    )

    type: Literal["rule_based", "none"]
    success: tuple[RuleItem, ...] = ()
    failure: tuple[RuleItem, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _known_type(cls, value: Any) -> Any:
        if isinstance(value, dict):
            if "type" not in value:
                raise fault_at("a judge needs a `type`", hint="write `type: rule_based`, or `type: none`")
            if value["type"] in ("script", "agent_judge", "rubric"):
                raise fault_at(f"the judge `{value['type']}` is not supported yet", "type", hint="use rule_based")
        return value

    @model_validator(mode="after")
    def _meaningful(self) -> Self:
        if self.type == "none" and (self.success or self.failure):
            raise fault_at("`type: none` checks nothing, but rules are given", "type", hint="use type: rule_based")
        if self.type == "rule_based" and not (self.success or self.failure):
            raise fault_at("a rule_based judge without rules", hint="give `success` or `failure`, or type: none")
        for index, item in enumerate(self.failure):
            rule = item.rule
            if isinstance(rule, (OutputContains, OutputMatches, FileContains)) and rule.not_:
                self._refuse_not(index, item, f"{rule.kind}: {{any: […]}}")
        return self

    @staticmethod
    def _refuse_not(index: int, item: RuleItem, instead: str) -> None:
        raise fault_at(
            "`not` in a failure rule matches when the words are absent, which nobody means",
            "failure",
            index,
            item.name,
            hint=f"to forbid words use `{instead}` here; to require them use a success rule",
        )


class Case(Spec):
    """One scenario. `id` defaults to the file's name, everything else to the suite's defaults."""

    later = frozenset({"judges", "mcp", "user_simulator", "collect_artifacts", "requires", "mock_tools", "depends_on"})

    id: CaseId
    title: str = ""
    description: str = ""
    tag: str | None = None
    tags: tuple[str, ...] = ()
    vars: dict[VariableName, str] = {}
    input: Input
    context: Context = Context()
    constraints: Constraints = Constraints()
    expect: Expect = Expect()
    judge: Judge | None = None
    script: Script | None = None
    turn_delay: Delay | None = None
    ignore_case: Flag | None = None

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The user's messages; a prompt is one."""
        if self.input.prompt is not None:
            return (Turn(content=self.input.prompt, slash_command=self.input.slash_command),)
        return self.input.turns

    @property
    def failure_rules(self) -> tuple[Rule, ...]:
        """The judge's failure rules, in their only form."""
        return tuple(item.rule for item in self.judge.failure) if self.judge else ()

    @property
    def success_rules(self) -> tuple[Rule, ...]:
        """The judge's success rules, in their only form."""
        return tuple(item.rule for item in self.judge.success) if self.judge else ()

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        """Every rule that this case checks, those of `expect` included."""
        return (*(rule for _, rule in self.expect.rules()), *self.success_rules, *self.failure_rules)

    @property
    def checks_nothing(self) -> bool:
        """Whether no gate, expectation or rule could ever say no."""
        return not self.all_rules and not any(turn.post_condition for turn in self.turns)

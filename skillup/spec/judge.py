"""What is checked at the end of a case: the `expect` gate and the judge."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from skillup.spec.command_rule import CommandHolds
from skillup.spec.content_rules import FileMatches, OutputEquals, SuiteText
from skillup.spec.json_rules import JsonPath
from skillup.spec.problems import fault_at
from skillup.spec.rule_items import RuleItem
from skillup.spec.rules import (
    FileContains,
    FilesExist,
    FilesNotExist,
    OutputContains,
    OutputMatches,
    Rule,
    refuse_contradiction,
)
from skillup.spec.values import InnerPath, Spec, Text, Whole

EXIT_CODE_REASON = "`exit_code` can never differ on a built-in engine: a turn that ends with another code is ERROR"


class ExpectedContent(Spec):
    """One entry of `expect.file_contains`."""

    path: InnerPath
    content: Text


class Expect(Spec):
    """The gate in front of the judge; each entry becomes one check."""

    must_contain: tuple[Text, ...] = ()
    must_not_contain: tuple[Text, ...] = ()
    files_exist: tuple[InnerPath, ...] = ()
    files_not_exist: tuple[InnerPath, ...] = ()
    file_contains: tuple[ExpectedContent, ...] = ()
    golden_file: SuiteText | None = None
    exit_code: Whole | None = None

    @model_validator(mode="after")
    def _refuse_exit_code(self) -> Self:
        if self.exit_code is not None:
            hint = "check the answer, the workspace or a tool call instead"
            raise fault_at(EXIT_CODE_REASON, "exit_code", hint=hint)
        refuse_contradiction(self.must_contain, self.must_not_contain, "must_not_contain")
        refuse_contradiction(self.files_exist, self.files_not_exist, "files_not_exist")
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
        if self.golden_file is not None:
            found.append(("golden_file", OutputEquals(file=self.golden_file)))
        return tuple(found)

    def merged_over(self, defaults: Expect) -> Expect:
        """Lists of both, the defaults' first, without duplicates, and the own `golden_file` before the defaults'.

        A contradiction between them is found by loading.
        """

        def joined(name: str) -> tuple[Any, ...]:
            return tuple(dict.fromkeys((*getattr(defaults, name), *getattr(self, name))))

        lists = ("must_contain", "must_not_contain", "files_exist", "files_not_exist", "file_contains")
        joined_lists = {name: joined(name) for name in lists}
        return self.model_copy(update={**joined_lists, "golden_file": self.golden_file or defaults.golden_file})


class Judge(Spec):
    """What turns the rules into a verdict: any `failure` rule that matches is FAIL, every `success` rule must hold."""

    later = frozenset({"script_path", "model", "criteria", "pass_threshold", "timeout_seconds", "context", "skills"})
    later_values: ClassVar[Mapping[str, frozenset[str]]] = MappingProxyType(
        {"type": frozenset({"script", "agent_judge", "rubric"})}
    )

    type: Literal["rule_based", "none"]
    success: tuple[RuleItem, ...] = ()
    failure: tuple[RuleItem, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _has_a_type(cls, value: Any) -> Any:
        # With a key that nobody knows, the unknown key may be a misspelt `type`: that is told elsewhere.
        if isinstance(value, dict) and "type" not in value and set(value) <= {*cls.model_fields, *cls.later}:
            raise fault_at(
                "a judge needs a `type`; without it its rules would not count",
                hint="write `type: rule_based`, or `type: none`",
            )
        return value

    @model_validator(mode="after")
    def _meaningful(self) -> Self:
        if self.type == "none" and (self.success or self.failure):
            raise fault_at("`type: none` checks nothing, but rules are given", "type", hint="use type: rule_based")
        if self.type == "rule_based" and not (self.success or self.failure):
            raise fault_at("a rule_based judge without rules", hint="give `success` or `failure`, or type: none")
        for index, item in enumerate(self.failure):
            rule = item.rule
            if rule.refused_in_failure:
                raise fault_at(
                    f"as a failure rule `{item.name}` would match when all is well",
                    "failure",
                    index,
                    item.name,
                    hint=rule.refused_in_failure,
                )
            if isinstance(rule, JsonPath) and not rule.exists:
                hint = "to require it write a success rule with exists: true; to forbid it, `exists: true` here"
                raise fault_at(
                    "`exists: false` in a failure rule would match when it is absent",
                    "failure",
                    index,
                    item.name,
                    hint=hint,
                )
            printed = (rule.output, rule.output_matches) if isinstance(rule, CommandHolds) else ()
            if any(wanted is not None and wanted.not_ for wanted in printed):
                hint = "to forbid texts write `any` there; to require that they are absent write a success rule"
                raise fault_at(
                    "`not` in a failure rule would match when the texts are absent",
                    "failure",
                    index,
                    item.name,
                    hint=hint,
                )
            if isinstance(rule, (OutputContains, OutputMatches, FileContains, FileMatches)) and rule.not_:
                hint = f"to forbid texts write {rule.kind}: {{any: […]}}; to require them write a success rule"
                raise fault_at(
                    "`not` in a failure rule would match when the texts are absent",
                    "failure",
                    index,
                    item.name,
                    hint=hint,
                )
        return self

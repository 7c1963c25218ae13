"""What is checked at the end of a case: the `expect` gate and the judge."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from skillup.spec.agent import LATER_ENGINES
from skillup.spec.command_rule import CommandHolds
from skillup.spec.content_rules import FileMatches, OutputEquals, SuiteText
from skillup.spec.criteria import Criterion, JudgeContext, JudgeSkill, refuse_useless, with_ids
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
from skillup.spec.scoring import DEFAULT_SCORING_THRESHOLD, Scoring
from skillup.spec.script_judge import DEFAULT_SCRIPT_SECONDS, ScriptFile
from skillup.spec.values import InnerPath, LimitSeconds, Spec, Text, Threshold, Whole, Words

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


DEFAULT_THRESHOLD = 0.7
"""The share of the weights that criteria must reach when nothing says otherwise; the public format's default."""

TRAJECTORY_THRESHOLD = 0.99
"""What the scores of a trajectory must reach: below 1.0 only for the rounding of means."""

DEFAULT_EVALUATOR_SECONDS = 300.0
"""Time limit of an evaluator: one that asks models itself needs minutes, one that hangs must not cost the night."""

DEFAULT_JUDGE_SECONDS = 120.0
"""Time limit of one call of the judge's model: a slow model that thinks first needs a minute."""

MAX_SAMPLES = 25


class JudgeModel(Spec):
    """The model that judges, apart from the agent's; a text alone is its name."""

    provider: Literal["anthropic", "openai", "ollama", "local"] | None = None
    name: Words | None = None
    base_url: Words | None = None

    @model_validator(mode="before")
    @classmethod
    def _word(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"provider": value} if value == "local" else {"name": value}
        return value

    @model_validator(mode="after")
    def _an_address(self) -> Self:
        if self.base_url and not self.base_url.startswith(("http://", "https://")):
            raise fault_at("not an http(s) address", "base_url", hint="begin it with https:// or http://")
        if self.base_url and "@" in self.base_url.split("/")[2]:
            hint = "export SKILLUP_JUDGE_API_KEY instead"
            raise fault_at("a secret may not stand in an address", "base_url", hint=hint)
        if self.base_url and self.provider == "local":
            raise fault_at("the local model is in the process and has no address", "base_url", hint="remove base_url")
        return self


class Judge(Spec):
    """What turns rules and criteria into a verdict.

    Any `failure` rule that matches is FAIL, every `success` rule must hold. With `agent_judge` or `rubric` a model
    judges `criteria` besides, and their weighted mean must reach `pass_threshold`; with an `engine` that agent's CLI is
    asked, which can look into the workspace. With `script` a program of the
    suite says yes or no, with `evaluator` a function or class in Python, given `config`. With `scoring` the score of
    the conversation's parts must reach `pass_threshold`.
    """

    later_values: ClassVar[Mapping[str, frozenset[str]]] = MappingProxyType({"engine": LATER_ENGINES})

    type: Literal["rule_based", "agent_judge", "rubric", "script", "evaluator", "none"]
    success: tuple[RuleItem, ...] = ()
    failure: tuple[RuleItem, ...] = ()
    criteria: tuple[Criterion, ...] = ()
    scoring: Scoring | None = None
    engine: Literal["builtin", "claude_code", "codex"] | None = None
    model: JudgeModel | None = None
    pass_threshold: Threshold | None = None
    timeout_seconds: LimitSeconds = None
    samples: Annotated[Whole, Field(ge=1, le=MAX_SAMPLES)] = 1
    context: JudgeContext = JudgeContext()
    skills: tuple[JudgeSkill, ...] = ()
    script_path: ScriptFile | None = None
    evaluator: Words | None = None
    config: dict[str, Any] = {}

    @property
    def script_seconds(self) -> float:
        """The time limit of the script."""
        return self.timeout_seconds or DEFAULT_SCRIPT_SECONDS

    @property
    def evaluator_seconds(self) -> float:
        """The time limit of the evaluator."""
        return self.timeout_seconds or DEFAULT_EVALUATOR_SECONDS

    @property
    def threshold(self) -> float:
        """The score that the criteria must reach, above 0 and at most 1."""
        default = DEFAULT_THRESHOLD if self.scoring is None else DEFAULT_SCORING_THRESHOLD
        return default if self.pass_threshold is None else self.pass_threshold

    @model_validator(mode="before")
    @classmethod
    def _has_a_type(cls, value: Any) -> Any:
        # With a key that nobody knows, the unknown key may be a misspelt `type`: that is told elsewhere.
        if isinstance(value, dict) and "type" not in value and set(value) <= {*cls.model_fields, *cls.later}:
            raise fault_at(
                "a judge needs a `type`; without it its rules would not count",
                hint="write `type: rule_based`, or `type: none`",
            )
        return {**value, "criteria": with_ids(value["criteria"])} if _has_criteria(value) else value

    @model_validator(mode="after")
    def _meaningful(self) -> Self:
        self._check_criteria()
        if self.type == "none" and (self.success or self.failure or self.scoring):
            raise fault_at("`type: none` checks nothing, but rules are given", "type", hint="use type: rule_based")
        if self.type == "rule_based" and not (self.success or self.failure or self.scoring):
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
            hint = _hint_against_not(rule)
            if hint:
                raise fault_at(
                    "`not` in a failure rule would match when the texts are absent",
                    "failure",
                    index,
                    item.name,
                    hint=hint,
                )
        return self

    def _check_criteria(self) -> None:
        asks = self.type in ("agent_judge", "rubric")
        runs = self.type == "script"
        if runs and self.script_path is None:
            raise fault_at("a judge of type script without a script", hint="give `script_path`: a file of the suite")
        if self.script_path is not None and not runs:
            hint = "use type: script"
            raise fault_at(f"`script_path` says nothing to a judge of type {self.type}", "script_path", hint=hint)
        if self.type == "evaluator" and self.evaluator is None:
            raise fault_at(
                "a judge of type evaluator without an evaluator", hint="give `evaluator`: NAME or MODULE:NAME"
            )
        for key in ("evaluator", "config"):
            if key in self.model_fields_set and self.type != "evaluator":
                raise fault_at(f"`{key}` says nothing to a judge of type {self.type}", key, hint="use type: evaluator")
        others = {"script": {"timeout_seconds"}, "evaluator": {"pass_threshold", "timeout_seconds"}}.get(
            self.type, set()
        )
        others = others | ({"pass_threshold"} if self.scoring else set())
        given = sorted(self.model_fields_set & (_OF_MODELS - others))
        if given and not asks:
            hint = "use type: agent_judge, or type: rubric"
            raise fault_at(f"`{given[0]}` says nothing to a judge of type {self.type}", given[0], hint=hint)
        if self.engine is not None and self.type != "agent_judge":
            hint = "use type: agent_judge, or remove `engine`: a model is asked directly then"
            raise fault_at(f"`engine` says nothing to a judge of type {self.type}", "engine", hint=hint)
        if asks and not self.criteria:
            raise fault_at(
                f"a judge of type {self.type} without criteria", hint="give `criteria`: a list of statements"
            )
        refuse_useless(self.criteria)
        if self.scoring is not None:
            _check_graded(self.scoring, self.criteria)


def _hint_against_not(rule: Rule) -> str:
    """What to write instead of `not` in a failure rule; empty where the rule has none."""
    printed = (rule.output, rule.output_matches) if isinstance(rule, CommandHolds) else ()
    if any(wanted is not None and wanted.not_ for wanted in printed):
        return "to forbid texts write `any` there; to require that they are absent write a success rule"
    if isinstance(rule, (OutputContains, OutputMatches, FileContains, FileMatches)) and rule.not_:
        return f"to forbid texts write {rule.kind}: {{any: […]}}; to require them write a success rule"
    return ""


def _check_graded(scoring: Scoring, criteria: tuple[Criterion, ...]) -> None:
    """Raises a fault unless the parts score every criterion, each once, with weights, and in its own turn."""
    known = {criterion.id: criterion for criterion in criteria}
    for number, part in enumerate(scoring.parts):
        for leaf in part.leaves:
            grader = leaf.grader
            place = ("scoring", "parts", number, *leaf.at)
            for member, one in enumerate(grader.criteria):
                at = (*place, "criteria", member)
                if one.id not in known:
                    raise fault_at(f"no criterion has the id {one.id}, or two graders score it", *at)
                if known.pop(one.id).turn != part.turn:
                    raise fault_at(f"the criterion {one.id} is not about what {part.name} scores", *at)
            weights = [
                criterion.weight for criterion in criteria if criterion.id in {one.id for one in grader.criteria}
            ]
            if weights and not sum(weights):
                raise fault_at("the weights sum to 0, so no answer could change the score", *place, "criteria")
            for item_number, item in enumerate(grader.rules):
                if item.rule.turn not in (None, part.turn) and part.turn is not None:
                    raise fault_at(f"the rule is not about what {part.name} scores", *place, "rules", item_number)
    if known:
        raise fault_at(f"no grader scores the criterion {next(iter(known))}", "scoring", hint="name it below a grader")


_OF_MODELS = frozenset({"criteria", "model", "pass_threshold", "timeout_seconds", "samples", "context", "skills"})
"""Keys that only a judge with a model reads, but for what `_check_criteria` lets others have."""


def _has_criteria(value: Any) -> bool:
    return isinstance(value, dict) and "criteria" in value

"""What users write in one case file: input, context, checks, script.

Semantics are the public skill-up format's (`v1alpha1`) where its documentation gives them; departures stand in
docs/departures.md.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from skillup.spec.criteria import Criterion
from skillup.spec.git import Git
from skillup.spec.judge import Expect, Judge
from skillup.spec.judges import Combine, JudgeMember, refuse_unclear
from skillup.spec.mocks import MockTools
from skillup.spec.problems import fault_at, quoted
from skillup.spec.programs import Program
from skillup.spec.requires import Requires
from skillup.spec.rules import Rule
from skillup.spec.scoring import Scoring
from skillup.spec.script import Script
from skillup.spec.script_judge import ScriptFile
from skillup.spec.turn import Capture, Gate, Input, Turn, VariableName
from skillup.spec.values import (
    ArtifactPath,
    Delay,
    Flag,
    InnerPath,
    LimitCount,
    LimitDollars,
    LimitSeconds,
    Spec,
    Value,
    Whole,
    Words,
)

__all__ = [
    "DEFAULT_CASE_SECONDS",
    "Capture",
    "Case",
    "Constraints",
    "Context",
    "Gate",
    "Git",
    "Input",
    "Turn",
    "can_be_an_id",
]

MAX_TRIALS = 1000
"""Of one case in one run: each has a folder, and more are no longer one measurement."""

_CASE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")

_RESERVED_IDS = frozenset(
    {
        *("run.json", "journal.jsonl", "result.json", "results.jsonl", "results-flat.jsonl", "events.jsonl"),
        *("benchmark.json", "benchmark.md", "report.html", "report.xml", "agentv.jsonl"),
    }
)
"""What a run directory holds beside the folders of its cases."""

DEFAULT_CASE_SECONDS = 300.0
"""Time limit of a case's turns when nothing says otherwise; the public format's default."""


def can_be_an_id(text: str) -> bool:
    """Whether a text may name a case, and with it a folder of the run directory."""
    return bool(_CASE_ID.match(text)) and text not in _RESERVED_IDS


def _case_id(text: str) -> str:
    if not _CASE_ID.match(text):
        raise fault_at(
            f"{quoted(text)} cannot name a folder",
            hint="begin with a letter or digit, go on with letters, digits, `.`, `_` and `-`, at most 100 in all",
        )
    if text in _RESERVED_IDS:
        raise fault_at(f"{quoted(text)} is a file of the run directory", hint="choose another id")
    return text


CaseId = Annotated[str, AfterValidator(_case_id)]


Trials = Annotated[Whole, Field(ge=1, le=MAX_TRIALS)]
"""How often a case is run by each agent."""


def refuse_waiting(own: str, depends_on: tuple[str, ...], *, decides: bool) -> None:
    """Raises a fault where a case waits for itself, or says what a failed dependency means and has none."""
    if own in depends_on:
        raise fault_at("the case depends on itself", "depends_on", depends_on.index(own), hint="remove it")
    if decides and not depends_on:
        problem = "the case depends on no other"
        raise fault_at(problem, "on_dependency_failure", hint="give `depends_on`: a list of ids")


class Context(Spec):
    """What the workspace holds before the first turn: a fixture folder, a repository, then files, then a patch."""

    repo_fixture: Words | None = None
    files: dict[InnerPath, str] = {}
    git: Git = Git()

    @model_validator(mode="before")
    @classmethod
    def _no_file_twice(cls, value: Any) -> Any:
        files = value.get("files") if isinstance(value, dict) else None
        if isinstance(files, dict):
            names = [(name, "/".join(part for part in name.split("/") if part not in ("", "."))) for name in files]
            counts = Counter(plain for _, plain in names)
            for name, plain in names:
                parent = next((other for other in counts if plain.startswith(f"{other}/")), None)
                if counts[plain] > 1:
                    raise fault_at(f"{quoted(plain)} is written twice, in two spellings", "files", name)
                if parent is not None:
                    raise fault_at(f"{quoted(parent)} is a file, so nothing can lie below it", "files", name)
                if ".git" in plain.lower().split("/"):
                    hint = "use `context.git`, or a setup step"
                    raise fault_at(
                        f"{quoted(plain)} lies in a .git, and what git reads there it may run", "files", name, hint=hint
                    )
        return value


class Constraints(Spec):
    """Limits of the case, of all its turns together; `on_limit` says what reaching one means (see docs/cases.md)."""

    timeout_seconds: LimitSeconds = None
    max_turns: LimitCount = None
    max_steps: LimitCount = None
    max_cost_usd: LimitDollars = None
    max_tokens: LimitCount = None
    on_limit: Literal["fail", "judge", "error"] | None = None


class Case(Spec):
    """One scenario. `id` defaults to the file's name, everything else to the suite's defaults."""

    later = frozenset({"mcp", "user_simulator"})

    id: CaseId
    title: str = ""
    description: str = ""
    tag: str | None = None
    tags: tuple[str, ...] = ()
    vars: dict[VariableName, Value] = {}
    input: Input
    context: Context = Context()
    constraints: Constraints = Constraints()
    expect: Expect = Expect()
    judge: Judge | None = None
    judges: tuple[JudgeMember, ...] = ()
    combine: Combine | None = None
    mock_tools: MockTools = ()
    script: Script | None = None
    turn_delay: Delay | None = None
    ignore_case: Flag | None = None
    collect_artifacts: tuple[ArtifactPath, ...] = ()
    requires: Requires | None = None
    trials: Trials | None = None
    depends_on: tuple[CaseId, ...] = ()
    on_dependency_failure: Literal["skip", "fail", "run"] = "skip"
    vacuous_ok: Words | None = None

    @model_validator(mode="after")
    def _clear_who_judges(self) -> Self:
        refuse_unclear(self.judge, self.judges, self.combine)
        return self

    @model_validator(mode="after")
    def _can_wait(self) -> Self:
        refuse_waiting(self.id, self.depends_on, decides="on_dependency_failure" in self.model_fields_set)
        return self

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The user's messages that are sent; a prompt is one."""
        return self.input.asked

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of this case that only some engines can honour."""
        asked = (
            ("mock_tools", bool(self.mock_tools)),
            ("input.messages", bool(self.input.history)),
            ("input.system", self.input.system is not None),
            ("constraints.max_steps", self.constraints.max_steps is not None),
        )
        return tuple(key for key, given in asked if given)

    @property
    def money_limits(self) -> tuple[str, ...]:
        """Keys of this case that limit what it costs."""
        turns = [
            f"input.turns[{index}].max_cost_usd"
            for index, turn in enumerate(self.turns)
            if turn.max_cost_usd is not None
        ]
        return (*(["constraints.max_cost_usd"] if self.constraints.max_cost_usd is not None else []), *turns)

    @property
    def failure_rules(self) -> tuple[Rule, ...]:
        """The judge's failure rules, in their only form."""
        return tuple(item.rule for item in self.judge.failure) if self.judge else ()

    @property
    def success_rules(self) -> tuple[Rule, ...]:
        """The judge's success rules, in their only form."""
        return tuple(item.rule for item in self.judge.success) if self.judge else ()

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """What a model judges."""
        return self.judge.criteria if self.judge else ()

    @property
    def scoring(self) -> Scoring | None:
        """How the parts of the conversation are scored, None where they are not."""
        return self.judge.scoring if self.judge else None

    @property
    def graded_rules(self) -> tuple[Rule, ...]:
        """The rules that count towards a score and are no requirement, those of all judges."""
        scored = (judge.scoring.leaves for judge in self.all_judges if judge.scoring)
        return tuple(rule for leaves in scored for part, leaf in leaves for rule in part.rules_of(leaf.grader))

    @property
    def judge_scripts(self) -> tuple[tuple[ScriptFile, float], ...]:
        """The scripts that judge, each with its time limit in seconds."""
        judges = self.all_judges
        return tuple((judge.script_path, judge.script_seconds) for judge in judges if judge.script_path is not None)

    @property
    def programs(self) -> tuple[tuple[str, int | None, Program], ...]:
        """The programs that score, each with the names of its part and itself, and the turn that it is about."""
        leaves = self.scoring.leaves if self.scoring else ()
        return tuple(
            (f"{part.name}.{leaf.name}", part.turn, leaf.grader.program) for part, leaf in leaves if leaf.grader.program
        )

    @property
    def all_judges(self) -> tuple[Judge, ...]:
        """Everyone who judges: one, several, or nobody."""
        return self.judges or ((self.judge,) if self.judge else ())

    def judged_by(self, member: JudgeMember) -> Case:
        """The case as one of its several judges has it."""
        return self.model_copy(update={"judge": member, "judges": (), "combine": None})

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        """Every rule that this case checks, those of `expect` and of all judges included."""
        judged = (item.rule for judge in self.all_judges for item in (*judge.success, *judge.failure))
        return (*(rule for _, rule in self.expect.rules()), *judged, *self.graded_rules)

    @property
    def checks_nothing(self) -> bool:
        """Whether no gate, expectation, rule, criterion or script could ever say no."""
        asked = (
            self.all_rules or self.judge_scripts or any(judge.criteria or judge.evaluator for judge in self.all_judges)
        )
        return not asked and not self.programs and not any(turn.post_condition for turn in self.turns)

"""What users write in `eval.yaml`, and the suite that comes out of loading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from skillup.errors import Fault
from skillup.spec.agent import EnvironmentName, Fallback, ModelChoice
from skillup.spec.budget import Budget
from skillup.spec.case import Case, Trials
from skillup.spec.judge import Expect, Judge
from skillup.spec.judges import Combine, JudgeMember, refuse_unclear
from skillup.spec.problems import fault_at
from skillup.spec.requires import Requires
from skillup.spec.values import (
    ArtifactPath,
    Delay,
    Flag,
    InnerPath,
    LimitCount,
    LimitDollars,
    LimitSeconds,
    Seconds,
    Spec,
    Value,
    Whole,
    Words,
)

DEFAULT_PARALLELISM = 1
MAX_PARALLELISM = 256

MAX_RETRIES = 10
"""The public format's bound."""

Network = Literal["full", "none", "model_only"]

RetryOn = Literal["error", "timeout", "turn_precondition_fail"]


class SetupStep(Spec):
    """One shell command, run in the empty workspace before the fixture is copied in."""

    run: Words
    timeout_seconds: Seconds = 300.0


MAX_LIMIT_MB = 1 << 20
"""A tebibyte; the system's numbers for limits end somewhere above it."""


class EnvironmentLimits(Spec):
    """What one process of a trial may use at most, in MiB: the size of a file, and memory of its own."""

    file_size_mb: Whole | None = Field(None, ge=1, le=MAX_LIMIT_MB)
    memory_mb: Whole | None = Field(None, ge=64, le=MAX_LIMIT_MB)


class Environment(Spec):
    """Where the agent's processes run, what they find in their variables, and what they can reach."""

    later = frozenset(
        {
            "sandbox_template",
            "use_server_proxy",
            "ready_timeout_seconds",
            "sandbox_timeout_seconds",
            "metadata",
            "kwargs",
            "allowed_egress",
        }
    )
    later_values: ClassVar[Mapping[str, frozenset[str]]] = MappingProxyType(
        {"type": frozenset({"opensandbox"}), "network_policy": frozenset({"allow_declared"})}
    )

    type: Literal["none", "bubblewrap", "docker"] = "none"
    image: Words | None = None
    entrypoint: tuple[Words, ...] = ()
    workspace_mount: Annotated[str, Field(pattern=r"^/[^\x00]*[^\x00/]$")] | None = None
    env: dict[EnvironmentName, Value] = {}
    setup_steps: tuple[SetupStep, ...] = ()
    network: Network = "full"
    network_policy: Literal["deny_all", "model_only"] | None = None
    limits: EnvironmentLimits | None = None

    @property
    def limit_numbers(self) -> dict[str, int]:
        """The limits that are set, by their names."""
        return self.limits.model_dump(exclude_none=True) if self.limits else {}

    @property
    def reach(self) -> Network:
        """What the processes can reach, by whichever of the two keys it was said."""
        if self.network_policy is None:
            return self.network
        return "none" if self.network_policy == "deny_all" else self.network_policy

    @model_validator(mode="after")
    def _confines(self) -> Self:
        if self.type == "none":
            for key in ("network", "network_policy", "limits"):
                if key in self.model_fields_set:
                    hint = "write `type: bubblewrap` beside it, or remove it"
                    raise fault_at(f"`type: none` is the host, which has no {key} of its own", key, hint=hint)
        if {"network", "network_policy"} <= self.model_fields_set:
            hint = "remove it: `deny_all` is `network: none`"
            raise fault_at("`network` says it already", "network_policy", hint=hint)
        return self

    @model_validator(mode="after")
    def _has_an_image(self) -> Self:
        if self.type == "docker" and self.image is None:
            raise fault_at(
                "`type: docker` needs the `image` that its containers are made of", "type", hint="add `image: …`"
            )
        for key in ("image", "entrypoint", "workspace_mount"):
            if self.type != "docker" and key in self.model_fields_set:
                hint = "write `type: docker` beside it, or remove it"
                raise fault_at(f"`type: {self.type}` has no {key}", key, hint=hint)
        return self


class EngineChoice(Spec):
    """The engine that a suite is written for; `--agent` chooses another.

    `entry` was never honoured by any tool of the format: it is accepted with a warning.
    """

    later = frozenset({"version", "kwargs", "custom"})

    name: Words
    model: ModelChoice | None = None
    entry: Any = None


class Skill(Spec):
    """A skill folder that every agent gets; `evals/` below it is never installed."""

    later = frozenset({"target"})
    later_values: ClassVar[Mapping[str, frozenset[str]]] = MappingProxyType({"source": frozenset({"registry"})})

    source: Literal["local_path"] = "local_path"
    path: Words
    include: tuple[InnerPath, ...] = ()
    exclude: tuple[InnerPath, ...] = ()


class CaseDefaults(Spec):
    """What a case gets when it does not say otherwise; lists of `expect` and `collect_artifacts` are joined."""

    timeout_seconds: LimitSeconds = None
    max_cost_usd: LimitDollars = None
    max_tokens: LimitCount = None
    max_turns: LimitCount = None
    on_limit: Literal["fail", "judge", "error"] | None = None
    turn_delay: Delay | None = None
    ignore_case: Flag | None = None
    expect: Expect = Expect()
    collect_artifacts: tuple[ArtifactPath, ...] = ()
    trials: Trials | None = None


class RetryPolicy(Spec):
    """Which outcomes of a trial are tried again, and how often; without `retry_on` none is.

    `error` are the faults that a later attempt may be spared, `timeout` is that kind alone, `turn_precondition_fail` a
    gate that failed the case.
    """

    max_retries: int = Field(0, ge=0, le=MAX_RETRIES)
    retry_on: tuple[RetryOn, ...] = ()

    def with_retries(self, number: int) -> RetryPolicy:
        """The policy with so many retries, for faults in any case."""
        retry_on: tuple[RetryOn, ...] = ("error", *(one for one in self.retry_on if one != "error"))
        return RetryPolicy(max_retries=number, retry_on=retry_on)


class Cases(Spec):
    """Which case files belong to the suite, relative to the suite's root; globs allowed."""

    files: tuple[Words, ...] = Field(min_length=1)
    defaults: CaseDefaults = CaseDefaults()
    parallelism: Whole = Field(DEFAULT_PARALLELISM, ge=1, le=MAX_PARALLELISM)
    retry_policy: RetryPolicy = RetryPolicy()


class Report(Spec):
    """Which reports a run writes besides its own files."""

    later = frozenset({"artifacts"})

    later_values: ClassVar[Mapping[str, frozenset[str]]] = MappingProxyType(
        {"formats": frozenset({"html", "markdown"})}
    )

    formats: tuple[Literal["json", "junit", "taskresult", "taskresult_flat", "agentv"], ...] = ("json",)


class SuiteFile(Spec):
    """`eval.yaml` as written."""

    later = frozenset({"mcp", "user_simulator", "benchmark"})

    schema_version: Literal["v1alpha1"]
    name: str = ""
    description: str = ""
    environment: Environment = Environment()
    engine: EngineChoice | None = None
    agents: tuple[Words, ...] = Field((), min_length=1)
    skills: tuple[Skill, ...] = ()
    cases: Cases
    judge: Judge | None = None
    judges: tuple[JudgeMember, ...] = ()
    combine: Combine | None = None
    fallback: Fallback | None = None
    requires: Requires | None = None
    budget: Budget = Budget()
    report: Report = Report()

    @model_validator(mode="after")
    def _clear_who_judges(self) -> Self:
        refuse_unclear(self.judge, self.judges, self.combine)
        return self


def with_defaults(
    case: Case,
    defaults: CaseDefaults,
    judge: Judge | None,
    requires: Requires | None = None,
    *,
    judges: tuple[JudgeMember, ...] = (),
    combine: Combine | None = None,
) -> Case:
    """The case with everything that it leaves open filled in from the suite.

    A case's judge, or its judges, replace the suite's whole; lists of `expect` and `collect_artifacts` are joined, the
    suite's first; what both require must be met.
    """
    limits = case.constraints
    own = bool(case.all_judges)
    return case.model_copy(
        update={
            "constraints": limits.model_copy(
                update={
                    "timeout_seconds": limits.timeout_seconds or defaults.timeout_seconds,
                    "max_cost_usd": limits.max_cost_usd or defaults.max_cost_usd,
                    "max_tokens": limits.max_tokens or defaults.max_tokens,
                    "max_turns": limits.max_turns or defaults.max_turns,
                    "on_limit": limits.on_limit or defaults.on_limit,
                }
            ),
            "expect": case.expect.merged_over(defaults.expect),
            "judge": case.judge if own else judge,
            "judges": case.judges if own else judges,
            "combine": case.combine if own else case.combine or combine,
            "requires": case.requires.joined(requires) if case.requires else requires,
            "turn_delay": case.turn_delay if case.turn_delay is not None else defaults.turn_delay,
            "collect_artifacts": tuple(dict.fromkeys((*defaults.collect_artifacts, *case.collect_artifacts))),
            "trials": case.trials or defaults.trials,
            "ignore_case": case.ignore_case if case.ignore_case is not None else defaults.ignore_case,
        }
    )


@dataclass(frozen=True)
class InstalledSkill:
    """A skill as it will be installed: its name, its folder, and the files chosen, relative to the folder."""

    name: str
    folder: Path
    files: tuple[str, ...]


@dataclass(frozen=True)
class NamedAgent:
    """An entry of `agents`: a name, or the absolute path of a profile; `at` is a fault there, message to come."""

    named: str
    at: Fault


@dataclass(frozen=True)
class Suite:
    """What loading gives: everything resolved, checked and ready to plan.

    `root` is the folder that case paths are relative to; `source` the file or folder that was named; `engine_place`
    and `budget_place` the lines and columns of the engine's name and of the budget's money in it. `required_engines`
    are the names in `requires` of suite and cases, each with a fault at its place, message to come: which engines there
    are is known further up. `evaluators` are those of all judges, in the same form. `files` are all that it
    was read from, its own and those of its cases.
    """

    name: str
    root: Path
    source: Path
    cases: tuple[Case, ...]
    engine: EngineChoice | None = None
    engine_place: tuple[int, int] = (0, 0)
    agents: tuple[NamedAgent, ...] = ()
    environment: Environment = field(default_factory=Environment)
    skills: tuple[InstalledSkill, ...] = ()
    parallelism: int = DEFAULT_PARALLELISM
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    fallback: Fallback | None = None
    budget: Budget = field(default_factory=Budget)
    budget_place: tuple[int, int] = (0, 0)
    formats: tuple[str, ...] = ("json",)
    required_engines: tuple[tuple[str, Fault], ...] = ()
    evaluators: tuple[tuple[str, Fault], ...] = ()
    files: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()

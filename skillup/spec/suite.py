"""What users write in `eval.yaml`, and the suite that comes out of loading."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from skillup.spec.agent import ModelChoice
from skillup.spec.case import Case, Constraints, Expect, Judge
from skillup.spec.problems import fault_at
from skillup.spec.values import Delay, Flag, InnerPath, Seconds, Spec, Text, Whole

DEFAULT_PARALLELISM = 1
MAX_PARALLELISM = 256


class SetupStep(Spec):
    """One shell command, run in the empty workspace before the fixture is copied in."""

    later = frozenset({"name"})

    run: Text
    timeout_seconds: Seconds = 300.0


class Environment(Spec):
    """Where the agent's processes run, and what they find in their variables."""

    later = frozenset(
        {
            "image",
            "sandbox_template",
            "use_server_proxy",
            "ready_timeout_seconds",
            "sandbox_timeout_seconds",
            "metadata",
            "workspace_mount",
            "entrypoint",
            "kwargs",
            "network_policy",
            "allowed_egress",
            "network",
        }
    )

    type: Literal["none"] = "none"
    env: dict[str, str] = {}
    setup_steps: tuple[SetupStep, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _known_type(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("type") in ("docker", "opensandbox", "bubblewrap"):
            raise fault_at(f"the environment `{value['type']}` is not supported yet", "type", hint="use `none`")
        return value


class EngineChoice(Spec):
    """The engine that a suite is written for; `--agent` and `--engine` choose another."""

    later = frozenset({"version", "entry", "kwargs", "custom"})

    name: Text
    model: ModelChoice | None = None


class Skill(Spec):
    """A skill folder that every agent gets; `evals/` below it is never installed."""

    later = frozenset({"target"})

    source: Literal["local_path"] = "local_path"
    path: Text
    include: tuple[InnerPath, ...] = ()
    exclude: tuple[InnerPath, ...] = ()


class CaseDefaults(Spec):
    """What a case gets when it does not say otherwise; lists of `expect` are joined."""

    later = frozenset({"collect_artifacts"})

    timeout_seconds: Seconds | None = None
    max_turns: Whole | None = Field(None, ge=1)
    on_limit: Literal["fail", "judge", "error"] | None = None
    turn_delay: Delay | None = None
    ignore_case: Flag | None = None
    expect: Expect = Expect()


class Cases(Spec):
    """Which case files belong to the suite, relative to the suite's root; globs allowed."""

    later = frozenset({"retry_policy"})

    files: tuple[Text, ...] = Field(min_length=1)
    defaults: CaseDefaults = CaseDefaults()
    parallelism: Whole = Field(DEFAULT_PARALLELISM, ge=1, le=MAX_PARALLELISM)


class Report(Spec):
    """Which reports a run writes besides its own files."""

    later = frozenset({"artifacts"})

    formats: tuple[Literal["json"], ...] = ("json",)

    @model_validator(mode="before")
    @classmethod
    def _known_formats(cls, value: Any) -> Any:
        if isinstance(value, dict):
            for index, name in enumerate(value.get("formats") or ()):
                if name in ("junit", "html", "markdown"):
                    raise fault_at(f"the report `{name}` is not supported yet", "formats", index, hint="use json")
        return value


class SuiteFile(Spec):
    """`eval.yaml` as written."""

    later = frozenset({"mcp", "user_simulator", "benchmark", "judges", "agents", "requires", "fallback"})

    schema_version: Literal["v1alpha1"]
    name: str = ""
    description: str = ""
    environment: Environment = Environment()
    engine: EngineChoice | None = None
    skills: tuple[Skill, ...] = ()
    cases: Cases
    judge: Judge | None = None
    report: Report = Report()


def with_defaults(case: Case, defaults: CaseDefaults, judge: Judge | None) -> Case:
    """The case with everything that it leaves open filled in from the suite.

    A case's judge replaces the suite's whole; lists of `expect` are joined, the suite's first.
    """
    limits = case.constraints
    return case.model_copy(
        update={
            "constraints": Constraints(
                timeout_seconds=limits.timeout_seconds or defaults.timeout_seconds,
                max_turns=limits.max_turns or defaults.max_turns,
                on_limit=limits.on_limit or defaults.on_limit,
            ),
            "expect": case.expect.merged_over(defaults.expect),
            "judge": case.judge or judge,
            "turn_delay": case.turn_delay if case.turn_delay is not None else defaults.turn_delay,
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
class Suite:
    """What loading gives: everything resolved, checked and ready to plan.

    `root` is the folder that case paths are relative to; `source` the file or folder that was named.
    """

    name: str
    root: Path
    source: Path
    cases: tuple[Case, ...]
    engine: EngineChoice | None = None
    environment: Environment = Environment()
    skills: tuple[InstalledSkill, ...] = ()
    parallelism: int = DEFAULT_PARALLELISM
    warnings: tuple[str, ...] = ()

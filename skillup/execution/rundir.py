"""The run as a whole: its manifest, its trials, its result."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Literal

from skillup import __version__
from skillup.errors import RunDirectoryError
from skillup.execution.directories import not_empty
from skillup.execution.masked import masked
from skillup.execution.plan import Plan
from skillup.execution.record import facts_of, stamp
from skillup.execution.store import read_model, write_json
from skillup.judging.totals import count, count_by_agent, judging_of, usage_of
from skillup.masking import Masker
from skillup.results import (
    AgentFacts,
    HostFacts,
    JudgeFacts,
    ModelFacts,
    RunManifest,
    RunResult,
    SuiteFacts,
    TrialResult,
)
from skillup.spec.agent import Agent
from skillup.spec.suite import Suite


def write_manifest(
    directory: Path, suites: Sequence[Suite], plan: Plan, command: Sequence[str], started: datetime
) -> RunManifest:
    """Writes `run.json`, before anything is run: what will be run, with what, where.

    Raises:
        RunDirectoryError: another run has taken the directory meanwhile, or it cannot be written.
    """
    manifest = RunManifest(
        run_id=f"{started.astimezone(UTC):%Y%m%dT%H%M%SZ}-{directory.resolve().name}",
        suite=suites[0].name,
        skillup_version=__version__,
        start_time=stamp(started),
        command=tuple(command),
        host=HostFacts(python=platform.python_version(), system=platform.system(), release=platform.release()),
        parallelism=plan.parallelism,
        suites=tuple(
            SuiteFacts(name=suite.name, source=str(suite.source), environment=facts_of(suite.environment))
            for suite in suites
        ),
        agents=tuple(_facts(agent, plan.versions[agent.name]) for agent in plan.agents),
        judges=tuple(
            JudgeFacts(provider=ref.provider, name=ref.name, base_url=ref.base_url, engine=ref.engine)
            for ref in dict.fromkeys(ref for task in plan.tasks for ref in task.judges.values())
        ),
        cases={task.case.id: _hash(task.case.model_dump_json(by_alias=True)) for task in plan.tasks},
        skills={
            skill.name: _hash("".join(f"{name}\0{_digest(skill.folder / name)}\n" for name in skill.files))
            for suite in suites
            for skill in suite.skills
        },
        trials=tuple(str(task.folder) for task in plan.tasks),
    )
    path = directory / "run.json"
    try:
        path.open("x").close()  # of two runs with the same --output-dir, one gets it
        write_json(path, masked(manifest, Masker(secret for agent in plan.agents for secret in agent.secrets)))
    except FileExistsError:
        raise not_empty(directory) from None
    except OSError as error:
        raise RunDirectoryError(f"{path} cannot be written: {error.strerror}", hint="use --output-dir DIR") from error
    return manifest


def _facts(agent: Agent, version: str | None) -> AgentFacts:
    return AgentFacts(
        name=agent.name,
        engine=agent.engine,
        engine_version=version,
        model=ModelFacts(provider=agent.model.provider, name=agent.model.name, base_url=agent.model.base_url),
        settings=agent.settings,
        variables=tuple(sorted(agent.env)),
        permissions=agent.permissions,
        login=agent.login,
        source=agent.source,
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def finish(directory: Path, results: Sequence[TrialResult], status: Literal["finished", "interrupted"]) -> RunResult:
    """Writes `result.json` from the trials' results."""
    run = _summary(read_manifest(directory), results, status, datetime.now(UTC))
    write_json(directory / "result.json", run)
    return run


def _summary(
    manifest: RunManifest,
    results: Sequence[TrialResult],
    status: Literal["finished", "interrupted", "running"],
    ended: datetime | None,
) -> RunResult:
    """The run as its manifest and its trials show it."""
    return RunResult(
        run_id=manifest.run_id,
        status=status,
        suite=manifest.suite,
        skillup_version=manifest.skillup_version,
        engine_name=", ".join(dict.fromkeys(agent.engine for agent in manifest.agents)),
        model_name=", ".join(dict.fromkeys(agent.model.name or "default" for agent in manifest.agents)),
        start_time=manifest.start_time,
        end_time=stamp(ended) if ended else None,
        total_tokens=usage_of(results).total_tokens,
        judging=judging_of(results),
        trials_planned=len(manifest.trials),
        totals=count(results),
        totals_by_agent=count_by_agent(results),
        case_results=tuple(results),
    )


def read_manifest(directory: Path) -> RunManifest:
    """The manifest of a run directory.

    Raises:
        RunDirectoryError: there is none, it is damaged, or of another version.
    """
    if not (directory / "run.json").is_file():
        hint = "name the folder that `skillup run` reported: the one that holds run.json"
        raise RunDirectoryError(f"{directory} is not a run directory", hint=hint)
    manifest = read_model(directory / "run.json", RunManifest)
    strange = [
        name for name in manifest.trials if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts
    ]
    if strange:
        hint = "do not use a run directory that you do not trust"
        raise RunDirectoryError(f"{directory}/run.json names a trial outside of it: {strange[0]}", hint=hint)
    return manifest


def trial_folders(directory: Path) -> tuple[Path, ...]:
    """The folders of the planned trials, in the order of the manifest; not each of them has to be there.

    Raises:
        RunDirectoryError: it is not a run directory.
    """
    return tuple(directory / name for name in read_manifest(directory).trials)


def saved_run(directory: Path) -> RunResult:
    """A run as its trials' saved results show it, finished or not.

    Raises:
        RunDirectoryError: it is not a run directory, holds no trial that ended, or is damaged.
    """
    manifest = read_manifest(directory)
    paths = [directory / name / "result.json" for name in manifest.trials]
    results = [read_model(path, TrialResult) for path in paths if path.exists()]
    if not results:
        tried = any(any((directory / name).glob("attempt-*/record.json")) for name in manifest.trials)
        hint = f"`skillup judge {directory}` counts the attempts that did" if tried else "none was finished: run again"
        raise RunDirectoryError(f"{directory} holds no trial that ended", hint=hint)
    run = _summary(manifest, results, "running", None)
    if not (directory / "result.json").exists():
        return run
    saved = read_model(directory / "result.json", RunResult)
    return run.model_copy(update={"status": saved.status, "end_time": saved.end_time})


def command_line() -> list[str]:
    """How this run was started, for the manifest."""
    return ["skillup", *sys.argv[1:]]

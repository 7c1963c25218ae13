"""The run as a whole: its directory, its manifest, its result."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from skillup import __version__
from skillup.errors import RunDirectoryError
from skillup.execution.plan import Plan
from skillup.execution.record import stamp
from skillup.execution.store import load_results, write_json
from skillup.judging.totals import count
from skillup.results import SCHEMA_VERSION, RunResult, TrialResult
from skillup.spec.suite import Suite
from skillup.transcript import add_usage


def new_directory(name: str, chosen: Path | None) -> Path:
    """A fresh run directory: the chosen one, or the next `<name>-workspace/iteration-N`.

    Raises:
        RunDirectoryError: it cannot be made, or the chosen one is not empty.
    """
    try:
        if chosen is not None:
            chosen.mkdir(parents=True, exist_ok=True)
            if any(chosen.iterdir()):
                hint = "results are never overwritten: name another folder, or remove it"
                raise RunDirectoryError(f"{chosen} is not empty", hint=hint)
            return chosen
        base = Path(f"{name}-workspace")
        base.mkdir(exist_ok=True)
        number = 1 + max((int(p.name[10:]) for p in base.glob("iteration-*") if p.name[10:].isdigit()), default=0)
        while True:
            try:
                directory = base / f"iteration-{number}"
                directory.mkdir()
            except FileExistsError:
                number += 1
            else:
                return directory
    except OSError as error:
        raise RunDirectoryError(f"no run directory can be made: {error}", hint="use --output-dir DIR") from error


def write_manifest(
    directory: Path, suites: Sequence[Suite], plan: Plan, command: Sequence[str], started: datetime
) -> None:
    """Writes `run.json`, before anything is run: what will be run, with what, where."""
    manifest: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "run_id": run_id(directory, started),
        "suite": suites[0].name,
        "skillup_version": __version__,
        "start_time": stamp(started),
        "command": list(command),
        "host": {"python": platform.python_version(), "system": platform.system(), "release": platform.release()},
        "parallelism": plan.parallelism,
        "suites": [{"name": suite.name, "source": str(suite.source)} for suite in suites],
        "agents": [
            {
                "name": agent.name,
                "engine": agent.engine,
                "engine_version": plan.versions[agent.name],
                "model": agent.model.model_dump(),
                "settings": agent.settings,
                "variables": sorted(agent.env),
                "permissions": agent.permissions,
                "login": agent.login,
                "source": agent.source,
            }
            for agent in plan.agents
        ],
        "cases": {task.case.id: _hash(task.case.model_dump_json(by_alias=True)) for task in plan.tasks},
        "skills": {
            skill.name: _hash("".join(f"{name}\0{_digest(skill.folder / name)}\n" for name in skill.files))
            for suite in suites
            for skill in suite.skills
        },
        "trials": [str(task.folder) for task in plan.tasks],
    }
    write_json(directory / "run.json", manifest)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run_id(directory: Path, started: datetime) -> str:
    """What names a run: its start, and its directory's name."""
    return f"{started.astimezone(UTC):%Y%m%dT%H%M%SZ}-{directory.name}"


def finish(directory: Path, results: Sequence[TrialResult], status: Literal["finished", "interrupted"]) -> RunResult:
    """Writes `result.json` from the trials' results."""
    run = summarise(directory, results, status, datetime.now(UTC))
    write_json(directory / "result.json", run)
    return run


def summarise(
    directory: Path,
    results: Sequence[TrialResult],
    status: Literal["finished", "interrupted", "running"],
    ended: datetime | None,
) -> RunResult:
    """The run as its manifest and its trials show it.

    Raises:
        RunDirectoryError: there is no manifest, or one of another version.
    """
    manifest = read_manifest(directory)
    usage = add_usage([result.usage for result in results])
    return RunResult(
        run_id=manifest["run_id"],
        status=status,
        suite=manifest["suite"],
        skillup_version=manifest["skillup_version"],
        engine_name=", ".join(dict.fromkeys(agent["engine"] for agent in manifest["agents"])),
        model_name=", ".join(dict.fromkeys(agent["model"]["name"] or "default" for agent in manifest["agents"])),
        start_time=manifest["start_time"],
        end_time=stamp(ended) if ended else None,
        total_tokens=usage.total_tokens,
        totals=count(results),
        case_results=tuple(results),
    )


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of a run directory.

    Raises:
        RunDirectoryError: there is none, or one of another version.
    """
    path = directory / "run.json"
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        hint = "name the folder that holds run.json"
        raise RunDirectoryError(f"{directory} is not a run directory: {error}", hint=hint) from error
    if not isinstance(manifest, dict) or manifest.get("schema_version") != SCHEMA_VERSION:
        raise RunDirectoryError(
            f"{path} was written by another version of skillup", hint=f"this one reads {SCHEMA_VERSION}"
        )
    return manifest


def trial_folders(directory: Path) -> tuple[Path, ...]:
    """The folders of the trials that have a record, in the order of the manifest."""
    folders = [directory / name for name in read_manifest(directory)["trials"]]
    return tuple(folder for folder in folders if (folder / "record.json").exists())


def saved_run(directory: Path) -> RunResult:
    """A run as its trials' saved results show it, finished or not.

    Raises:
        RunDirectoryError: it is not a run directory, or holds no trial that ended.
    """
    order = {name: index for index, name in enumerate(read_manifest(directory)["trials"])}
    results = sorted(load_results(directory), key=lambda result: order.get(result.folder, len(order)))
    if not results:
        raise RunDirectoryError(f"{directory} holds no trial that ended")
    path = directory / "result.json"
    if path.exists():
        saved = RunResult.model_validate_json(path.read_bytes())
        return saved.model_copy(update={"case_results": tuple(results), "totals": count(results)})
    return summarise(directory, results, "running", None)


def private_umask() -> None:
    """Run directories hold what agents saw: readable by their owner only where the file system can say so."""
    os.umask(0o077)


def command_line() -> list[str]:
    """How this run was started, for the manifest."""
    return ["skillup", *sys.argv[1:]]

"""The run as a whole: its manifest, its trials, its result."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Literal

from skillup.errors import RunDirectoryError
from skillup.execution.directories import not_empty
from skillup.execution.manifest import Started, make_manifest
from skillup.execution.plan import Plan
from skillup.execution.record import stamp
from skillup.execution.store import read_model, write_json
from skillup.judging.totals import count, count_by_agent, judging_of, usage_of
from skillup.results import RunManifest, RunResult, TrialResult
from skillup.spec.suite import Suite


def begin(directory: Path, suites: Sequence[Suite], plan: Plan, started: Started) -> RunManifest:
    """Writes `run.json`, before anything is run. The directory is locked by the caller.

    Raises:
        RunDirectoryError: another run has taken the directory meanwhile, or it cannot be written.
    """
    path = directory / "run.json"
    if path.exists():
        raise not_empty(directory)
    try:
        manifest = make_manifest(directory, suites, plan, started)
        write_json(path, manifest)
    except OSError as error:
        where = error.filename or path
        raise RunDirectoryError(
            f"{path} cannot be written: {where}: {error.strerror}", hint="use --output-dir DIR"
        ) from error
    return manifest


def finish(
    directory: Path,
    results: Sequence[TrialResult],
    status: Literal["finished", "interrupted", "stopped"],
    stopped_by: str = "",
    changed_files: tuple[str, ...] = (),
) -> RunResult:
    """Writes `result.json` from the trials' results.

    `stopped_by` is the budget that was reached, `changed_files` are not what they were when the run was planned.
    """
    run = _summary(read_manifest(directory), results, status, datetime.now(UTC))
    run = run.model_copy(update={"stopped_by": stopped_by, "changed_files": changed_files})
    write_json(directory / "result.json", run)
    return run


def _summary(
    manifest: RunManifest,
    results: Sequence[TrialResult],
    status: Literal["finished", "interrupted", "stopped", "running"],
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
        resumed_anyway=manifest.resumed_anyway,
        case_results=tuple(results),
    )


def read_manifest(directory: Path) -> RunManifest:
    """The manifest of a run directory.

    Raises:
        RunDirectoryError: there is none, it is damaged, or of another version.
    """
    if not (directory / "run.json").is_file():
        within = sorted(path.parent.name for path in directory.glob("*/run.json"))
        hint = "name the folder that `skillup run` reported: the one that holds run.json"
        hint = f"it holds several: name one of {', '.join(within)}" if within else hint
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


def in_order(manifest: RunManifest, results: Iterable[TrialResult]) -> tuple[TrialResult, ...]:
    """The results of trials in the order of the manifest; not each of them has to be there."""
    by_folder = {str(PurePosixPath(result.folder).parent): result for result in results}
    return tuple(by_folder[name] for name in manifest.trials if name in by_folder)


def saved_results(directory: Path, manifest: RunManifest) -> dict[str, TrialResult]:
    """The results of the trials that ended, by their folders as the manifest has them, and in its order.

    Raises:
        RunDirectoryError: one of them is damaged.
    """
    paths = {name: directory / name / "result.json" for name in manifest.trials}
    return {name: read_model(path, TrialResult) for name, path in paths.items() if path.exists()}


def saved_run(directory: Path) -> RunResult:
    """A run as its trials' saved results show it, finished or not.

    Raises:
        RunDirectoryError: it is not a run directory, holds no trial that ended, or is damaged.
    """
    manifest = read_manifest(directory)
    results = tuple(saved_results(directory, manifest).values())
    if not results:
        tried = any(any((directory / name).glob("attempt-*/record.json")) for name in manifest.trials)
        hint = f"`skillup judge {directory}` counts the attempts that did" if tried else "none was finished: run again"
        raise RunDirectoryError(f"{directory} holds no trial that ended", hint=hint)
    run = _summary(manifest, results, "running", None)
    if not (directory / "result.json").exists():
        return run
    saved = read_model(directory / "result.json", RunResult)
    kept = ("status", "stopped_by", "end_time", "changed_files")
    return run.model_copy(update={name: getattr(saved, name) for name in kept})


def command_line() -> list[str]:
    """How this run was started, for the manifest."""
    return ["skillup", *sys.argv[1:]]

"""The run directory: where it lies, and how a trial's files get into it, masked and whole.

<run>/run.json                                      the manifest, written first
<run>/result.json                                   all trials, written again as they end
<run>/<case>/<agent>/<variant>/trial-K/attempt-N/   case.json  record.json  grading.json  result.json  timing.json
                                                    turn-N/{stdout,stderr,turn.json}  requests.jsonl
                                                    snapshots.jsonl  contents.*  workspace/
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from skillup.environments.snapshot_log import SavedSnapshots
from skillup.errors import RunDirectoryError
from skillup.judging.evidence import Evidence
from skillup.masking import Masker
from skillup.modelserver.route import RecordedRequest
from skillup.results import RunResult, TrialRecord, TrialResult, TurnRecord, Verdict
from skillup.spec.case import Case

_COPY_LIMIT = 64 * 1024 * 1024
"""A larger file of a kept workspace is left out and named in `left-out.txt`."""


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file so that a reader, or a crash, sees the old one or the new one, never a part."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def write_json(path: Path, value: BaseModel | dict[str, Any]) -> None:
    """Writes a value as readable JSON, atomically."""
    data = value.model_dump(mode="json", by_alias=True) if isinstance(value, BaseModel) else value
    write_atomically(path, (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode())


class TrialFolder:
    """One attempt's folder, being written. Everything goes through the masker."""

    def __init__(self, path: Path, masker: Masker) -> None:
        self.path = path
        self.masker = masker
        path.mkdir(parents=True, exist_ok=True)

    def save_case(self, case: Case) -> None:
        """Saves the resolved case: the judge reads the checks from here, not from the suite."""
        data = case.model_dump(mode="json", by_alias=True, exclude_unset=True)
        write_json(self.path / "case.json", data)

    def save_turn(self, record: TurnRecord, streams: tuple[Path, Path] | None) -> None:
        """Saves a finished turn, before the next one starts."""
        folder = self.path / f"turn-{record.number}"
        folder.mkdir()
        for source, name in zip(streams or (), ("stdout", "stderr"), strict=False):
            if source.exists():
                self._copy_masked(source, folder / name)
        write_json(folder / "turn.json", self.masker.value(record.model_dump(mode="json")))

    def save_requests(self, requests: Iterable[RecordedRequest]) -> None:
        """Saves what the loopback model was asked, a line a request."""
        lines = (json.dumps(self.masker.value(asdict(request)), ensure_ascii=False) for request in requests)
        write_atomically(self.path / "requests.jsonl", "".join(f"{line}\n" for line in lines).encode())

    def save_record(self, record: TrialRecord) -> None:
        """Saves what happened."""
        write_json(self.path / "record.json", self.masker.value(record.model_dump(mode="json")))

    def keep_workspace(self, workspace: Path) -> None:
        """Copies the workspace as the agent left it: links as links, special files left out, secrets masked."""
        target = self.path / "workspace"
        left_out: list[str] = []
        for folder, folders, names in os.walk(workspace):
            here = Path(folder)
            there = target / here.relative_to(workspace)
            there.mkdir(parents=True, exist_ok=True)
            for name in [name for name in folders if (here / name).is_symlink()] + names:
                source = here / name
                status = source.lstat()
                if stat.S_ISLNK(status.st_mode):
                    (there / name).symlink_to(os.readlink(source))  # noqa: PTH115 - the text as it is
                elif stat.S_ISREG(status.st_mode) and status.st_size <= _COPY_LIMIT:
                    self._copy_masked(source, there / name)
                else:
                    left_out.append(str(source.relative_to(workspace)))
        if left_out:
            write_atomically(self.path / "left-out.txt", "\n".join(sorted(left_out)).encode(errors="replace"))

    def discard_workspace(self) -> None:
        """Removes the kept workspace again."""
        shutil.rmtree(self.path / "workspace", ignore_errors=True)

    def _copy_masked(self, source: Path, target: Path) -> None:
        target.write_bytes(self.masker.data(source.read_bytes()))


def load_trial(folder: Path) -> tuple[Case, Evidence]:
    """A saved trial as the judge reads it.

    Raises:
        RunDirectoryError: the folder is not a saved trial, or is of another version.
    """
    try:
        case = Case.model_validate_json((folder / "case.json").read_bytes())
        record = TrialRecord.model_validate_json((folder / "record.json").read_bytes())
    except (OSError, ValidationError) as error:
        raise RunDirectoryError(
            f"{folder} is not a trial that can be read: {error}",
            hint="was it written by this version of skillup?",
        ) from error
    return case, Evidence(record, SavedSnapshots.load(folder), ignore_case=bool(case.ignore_case))


def load_verdict(folder: Path) -> Verdict | None:
    """The saved verdict of a trial, or None when it was never judged."""
    path = folder / "grading.json"
    return Verdict.model_validate_json(path.read_bytes()) if path.exists() else None


def load_run(directory: Path) -> RunResult:
    """The saved result of a run.

    Raises:
        RunDirectoryError: the directory holds no run that can be read.
    """
    try:
        return RunResult.model_validate_json((directory / "result.json").read_bytes())
    except (OSError, ValidationError) as error:
        raise RunDirectoryError(
            f"{directory} is not a run directory: {error}",
            hint="name the folder that holds run.json and result.json",
        ) from error


def load_results(directory: Path) -> tuple[TrialResult, ...]:
    """The results of all trials in a run directory, read from the trials' own folders."""
    return tuple(
        TrialResult.model_validate_json(path.read_bytes())
        for path in sorted(directory.glob("*/*/*/trial-*/attempt-*/result.json"))
    )

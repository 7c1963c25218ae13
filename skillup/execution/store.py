"""How a trial's files get into the run directory, masked and whole, and how they are read back.

<run>/run.json                                      the manifest, written first
<run>/journal.jsonl                                 what began and ended, the moment it did
<run>/result.json                                   all trials, when the run ends
<run>/<case>/<agent>/<variant>/trial-K/             result.json  earlier/result-N.json
<run>/<case>/<agent>/<variant>/trial-K/attempt-N/   case.json  record.json  grading.json  timing.json  result.json
                                                    criteria.json  judge-calls.jsonl  judge-turns/N/{stdout,stderr}
                                                    judges/ID/…  revisions/N/…
                                                    turn-N/{stdout,stderr,turn.json}  requests.jsonl
                                                    snapshots.jsonl  contents.*  artifacts/
                                                    workspace/  left-out.txt
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from skillup.environments.snapshot_log import SavedSnapshots
from skillup.errors import RunDirectoryError
from skillup.execution.masked import masked
from skillup.execution.raw_output import copy_masked
from skillup.judging.evidence import Evidence
from skillup.masking import Masker
from skillup.modelserver.route import RecordedRequest
from skillup.results import SCHEMA_VERSION, TrialRecord, TurnRecord
from skillup.spec.case import Case
from skillup.transcript import Value

_M = TypeVar("_M", bound=BaseModel)


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file so that a reader, or a crash, sees the old one or the new one, never a part.

    Raises:
        OSError: it cannot be written; the old one is as it was.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
        _put_in_place(partial, path)
    except OSError:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def _put_in_place(partial: Path, path: Path) -> None:
    """Gives a file that is whole its name, once its content is on disk."""
    with partial.open("rb") as file:
        if os.fstat(file.fileno()).st_size:  # of most turns stderr is empty, and waiting for the disk is the dear part
            os.fsync(file.fileno())
    partial.replace(path)


def partial_files(run: Path) -> tuple[Path, ...]:
    """What whoever died was writing into a run directory: not in what agents made, where anything may lie."""
    trial = "*/*/*/trial-*"
    places = ("", f"{trial}/", f"{trial}/attempt-*/", f"{trial}/attempt-*/turn-*/", f"{trial}/attempt-*/judges/*/")
    return tuple(path for place in places for path in run.glob(f"{place}.*.partial"))


def move(source: Path, target: Path) -> None:
    """Gives a file another name in the run directory; after a crash it has one of both.

    Raises:
        OSError: it cannot be moved.
    """
    target.parent.mkdir(exist_ok=True)
    source.replace(target)
    for folder in (target.parent, source.parent):
        _keep_names(folder)


def _keep_names(folder: Path) -> None:
    """Puts the names in a folder on disk: a power cut can take back what was renamed without it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, value: BaseModel | dict[str, Any], *, replacing: Callable[[], None] = lambda: None) -> None:
    """Writes a value as readable JSON, atomically; a file that says the same already is left as it is.

    `replacing` is called before the file gets another content.

    A trial that is judged again mostly says the same, and waiting for the disk would take longer than judging.
    """
    written = _page(value) if isinstance(value, BaseModel) else _json(value, indent=2)
    if not (path.is_file() and path.stat().st_size == len(written) and path.read_bytes() == written):
        replacing()
        write_atomically(path, written)
        _keep_names(path.parent)


def _page(value: BaseModel) -> bytes:
    """A value as a page of JSON."""
    try:
        return value.model_dump_json(indent=2, by_alias=True).encode() + b"\n"
    except PydanticSerializationError:  # half characters: what was made from outside may hold them
        return _json(value.model_dump(mode="json", by_alias=True), indent=2)


def _json(data: Any, *, indent: int | None = None) -> bytes:
    """A line, or a page, of JSON; half characters that a program has printed become `?`, as UTF-8 has none."""
    return (json.dumps(data, indent=indent, ensure_ascii=False) + "\n").encode("utf-8", errors="replace")


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """Writes plain values as JSON, a line each, atomically."""
    write_atomically(path, b"".join(_json(value) for value in values))


class TrialFolder:
    """One attempt's folder, being written. Everything goes through the masker.

    `saved` is told of a turn once all of it is on disk, and before the next one starts.
    """

    def __init__(
        self, path: Path, masker: Masker, saved: Callable[[Path, TurnRecord], None] = lambda _folder, _turn: None
    ) -> None:
        self.path = path
        self.masker = masker
        self._saved = saved
        path.mkdir(parents=True, exist_ok=True)

    def save_case(self, case: Case) -> None:
        """Saves the resolved case: the judge reads the checks from here, not from the suite."""
        write_json(self.path / "case.json", masked(case, self.masker, only_set=True))

    def save_turn(self, record: TurnRecord, streams: tuple[Path, Path]) -> None:
        """Saves a finished turn, before the next one starts; `turn.json` last, as the sign that all of it is there.

        Of `streams`, stdout and stderr, what is not there, because the CLI was never started, is not saved.
        """
        folder = self.path / f"turn-{record.number}"
        folder.mkdir()
        for source, name in zip(streams, ("stdout", "stderr"), strict=True):
            partial = folder / f".{name}.{os.getpid()}.partial"
            copy_masked(source, partial, self.masker)
            if partial.exists():
                _put_in_place(partial, folder / name)
        write_json(folder / "turn.json", {"schema_version": SCHEMA_VERSION, **masked(record, self.masker)})
        self._saved(self.path, record)

    def save_requests(self, requests: Iterable[RecordedRequest]) -> None:
        """Saves what the loopback model was asked, a line a request."""
        write_lines(self.path / "requests.jsonl", (self.masker.value(asdict(request)) for request in requests))

    def save_record(self, record: TrialRecord) -> None:
        """Saves what happened."""
        write_json(self.path / "record.json", masked(record, self.masker))


def read_model(path: Path, model: type[_M]) -> _M:
    """A saved file, read back as what it was written from; keys of results that a later skillup added are left out.

    Raises:
        RunDirectoryError: it cannot be read, is damaged, or was written by another version.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RunDirectoryError(f"{path} cannot be read: {error.strerror}", hint="is this a run directory?") from error
    try:
        # Our own files may gain keys within a version; of a case every key has a meaning.
        return model.model_validate_json(data, extra="ignore" if issubclass(model, Value) else None)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        if place == "schema_version":
            hint = f"this version reads {SCHEMA_VERSION}: use the version of skillup that wrote it"
            raise RunDirectoryError(f"{path} was written by another version of skillup", hint=hint) from error
        why = f"{place}: {first['msg']}" if place else first["msg"]
        raise RunDirectoryError(f"{path} is damaged: {why}", hint="remove the trial's folder, or run again") from error


def load_trial(folder: Path) -> tuple[Case, Evidence]:
    """A saved trial as the judge reads it.

    Raises:
        RunDirectoryError: the folder is not a saved trial, or is of another version.
    """
    case = read_model(folder / "case.json", Case)
    record = read_model(folder / "record.json", TrialRecord)
    try:
        snapshots = SavedSnapshots.load(folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "remove the trial's folder, or run again"
        raise RunDirectoryError(f"the snapshots of {folder} are damaged: {error!r}", hint=hint) from error
    return case, Evidence(record, snapshots, ignore_case=bool(case.ignore_case))

"""`journal.jsonl`: what began and what ended, a line each, on disk before anything goes on.

Lines are only ever added. The last one may be torn when skillup or the machine died while it was written: whoever
reads leaves it out and can say so, and whoever resumes removes it. Damage anywhere else is refused.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError

from skillup.errors import RunDirectoryError
from skillup.execution.masked import masked
from skillup.masking import Masker
from skillup.results import JournalEntry, JournalEvent, TrialResult, TurnRecord

NAME = "journal.jsonl"

TRIAL_PARTS = 4
"""`<case>/<agent>/<variant>/trial-K`: what names a trial within the run directory."""


@dataclass(frozen=True)
class SavedJournal:
    """A journal as it is on disk; the `torn_bytes` of a last line that was cut off are no entry."""

    entries: tuple[JournalEntry, ...] = ()
    torn_bytes: int = 0


def read_journal(directory: Path) -> SavedJournal:
    """What a run has written down; nothing where there is no journal.

    Raises:
        RunDirectoryError: it cannot be read, or a line that is whole is no entry.
    """
    path = directory / NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return SavedJournal()
    except OSError as error:
        raise RunDirectoryError(f"{path} cannot be read: {error.strerror}") from error
    *lines, torn = data.split(b"\n")
    return SavedJournal(tuple(_entry(path, number, line) for number, line in enumerate(lines, start=1)), len(torn))


def _entry(path: Path, number: int, line: bytes) -> JournalEntry:
    try:
        return JournalEntry.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        why = f"{where}: {first['msg']}" if where else first["msg"]
        hint = "a crash tears the last line alone, and this one is whole: restore the file, or begin a new run"
        raise RunDirectoryError(f"{path}:{number}: the journal is damaged: {why}", hint=hint) from error


class Journal:
    """What is told of a run. This one keeps nothing of it; `JournalFile` does. May be used from any thread."""

    def write(self, event: JournalEvent, trial: Path | None = None, **fields: Any) -> None:
        """Tells an event, with fields of `JournalEntry`. `trial` is the trial's folder, wherever the run lies.

        Raises:
            RunDirectoryError: it cannot be kept.
        """

    def turn_ended(self, attempt_folder: Path, turn: TurnRecord) -> None:
        """Tells that a turn is on disk.

        Raises:
            RunDirectoryError: it cannot be kept.
        """
        number = int(attempt_folder.name.rpartition("-")[2])
        self.write("turn_ended", attempt_folder.parent, attempt=number, turn=turn.number, status=turn.status)

    def ended(self, event: JournalEvent, trial: Path, result: TrialResult, attempt: int | None = None) -> None:
        """Tells how an attempt, or a trial, ended.

        Raises:
            RunDirectoryError: it cannot be kept.
        """
        self.write(event, trial, attempt=attempt, status=result.status, code=result.grading.code)


class JournalFile(Journal):
    """Adds to the journal of a run, which nobody else may write meanwhile. A context manager."""

    def __init__(self, directory: Path, masker: Masker, *, torn_bytes: int = 0) -> None:
        """Opens the journal at its end, without the `torn_bytes` of a line that was cut off.

        Raises:
            RunDirectoryError: it cannot be written.
        """
        self._path = directory / NAME
        self._masker = masker
        self._lock, self._syncing = threading.Lock(), threading.Lock()
        self._added = self._synced = 0
        with self._writing():
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.ftruncate(self._file, os.fstat(self._file).st_size - torn_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)

    def write(self, event: JournalEvent, trial: Path | None = None, **fields: Any) -> None:
        """Adds a line; it is on disk when this returns.

        Raises:
            RunDirectoryError: it cannot be written. Nothing of the line is left then.
        """
        name = "/".join(trial.parts[-TRIAL_PARTS:]) if trial else None
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        entry = JournalEntry(time=now, event=event, trial=name, **fields)
        told = {key: value for key, value in masked(entry, self._masker).items() if value is not None}
        line = json.dumps(told, ensure_ascii=False).encode("utf-8", errors="replace") + b"\n"
        with self._writing():
            self._wait_for_disk(self._add(line))

    def _add(self, line: bytes) -> int:
        """Adds a line, whole or not at all; how many there are of this process then."""
        with self._lock:
            end = os.fstat(self._file).st_size
            try:
                written = 0
                while written < len(line):
                    written += os.write(self._file, line[written:])
            except OSError:
                with suppress(OSError):
                    os.ftruncate(self._file, end)  # half a line in the middle would damage all of it
                raise
            self._added += 1
            return self._added

    def _wait_for_disk(self, number: int) -> None:
        """Returns when so many lines are on disk. Whoever waits, waits for all that were added until then."""
        with self._syncing:
            if self._synced < number:
                added = self._added
                os.fsync(self._file)
                self._synced = added

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            hint = "make room, or use --output-dir DIR"
            raise RunDirectoryError(f"{self._path} cannot be written: {error.strerror}", hint=hint) from error

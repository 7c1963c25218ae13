"""A CLI's growing output, read in bounded memory: whatever it prints, what is whole is used and damage is noted."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from skillup.engines.base import Engine
from skillup.engines.lines import salvage
from skillup.execution.stream import TurnStream

MAX_LINE_BYTES = 16 << 20
"""Longer lines are not read. The longest of real CLIs are results with images, of some megabytes."""

MAX_OUTPUT_BYTES = 8 << 30
"""A CLI that prints more in one turn runs wild, and would fill the disk."""

_READ_BYTES = 1 << 20
_BLOCKS_PER_LOOK = 32
"""A CLI may print faster than we read; who reads along must look at the clock now and then."""

_SAMPLE_BYTES = 200
"""What is kept of a line that is not read: more than a note shows of it."""


@dataclass(frozen=True)
class TurnFiles:
    """Where a turn's standard streams go."""

    stdin: Path
    stdout: Path
    stderr: Path


class StreamReader:
    """Reads a growing file and hands each whole line to the engine."""

    def __init__(self, engine: Engine, workspace: Path, stream: TurnStream, files: TurnFiles, started: float) -> None:
        self.stream = stream
        self._engine = engine
        self._workspace = workspace
        self._started = started
        self._position = 0
        self._begun: list[bytes] = []
        self._begun_bytes = 0
        self._file = files.stdout.open("rb", buffering=0)
        self._errors = files.stderr.open("rb", buffering=0)

    @property
    def elapsed(self) -> float:
        """Seconds since the turn began."""
        return time.monotonic() - self._started

    def read(self) -> bool:
        """Takes in what has been written since the last look, up to the last newline; True when there may be more."""
        if sum(os.fstat(file.fileno()).st_size for file in (self._file, self._errors)) > MAX_OUTPUT_BYTES:
            self.stream.hopeless = f"printed more than {MAX_OUTPUT_BYTES >> 30} GiB"
            return False
        for _ in range(_BLOCKS_PER_LOOK):
            block = self._file.read(_READ_BYTES)
            if not block:
                return False
            *lines, rest = block.split(b"\n")
            for line in lines:
                self._grow(line)
                self._end_line(newline=1)
            self._grow(rest)
        if sys.platform == "linux":
            # What was read of gigabytes would push everything else out of the memory of the machine.
            os.posix_fadvise(self._file.fileno(), 0, self._file.tell(), os.POSIX_FADV_DONTNEED)
        return True

    def finish(self) -> None:
        """Takes in a last line without newline."""
        self._end_line(newline=0)

    def close(self) -> None:
        """Closes the files."""
        self._file.close()
        self._errors.close()

    def _grow(self, part: bytes) -> None:
        self._begun_bytes += len(part)
        if self._begun_bytes <= MAX_LINE_BYTES:
            self._begun.append(part)
        else:
            self._begun = [b"".join(self._begun)[:_SAMPLE_BYTES] or part[:_SAMPLE_BYTES]]

    def _end_line(self, *, newline: int) -> None:
        line = self._begun[0] if len(self._begun) == 1 else b"".join(self._begun)
        size, position = self._begun_bytes, self._position
        self._begun, self._begun_bytes = [], 0
        self._position += size + newline
        if size > MAX_LINE_BYTES:
            why = f"a line of {size:,} bytes was not read, at most {MAX_LINE_BYTES >> 20} MiB are"
            self.stream.damaged(line, why, position, lost=True)
        elif line.strip():
            self._take(line, position)

    def _take(self, line: bytes, position: int) -> None:
        try:
            self._add(line)
        except ValueError as error:
            self._add_what_is_whole(line, position, str(error)[:120])
        else:
            if not line.isascii() and not _is_utf8(line):
                self.stream.damaged(line, "not UTF-8: what is no character was replaced", position, lost=False)

    def _add(self, line: bytes) -> None:
        for event in self._engine.events(line, self._workspace):
            self.stream.add(event, self.elapsed)

    def _add_what_is_whole(self, line: bytes, position: int, why: str) -> None:
        found = salvage(line)
        lost = found.lost
        for whole in found.lines:
            try:
                self._add(whole)
            except ValueError:
                lost = True
        self.stream.damaged(line, why, position, lost=lost)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True

"""The files of the suite that a scoring program is started with, looked at when its case is loaded."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from skillup.loading.paths import Ground
from skillup.loading.scripts import MAX_BYTES
from skillup.spec.programs import Program, ProgramFile

_SOURCE = re.compile(r"[\w./-]+\.(?:py|js|mjs|cjs|ts|mts|sh|bash|rb|pl)\Z")
"""A word that can only mean a file with a program in it."""


def with_files(program: Program, ground: Ground) -> Program | tuple[str, str]:
    """The program with the hashes of its files; message and hint when it could not be run."""
    folder = program.cwd or "."
    complaint = ground.complaint(folder)
    if complaint:
        return complaint
    if not (ground.root / folder).is_dir():
        return f"there is no folder {folder}", f"paths are relative to {ground.root}"
    files: dict[str, ProgramFile] = {}
    for word in _words(program.command):
        written = os.path.normpath(Path(folder, word))
        path = ground.root / written
        if Path(word).is_absolute() or not path.is_file():
            if _SOURCE.match(word) and not path.is_file():
                return f"there is no file {word}", f"words of `command` are relative to {ground.root / folder}"
            continue
        complaint = ground.complaint(written)
        if complaint:
            return complaint
        try:
            data = path.read_bytes() if path.stat().st_size <= MAX_BYTES else None
        except OSError as error:
            return f"{word} cannot be read: {error.strerror}", ""
        if data is None:
            return f"{word} has more than {MAX_BYTES:,} bytes", "let a small program start it"
        files[written] = ProgramFile(path=written, sha256=hashlib.sha256(data).hexdigest())
    return program.model_copy(update={"files": tuple(files.values())})


def _words(command: tuple[str, ...]) -> Iterator[str]:
    """The words of a command, and those of its shell line."""
    line = len(command) == 3 and command[0] in ("/bin/sh", "sh", "bash", "/bin/bash") and command[1] in ("-c", "-lc")
    try:
        yield from shlex.split(command[2]) if line else command
    except ValueError:
        yield from command[2].split()

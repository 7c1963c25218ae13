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
        written = _inside(word, folder, ground)
        path = ground.root / folder / word
        if written is None or not path.is_file():
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


def folders_of(program: Program, ground: Ground) -> Iterator[Path]:
    """The folders of the suite that words of a program's command name, links resolved."""
    for word in _words(program.command):
        written = _inside(word, program.cwd or ".", ground)
        if word and written is not None:
            path = ground.root / written
            if path.is_dir() and ground.holds(path):
                yield Path(os.path.realpath(path))


def _inside(word: str, folder: str, ground: Ground) -> str | None:
    """A word as a path below the suite's root; None for an absolute one that leads elsewhere."""
    if not Path(word).is_absolute():
        return os.path.normpath(Path(folder, word))
    root, path = os.path.normpath(ground.root.absolute()), Path(os.path.normpath(word))
    return os.path.relpath(path, root) if path.is_relative_to(root) and ground.holds(path) else None


def _words(command: tuple[str, ...]) -> Iterator[str]:
    """The words of a command, and those of its shell line."""
    line = len(command) == 3 and command[0] in ("/bin/sh", "sh", "bash", "/bin/bash") and command[1] in ("-c", "-lc")
    try:
        yield from shlex.split(command[2]) if line else command
    except ValueError:
        yield from command[2].split()

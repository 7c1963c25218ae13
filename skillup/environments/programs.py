"""What a program needs of the host beside the system's own folders: itself, its package, its interpreter, its links.

Agent CLIs are often installed below a user's home, which a sandbox must not show. So only these places are shown there.
"""

from __future__ import annotations

import os
import shutil
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_MAX_LINKS: Final = 40
"""As many as the kernel follows."""

_LIBRARIES: Final = ("lib", "lib64", "libexec")
_FIRST_LINE: Final = 256
"""As much of a script as the kernel reads for its interpreter."""


def places_of(program: Path, path: str) -> tuple[Path, ...]:
    """Files, folders and symbolic links that must be there for a program to start, at the same places.

    `path` is the PATH on which `#!/usr/bin/env` finds an interpreter.
    """
    return tuple(dict.fromkeys(_places(program, path, _MAX_LINKS)))


def followed(path: Path) -> tuple[Path, ...]:
    """The symbolic links on the way to what a path names, and what it names in the end."""
    links, real = _resolved(path)
    return (*links, real)


def _places(program: Path, path: str, left: int) -> Iterator[Path]:
    links, real = _resolved(program)
    yield from links
    yield from _package(real)
    for name in (program, *links):
        yield from _virtual(name)
    for part in _interpreters(real, path) if left else ():
        yield from _places(part, path, left - 1)


def _resolved(path: Path) -> tuple[list[Path], Path]:
    """The symbolic links on the way to what a path names, the first one first, and what it names in the end."""
    links: list[Path] = []
    done, rest = Path("/"), deque(Path(os.path.abspath(path)).parts[1:])  # noqa: PTH100 - `resolve` would follow the links
    while rest:
        part = rest.popleft()
        place = done.parent if part == ".." else done / part
        if not place.is_symlink() or len(links) == _MAX_LINKS:
            done = place
            continue
        links.append(place)
        target = place.readlink()
        rest.extendleft(reversed([one for one in target.parts if one != "/"]))
        if target.is_absolute():
            done = Path("/")
    return links, done


def _package(real: Path) -> Iterator[Path]:
    """A program with the files that were installed with it."""
    if "node_modules" in real.parts:
        yield Path(*real.parts[: real.parts.index("node_modules") + 1])
        return
    yield real
    if real.parent.name == "bin" and not _first_line(real).startswith(b"#!"):
        # Its libraries; the folder above them may be a home.
        yield from (place for name in _LIBRARIES if (place := real.parent.parent / name).is_dir())


def _virtual(program: Path) -> Iterator[Path]:
    """What makes a Python a virtual environment: its configuration and its packages."""
    prefix = program.parent.parent
    if (prefix / "pyvenv.cfg").is_file():
        yield from (prefix / "pyvenv.cfg", prefix / "lib")


def _interpreters(real: Path, path: str) -> Iterator[Path]:
    """The program that a script is read by, and the one that this starts, if it is `env`."""
    line = _first_line(real)
    words = line[2:].split() if line.startswith(b"#!") else []
    if not words:
        return
    yield Path(os.fsdecode(words[0]))
    if words[0].endswith(b"/env"):
        names = (os.fsdecode(word) for word in words[1:] if not word.startswith(b"-") and b"=" not in word)
        found = shutil.which(next(names, ""), path=path)
        if found:
            yield Path(found)


def _first_line(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.readline(_FIRST_LINE)
    except OSError:
        return b""

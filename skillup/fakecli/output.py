"""Standard streams, byte by byte: what is printed can be held back first, and then cut, joined or mixed."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_STDIN, _STDOUT, _STDERR = 0, 1, 2


class Output:
    """Where events go. Nothing is buffered: what was printed is there, however the process ends."""

    def __init__(self) -> None:
        self._held: list[bytearray] = []

    def write(self, data: bytes) -> None:
        """Prints bytes as they are."""
        if self._held:
            self._held[-1] += data
        else:
            write_all(_STDOUT, data)

    def event(self, event: dict[str, Any]) -> None:
        """Prints an event on a line of its own, as compact as the real CLIs do."""
        self.write(json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    @contextmanager
    def held(self) -> Iterator[bytearray]:
        """Keeps what is printed meanwhile in a buffer, and prints none of it."""
        self._held.append(bytearray())
        try:
            yield self._held[-1]
        finally:
            self._held.pop()


def complain(text: str) -> None:
    """Prints a line on stderr."""
    write_all(_STDERR, text.encode() + b"\n")


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of it, in as many pieces as the system wants."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def read_all(patience: float | None = None) -> str:
    """Standard input to its end, however long whoever holds it open lets us wait.

    With `patience`, nothing of it when so many seconds bring neither a byte nor the end.
    """
    if patience is not None and not select.select([_STDIN], [], [], patience)[0]:
        return ""
    with open(_STDIN, "rb", closefd=False) as stdin:
        return stdin.read().decode("utf-8", errors="replace")

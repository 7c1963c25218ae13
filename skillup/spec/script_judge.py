"""A script as the judge: any program that reads what happened and says yes or no by its exit code."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field, model_validator

from skillup.spec.values import Spec, Words

DEFAULT_SCRIPT_SECONDS: Final = 30.0
"""Time limit of a script when nothing says otherwise; the public format's default."""

_BINARY_HEAD: Final = 4096
"""Bytes in which a compiled program holds a NUL, and a text does not."""


class ScriptFile(Spec):
    """A program of the suite, by its path from the suite's root. A text alone is the path.

    Loading fills in `sha256`: what is run when the agent has gone is what was there before it came.
    """

    path: Words
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare_path(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value


def starter(data: bytes, name: str) -> tuple[str, ...] | None:
    """The words in front of a script's path that start it; none for a compiled program, None when it says no way.

    They are what the system would make of the first line, so that the copy need not be executable.
    """
    first = data.split(b"\n", 1)[0]
    if first.startswith(b"#!"):
        words = first[2:].decode(errors="replace").strip().split(maxsplit=1)
        return tuple(words) if words else None
    if b"\0" in data[:_BINARY_HEAD]:
        return ()
    return ("/bin/sh",) if name.endswith(".sh") else None

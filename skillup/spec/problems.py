"""What validators raise: a problem that knows its place, and the words that faults are written in.

Loading turns these into faults with file, line and column. A validator may as well raise a plain ValueError;
this form adds a place below the value that is validated, and what to do next.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic_core import PydanticCustomError

PROBLEM = "skillup_problem"
"""The type of such an error in `ValidationError.errors()`; its `ctx` holds `problem`, `at` and `hint`."""

_SHOWN_CHARACTERS = 80
"""Enough to recognise a value; the position leads to the rest."""


def fault_at(message: str, *at: str | int, hint: str = "") -> PydanticCustomError:
    """An error for a validator to raise: `message` about the place `at`, relative to the validated value.

    `at` holds keys and 0-based indexes of what the user wrote, as in `fault_at("…", "turns", 0, "content")`;
    without it the fault is at the validated value itself. `hint` says what to do next.
    """
    # The texts travel in the context: a template would replace {braces} in the words of users.
    return PydanticCustomError(PROBLEM, "{problem}", {"problem": message, "at": at, "hint": hint})


def quoted(text: str) -> str:
    """A text of the user's as messages show it: in quotes, and cut when it is long."""
    return f'"{text}"' if len(text) <= _SHOWN_CHARACTERS else f'"{text[:_SHOWN_CHARACTERS]}…"'


def key_text(path: Sequence[str | int]) -> str:
    """The path of a key as users read it: `input.turns[1].content`, `files["a.txt"]`; empty for the root."""
    parts = []
    for part in path:
        if isinstance(part, int):
            parts.append(f"[{part}]")
        elif re.fullmatch(r"[A-Za-z_][\w-]*", part):
            parts.append(f".{part}")
        else:
            parts.append(f"[{quoted(part)}]")
    return "".join(parts).removeprefix(".")

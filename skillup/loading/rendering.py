"""Faults as lines that are safe to print."""

from __future__ import annotations

from collections.abc import Iterable

from skillup.errors import Fault

_SHOWN_FAULTS = 50
"""What a person reads in one go; the rest is counted."""

_SHOWN_CHARACTERS = 200
"""Of a key, a message or a hint: two lines of a terminal."""


def render_faults(faults: Iterable[Fault]) -> str:
    """One line a fault, `path:line:column: key: message (hint)`, safe to print: no control characters."""
    lines = []
    for fault in faults:
        place = f"{fault.path}:{fault.line}:{fault.column}" if fault.line else fault.path
        parts = (printable(place), _shown(fault.key), _shown(fault.message))
        lines.append(": ".join(part for part in parts if part) + (f" ({_shown(fault.hint)})" if fault.hint else ""))
    if len(lines) > _SHOWN_FAULTS:
        lines[_SHOWN_FAULTS:] = [f"... and {len(lines) - _SHOWN_FAULTS} more"]
    return "\n".join(lines)


def _shown(text: str) -> str:
    return printable(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…")


def printable(text: str) -> str:
    """Without what moves a cursor, reorders a line or cannot be encoded: control, format, lone surrogates."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

"""Whether the arguments of a tool call are what a rule asks for: deep, partial, typed."""

from __future__ import annotations

import json
from typing import Any

from skillup.judging.texts import quoted, shortened
from skillup.spec.values import compile_pattern

_SHOWN = 100
"""Characters of a value that evidence quotes."""


def difference(expected: Any, actual: Any, where: str = "", *, whole: bool = False) -> str | None:
    """Where `actual` is not what is `expected`, in words; None when it is.

    Mappings match when every expected key does, and with `whole` when there are no others either; lists when they are
    as long and every item does; `{matches: P}` searches a text with RE2; everything else must be equal and of the same
    type (`1` is `1.0`, but not `"1"` and not `true`).
    """
    if isinstance(expected, dict):
        if set(expected) == {"matches"} and isinstance(expected["matches"], str):
            return _unmatched(expected["matches"], actual, where)
        return _mapping(expected, actual, where, whole=whole)
    if isinstance(expected, list):
        if not isinstance(actual, list):
            return f"{_at(where)}: expected a list, got {_typed(actual)}"
        if len(expected) != len(actual):
            return f"{_at(where)}: expected {len(expected)} items, got {len(actual)}"
        pairs = enumerate(zip(expected, actual, strict=True))
        differences = (difference(e, a, f"{where}[{i}]", whole=whole) for i, (e, a) in pairs)
        return next((found for found in differences if found), None)
    if _kind(expected) != _kind(actual):
        return f"{_at(where)}: expected {_typed(expected)}, got {_typed(actual)}"
    if expected == actual:
        return None
    said = f"{_at(where)}: expected {_value(expected)}, got {_value(actual)}"
    same_letters = isinstance(expected, str) and expected.casefold() == actual.casefold()
    return f"{said} (they differ by the case of letters alone)" if same_letters else said


def _mapping(expected: dict[str, Any], actual: Any, where: str, *, whole: bool) -> str | None:
    if not isinstance(actual, dict):
        return f"{_at(where)}: expected a mapping, got {_typed(actual)}"
    for key, inner in expected.items():
        place = f"{where}.{key}" if where else str(key)
        if key not in actual:
            has = ", ".join(sorted(map(str, actual))[:10])
            return f"{quoted(place)} is missing ({f'it has {has}' if has else 'there is nothing'})"
        found = difference(inner, actual[key], place, whole=whole)
        if found:
            return found
    more = [str(key) for key in actual if key not in expected] if whole else []
    return (
        f"{quoted(f'{where}.{more[0]}' if where else more[0])} is there, and nothing but the others may be"
        if more
        else None
    )


def _unmatched(pattern: str, actual: Any, where: str) -> str | None:
    if not isinstance(actual, str):
        return f"{_at(where)}: expected text that matches {quoted(pattern)}, got {_typed(actual)}"
    if compile_pattern(pattern).search(actual):
        return None
    case = compile_pattern(pattern, ignore_case=True).search(actual)
    near = " (it would without regard to case: `(?i)`)" if case else ""
    return f"{_at(where)}: {_value(actual)} does not match {quoted(pattern)}{near}"


def _at(where: str) -> str:
    return where or "the arguments"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true/false"
    if isinstance(value, (int, float)):
        return "number"
    return {str: "text", dict: "mapping", list: "list", type(None): "null"}.get(type(value), type(value).__name__)


def _typed(value: Any) -> str:
    return "null" if value is None else f"the {_kind(value)} {_value(value)}"


def _value(value: Any) -> str:
    """A value as JSON would show it, texts in quotes on one line."""
    if isinstance(value, str):
        return shortened(value, _SHOWN)
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"

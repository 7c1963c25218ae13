"""Whether the arguments of a tool call are what a rule asks for: deep, partial, typed."""

from __future__ import annotations

from typing import Any

from skillup.judging.texts import shortened
from skillup.spec.values import compile_pattern


def difference(expected: Any, actual: Any, where: str = "") -> str | None:
    """Where `actual` is not what is `expected`, in words; None when it is.

    Mappings match when every expected key does; lists when they are as long and every item does; `{matches: P}`
    searches a text with RE2; everything else must be equal and of the same type (`1` is `1.0`, but not `"1"` and
    not `true`).
    """
    if isinstance(expected, dict):
        if set(expected) == {"matches"} and isinstance(expected["matches"], str):
            return _unmatched(expected["matches"], actual, where)
        if not isinstance(actual, dict):
            return f"{where or 'the arguments'}: expected a mapping, got {_typed(actual)}"
        for key, inner in expected.items():
            place = f"{where}.{key}" if where else str(key)
            if key not in actual:
                return f"argument {place} is missing"
            found = difference(inner, actual[key], place)
            if found:
                return found
        return None
    if isinstance(expected, list):
        if not isinstance(actual, list):
            return f"{where}: expected a list, got {_typed(actual)}"
        if len(expected) != len(actual):
            return f"{where}: expected {len(expected)} items, got {len(actual)}"
        pairs = (difference(e, a, f"{where}[{i}]") for i, (e, a) in enumerate(zip(expected, actual, strict=True)))
        return next((found for found in pairs if found), None)
    if _kind(expected) != _kind(actual):
        return f"{where}: expected {_typed(expected)}, got {_typed(actual)}"
    return None if expected == actual else f"{where}: expected {_value(expected)}, got {_value(actual)}"


def _unmatched(pattern: str, actual: Any, where: str) -> str | None:
    if not isinstance(actual, str):
        return f"{where}: expected text that matches {pattern!r}, got {_typed(actual)}"
    if compile_pattern(pattern).search(actual):
        return None
    return f"{where}: {_value(actual)} does not match {pattern!r}"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true/false"
    if isinstance(value, (int, float)):
        return "number"
    return {str: "text", dict: "mapping", list: "list", type(None): "null"}.get(type(value), type(value).__name__)


def _typed(value: Any) -> str:
    return f"the {_kind(value)} {_value(value)}"


def _value(value: Any) -> str:
    return shortened(value, 100) if isinstance(value, str) else shortened(str(value), 100).strip("'")

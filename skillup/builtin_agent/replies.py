"""What a model's reply is, whatever the API, and the strict reading of the JSON that it comes in."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply; None is what the reply did not tell."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One whole reply of the model.

    Attributes:
        content: the blocks as they go into the history: text, thinking, redacted_thinking, tool_use.
        unreadable: tool_use id -> its raw arguments, where these are no JSON object (`input` is then empty).
    """

    content: tuple[dict[str, Any], ...]
    stop_reason: str | None
    usage: Usage
    unreadable: Mapping[str, str]


def object_of(data: bytes) -> dict[str, Any]:
    """The JSON object that the bytes are.

    Raises:
        ValueError, TypeError, RecursionError: they are none.
    """
    value = loads(data.decode("utf-8"))
    if not isinstance(value, dict):
        raise TypeError(f"{type(value).__name__} where an object is expected")
    return value


def loads(text: str) -> Any:
    """Strict JSON: NaN and infinities, which Python would take, could not be sent back.

    Raises:
        ValueError, RecursionError: it is no JSON.
    """
    return json.loads(text, parse_constant=_finite, parse_float=_finite)


def text_of(value: object) -> str:
    """The value, which must be a text.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where text is expected")
    return value


def count_of(value: object) -> int | None:
    """The value where it is a count of tokens, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def call_block(identity: object, name: object, given: object, unreadable: dict[str, str]) -> dict[str, Any]:
    """A tool call as it goes into the history; arguments that are no JSON object are kept in `unreadable`.

    Raises:
        ValueError, TypeError: it has no id or no name.
    """
    if not text_of(identity) or not text_of(name):
        raise ValueError("a tool call without an id or a name")
    arguments = _arguments(given)
    if arguments is None:
        unreadable[text_of(identity)] = str(given)
    return {"type": "tool_use", "id": identity, "name": name, "input": arguments or {}}


def _arguments(given: object) -> dict[str, Any] | None:
    """A tool call's arguments, from JSON text or as they are; None for what is no JSON object."""
    try:
        known = loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return None
    return known if isinstance(known, dict) else None


def _finite(literal: str) -> float:
    value = float(literal)
    if not math.isfinite(value):
        raise ValueError(f"{literal} is no JSON number")
    return value

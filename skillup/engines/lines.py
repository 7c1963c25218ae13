"""One line of a CLI's output as a JSON object: the edge at which text from outside becomes a value."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def parse_object(line: bytes) -> dict[str, Any]:
    """The JSON object of one line, with U+FFFD for whatever is no character.

    CLIs cut long texts in the middle of an emoji, and JSON carries the half as a lone surrogate, which no file,
    pattern or prompt can hold.

    Raises:
        ValueError: the line is not a JSON object.
    """
    try:
        value = json.loads(line.decode("utf-8", errors="replace"), parse_constant=_refuse)
        if b"\\ud" in line or b"\\uD" in line:
            value = _whole(value)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-le", errors="surrogatepass").decode("utf-16-le", errors="replace")
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value

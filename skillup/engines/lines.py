"""One line of a CLI's output as a JSON object: the edge at which text from outside becomes a value."""

from __future__ import annotations

import json
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Salvaged:
    """What a damaged line still holds: whole objects, each as a line of its own; `lost` says whether one may be gone.

    What is only noise around objects (a control sequence, a word of some library) hides nothing.
    """

    lines: tuple[bytes, ...]
    lost: bool


def salvage(line: bytes) -> Salvaged:
    """The whole JSON objects in a line that is not one: several beside each other, or one written into another.

    An object inside a broken one counts only where the broken one stops making sense: there something else was
    written into it. What merely stands inside (the arguments of a call, say) is a part of what is lost, never an event.
    """
    text = line.decode("utf-8", errors="replace")
    found: list[bytes] = []
    end, lost = 0, False
    for _ in range(_MOST_PLACES):
        at = text.find(_BEGINNING, end)
        lost = lost or _PART in text[end : at if at >= 0 else len(text)]
        if at < 0:
            return Salvaged(tuple(found), lost)
        try:
            value, end = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            # It stops making sense right behind the beginning of what was written into it.
            lost, end = True, max(at + 1, error.pos - len(_BEGINNING))
        except (ValueError, RecursionError):
            break
        else:
            found.append(json.dumps(value).encode())
    return Salvaged(tuple(found), lost=True)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_BEGINNING = '{"'
_PART = '":'
"""What stands in every object and in no noise."""

_MOST_PLACES = 200
"""Objects that are looked for in one line: each look may read all of it."""

_DECODER = json.JSONDecoder(parse_constant=_refuse, strict=False)
"""Control characters in a text are damage that hides nothing."""


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-le", errors="surrogatepass").decode("utf-16-le", errors="replace")
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value

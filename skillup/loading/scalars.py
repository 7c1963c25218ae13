"""What an unquoted scalar means: the core schema of YAML 1.2, so that `yes`, `1:30` and dates are text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

MAX_DIGITS = 1_000
"""Longer numbers are no numbers, and Python converts them in quadratic time."""

_WORDS: Mapping[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **{sign + word: math.inf for sign in ("", "+") for word in (".inf", ".Inf", ".INF")},
    **{"-" + word: -math.inf for word in (".inf", ".Inf", ".INF")},
}
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def plain_value(text: str) -> Any:
    """What an unquoted scalar means in the core schema of YAML 1.2.

    Raises:
        OverflowError: a number that is too large to be meant as one.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    number: float
    if _DECIMAL.fullmatch(text) or _OCTAL.fullmatch(text) or _HEXADECIMAL.fullmatch(text):
        if len(text) > MAX_DIGITS:
            raise OverflowError
        return int(text[2:], {"o": 8, "x": 16}[text[1]]) if text[1:2] in ("o", "x") else int(text)
    if not _FLOAT.fullmatch(text):
        return text
    number = float(text)
    if math.isinf(number):
        raise OverflowError
    return number

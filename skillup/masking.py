"""Secrets out of everything that is written: exact values of credentials, and key shapes that anyone recognises."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

MASK = "[masked]"

_MIN_SECRET = 6
"""A shorter value would mask ordinary words all over a report, and is no secret worth the name."""

_SHAPES = re.compile(
    r"sk-ant-[A-Za-z0-9_-]{16,}"
    r"|sk-(?:proj-)?[A-Za-z0-9_-]{24,}"
    r"|gh[pousr]_[A-Za-z0-9]{30,}"
    r"|github_pat_[A-Za-z0-9_]{30,}"
    r"|AKIA[0-9A-Z]{16}"
    r"|AIza[0-9A-Za-z_-]{35}"
    r"|xox[abprs]-[A-Za-z0-9-]{20,}"
)


class Masker:
    """Replaces secrets by `[masked]`; the same for texts, bytes and whole values. Holds no other state."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms: set[str] = set()
        for secret in secrets:
            if len(secret) >= _MIN_SECRET:
                forms |= {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
        # The longest first, so that a secret that begins with another one goes whole.
        listed = sorted(forms, key=len, reverse=True)
        exact = [re.escape(form) for form in listed]
        self._text = re.compile("|".join([*exact, _SHAPES.pattern]))
        self._bytes = re.compile("|".join([*exact, _SHAPES.pattern]).encode())

    def text(self, text: str) -> str:
        """The text without secrets."""
        return self._text.sub(MASK, text)

    def data(self, data: bytes) -> bytes:
        """The bytes without secrets; what is not text stays as it is."""
        return self._bytes.sub(MASK.encode(), data)

    def value(self, value: Any) -> Any:
        """A copy of plain data (mappings, lists, texts, numbers) with every text masked, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.value(inner) for key, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(inner) for inner in value]
        return value

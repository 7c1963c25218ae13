"""Did you mean: the known word that a written one is a misspelling of."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MAX_MISSPELT_CHARACTERS = 100
"""A longer key or value is no misspelling of ours."""


def closest(key: str, known: Iterable[str]) -> str:
    """The known key that `key` is a misspelling of, or nothing."""
    if len(key) > _MAX_MISSPELT_CHARACTERS:
        return ""
    plain = {name.lower().replace("-", "_"): name for name in known}
    matches = get_close_matches(key.lower().replace("-", "_"), plain, n=1)
    return plain[matches[0]] if matches else ""

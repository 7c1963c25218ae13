"""Days as texts have them: which formats can be read, and the day that a text names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from types import MappingProxyType

DATE_FORMATS = ("YYYY-MM-DD", "DD-MMM-YYYY", "MM/DD/YYYY", "DD/MM/YYYY", "MM-DD-YYYY", "DD-MM-YYYY")
"""Tried in this order when nothing says otherwise, so that 03/04/2025 is a day of March; AgentV's default."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_PARTS: Mapping[str, str] = MappingProxyType(
    {
        "YYYY": r"(?P<year>\d{4})",
        "MMMM": r"(?P<name>[A-Za-z]{3,9})",
        "MMM": r"(?P<name>[A-Za-z]{3,9})",
        "MM": r"(?P<month>\d{1,2})",
        "M": r"(?P<month>\d{1,2})",
        "DD": r"(?P<day>\d{1,2})",
        "D": r"(?P<day>\d{1,2})",
    }
)
_PART = re.compile("YYYY|MMMM|MMM|MM|M|DD|D|[^A-Za-z]+|.", re.DOTALL)
_ISO_WITH_TIME = re.compile(r"(\d{4}-\d{2}-\d{2})[T ]\d{2}:\d{2}")


@lru_cache(maxsize=64)
def date_pattern(written: str) -> re.Pattern[str]:
    """The pattern of the texts that a format such as `DD.MM.YYYY` fits.

    Raises:
        ValueError: it holds other letters, or names a day, month or year not exactly once.
    """
    parts = _PART.findall(written)
    odd = next((part for part in parts if part not in _PARTS and part[0].isalpha()), None)
    if odd:
        raise ValueError(f"{odd!r} is no part of a date")
    kinds = [part[0] for part in parts if part in _PARTS]
    if sorted(kinds) != ["D", "M", "Y"]:
        raise ValueError("a date has one day, one month and one year")
    return re.compile("".join(_PARTS.get(part) or re.escape(part) for part in parts), re.ASCII)


def day_of(text: str, formats: tuple[str, ...]) -> date | None:
    """The day that a text names in the first of the formats that fits it; ISO dates with a time are read, too."""
    text = text.strip()
    timed = _ISO_WITH_TIME.match(text)
    text = timed[1] if timed and "YYYY-MM-DD" in formats else text
    for written in formats:
        found = date_pattern(written).fullmatch(text)
        day = _day(found.groupdict()) if found else None
        if day:
            return day
    return None


def _day(parts: Mapping[str, str]) -> date | None:
    name = parts.get("name", "")[:3].lower()
    if name and name not in _MONTHS:
        return None
    month = _MONTHS.index(name) + 1 if name else int(parts["month"])
    try:
        return date(int(parts["year"]), month, int(parts["day"]))
    except ValueError:
        return None

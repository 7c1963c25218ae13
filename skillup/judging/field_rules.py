"""`json_fields`: how many fields of an answer, or of a file, are what they must be."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from skillup.judging.calls import counted
from skillup.judging.evidence import Evidence
from skillup.judging.json_rules import Data, missing, places_of, same, shown
from skillup.judging.outcome import Outcome, either
from skillup.judging.records import Nothing, look_up
from skillup.masking import MASK
from skillup.spec.dates import day_of
from skillup.spec.json_rules import JsonField, JsonFields, as_number


@dataclass(frozen=True)
class _Field:
    """One field of the data; `wrong` says why it is not right, `masked` that a secret stands there instead."""

    weight: float
    wrong: str | None = None
    masked: bool = False


def fields(rule: JsonFields, evidence: Evidence) -> Outcome:
    """Every field is right, at one of the moments that the rule is about; the share is that of their weights."""
    places = places_of(rule, evidence, whole_record=False)
    if isinstance(places, Outcome):
        return places
    return either([place if isinstance(place, Outcome) else _counted(rule, place) for place in places])


def _counted(rule: JsonFields, place: Data) -> Outcome:
    if isinstance(place.value, Nothing):
        return missing(f"{place.what} cannot be read as JSON: {place.value.why}", place)
    looked = [_looked_at(field, place.value) for field in rule.fields]
    found = [one for one in looked if one is not None]
    wrong = [one for one in found if one.wrong]
    said = f"{len(found) - len(wrong)} of {counted(len(found), 'field')} of {place.what} right"
    if not wrong:
        return Outcome("met", said)
    said += ": " + "; ".join(one.wrong for one in wrong if one.wrong)
    if any(one.masked for one in wrong):
        return Outcome(
            "unknown", f"a secret was masked, so it may differ from what is expected: {said}", "unobservable"
        )
    outcome = missing(said, place)
    if outcome.state == "unknown" or not rule.partial:
        return outcome
    right = sum(one.weight for one in found if not one.wrong)
    return Outcome("not_met", said, share=right / sum(one.weight for one in found))


def _looked_at(field: JsonField, data: Any) -> _Field | None:
    """The field in the data; None for an optional one that is not there."""
    values = look_up(field.path, data)
    if isinstance(values, Nothing):
        return _Field(field.weight, f"{field.path}: {values.why}")
    if not values:
        return None if field.optional else _Field(field.weight, f"there is no {field.path}")
    sure = [value for value in values if MASK not in json.dumps(value, ensure_ascii=False)]
    if any(_right(field, value) for value in sure):
        return _Field(field.weight)
    wrong = f"{field.path} is {shown(values[0])}, expected {_wanted(field)}"
    # All masks look the same, so what is equal but for one may be another secret.
    return _Field(field.weight, wrong, masked=len(sure) < len(values))


def _right(field: JsonField, value: Any) -> bool:
    if field.match == "number":
        actual, expected = as_number(value), as_number(field.equals) or 0.0
        if actual is None:
            return False
        scale = abs(expected) if field.relative and expected else 1.0
        # Rounded against the noise of floating point: 10.1 is within 0.1 of 10.
        return round(abs(actual - expected) / scale - field.tolerance, 12) <= 0
    if field.match == "date":
        day = day_of(value, field.formats) if isinstance(value, str) else None
        return day is not None and day == day_of(str(field.equals), field.formats)
    return same(field.equals, value)


def _wanted(field: JsonField) -> str:
    within = f" ± {field.tolerance:g}{' of it' if field.relative else ''}" if field.tolerance else ""
    return f"{shown(field.equals)}{within}" if field.match != "date" else f"the day {shown(field.equals)}"

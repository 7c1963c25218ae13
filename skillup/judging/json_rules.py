"""`json_path` and `json_schema`: data in an answer, in the record of a turn, or in a file of the workspace."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillup.judging.arguments import difference
from skillup.judging.calls import counted
from skillup.judging.evidence import Evidence
from skillup.judging.file_rules import looks_of, text_at
from skillup.judging.outcome import Outcome, either, together
from skillup.judging.records import Nothing, as_json, look_up, reads_record, turn_record
from skillup.judging.texts import Wanted, look, shortened
from skillup.masking import MASK
from skillup.spec.json_rules import JsonFields, JsonPath, JsonSchema
from skillup.spec.jsonschemas import faults_of
from skillup.transcript import MAX_DEPTH

_SHOWN = 100
_SHOWN_FAULTS = 3


@dataclass(frozen=True)
class Data:
    """Data at one moment; `value` is the reason instead where there is none."""

    what: str
    value: Any
    complete: bool


def at_path(rule: JsonPath, evidence: Evidence) -> Outcome:
    """What the path finds meets the conditions, at one of the moments that the rule is about; or finds nothing."""
    places = places_of(rule, evidence, whole_record=reads_record(rule.path))
    if isinstance(places, Outcome):
        return places
    if rule.exists:
        return either([place if isinstance(place, Outcome) else _found(rule, place) for place in places])
    return together([place if isinstance(place, Outcome) else _not_found(rule, place) for place in places])


def of_shape(rule: JsonSchema, evidence: Evidence) -> Outcome:
    """The data is as its schema says, at one of the moments that the rule is about."""
    places = places_of(rule, evidence, whole_record=False)
    if isinstance(places, Outcome):
        return places
    schema = rule.schema_ if rule.file is None else json.loads(rule.file.content)
    return either([place if isinstance(place, Outcome) else _valid(schema or {}, place) for place in places])


def places_of(
    rule: JsonPath | JsonSchema | JsonFields, evidence: Evidence, *, whole_record: bool
) -> Sequence[Data | Outcome] | Outcome:
    """The data at each moment that the rule is about; an outcome where a file of it cannot be read."""
    if rule.source != "answer":
        looks = looks_of(rule, evidence)
        if isinstance(looks, Outcome):
            return looks
        places: list[Data | Outcome] = []
        for at in looks:
            text = text_at(rule.source.file, at, evidence)
            what = f"{rule.source.file} after turn {at.turn}"
            places.append(text if isinstance(text, Outcome) else Data(what, _parsed(text), at.complete))
        return places
    turns = evidence.named_by(rule)
    if isinstance(turns, Outcome):
        return turns
    if rule.turn is None:
        turns = turns[-1:]
    if whole_record:
        return [
            Data(
                f"the record of turn {turn.number}",
                turn_record(turn.response or "", turn.messages, turn.usage, turn.changes),
                evidence.complete(turn),
            )
            for turn in turns
        ]
    return [
        Data(f"the answer of turn {turn.number}", _shallow(as_json(turn.response or "")), evidence.complete(turn))
        for turn in turns
    ]


def _parsed(text: str) -> Any:
    """A file's text as JSON; a file has no code fences."""
    try:
        return _shallow(json.loads(text.removeprefix("\N{BYTE ORDER MARK}")))
    except ValueError as error:
        return Nothing(f"it is not JSON ({error})")
    except RecursionError:
        return Nothing(f"it is nested more than {MAX_DEPTH} deep")


def _shallow(data: Any) -> Any:
    """Data that every later step can walk through: deeper ones are no answers but attacks."""
    level = [data]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for value in level
            if isinstance(value, (dict, list))
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return data
    return Nothing(f"it is nested more than {MAX_DEPTH} deep")


def _found(rule: JsonPath, place: Data) -> Outcome:
    found = place.value if isinstance(place.value, Nothing) else look_up(rule.path, place.value)
    if isinstance(found, Nothing) or not found:
        why = found.why if isinstance(found, Nothing) else f"there is no {rule.path}"
        return missing(f"{place.what} has no {rule.path}: {why}", place)
    if rule.count is not None and len(found) != rule.count:
        return missing(f"{rule.path} finds {counted(len(found), 'value')} in {place.what}, not {rule.count}", place)
    outcomes = [_meets(rule, value, place) for value in found]
    return either(outcomes)


def _not_found(rule: JsonPath, place: Data) -> Outcome:
    found = place.value if isinstance(place.value, Nothing) else look_up(rule.path, place.value)
    if isinstance(found, list) and found:
        return Outcome("not_met", f"{place.what} has {rule.path}: {shown(found[0])}", forbidden=True)
    said = f"{place.what} has no {rule.path}" + (f": {found.why}" if isinstance(found, Nothing) else "")
    if not place.complete:
        return Outcome("unknown", f"{said} so far; but the turn was cut", "incomplete")
    return Outcome("met", said)


def _meets(rule: JsonPath, value: Any, place: Data) -> Outcome:
    """Whether one value that was found meets every condition."""
    where = f"{rule.path} of {place.what}"
    wrong: list[str] = []
    if "equals" in rule.model_fields_set and not same(rule.equals, value):
        wrong.append(f"expected {shown(rule.equals)}{_kind_differs(rule.equals, value)}")
    if "includes" in rule.model_fields_set and (differs := difference(rule.includes, value, rule.path)):
        wrong.append(differs)
    if rule.min is not None and not (_is_number(value) and value >= rule.min):
        wrong.append(f"expected a number of at least {rule.min}")
    if rule.max is not None and not (_is_number(value) and value <= rule.max):
        wrong.append(f"expected a number of at most {rule.max}")
    if wrong:
        return missing(f"{where} is {shown(value)}: {'; '.join(wrong)}", place)
    if {"equals", "includes"} & rule.model_fields_set and MASK in json.dumps(value, ensure_ascii=False):
        said = f"a secret in {where} was masked, so it may differ from what is expected"
        return Outcome("unknown", said, "unobservable")
    if rule.matches is not None:
        if not isinstance(value, str):
            return missing(f"{where} is {shown(value)}, and only a text can match a pattern", place)
        return look(Wanted((rule.matches,), patterns=True), value, what=where, complete=place.complete, masked=True)
    return Outcome("met", f"{where} is {shown(value)}")


def missing(said: str, place: Data) -> Outcome:
    """What is not there, or not right: unknown where it could still have come."""
    if not place.complete:
        return Outcome("unknown", f"{said}; but the turn was cut, so it could still have come", "incomplete")
    return Outcome("not_met", said)


def _valid(schema: Mapping[str, Any], place: Data) -> Outcome:
    if isinstance(place.value, Nothing):
        return missing(f"{place.what} cannot be read as JSON: {place.value.why}", place)
    try:
        faults = faults_of(schema, place.value, _SHOWN_FAULTS + 1)
    except ValueError as error:
        return Outcome("unknown", f"{place.what} cannot be judged: {error}", "judging")
    if not faults:
        return Outcome("met", f"{place.what} is as the schema says")
    if all(MASK in json.dumps(fault.instance, ensure_ascii=False) for fault in faults):
        said = f"a secret in {place.what} was masked, and only there it is not as the schema says"
        return Outcome("unknown", f"{said}: {faults[0].json_path}", "unobservable")
    shown = "; ".join(f"{fault.json_path}: {fault.message[:_SHOWN]}" for fault in faults[:_SHOWN_FAULTS])
    more = " (and more)" if len(faults) > _SHOWN_FAULTS else ""
    return missing(f"{place.what} is not as the schema says: {shown}{more}", place)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def same(expected: Any, actual: Any) -> bool:
    """Whether two values are equal, with types: `1` is `1.0`, but not `true`, and not `"1"`."""
    if isinstance(expected, dict):
        return (
            isinstance(actual, dict)
            and expected.keys() == actual.keys()
            and all(same(inner, actual[key]) for key, inner in expected.items())
        )
    if isinstance(expected, (list, tuple)):
        return isinstance(actual, list) and len(expected) == len(actual) and all(map(same, expected, actual))
    if _is_number(expected):
        return _is_number(actual) and bool(expected == actual)
    return type(expected) is type(actual) and bool(expected == actual)


def _kind_differs(expected: Any, actual: Any) -> str:
    """Says when two values only look alike."""
    if str(expected) == str(actual) or json.dumps(expected) == str(actual).lower():
        names: dict[type, str] = {str: "a text", bool: "true or false", int: "a number", float: "a number"}
        return f", {names.get(type(expected), 'null')}, not {names.get(type(actual), 'null')}"
    return ""


def shown(value: Any) -> str:
    """A value as JSON would show it, on one line and cut."""
    if isinstance(value, str):
        return shortened(value, _SHOWN)
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"

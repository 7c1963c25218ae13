"""Models as plain data with every secret masked, in a form that still reads back as the same model.

Only free text is masked. Names of fields and words of closed lists hold no secret, and a credential that happens to
be an ordinary word (`default`) must not damage them; nor the names that a case gives to itself, to its variables,
branches and remotes.
In a pattern the mask stands escaped: there it must match itself, and not one of its letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from skillup.masking import MASK, Masker
from skillup.spec.case import CaseId
from skillup.spec.criteria import CriterionId
from skillup.spec.git import BranchName, RemoteName
from skillup.spec.turn import VariableName
from skillup.spec.values import Pattern

_Kind = Literal["free", "word", "pattern", "named"]
_NAMES = (CaseId, CriterionId, VariableName, BranchName, RemoteName)


def masked(value: Any, masker: Masker, *, only_set: bool = False) -> Any:
    """Plain data of a model, or of anything in one; with `only_set`, the fields that were given, by their aliases."""
    if isinstance(value, BaseModel):
        fields, kinds = type(value).model_fields, _kinds(type(value))
        return {
            (fields[name].alias or name): _field(kinds[name], getattr(value, name), masker, only_set=only_set)
            for name in fields
            if not only_set or name in value.model_fields_set
        }
    if isinstance(value, dict):
        if set(value) == {"matches"}:
            return {"matches": _patterns(value["matches"], masker)}
        return {masker.text(str(key)): masked(inner, masker, only_set=only_set) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked(inner, masker, only_set=only_set) for inner in value]
    return masker.text(value) if isinstance(value, str) else value


def _field(kind: _Kind, value: Any, masker: Masker, *, only_set: bool) -> Any:
    match kind:
        case "word" if isinstance(value, str):
            return value
        case "pattern":
            return _patterns(value, masker)
        case "named" if isinstance(value, dict):
            return {name: masked(inner, masker, only_set=only_set) for name, inner in value.items()}
    return masked(value, masker, only_set=only_set)


def _patterns(value: Any, masker: Masker) -> Any:
    if isinstance(value, str):
        return masker.text(value).replace(MASK, re.escape(MASK))
    if isinstance(value, dict):
        return {key: _patterns(inner, masker) for key, inner in value.items()}
    return [_patterns(inner, masker) for inner in value] if isinstance(value, (list, tuple)) else value


@cache
def _kinds(model: type[BaseModel]) -> Mapping[str, _Kind]:
    """What each field of a model holds, by its type."""
    return {name: _kind(tuple(_parts(field.rebuild_annotation()))) for name, field in model.model_fields.items()}


def _kind(parts: tuple[Any, ...]) -> _Kind:
    if Pattern in parts:
        return "pattern"
    if parts[0] is dict or get_origin(parts[0]) is dict:
        return "named" if VariableName in parts else "free"
    names = any(part in _NAMES or get_origin(part) is Literal for part in parts)
    return "word" if names else "free"


def _parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in get_args(annotation):
        yield from _parts(part)

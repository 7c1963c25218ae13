"""JSON Schemas in cases: checked when they are read, and applied so that no schema and no data can hang a run.

Patterns are RE2, references stay within the schema, and items are compared for uniqueness in one pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator, SchemaError, ValidationError
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from skillup.spec.problems import fault_at, quoted
from skillup.spec.values import compile_pattern

_OUTSIDE = ("$ref", "$dynamicRef", "$recursiveRef")


def faults_of(schema: Mapping[str, Any], data: Any, most: int) -> list[ValidationError]:
    """What is wrong with data according to a schema that was checked: the first faults, at most so many.

    Raises:
        ValueError: the schema cannot be applied to this data, because it refers to itself without an end.
    """
    try:
        return list(islice(_validator_of(schema).iter_errors(data), most))
    except (RecursionError, Unresolvable) as error:
        raise ValueError("the schema cannot be applied: its references have no end") from error


def _validator_of(schema: Mapping[str, Any]) -> Any:
    kind = validator_for(schema, default=Draft202012Validator)
    own = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    }
    return extend(kind, own)(schema, registry=Registry())  # type: ignore[no-untyped-call] # its stub says less


def checked_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema itself.

    Raises:
        PydanticCustomError: it is no JSON Schema, or one that cannot be applied here.
    """
    if not schema:
        raise fault_at("an empty schema accepts everything", hint="say what the data must look like")
    for part in parts_of(schema):
        _check_part(part)
    draft = schema.get("$schema", "")
    named = bool(draft) and isinstance(draft, str)
    kind: Any = validator_for(schema, default=None) if named else Draft202012Validator  # type: ignore[arg-type] # none known
    if kind is None:
        raise fault_at(
            f"{quoted(draft)} is no known kind of JSON Schema", hint="remove `$schema`: 2020-12 is meant then"
        )
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise fault_at(f"not a valid JSON Schema: {error.json_path}: {error.message}") from None
    try:
        for reference in (part["$ref"] for part in parts_of(schema) if isinstance(part.get("$ref"), str)):
            _validator_of(schema)._resolver.lookup(reference)  # noqa: SLF001 - the library has no other way to ask
        list(_validator_of(schema).iter_errors(None))
    except Unresolvable as error:
        raise fault_at(f"the schema refers to {quoted(str(error.ref))}, which it does not hold") from None
    except RecursionError:
        raise fault_at("the schema refers to itself without an end") from None
    return schema


def _check_part(part: Mapping[str, Any]) -> None:
    for key in _OUTSIDE:
        reference = part.get(key)
        if isinstance(reference, str) and not reference.startswith("#"):
            hint = "copy what it refers to into `$defs`, and write #/$defs/…"
            raise fault_at(f"the schema refers to {quoted(reference)}, and nothing is fetched", hint=hint)
    patterns = part.get("patternProperties")
    if isinstance(patterns, dict) and "unevaluatedProperties" in part:
        hint = "use additionalProperties"
        raise fault_at("patternProperties beside unevaluatedProperties cannot be applied here", hint=hint)
    named = part.get("pattern")
    for pattern in (*([named] if isinstance(named, str) else []), *(patterns if isinstance(patterns, dict) else ())):
        try:
            compile_pattern(pattern)
        except ValueError as error:
            raise fault_at(f"{quoted(pattern)} in the schema is {error}") from None


def parts_of(value: Any) -> Iterator[dict[str, Any]]:
    """Every mapping of a JSON Schema, the outermost first."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from parts_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from parts_of(inner)


def _pattern(validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not compile_pattern(pattern).search(instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: dict[str, Any], instance: Any, _schema: Any
) -> Iterator[ValidationError]:
    if validator.is_type(instance, "object"):
        for pattern, schema in patterns.items():
            compiled = compile_pattern(pattern)
            for name in (name for name in instance if compiled.search(name)):
                yield from validator.descend(instance[name], schema, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    compiled = [compile_pattern(pattern) for pattern in schema.get("patternProperties", {})]
    known = schema.get("properties", {})
    extra = [name for name in instance if name not in known and not any(one.search(name) for one in compiled)]
    if validator.is_type(allowed, "object"):
        for name in extra:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and extra:
        shown = ", ".join(repr(name) for name in sorted(extra)[:5])
        yield ValidationError(f"additional properties are not allowed ({shown})")


def _unique_items(validator: Any, wanted: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if wanted and validator.is_type(instance, "array"):
        seen = [json.dumps(_plain(item), sort_keys=True) for item in instance]
        if len(set(seen)) < len(seen):
            yield ValidationError("the items are not all different")


def _plain(value: Any) -> Any:
    """A value in which numbers that are equal look the same."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value

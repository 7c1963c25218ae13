"""Rules on data: what stands at a path of it, how many fields are right, and whether it is as a JSON Schema says."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, StrictFloat, StrictInt, model_validator

from skillup.spec.content_rules import SuiteText
from skillup.spec.criteria import Weight
from skillup.spec.dates import DATE_FORMATS, date_pattern, day_of
from skillup.spec.jsonpath import check_record, checked_syntax
from skillup.spec.jsonschemas import checked_schema
from skillup.spec.problems import fault_at
from skillup.spec.rules import Rule
from skillup.spec.values import Flag, InnerPath, Pattern, Spec, Text, number

_CONDITIONS = ("equals", "includes", "matches", "min", "max", "count", "exists")


class FileSource(Spec):
    """A JSON file of the workspace."""

    file: InnerPath


class _OnData(Rule):
    """The shape that the rules on data share: `answer` is the reply read as JSON, also when it is in a code fence."""

    source: Literal["answer"] | FileSource = "answer"

    @property
    def files_read(self) -> tuple[str, ...]:
        return (self.source.file,) if isinstance(self.source, FileSource) else ()


class JsonPath(_OnData):
    """What a JSONPath finds; with several finds one must meet the conditions.

    With `source: answer` paths are those of captures: one that begins with `$.response`, `$.transcript`, `$.usage` or
    `$.workspace` reads the record of the turn.
    """

    kind = "json_path"
    path: Annotated[str, AfterValidator(checked_syntax)]
    equals: Any = None
    includes: Any = None
    matches: Pattern | None = None
    min: StrictInt | StrictFloat | None = None
    max: StrictInt | StrictFloat | None = None
    count: Annotated[StrictInt, Field(ge=1)] | None = None
    exists: Flag = True

    @model_validator(mode="after")
    def _meaningful(self) -> Self:
        if self.source == "answer":
            check_record(self.path, "path")
        given = [name for name in _CONDITIONS if name in self.model_fields_set]
        if not given:
            raise fault_at("the rule checks nothing", hint=f"give at least one of {', '.join(_CONDITIONS)}")
        if not self.exists and given != ["exists"]:
            raise fault_at("what must not exist cannot meet anything else", "exists", hint="remove one of the two")
        if self.min is not None and self.max is not None and self.max < self.min:
            raise fault_at(f"max {self.max} is less than min {self.min}: the rule can never be met", "max")
        return self

    @property
    def forbids(self) -> bool:
        return not self.exists


class JsonSchema(_OnData):
    """Data that a JSON Schema accepts; `schema` is the schema itself, or the file of the suite that holds it."""

    kind = "json_schema"
    schema_: Annotated[dict[str, Any], AfterValidator(checked_schema)] | None = Field(None, alias="schema")
    file: SuiteText | None = None

    @model_validator(mode="before")
    @classmethod
    def _path_of_schema(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("schema"), str) and "file" not in value:
            return {**{key: inner for key, inner in value.items() if key != "schema"}, "file": value["schema"]}
        return value

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.schema_ is None) == (self.file is None):
            raise fault_at("the rule needs one schema", hint="give `schema`: a mapping, or a path of the suite")
        return self


def as_number(value: Any) -> float | None:
    """A number, or a text that is one; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _checked_format(written: str) -> str:
    try:
        date_pattern(written)
    except ValueError as error:
        hint = "write it with YYYY, MM (MMM for a name) and DD, such as DD.MM.YYYY"
        raise fault_at(str(error), hint=hint) from None
    return written


class JsonField(Spec):
    """One field and the value that it must have: equal and of the same type, or as `match` says.

    A `number` differs by `tolerance` at most, with `relative` as a share of what is expected; of a `date` the day
    counts. One that is `optional` and not there counts nothing.
    """

    path: Annotated[str, AfterValidator(checked_syntax)]
    equals: Any
    match: Literal["exact", "number", "date"] = "exact"
    tolerance: Annotated[float, BeforeValidator(number), Field(ge=0, allow_inf_nan=False)] = 0.0
    relative: Flag = False
    formats: Annotated[tuple[Annotated[Text, AfterValidator(_checked_format)], ...], Field(min_length=1)] = DATE_FORMATS
    optional: Flag = False
    weight: Weight = 1.0

    @model_validator(mode="after")
    def _meaningful(self) -> Self:
        for key, match in (("tolerance", "number"), ("relative", "number"), ("formats", "date")):
            if key in self.model_fields_set and self.match != match:
                raise fault_at(f"`{key}` says nothing to `match: {self.match}`", key, hint=f"use match: {match}")
        if self.match == "number" and as_number(self.equals) is None:
            raise fault_at("what is expected is no number", "equals")
        if self.match == "date" and day_of(str(self.equals), self.formats) is None:
            raise fault_at("what is expected is no date in any of the formats", "equals", hint="give its `formats`")
        return self


class JsonFields(_OnData):
    """Fields of data, each with what it must be.

    Where parts are scored, it counts by the weights of the fields that are right; without `partial` only whole.
    """

    kind = "json_fields"
    fields: tuple[JsonField, ...] = Field(min_length=1)
    partial: Flag = True

    @model_validator(mode="before")
    @classmethod
    def _bare_list(cls, value: Any) -> Any:
        return {"fields": value} if isinstance(value, list) else value

    @model_validator(mode="after")
    def _can_fail(self) -> Self:
        if not sum(field.weight for field in self.fields if not field.optional):
            hint = "let one field with a weight be required"
            raise fault_at("an object without any of the fields would hold", "fields", hint=hint)
        return self

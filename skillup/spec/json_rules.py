"""Rules on data: what stands at a path of it, and whether it has the shape that a JSON Schema describes."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StrictFloat, StrictInt, model_validator

from skillup.spec.content_rules import SuiteText
from skillup.spec.jsonpath import check_record, checked_syntax
from skillup.spec.jsonschemas import checked_schema
from skillup.spec.problems import fault_at
from skillup.spec.rules import Rule
from skillup.spec.values import Flag, InnerPath, Pattern, Spec

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

"""JSON Schemas of the files that skillup reads and writes: `python -m skillup.schemas DIR` writes them all.

Files that we write may gain keys within a version, so their schemas let unknown keys pass. Files that users write are
read strictly, and what their short forms mean (`tool_called: bash`) stands here, because a validator shows none of it.
What a schema cannot say (captures before use, turns that exist, valid patterns) `skillup validate` says.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from skillup.conformance.outcome import ConformanceResult
from skillup.results import (
    Agreement,
    Criteria,
    Evaluated,
    Grading,
    Iterations,
    JournalEntry,
    RunManifest,
    RunPlan,
    RunResult,
    SavedTurn,
    TaskResult,
    Timing,
    TrialRecord,
    TrialResult,
)
from skillup.spec.agent import AgentProfile
from skillup.spec.agentv import AgentVFile
from skillup.spec.case import Case
from skillup.spec.dataset import Task
from skillup.spec.jsonschemas import parts_of
from skillup.spec.suite import SuiteFile

Schema = dict[str, Any]

WRITTEN: Mapping[str, type[BaseModel]] = MappingProxyType(
    {
        "run": RunManifest,
        "journal": JournalEntry,
        "result": RunResult,
        "trial-result": TrialResult,
        "criteria": Criteria,
        "evaluation": Evaluated,
        "grading": Grading,
        "record": TrialRecord,
        "turn": SavedTurn,
        "timing": Timing,
        "task-result": TaskResult,
        "iterations": Iterations,
        "plan": RunPlan,
        "agreement": Agreement,
        "conformance": ConformanceResult,
    }
)
"""What we write, files and `--json`, by the name of its schema."""

READ: Mapping[str, type[BaseModel]] = MappingProxyType(
    {"case": Case, "suite": SuiteFile, "agent": AgentProfile, "task": Task, "agentv": AgentVFile}
)
"""Files that users write."""

_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT, "minItems": 1}

_LIST: Schema = {"type": "array", "items": {"$ref": "#/$defs/Step"}, "minItems": 1}
_POSITIVE: Schema = {"type": "number", "exclusiveMinimum": 0}

_SHORT_FORMS: Mapping[str, Schema] = MappingProxyType(
    {
        "Count": {"type": "integer", "minimum": 1},
        "ToolCalled": _TEXT,
        "Step": {"anyOf": [_TEXT, _TEXTS]},
        "ToolOrder": _LIST,
        "ToolsOnly": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]},
        "Program": {"anyOf": [_TEXT, _TEXTS]},
        "JsonFields": {"type": "array", "items": {"$ref": "#/$defs/JsonField"}, "minItems": 1},
        "MaxToolCalls": {"type": "integer", "minimum": 0},
        "NoRepeatedCalls": {"anyOf": [{"const": True}, {"type": "integer", "minimum": 1}]},
        "NoPrematureStop": _LIST,
        "AskedUser": {"const": True},
        "MaxTokens": {"type": "integer", "minimum": 1},
        "MaxCostUsd": _POSITIVE,
        "MaxSeconds": _POSITIVE,
        "Milestone": _TEXT,
        "ToolNotCalled": _TEXT,
        "OutputEquals": _TEXT,
        "CommandHolds": _TEXT,
        "SuiteText": _TEXT,
        "ScriptFile": _TEXT,
        "Combine": {"enum": ["all_required", "mean", "min"]},
        "FilesExist": _TEXTS,
        "FilesNotExist": _TEXTS,
        "ModelChoice": _TEXT,
        "SkillUsed": _TEXT,
        "JudgeModel": _TEXT,
        "Criterion": _TEXT,
        "GradedCriterion": _TEXT,
        "Rubric": _TEXT,
        "JudgeContext": {"enum": ["standard", "minimal"]},
        "Attachment": _TEXT,
        "JudgeSkill": _TEXT,
    }
)
"""What may stand for a whole mapping: `count: 2`, `tool_called: bash`, `files_exist: [a.txt]`, `model: scripted`."""

_ONE_OR_MORE = frozenset({"name", "names", "ignore", "must_match", "must_not_match"})
"""Lists of texts that may be one text."""

_ZERO_IS_NONE = frozenset(
    {"timeout_seconds", "turn_seconds", "max_seconds", "max_turns", "max_steps", "max_cost_usd", "max_tokens"}
)
"""Limits that say nothing when they are 0."""

_KEYWORDS = (("gt", "exclusiveMinimum"), ("ge", "minimum"), ("lt", "exclusiveMaximum"), ("le", "maximum"))
"""Bounds that pydantic leaves in its own words where a validator runs before the type."""


def schemas() -> dict[str, str]:
    """Every schema as the text of its file, by the file's name."""
    made = {name: _written(model) for name, model in WRITTEN.items()}
    made |= {name: _read(model) for name, model in READ.items()}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {f"{name}.schema.json": json.dumps({**head, **schema}, indent=2) + "\n" for name, schema in made.items()}


def _written(model: type[BaseModel]) -> Schema:
    schema = model.model_json_schema(mode="serialization")
    for part in parts_of(schema):
        _tidy(part)
        if part.get("additionalProperties") is False:
            del part["additionalProperties"]
    return schema


def _read(model: type[BaseModel]) -> Schema:
    schema = model.model_json_schema(mode="validation")
    for part in list(parts_of(schema)):
        _tidy(part)
        for name, field in part.get("properties", {}).items():
            _as_written(name, field)
    definitions: Schema = schema.get("$defs", {})
    if "Criterion" in definitions:
        del definitions["Criterion"]["required"]  # the id comes by its place
        definitions["Criterion"]["anyOf"] = [{"required": ["text"]}, {"required": ["builtin"]}]
    for name, also in _SHORT_FORMS.items():
        if name in definitions:
            definitions[name] = {"anyOf": [definitions[name], also]}
    if "RuleItem" in definitions:
        _one_rule(definitions["RuleItem"])
    if model is Case:
        schema["required"].remove("id")  # the file's name
    return schema


def _tidy(part: Schema) -> None:
    """Removes what says nothing (titles made of names) and puts bounds into the words of the standard."""
    if isinstance(part.get("title"), str):
        del part["title"]
    for ours, standard in _KEYWORDS:
        if isinstance(part.get(ours), (int, float)):
            part[standard] = part.pop(ours)


def _as_written(name: str, field: Schema) -> None:
    """A field with what may be written for it besides its full form."""
    if name in _ONE_OR_MORE and field.get("type") == "array":
        full = {key: field.pop(key) for key in ("type", "items", "minItems") if key in field}
        field["anyOf"] = [full, _TEXT]
    if name == "exit_code" and "anyOf" in field:
        field["anyOf"].append({"type": "integer", "minimum": 0, "maximum": 255})
    if name == "schema" and "anyOf" in field:
        field["anyOf"].append(_TEXT)
    for choice in field.get("anyOf", ()):
        if name == "turn" and choice == _TEXT:
            choice["enum"] = ["any", "last"]
        if name == "turn" and choice == {"type": "integer"}:
            choice["minimum"] = 1
        if name in _ZERO_IS_NONE and {"type": "null"} in field["anyOf"]:
            choice.pop("exclusiveMinimum", None)
            if choice != {"type": "null"}:
                choice["minimum"] = 0


def _one_rule(item: Schema) -> None:
    """A list item holds exactly one rule, with a body; `exit_code` is only read to be refused."""
    del item["properties"]["exit_code"]
    for name, field in item["properties"].items():
        item["properties"][name] = next(choice for choice in field["anyOf"] if "$ref" in choice)
    item["minProperties"] = item["maxProperties"] = 1


def main(arguments: list[str]) -> None:
    """Writes every schema into the folder that is named."""
    (folder,) = map(Path, arguments)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in schemas().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

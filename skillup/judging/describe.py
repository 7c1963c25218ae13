"""Checks in one line, as a user would write them: compact YAML."""

from __future__ import annotations

import json
import re
from typing import Any

from skillup.judging.outcome import bounded
from skillup.spec.case import Gate
from skillup.spec.content_rules import OutputEquals, SuiteText
from skillup.spec.rules import FileContains, FilesExist, FilesNotExist, OutputContains, Rule

MAX_TEXT = 300
"""Characters of a check's text: what tells it from the others; the case holds all of it."""

_PLAIN = re.compile(r"(?:[A-Za-z0-9_./$(+]|-(?! ))[A-Za-z0-9_ ./$<>()*+:=@-]*(?<! )\Z")
_NOT_TEXT = re.compile(r"(?i)(?:null|~|true|false|[-+]?[.0-9][0-9a-fox_.+-]*|[-+]?\.(?:inf|nan)|---|\.\.\.|-)\Z")


def describe(rule: Rule) -> str:
    """A rule of the judge, such as `tool_called: {name: bash, turn: 1}`."""
    body = rule.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    for key in ("file", "schema"):
        if isinstance(body.get(key), dict) and body[key].get("path"):
            body[key] = body[key]["path"]
    if "turn" in body:
        body["turn"] = body.pop("turn")  # last, where people write it
    if list(body) == ["paths"]:
        return bounded(f"{rule.kind}: {flow(body['paths'])}", MAX_TEXT)
    if isinstance(body.get("name"), list) and len(body["name"]) == 1:
        body["name"] = body["name"][0]
    count = body.get("count")
    if isinstance(count, dict) and count.get("min", 1) == count.get("max"):
        body["count"] = count["max"]
    short = list(body) == ["name"] and isinstance(body["name"], str)
    return bounded(f"{rule.kind}: {flow(body['name'] if short else body)}", MAX_TEXT)


def describe_expected(key: str, rule: Rule) -> str:
    """An entry of `expect`, such as `must_contain: closed`; `key` is its place, such as `must_contain[0]`."""
    match rule:
        case OutputContains():
            value: Any = next(text for part in rule.parts for text in part)
        case FilesExist() | FilesNotExist():
            value = rule.paths[0]
        case FileContains():
            value = {"path": rule.path, "content": rule.content}
        case OutputEquals(file=SuiteText() as golden):
            value = golden.path or golden.text
        case _:
            return describe(rule)
    return bounded(f"{key.partition('[')[0]}: {flow(value)}", MAX_TEXT)


def describe_gate(turn: int, gate: Gate) -> str:
    """A turn's gate, such as `gate of turn 1: {must_contain_any: [T-]}`."""
    return bounded(f"gate of turn {turn}: {flow(gate.model_dump(mode='json', exclude_defaults=True))}", MAX_TEXT)


def flow(value: Any) -> str:
    """A value in YAML's flow style, on one line; texts without quotes where they can do without."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(key)}: {flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(flow(inner) for inner in value) + "]"
    if isinstance(value, str) and value.isprintable():
        plain = _PLAIN.match(value) and not _NOT_TEXT.match(value) and not _mapping_like(value)
        return value if plain else "'" + value.replace("'", "''") + "'"
    return json.dumps(value, ensure_ascii=not isinstance(value, str) or not value.isprintable())


def _mapping_like(text: str) -> bool:
    return ": " in text or text.endswith(":") or " #" in text

"""What a turn gives to later turns: captures out of its answer or its record."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonpath_ng.exceptions import JSONPathError
from jsonpath_ng.ext.parser import parse as parse_jsonpath

from skillup.errors import TrialError
from skillup.results import CaptureRecord, Changes, Ending
from skillup.spec.case import Capture, Turn
from skillup.spec.template import render
from skillup.spec.values import compile_pattern
from skillup.transcript import Message, Usage

RECORD_ROOTS = ("$.response", "$.transcript", "$.usage", "$.workspace")
"""A path that starts so reads the turn's record; every other path reads the answer as JSON. Never tried out."""


def reads_record(path: str) -> bool:
    """Whether a JSONPath reads the turn's record, decided by its beginning alone."""
    return any(path == root or path.startswith((root + ".", root + "[")) for root in RECORD_ROOTS)


def turn_record(response: str, messages: tuple[Message, ...], usage: Usage, changes: Changes | None) -> dict[str, Any]:
    """The record of a turn that captures and rules can look into; its shape is in docs/cases.md."""
    calls = [message.tool_call for message in messages if message.tool_call]
    results = [message.tool_result for message in messages if message.tool_result]
    changes = changes or Changes()
    return {
        "response": response,
        "transcript": {
            "tool_calls": [
                {"id": c.id, "name": c.name, "tool": c.tool, "arguments": c.arguments, "status": c.status}
                for c in calls
            ],
            "tool_results": [
                {"id": r.call_id, "call_id": r.call_id, "status": r.status, "content": r.content} for r in results
            ],
        },
        "usage": usage.model_dump(),
        "workspace": {
            "created": list(changes.created),
            "changed": list(changes.changed),
            "deleted": list(changes.deleted),
        },
    }


def take(capture: Capture, record: dict[str, Any]) -> CaptureRecord | None:
    """The captured value, its default when there is none, or None when there is neither.

    Raises:
        TrialError: `capture`, the path cannot be applied at all.
    """
    if capture.pattern is not None:
        value = _by_pattern(capture.pattern, record["response"])
    else:
        value = _by_path(str(capture.jsonpath), record)
    if value is not None:
        return CaptureRecord(variable=capture.variable, value=value)
    if capture.default is not None:
        return CaptureRecord(variable=capture.variable, value=capture.default, defaulted=True)
    return None


def _by_pattern(pattern: str, response: str) -> str | None:
    compiled = compile_pattern(pattern)
    match = compiled.search(response)
    if match is None:
        return None
    value = match.group("value") if "value" in compiled.groupindex else match.group(1)
    return value or None


def _by_path(path: str, record: dict[str, Any]) -> str | None:
    data = record if reads_record(path) else _as_json(record["response"])
    if data is None:
        return None
    try:
        found = [match.value for match in parse_jsonpath(path).find(data)]
    except (JSONPathError, TypeError, ValueError, KeyError) as error:
        raise TrialError("capture", f"the path {path} cannot be applied: {error}") from error
    if not found or found[0] is None or found[0] == "":
        return None
    value = found[0]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _as_json(response: str) -> Any:
    """The answer read as JSON, a code fence around it taken off; None when it is not JSON."""
    text = response.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].partition("\n")[2]
    try:
        return json.loads(text)
    except ValueError:
        return None


def message_of(turn: Turn, values: Mapping[str, str]) -> str:
    """The turn's message with its variables filled in.

    Raises:
        TrialError: `template`, a name has no value or nothing is left but blanks.
    """
    content = render(turn.content, values)
    if not content.strip():
        raise TrialError("template", "the message is blank once its variables are filled in")
    return content


@dataclass(frozen=True)
class Taken:
    """The captures of a turn, and what a missing one means: an error, or the end of the conversation."""

    values: tuple[CaptureRecord, ...]
    error: TrialError | None = None
    ending: Ending | None = None


def captured(captures: Sequence[Capture], record: dict[str, Any], turn: int) -> Taken:
    """Takes a turn's captures in order, up to the first that finds nothing."""
    values: list[CaptureRecord] = []
    for capture in captures:
        try:
            value = take(capture, record)
        except TrialError as error:
            error.turn = turn
            return Taken(tuple(values), error=error)
        if value is None:
            how = f"pattern {capture.pattern!r}" if capture.pattern else f"path {capture.jsonpath}"
            reason = f"turn {turn}: the capture of {capture.variable!r} found nothing ({how})"
            if capture.on_missing == "fail":
                return Taken(tuple(values), ending=Ending(how="capture_failed", turn=turn, reason=reason))
            if capture.on_missing == "skip_remaining":
                return Taken(tuple(values), ending=Ending(how="capture_skipped", turn=turn, reason=reason))
            hint = "give `default:`, or `on_missing: fail | skip_remaining`, if this can happen"
            return Taken(tuple(values), error=TrialError("capture", reason, turn=turn, hint=hint))
        values.append(value)
    return Taken(tuple(values))

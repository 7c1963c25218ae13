"""What a turn gives to later turns: captures out of its answer or its record."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillup.errors import TrialError
from skillup.judging.records import Nothing, as_json, look_up, reads_record
from skillup.judging.texts import quoted
from skillup.results import CaptureRecord, Ending
from skillup.spec.template import render
from skillup.spec.turn import Capture, Turn
from skillup.spec.values import compile_pattern


def take(capture: Capture, record: dict[str, Any]) -> CaptureRecord | Nothing:
    """The captured value, or its default when there is none. The empty text and null are no values."""
    if capture.pattern is not None:
        value = _by_pattern(capture.pattern, record["response"])
    else:
        value = _by_path(str(capture.jsonpath), record)
    if isinstance(value, Nothing):
        if capture.default is None:
            return value
        return CaptureRecord(variable=capture.variable, value=capture.default, defaulted=True)
    return CaptureRecord(variable=capture.variable, value=value)


def _by_pattern(pattern: str, response: str) -> str | Nothing:
    compiled = compile_pattern(pattern)
    match = compiled.search(response)
    if match is None:
        return Nothing(f"the answer does not match {quoted(pattern)}")
    value: str | None = match.group("value") if "value" in compiled.groupindex else match.group(1)
    return value or Nothing(f"the group of {quoted(pattern)} is empty")


def _by_path(path: str, record: dict[str, Any]) -> str | Nothing:
    data = record if reads_record(path) else as_json(record["response"])
    if isinstance(data, Nothing):
        return Nothing(f"{data.why}, so {path} cannot be looked up")
    found = look_up(path, data)
    if isinstance(found, Nothing):
        return found
    if not found:
        return Nothing(f"there is no {path}")
    if found[0] is None or found[0] == "":
        return Nothing(f"{path} is {'null' if found[0] is None else 'an empty text'}")
    return found[0] if isinstance(found[0], str) else json.dumps(found[0], ensure_ascii=False)


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
        value = take(capture, record)
        if isinstance(value, CaptureRecord):
            values.append(value)
            continue
        reason = f"turn {turn}: the capture of {capture.variable!r} found nothing: {value.why}"
        if capture.on_missing == "fail":
            return Taken(tuple(values), ending=Ending(how="capture_failed", turn=turn, reason=reason))
        if capture.on_missing == "skip_remaining":
            return Taken(tuple(values), ending=Ending(how="capture_skipped", turn=turn, reason=reason))
        hint = "give `default:`, or `on_missing: fail | skip_remaining`, if this can happen"
        return Taken(tuple(values), error=TrialError("capture", reason, turn=turn, hint=hint))
    return Taken(tuple(values))

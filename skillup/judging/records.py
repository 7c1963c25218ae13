"""Data that captures and rules look into: the record of a turn, or a text read as JSON."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from jsonpath_ng.ext.parser import parse as parse_jsonpath

from skillup.results import Changes
from skillup.transcript import Message, Usage

RECORD_ROOTS = ("$.response", "$.transcript", "$.usage", "$.workspace")
"""A path that starts so reads the turn's record; every other path reads the answer as JSON. Never tried out."""

_FENCED = re.compile(r"^```[^\n`]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def reads_record(path: str) -> bool:
    """Whether a JSONPath reads the turn's record, decided by its beginning alone."""
    return any(path == root or path.startswith((root + ".", root + "[")) for root in RECORD_ROOTS)


def turn_record(response: str, messages: tuple[Message, ...], usage: Usage, changes: Changes | None) -> dict[str, Any]:
    """The record of a turn that captures can look into; its shape is in docs/cases.md."""
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


@dataclass(frozen=True)
class Nothing:
    """No value, and why, in words that finish a sentence such as `the capture of 'x' found nothing: …`."""

    why: str


def as_json(response: str) -> Any:
    """The answer read as JSON: all of it, else the only fenced block in it."""
    blocks = _FENCED.findall(response)
    for text in (response, *(blocks if len(blocks) == 1 else ())):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            continue
    return Nothing(f"the answer is not JSON{f' and has {len(blocks)} fenced blocks' if len(blocks) > 1 else ''}")


def look_up(path: str, data: Any) -> list[Any] | Nothing:
    """All that a JSONPath finds in data, or why it cannot be applied to it."""
    try:
        return [match.value for match in parse_jsonpath(path).find(data)]
    except Exception as error:  # noqa: BLE001 - a foreign library on foreign data: it raises whatever the data provokes
        return Nothing(f"{path} cannot be applied ({type(error).__name__}: {error})")

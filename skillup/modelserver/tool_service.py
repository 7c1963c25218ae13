"""Tools that are answered here and not by the agent: the list, and one call, over the same loopback HTTP.

A route of its own carries them, so that whoever learns of the model's address cannot call a tool.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from skillup.modelserver.protocol import BadRequestError
from skillup.modelserver.source import JsonObject

LIST_PATH = "/tools"
CALL_PATH = "/tools/call"


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a call gave back."""

    content: str
    failed: bool = False


class ToolService(Protocol):
    """Answers the calls of one trial; called by many threads at once."""

    @property
    def offers(self) -> tuple[JsonObject, ...]:
        """The tools: name, description, input_schema."""

    def call(self, name: str, arguments: JsonObject) -> ToolAnswer:
        """What one call gives back."""


def exchange(service: ToolService, path: str, body: JsonObject) -> JsonObject:
    """The answer to one request.

    Raises:
        BadRequestError: it is neither a list nor a call.
    """
    if path == LIST_PATH:
        return {"tools": list(service.offers)}
    name, arguments = body.get("name"), body.get("arguments")
    if path != CALL_PATH or not isinstance(name, str) or not isinstance(arguments, dict):
        raise BadRequestError(f"POST {LIST_PATH} lists the tools, POST {CALL_PATH} takes `name` and `arguments`")
    answer = service.call(name, arguments)
    return {"content": answer.content, "failed": answer.failed}

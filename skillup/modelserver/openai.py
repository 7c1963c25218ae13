"""What OpenAI's two protocols share: paths, error bodies, texts in parts, arguments as JSON text, ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from skillup.modelserver.source import Conversation, JsonObject, fingerprint

_USUAL: Final[Mapping[int, tuple[str, str | None, str]]] = {
    400: ("invalid_request_error", None, "The request is not valid"),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided"),
    403: ("permission_error", None, "The key lacks the permission"),
    404: ("invalid_request_error", "model_not_found", "The model does not exist"),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached"),
    500: ("server_error", None, "The server had an error"),
    503: ("server_error", "server_overloaded", "The server is overloaded"),
}


class OpenAIProtocol:
    """The parts of a protocol that do not depend on which of the two it is."""

    paths: ClassVar[tuple[str, ...]]

    def serves(self, path: str) -> bool:
        """Whether this protocol knows the path."""
        return path in self.paths

    def side_reply(self, path: str, body: JsonObject) -> JsonObject | None:  # noqa: ARG002 - it has no side requests
        """None: every request asks for a reply."""
        return None

    def error_body(self, status: int, message: str) -> JsonObject:
        """`{"error": {"message": …, "type": …, "code": …, "param": null}}`; an empty message is the usual one."""
        kind, code, usual = _USUAL.get(status, _USUAL[500 if status >= 500 else 400])
        return {"error": {"message": message or usual, "type": kind, "code": code, "param": None}}


def texts(content: Any) -> list[str]:
    """The texts of a content that is one, or a list of parts; parts that are no text are left out."""
    if isinstance(content, str):
        return [content]
    return [str(part["text"]) for part in content or () if isinstance(part, dict) and "text" in part]


def arguments(text: Any) -> dict[str, Any]:
    """A call's arguments, which come as JSON text; what is no object stands below `raw`."""
    try:
        known = json.loads(text or "{}")
    except (TypeError, ValueError):
        return {"raw": text}
    return known if isinstance(known, dict) else {"raw": known}


def identifier(prefix: str, conversation: Conversation, content: Any) -> str:
    """An id that a repeated request gets again, and that nothing else of the conversation has."""
    return f"{prefix}_{fingerprint([conversation.identity, content])}"

"""Error bodies as OpenAI's APIs shape them, shared by its two protocols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skillup.modelserver.source import JsonObject

_USUAL: Final[Mapping[int, tuple[str, str | None, str]]] = {
    400: ("invalid_request_error", None, "The request is not valid"),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided"),
    403: ("permission_error", None, "The key lacks the permission"),
    404: ("invalid_request_error", "model_not_found", "The model does not exist"),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached"),
    500: ("server_error", None, "The server had an error"),
    503: ("server_error", "server_overloaded", "The server is overloaded"),
}


def error_body(status: int, message: str) -> JsonObject:
    """`{"error": {"message": …, "type": …, "code": …, "param": null}}`; an empty message is the usual one."""
    kind, code, usual = _USUAL.get(status, _USUAL[500 if status >= 500 else 400])
    return {"error": {"message": message or usual, "type": kind, "code": code, "param": None}}

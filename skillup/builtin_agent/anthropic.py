"""The Messages API over `http.client`: one request out, one whole reply in, every fault named.

A reply is returned only when all of it has arrived. A stream that breaks half-way leaves nothing behind, so a
retry can never show the same text twice. Transport, stream and fault table are one module because a fault can
only be named where all three are known: the same closed connection is a drop, a refusal or a short answer.
"""

import http.client
import json
import math
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

API_VERSION = "2023-06-01"
# A reply of some thousand tokens is some hundred kilobytes of events; a stream that never ends is cut here.
REPLY_BYTES = 16 * 1024 * 1024
ERROR_BODY_BYTES = 64 * 1024
# Long enough for a provider's JSON error, short enough for one line of a report.
MESSAGE_CHARACTERS = 500


class _Class(NamedTuple):
    kind: str  # in the end event
    retry: str | None  # in retry events; None: the same request would fail again


# Why each status is what it is: 401 and 403 need another key and other 4xx another request. 500, 502 and 504
# are `overloaded`: the provider answered that it cannot serve, and the remedy is to wait. `network` is left
# for faults in which no whole HTTP answer came, `output` for an answer that cannot be understood.
_BY_STATUS: Mapping[int, _Class] = MappingProxyType(
    {
        401: _Class("auth", None),
        403: _Class("auth", None),
        429: _Class("rate_limit", "rate_limit"),
        500: _Class("overloaded", "server_error"),
        502: _Class("overloaded", "server_error"),
        503: _Class("overloaded", "overloaded"),
        504: _Class("overloaded", "server_error"),
        529: _Class("overloaded", "overloaded"),
    }
)
_OTHER_STATUS = _Class("request", None)
_OTHER_5XX = _Class("overloaded", "server_error")
_NETWORK = _Class("network", "network")
_MALFORMED = _Class("output", "malformed")

# An error inside a stream has a type where a plain answer has a status; the API documents these pairs.
_STATUS_OF_TYPE: Mapping[str, int] = MappingProxyType(
    {
        "invalid_request_error": 400,
        "authentication_error": 401,
        "billing_error": 402,
        "permission_error": 403,
        "not_found_error": 404,
        "request_too_large": 413,
        "rate_limit_error": 429,
        "api_error": 500,
        "timeout_error": 504,
        "overloaded_error": 529,
    }
)
_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "auth": "check ANTHROPIC_API_KEY",
        "network": "check ANTHROPIC_BASE_URL and that the server is up",
        "output": "check that ANTHROPIC_BASE_URL is the address of a Messages API",
    }
)
# Type of a delta -> the member that holds its text, and the member of the block that grows by it.
_DELTAS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "text_delta": ("text", "text"),
        "thinking_delta": ("thinking", "thinking"),
        "signature_delta": ("signature", "signature"),
        "input_json_delta": ("partial_json", "input"),
    }
)


class ModelError(Exception):
    """The model gave no usable reply.

    Attributes:
        kind: `auth`, `rate_limit`, `overloaded`, `request`, `network` or `output`.
        retry: the word for retry events, None when the same request would fail again.
        status: the HTTP status, None when the fault was not an HTTP status.
        retry_after: seconds that the server asked for, None when it did not.
    """

    def __init__(
        self, fault: _Class, message: str, *, status: int | None = None, retry_after: float | None = None
    ) -> None:
        hint = _HINTS.get(fault.kind)
        super().__init__(f"{message}; {hint}" if hint else message)
        self.kind = fault.kind
        self.retry = fault.retry
        self.status = status
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply; None is what the reply did not tell."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One whole reply of the model.

    Attributes:
        content: the blocks as they go back into the history: text, thinking, redacted_thinking, tool_use.
        unreadable: tool_use id -> its raw arguments, where these are no JSON object (`input` is then empty).
    """

    content: tuple[dict[str, Any], ...]
    stop_reason: str | None
    usage: Usage
    unreadable: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MessagesClient:
    """Sends requests to `<base_url>/v1/messages`; one connection a request, so none is ever stale.

    Attributes:
        base_url: http or https; a path prefix is kept.
        idle_seconds: the longest silence, while connecting or between two bytes.
        agent: the `user-agent` header.
    """

    base_url: str
    api_key: str = field(repr=False)
    idle_seconds: float
    agent: str

    def send(self, request: Mapping[str, Any]) -> Reply:
        """Send one request and read the whole reply.

        Raises:
            ModelError: whatever went wrong.
        """
        # ASCII escapes carry every string, also a lone surrogate that UTF-8 has no bytes for.
        body = json.dumps(request, allow_nan=False, separators=(",", ":")).encode("ascii")
        base = urllib.parse.urlsplit(self.base_url)
        secure = base.scheme == "https"
        connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        # The path is left out of messages: it may hold a secret.
        where = f"{base.hostname}:{base.port or (443 if secure else 80)}"
        try:
            with closing(connect(base.hostname or "", base.port, timeout=self.idle_seconds)) as connection:
                return _read(self._exchange(connection, f"{base.path.rstrip('/')}/v1/messages", body))
        except TimeoutError as error:
            message = f"the model at {where} was silent for {self.idle_seconds:g} s"
            raise ModelError(_NETWORK, message) from error
        except (
            OSError,
            UnicodeError,
            http.client.IncompleteRead,
        ) as error:  # Unicode: a host that DNS cannot name
            message = f"the connection to the model at {where} failed: {str(error) or type(error).__name__}"
            raise ModelError(_NETWORK, message) from error
        except http.client.HTTPException as error:
            message = f"the answer of {where} is not HTTP: {type(error).__name__}"
            raise ModelError(_MALFORMED, message) from error

    def _exchange(self, connection: http.client.HTTPConnection, path: str, body: bytes) -> http.client.HTTPResponse:
        headers = {
            "accept": "text/event-stream",
            "anthropic-version": API_VERSION,
            "connection": "close",
            "content-type": "application/json",
            "user-agent": self.agent,
            "x-api-key": self.api_key,
        }
        try:
            connection.request("POST", path, body, headers)
        except (BrokenPipeError, ConnectionResetError):
            # A server may refuse a large request (413, 401) and close before it has read it all. Its answer
            # may be here all the same; if not, reading it raises the network fault that this is.
            return connection.getresponse()
        return connection.getresponse()


def _read(response: http.client.HTTPResponse) -> Reply:
    if response.status != 200:
        raise _refusal(response)
    content_type = response.headers.get_content_type() if "content-type" in response.headers else None
    try:
        if content_type == "application/json":
            return _whole(response)
        if content_type in {"text/event-stream", None}:
            return _streamed(_events(response))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        # Whatever is not the protocol's shape ends here: JSON, UTF-8, a missing member, a list for an object.
        message = f"the model's answer (HTTP 200) cannot be understood: {type(error).__name__}: {error}"
        raise ModelError(_MALFORMED, message[:MESSAGE_CHARACTERS]) from error
    raise ModelError(_MALFORMED, f"the model's answer (HTTP 200) is {content_type}, no event stream and no JSON")


def _refusal(response: http.client.HTTPResponse) -> ModelError:
    status = response.status
    text = response.read(ERROR_BODY_BYTES).decode("utf-8", "replace")
    try:
        text = str(json.loads(text)["error"]["message"])
    except (ValueError, LookupError, TypeError, RecursionError):
        text = text.strip() or response.reason
    other = _OTHER_5XX if status >= 500 else _OTHER_STATUS
    # A success that is not 200 carries no reply.
    fault = _MALFORMED if status < 300 else _BY_STATUS.get(status, other)
    return ModelError(
        fault,
        f"the model API answered {status}: {text[:MESSAGE_CHARACTERS]}",
        status=status,
        retry_after=_seconds(response.headers.get("retry-after")),
    )


def _seconds(value: str | None) -> float | None:
    try:
        seconds = float(value or "")
    except ValueError:  # absent, or an HTTP date, which this API does not send
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _told(error: Mapping[str, Any]) -> ModelError:
    """The fault of an error object that came with HTTP 200."""
    status = _STATUS_OF_TYPE.get(error["type"], 500)
    message = f"the model API sent {error['type']} in its answer: {error.get('message')}"
    return ModelError(_BY_STATUS.get(status, _OTHER_STATUS), message[:MESSAGE_CHARACTERS])


def _events(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """The data of each server-sent event; an event's name is repeated in its data, so it is not needed."""
    data: list[bytes] = []
    size = count = 0
    while line := response.readline(REPLY_BYTES):
        size += len(line)
        if size > REPLY_BYTES:
            raise ValueError(f"it is longer than {REPLY_BYTES} bytes")
        line = line.rstrip(b"\r\n")
        if line.startswith(b"data:"):
            data.append(line[5:])
        elif not line and data:
            count += 1
            yield _object(b"\n".join(data))
            data.clear()
    if size and not count:
        raise ValueError("it holds no event")


def _streamed(events: Iterator[dict[str, Any]]) -> Reply:
    usage: dict[str, Any] = {}
    stop_reason: str | None = None
    blocks: dict[int, dict[str, Any]] = {}
    grown: dict[tuple[int, str], list[str]] = {}  # joined once: adding to a long text again and again is slow
    for event in events:
        match event["type"]:
            case "message_start":
                _update(usage, event["message"].get("usage"))
            case "content_block_start":
                blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta" if event["delta"]["type"] in _DELTAS:
                source, target = _DELTAS[event["delta"]["type"]]
                grown.setdefault((event["index"], target), []).append(event["delta"][source])
            case "message_delta":
                stop_reason = event["delta"].get("stop_reason", stop_reason)
                _update(usage, event.get("usage"))
            case "message_stop":
                for (index, target), parts in grown.items():
                    start = blocks[index].get(target)
                    text = (start if isinstance(start, str) else "") + "".join(parts)
                    blocks[index][target] = text or start
                return _reply(list(blocks.values()), stop_reason, usage)
            case "error":
                raise _told(event["error"])
            case _:  # ping, content_block_stop, and what later versions add
                pass
    raise ModelError(_NETWORK, "the model's stream broke off before the end of the reply")


def _whole(response: http.client.HTTPResponse) -> Reply:
    body = response.read(REPLY_BYTES)
    if response.length and len(body) < REPLY_BYTES:
        raise http.client.IncompleteRead(body, response.length)
    message = _object(body)
    if message.get("type") == "error":
        raise _told(message["error"])
    usage: dict[str, Any] = {}
    _update(usage, message.get("usage"))
    return _reply(message["content"], message.get("stop_reason"), usage)


def _reply(blocks: list[dict[str, Any]], stop_reason: str | None, usage: Mapping[str, Any]) -> Reply:
    content: list[dict[str, Any]] = []
    unreadable: dict[str, str] = {}
    for block in blocks:
        match block["type"]:
            case "text" if _text(block["text"]).strip():  # the API refuses a history with a blank text
                content.append({"type": "text", "text": block["text"]})
            case "thinking":
                signature = _text(block.get("signature", ""))
                content.append({"type": "thinking", "thinking": _text(block["thinking"]), "signature": signature})
            case "redacted_thinking":
                content.append({"type": "redacted_thinking", "data": _text(block["data"])})
            case "tool_use":
                if not _text(block["id"]) or not _text(block["name"]):
                    raise ValueError("a tool call without an id or a name")
                arguments = _arguments(block.get("input", {}))
                if arguments is None:
                    unreadable[block["id"]] = str(block["input"])
                content.append({"type": "tool_use", "id": block["id"], "name": block["name"], "input": arguments or {}})
            case _:  # a blank text, or a block of a tool that the provider ran itself
                pass
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts = Usage(*(_count(usage.get(name)) for name in names))
    return Reply(tuple(content), stop_reason and _text(stop_reason), counts, MappingProxyType(unreadable))


def _arguments(given: object) -> dict[str, Any] | None:
    """A tool call's arguments, from JSON text or as they are; None for what is no JSON object."""
    try:
        known = _loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return None
    return known if isinstance(known, dict) else None


def _update(usage: dict[str, Any], update: Mapping[str, Any] | None) -> None:
    """Take over the counts of a later event: in a stream they are cumulative, the last one is right."""
    usage.update({name: value for name, value in (update or {}).items() if value is not None})


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where text is expected")
    return value


def _object(data: bytes) -> dict[str, Any]:
    value = _loads(data.decode("utf-8"))
    if not isinstance(value, dict):
        raise TypeError(f"{type(value).__name__} where an object is expected")
    return value


def _loads(text: str) -> Any:
    """Strict JSON: NaN and infinities, which Python would take, could not be sent back."""
    return json.loads(text, parse_constant=_finite, parse_float=_finite)


def _finite(literal: str) -> float:
    value = float(literal)
    if not math.isfinite(value):
        raise ValueError(f"{literal} is no JSON number")
    return value

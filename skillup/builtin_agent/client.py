"""HTTP to a model: one request out, one whole reply in, every fault named. What API it is, is the `ModelApi`'s to say.

A reply is returned only when all of it has arrived. A stream that breaks half-way leaves nothing behind, so a
retry can never show the same text twice. Connection, stream and faults are one module because a fault can only be
named where all three are known: the same closed connection is a drop, a refusal or a short answer.
"""

import http.client
import json
import math
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol

from skillup.builtin_agent.faults import MALFORMED, MESSAGE_CHARACTERS, NETWORK, ModelError, class_of_status
from skillup.builtin_agent.replies import Reply, object_of

# A reply of some thousand tokens is some hundred kilobytes of events; a stream that never ends is cut here.
REPLY_BYTES = 16 * 1024 * 1024
ERROR_BODY_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """What the model is asked.

    Attributes:
        messages: the history: roles alternate, content is a list of blocks (see `sessions.py`).
        tools: each with name, description and input_schema.
    """

    model: str
    system: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]


class ModelApi(Protocol):
    """One API that models are asked by. All members are constants or pure functions."""

    @property
    def title(self) -> str:
        """What messages call it."""

    @property
    def key_variable(self) -> str:
        """The variable that holds the key."""

    @property
    def address_variable(self) -> str:
        """The variable that holds the address."""

    @property
    def path(self) -> str:
        """What is appended to the address."""

    def headers(self, key: str) -> Mapping[str, str]:
        """The headers that only this API has."""

    def body(self, request: Request) -> Mapping[str, Any]:
        """The request's JSON; it asks for a stream."""

    def streamed(self, events: Iterator[bytes]) -> Reply:
        """The reply of the data of server-sent events.

        Raises:
            ModelError: the stream breaks off, or tells of a fault.
            ValueError, LookupError, TypeError, AttributeError, RecursionError: it is not of this API.
        """

    def whole(self, message: dict[str, Any]) -> Reply:
        """The reply of one JSON object.

        Raises:
            ModelError: it tells of a fault.
            ValueError, LookupError, TypeError, AttributeError, RecursionError: it is not of this API.
        """


@dataclass(frozen=True, slots=True)
class ModelClient:
    """Sends requests to one address; one connection a request, so none is ever stale.

    Attributes:
        base_url: http or https; a path prefix is kept.
        idle_seconds: the longest silence, while connecting or between two bytes.
        agent: the `user-agent` header.
    """

    api: ModelApi
    base_url: str
    api_key: str = field(repr=False)
    idle_seconds: float
    agent: str

    def send(self, request: Request) -> Reply:
        """Send one request and read the whole reply.

        Raises:
            ModelError: whatever went wrong.
        """
        # ASCII escapes carry every string, also a lone surrogate that UTF-8 has no bytes for.
        body = json.dumps(self.api.body(request), allow_nan=False, separators=(",", ":")).encode("ascii")
        base = urllib.parse.urlsplit(self.base_url)
        secure = base.scheme == "https"
        connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        # The path is left out of messages: it may hold a secret.
        where = f"{base.hostname}:{base.port or (443 if secure else 80)}"
        try:
            with closing(connect(base.hostname or "", base.port, timeout=self.idle_seconds)) as connection:
                return self._read(self._exchange(connection, f"{base.path.rstrip('/')}{self.api.path}", body))
        except TimeoutError as error:
            message = f"the model at {where} was silent for {self.idle_seconds:g} s"
            raise ModelError(NETWORK, message) from error
        except (
            OSError,
            UnicodeError,
            http.client.IncompleteRead,
        ) as error:  # Unicode: a host that DNS cannot name
            message = f"the connection to the model at {where} failed: {str(error) or type(error).__name__}"
            raise ModelError(NETWORK, message) from error
        except http.client.HTTPException as error:
            message = f"the answer of {where} is not HTTP: {type(error).__name__}"
            raise ModelError(MALFORMED, message) from error

    def _exchange(self, connection: http.client.HTTPConnection, path: str, body: bytes) -> http.client.HTTPResponse:
        headers = {
            "accept": "text/event-stream",
            "connection": "close",
            "content-type": "application/json",
            "user-agent": self.agent,
            **self.api.headers(self.api_key),
        }
        try:
            connection.request("POST", path, body, headers)
        except (BrokenPipeError, ConnectionResetError):
            # A server may refuse a large request (413, 401) and close before it has read it all. Its answer
            # may be here all the same; if not, reading it raises the network fault that this is.
            return connection.getresponse()
        return connection.getresponse()

    def _read(self, response: http.client.HTTPResponse) -> Reply:
        if response.status != 200:
            raise _refusal(response)
        content_type = response.headers.get_content_type() if "content-type" in response.headers else None
        try:
            if content_type == "application/json":
                return self.api.whole(_document(response))
            if content_type in {"text/event-stream", None}:
                return self.api.streamed(_events(response))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            # Whatever is not the protocol's shape ends here: JSON, UTF-8, a missing member, a list for an object.
            message = f"the model's answer (HTTP 200) cannot be understood: {type(error).__name__}: {error}"
            raise ModelError(MALFORMED, message[:MESSAGE_CHARACTERS]) from error
        raise ModelError(MALFORMED, f"the model's answer (HTTP 200) is {content_type}, no event stream and no JSON")


def _refusal(response: http.client.HTTPResponse) -> ModelError:
    status = response.status
    text = response.read(ERROR_BODY_BYTES).decode("utf-8", "replace")
    error: Mapping[str, Any] | None = None
    try:
        error = dict(json.loads(text)["error"])
        text = str(error["message"])
    except (ValueError, LookupError, TypeError, RecursionError):
        text = text.strip() or response.reason
    return ModelError(
        class_of_status(status, error),
        f"the model API answered {status}: {text[:MESSAGE_CHARACTERS]}",
        status=status,
        retry_after=_seconds(response.headers.get("retry-after")),
    )


def _seconds(value: str | None) -> float | None:
    try:
        seconds = float(value or "")
    except ValueError:  # absent, or an HTTP date, which these APIs do not send
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _events(response: http.client.HTTPResponse) -> Iterator[bytes]:
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
            yield b"\n".join(data)
            data.clear()
    if size and not count:
        raise ValueError("it holds no event")


def _document(response: http.client.HTTPResponse) -> dict[str, Any]:
    body = response.read(REPLY_BYTES)
    if response.length and len(body) < REPLY_BYTES:
        raise http.client.IncompleteRead(body, response.length)
    return object_of(body)

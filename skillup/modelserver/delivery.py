"""Answers onto one HTTP connection: good replies, slow ones, and each planned fault as a client meets it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from itertools import islice, repeat
from typing import Final

from skillup.modelserver.protocol import WireProtocol
from skillup.modelserver.source import Answer, Conversation, Fault, JsonObject

_CHUNKED: Final[Mapping[str, str]] = {"Transfer-Encoding": "chunked"}
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream; charset=utf-8"

_FIRST_EVENTS: Final = 2
"""How much of a stream comes before it breaks: the client believes in it, and has nothing of the answer."""

_TRICKLE_SECONDS: Final = 0.2
"""Time between the pieces of an endless reply: well below every client's idle timeout."""


class Delivery:
    """Writes one answer to the connection of `handler`.

    `sent` is called for every part that leaves. Every wait ends at once when `closed` is set; the connection is then
    cut, as the answer is not complete.
    """

    def __init__(self, handler: BaseHTTPRequestHandler, closed: threading.Event, sent: Callable[[], None]) -> None:
        self._handler = handler
        self._closed = closed
        self._sent = sent
        # HTTP/1.0 has no chunks: there the end of the connection ends the body.
        self._chunked = handler.request_version != "HTTP/1.0"

    def answer(self, protocol: WireProtocol, conversation: Conversation, answer: Answer) -> None:
        """Deliver a reply or what goes wrong instead of it.

        Raises:
            OSError: the client has gone.
        """
        if answer.fault is not None:
            self._fail(protocol, conversation, answer, answer.fault)
        elif conversation.stream:
            self._stream(protocol.reply_events(conversation, answer.reply), pause=answer.pause)
        elif not self._closed.wait(answer.pause):
            self.json(200, protocol.reply_body(conversation, answer.reply))
        else:
            self._cut()

    def json(self, status: int, body: JsonObject, headers: Mapping[str, str] | None = None) -> None:
        """One JSON body."""
        content = json.dumps(body).encode()
        self._head(status, _JSON, {"Content-Length": str(len(content))} | dict(headers or {}))
        self._handler.wfile.write(content)
        self._handler.wfile.flush()

    def _fail(self, protocol: WireProtocol, conversation: Conversation, answer: Answer, fault: Fault) -> None:
        if fault.kind == "status":
            wait = {} if fault.retry_after is None else {"Retry-After": f"{fault.retry_after:g}"}
            self.json(fault.status, protocol.error_body(fault.status, fault.message), wait)
        elif conversation.stream:
            self._fail_stream(protocol, conversation, answer, fault)
        else:
            self._fail_body(json.dumps(protocol.reply_body(conversation, answer.reply)).encode(), fault)

    def _fail_stream(self, protocol: WireProtocol, conversation: Conversation, answer: Answer, fault: Fault) -> None:
        events = protocol.reply_events(conversation, answer.reply)
        if fault.kind == "endless":
            self._stream(protocol.endless_events(conversation), pause=_TRICKLE_SECONDS)
        elif fault.kind == "malformed":
            self._stream(_broken(events))
        else:
            self._stream(islice(events, _FIRST_EVENTS), ends=False)
            if fault.kind == "stall":
                self._closed.wait()
            self._cut()

    def _fail_body(self, content: bytes, fault: Fault) -> None:
        if fault.kind == "malformed":
            content = content[: len(content) // 2]
        self._head(200, _JSON, {"Content-Length": str(len(content))} if fault.kind != "endless" else _CHUNKED)
        if fault.kind == "malformed":
            self._handler.wfile.write(content)
            self._handler.wfile.flush()
        elif fault.kind == "endless":
            self._chunks(repeat(b" "), pause=_TRICKLE_SECONDS)
        else:
            self._handler.wfile.flush()
            if fault.kind == "stall":
                self._closed.wait()
            self._cut()

    def _stream(self, events: Iterable[bytes], *, pause: float = 0.0, ends: bool = True) -> None:
        self._head(200, _EVENTS, {"Cache-Control": "no-cache", **_CHUNKED})
        self._chunks(events, pause=pause, ends=ends)

    def _chunks(self, pieces: Iterable[bytes], *, pause: float, ends: bool = True) -> None:
        """Chunks with `pause` seconds between them; without a pause they leave in as few packets as fit."""
        out = self._handler.wfile
        first = True
        for piece in pieces:
            self._sent()
            if pause and not first:
                out.flush()
                if self._closed.wait(pause):
                    self._cut()
                    return
            out.write(b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece)
            first = False
        if ends and self._chunked:
            out.write(b"0\r\n\r\n")
        out.flush()

    def _head(self, status: int, content_type: str, headers: Mapping[str, str]) -> None:
        handler = self._handler
        handler.send_response(status)
        handler.send_header("Content-Type", content_type)
        for name, value in headers.items():
            if name != "Transfer-Encoding" or self._chunked:
                handler.send_header(name, value)
        handler.end_headers()

    def _cut(self) -> None:
        """End the connection after this request, whatever was promised to the client."""
        self._handler.close_connection = True


def _broken(events: Iterator[bytes]) -> Iterator[bytes]:
    """A stream that ends in order, but whose third event is cut in its half."""
    yield from islice(events, _FIRST_EVENTS)
    third = next(events)
    yield third[: len(third) // 2] + b"\n\n"
    yield from events

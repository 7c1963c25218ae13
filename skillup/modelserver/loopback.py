"""HTTP on 127.0.0.1: each request to its route, protocol and source, and the answer back.

One thread a connection. Nothing is written to stderr: a client that goes away is normal, and a fault of ours
becomes a 500 that names itself and stands in the route's requests.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Final

from skillup.modelserver.anthropic import AnthropicMessages
from skillup.modelserver.delivery import Delivery
from skillup.modelserver.openai_chat import OpenAIChat
from skillup.modelserver.openai_responses import OpenAIResponses
from skillup.modelserver.protocol import BadRequestError, WireProtocol
from skillup.modelserver.route import RecordedRequest, Route
from skillup.modelserver.source import Answer, JsonObject, Source
from skillup.modelserver.tool_service import ToolService, exchange

PROTOCOLS: Final[tuple[WireProtocol, ...]] = (AnthropicMessages(), OpenAIResponses(), OpenAIChat())
"""Every protocol that the server speaks; a request goes to the first that serves its path."""

MAX_BODY_BYTES: Final = 64 * 1024 * 1024
"""Far above what a model's context holds; a body beyond it is a mistake, and would be kept in memory."""

_LISTEN_BACKLOG: Final = 128
"""Many CLIs start at the same moment; the library's 5 would refuse some of them."""

_END_SECONDS: Final = 2.0
"""How long closing waits for the threads of broken connections; as daemons they cannot hold the process."""

_LINGER_SECONDS: Final = 0.5
"""How long a refused body is thrown away, so that its sender reads our answer before the connection ends."""

_LENGTH_DIGITS: Final = 18
"""More digits than any length has; Python refuses to read numbers of thousands."""

_CHUNK_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,16}\Z")

_NO_ROUTE: Final = "no such route: the address is not one of this run's, or its trial has ended"

FindRoute = Callable[[str, str], tuple[Route | None, str]]
"""Method and path of a request to its open route, if any, and the path below the prefix, without query."""


class LoopbackHttp(ThreadingHTTPServer):
    """Listens on a free port of 127.0.0.1 and keeps account of its open connections."""

    daemon_threads = True
    request_queue_size = _LISTEN_BACKLOG

    def __init__(self, find_route: FindRoute) -> None:
        self.find_route = find_route
        self._connections: set[socket.socket] = set()
        self._changed = threading.Condition()
        super().__init__(("127.0.0.1", 0), _Handler)

    def server_bind(self) -> None:
        """Bind without the library's DNS look-up of its own name: nothing of ours may leave the machine."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Note the connection, in the accepting thread, so that none is missed at the end."""
        with self._changed:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """End one connection."""
        try:
            super().shutdown_request(request)
        finally:
            with self._changed:
                self._connections.discard(request)
                self._changed.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: only broken connections come here, and clients are ended all the time."""

    def end_connections(self) -> None:
        """Break every open connection and wait until their threads have seen it."""
        with self._changed:
            for connection in self._connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # the client was quicker
            self._changed.wait_for(lambda: not self._connections, _END_SECONDS)


class _BodyError(Exception):
    """The body of a request is not read: the status to answer with, and why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: LoopbackHttp
    protocol_version = "HTTP/1.1"
    server_version = "skillup"
    sys_version = ""
    disable_nagle_algorithm = True
    wbufsize = -1  # buffered: head and body leave in one packet

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Say nothing."""

    def do_HEAD(self) -> None:
        """Say that the address exists: some CLIs ask before they start."""
        route, path = self.server.find_route(self.command, self.path)
        if route is not None:
            route.record(RecordedRequest.now("HEAD", path, "side request"))
        self.send_response(404 if route is None else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        """No protocol has a GET that we serve."""
        self._serve()

    def do_POST(self) -> None:
        """A model request, or a side request."""
        self._serve()

    def _serve(self) -> None:
        route, path = self.server.find_route(self.command, self.path)
        protocol = next((protocol for protocol in PROTOCOLS if protocol.serves(path)), PROTOCOLS[0])
        delivery = Delivery(self, route.closed, route.sent) if route else Delivery(self, threading.Event(), _nobody)
        try:
            content = self._read_body()
        except _BodyError as error:
            self._refuse(route, path, delivery, protocol, error)
        else:
            if route is None:
                delivery.json(404, protocol.error_body(404, _NO_ROUTE))
            elif self.command == "POST" and route.tools is not None:
                self._use_tool(route.tools, path, content, delivery)
            elif self.command != "POST" or route.source is None or not protocol.serves(path):
                route.record(RecordedRequest.now(self.command, path, "no such path"))
                delivery.json(404, protocol.error_body(404, f"no such path: {self.command} {path}"))
            else:
                self._exchange(route, route.source, path, content, delivery=delivery, protocol=protocol)

    def _use_tool(self, tools: ToolService, path: str, content: bytes, delivery: Delivery) -> None:
        try:
            answer = exchange(tools, path, _object(content))
        except BadRequestError as error:
            delivery.json(400, {"error": str(error)})
        except Exception as error:  # noqa: BLE001 - a bug of ours must not look like a tool's error
            delivery.json(500, {"error": f"internal error of the tool service: {error!r}"})
        else:
            delivery.json(200, answer)

    def _exchange(
        self, route: Route, source: Source, path: str, content: bytes, *, delivery: Delivery, protocol: WireProtocol
    ) -> None:
        body: JsonObject | None = None
        try:
            body = _object(content)
            side = protocol.side_reply(path, body)
            conversation = None if side is not None else protocol.conversation(path, body)
        except BadRequestError as error:
            route.record(RecordedRequest.now("POST", path, f"bad request: {error}", body=body))
            delivery.json(400, protocol.error_body(400, str(error)))
            return
        if conversation is None:
            route.record(RecordedRequest.now("POST", path, "side request", body=body))
            delivery.json(200, side or {})
            return
        with route.answering():
            try:
                answer = source.answer(conversation, route)
            except Exception as error:  # noqa: BLE001 - a bug of ours must not look like a silent provider
                reason = f"internal error of the model server: {error!r}"
                route.record(RecordedRequest.now("POST", path, reason, body=body))
                delivery.json(500, protocol.error_body(500, reason))
                return
            record = RecordedRequest.now("POST", path, _outcome(answer), body=body, answer=answer)
            route.record(record, unmatched=answer.unmatched)
            delivery.answer(protocol, conversation, answer)

    def _refuse(
        self, route: Route | None, path: str, delivery: Delivery, protocol: WireProtocol, error: _BodyError
    ) -> None:
        if route is not None:
            route.record(RecordedRequest.now(self.command, path, f"refused: {error}"))
        delivery.json(error.status, protocol.error_body(error.status, str(error)), {"Connection": "close"})
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(_LINGER_SECONDS)
        try:
            while self.rfile.read1(1 << 16):
                pass
        except TimeoutError:
            return

    def _read_body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._read_chunks()
        length = self.headers.get("Content-Length", "0")
        if not (length.isascii() and length.isdigit() and len(length) <= _LENGTH_DIGITS):
            raise _BodyError(400, "the Content-Length is not a number")
        return self._read(int(length), 0)

    def _read_chunks(self) -> bytes:
        content = bytearray()
        while True:
            size = self.rfile.readline(1 << 10).partition(b";")[0].strip()
            if not _CHUNK_SIZE.match(size):
                raise _BodyError(400, "a chunk of the body has no size")
            length = int(size, 16)
            if length == 0:
                while self.rfile.readline(1 << 16).strip():
                    pass  # trailers say nothing to us
                return bytes(content)
            content += self._read(length, len(content))
            self.rfile.readline(1 << 10)

    def _read(self, length: int, before: int) -> bytes:
        if before + length > MAX_BODY_BYTES:
            raise _BodyError(413, f"the body is larger than {MAX_BODY_BYTES // 1024**2} MB")
        content = self.rfile.read(length)
        if len(content) < length:
            raise ConnectionResetError("the client went away in the middle of its request")
        return content


def _nobody() -> None:
    """Told of what is sent where no route is."""


def _object(content: bytes) -> JsonObject:
    """The JSON object of a body.

    Raises:
        BadRequestError: it is not JSON, too deep, or no object.
    """
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"the body is not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise BadRequestError("the body is not a JSON object")
    return body


def _outcome(answer: Answer) -> str:
    if answer.fault is not None:
        return f"fault: {answer.fault.kind} {answer.fault.status or ''}".rstrip()
    if answer.unmatched is not None:
        return f"unmatched: {answer.unmatched}"
    return f"entry {answer.entry} step {answer.step}"

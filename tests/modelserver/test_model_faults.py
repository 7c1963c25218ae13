"""Planned faults as an HTTP client meets them, streamed and not."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse, IncompleteRead
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from skillup.modelserver.route import Route
from skillup.modelserver.scripted import ScriptedSource
from skillup.modelserver.server import ModelServer
from skillup.spec.script import Script, ScriptEntry

SCRIPT: TypeAdapter[tuple[ScriptEntry, ...]] = TypeAdapter(Script)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def connect(server: ModelServer) -> Iterator[Connect]:
    """Connections to routes with planned faults, closed at the end."""
    clients: list[Client] = []

    def open_client(faults: str) -> Client:
        clients.append(Client(server, faults))
        return clients[-1]

    yield open_client
    for client in clients:
        client.close()


class Client:
    """A model client of one route, whose connection stays open between requests."""

    def __init__(self, server: ModelServer, faults: str) -> None:
        entries = SCRIPT.validate_python(yaml.safe_load(f"[{{say: good, faults: [{faults}]}}]"))
        self.route: Route = server.open_route(ScriptedSource(entries), workspace=Path("/ws"))
        self.connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
        self.response: HTTPResponse | None = None

    def send(self, *, stream: bool) -> HTTPResponse:
        body: dict[str, Any] = {
            "model": "m",
            "stream": stream,
            "messages": [{"role": "user", "content": "hi"}],
        }
        self.connection.request("POST", f"/{self.route.prefix}/v1/messages", json.dumps(body))
        response = self.connection.getresponse()
        self.response = response
        return response

    def close(self) -> None:
        if self.response is not None:
            self.response.close()
        self.connection.close()


Connect = Callable[[str], Client]


def is_good(content: bytes) -> bool:
    return b'"text": "good"' in content


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "authentication_error"), (429, "rate_limit_error"), (500, "api_error"), (529, "overloaded_error")],
)
def test_a_status_comes_as_the_providers_error(connect: Connect, status: int, kind: str, *, stream: bool) -> None:
    client = connect(f"{{status: {status}, times: 2, retry_after: 1.5, message: why}}")
    for _ in range(2):
        response = client.send(stream=stream)
        assert (response.status, response.getheader("Retry-After")) == (status, "1.5")
        assert json.loads(response.read()) == {"type": "error", "error": {"type": kind, "message": "why"}}
    assert is_good(client.send(stream=stream).read())


def test_a_dropped_stream_ends_after_its_first_events_and_the_fallback_works(connect: Connect) -> None:
    client = connect("{drop: true, times: 1}")
    response = client.send(stream=True)
    assert response.status == 200
    with pytest.raises(IncompleteRead) as broken:
        response.read()
    assert b"message_start" in broken.value.partial
    assert not is_good(broken.value.partial)
    client.connection.close()
    assert is_good(client.send(stream=False).read())
    assert [request.outcome for request in client.route.requests] == ["fault: drop", "entry 1 step 1"]


def test_a_dropped_body_never_comes(connect: Connect) -> None:
    response = connect("{drop: true}").send(stream=False)
    assert response.status == 200
    with pytest.raises(IncompleteRead) as broken:
        response.read()
    assert broken.value.partial == b""


def test_a_malformed_stream_is_whole_http_around_broken_json(connect: Connect) -> None:
    client = connect("{malformed: true, times: 1}")
    data = [line for line in client.send(stream=True).read().decode().splitlines() if line.startswith("data: ")]
    bad = 0
    for line in data:
        try:
            json.loads(line.removeprefix("data: "))
        except ValueError:
            bad += 1
    assert bad == 1
    assert is_good(client.send(stream=True).read())


def test_a_malformed_body_is_broken_json(connect: Connect) -> None:
    client = connect("{malformed: true}")
    content = client.send(stream=False).read()
    with pytest.raises(json.JSONDecodeError):
        json.loads(content)


def test_a_slow_reply_is_good_and_comes_piece_by_piece(connect: Connect) -> None:
    client = connect("{slow: 0.05}")
    response = client.send(stream=True)
    times = []
    lines = []
    while line := response.readline():
        if line.startswith(b"event: "):
            times.append(time.monotonic())
        lines.append(line)
    assert is_good(b"".join(lines))
    assert len(times) == 7
    assert times[-1] - times[0] >= 6 * 0.05 * 0.9
    begun = time.monotonic()
    assert is_good(client.send(stream=False).read())
    assert time.monotonic() - begun >= 0.05


@pytest.mark.parametrize("stream", [True, False])
def test_an_endless_reply_trickles_until_its_route_is_closed(
    server: ModelServer, connect: Connect, *, stream: bool
) -> None:
    client = connect("{endless: true}")
    response = client.send(stream=stream)
    received = [response.read1(100) for _ in range(4)]
    assert all(received)
    begun = time.monotonic()
    server.close_route(client.route)
    with pytest.raises(IncompleteRead):
        response.read()
    assert time.monotonic() - begun < 0.5


@pytest.mark.parametrize("stream", [True, False])
def test_a_stalled_reply_is_silent_until_its_route_is_closed(
    server: ModelServer, connect: Connect, *, stream: bool
) -> None:
    client = connect("{stall: true}")
    response = client.send(stream=stream)
    if stream:
        lines = [response.readline() for _ in range(6)]
        assert b"event: message_start\n" in lines
    client.connection.sock.settimeout(0.3)
    with pytest.raises(TimeoutError):
        response.read(1)
    begun = time.monotonic()
    server.close_route(client.route)
    client.connection.sock.settimeout(5)
    assert client.connection.sock.recv(1 << 16) == b""
    assert time.monotonic() - begun < 0.5


def test_closing_the_server_ends_replies_that_never_end() -> None:
    server = ModelServer().start()
    clients = [Client(server, fault) for fault in ("{endless: true}", "{stall: true}", "{slow: 60}")]
    for client in clients:
        client.send(stream=True)
    begun = time.monotonic()
    server.close()
    assert time.monotonic() - begun < 1
    for client in clients:
        client.close()


def test_a_client_of_http_1_0_gets_a_stream_without_chunks(server: ModelServer, connect: Connect) -> None:
    path = f"/{connect('{slow: 0.001}').route.prefix}/v1/messages"
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]})
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(f"POST {path} HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        head, _, stream = client.makefile("rb").read().partition(b"\r\n\r\n")
    assert b"Transfer-Encoding" not in head
    assert stream.startswith(b"event: message_start\n")
    assert stream.endswith(b'{"type": "message_stop"}\n\n')

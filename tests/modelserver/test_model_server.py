"""The server as an HTTP client meets it: routes, requests kept, odd bodies, and an end that never hangs."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from skillup.modelserver.route import Route
from skillup.modelserver.scripted import ScriptedSource
from skillup.modelserver.server import ModelServer
from skillup.modelserver.source import Answer, Conversation, RouteView
from skillup.spec.script import Script, ScriptEntry

SCRIPT: TypeAdapter[tuple[ScriptEntry, ...]] = TypeAdapter(Script)
WORKSPACE = Path("/ws")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


def open_route(server: ModelServer, script: str = "[{say: hello}]") -> Route:
    return server.open_route(ScriptedSource(SCRIPT.validate_python(yaml.safe_load(script))), workspace=WORKSPACE)


def body(text: str = "hi", **extra: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]} | extra


def connect(server: ModelServer) -> HTTPConnection:
    return HTTPConnection("127.0.0.1", server.port, timeout=10)


def post(
    client: HTTPConnection, route: Route, content: Any, path: str = "/v1/messages?beta=true"
) -> tuple[int, dict[str, Any]]:
    """Status and JSON of one request on a connection that stays open."""
    client.request("POST", f"/{route.prefix}{path}", content if isinstance(content, bytes) else json.dumps(content))
    response = client.getresponse()
    return response.status, json.loads(response.read())


def text_of(message: dict[str, Any]) -> str:
    return "".join(block["text"] for block in message["content"])


def test_it_listens_on_the_loopback_address_only(server: ModelServer) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.port), timeout=1)


def test_a_conversation_runs_over_one_connection(server: ModelServer) -> None:
    route = open_route(server, "[{user: one, say: first}, {user: two, say: second}]")
    client = connect(server)
    assert text_of(post(client, route, body("one"))[1]) == "first"
    client.request("POST", f"/{route.prefix}/v1/messages", json.dumps(body("two", stream=True)))
    local = client.sock.getsockname()
    response = client.getresponse()
    assert response.getheader("Content-Type") == "text/event-stream; charset=utf-8"
    stream = response.read()
    assert b'"text": "second"' in stream
    assert stream.endswith(b'event: message_stop\ndata: {"type": "message_stop"}\n\n')
    post(client, route, body("one"))
    assert client.sock.getsockname() == local
    client.close()


def test_every_request_is_kept_with_what_answered_it(server: ModelServer) -> None:
    route = open_route(server, "[{user: one, faults: [{status: 429, times: 1}], say: first}]")
    client = connect(server)
    before = time.time()
    client.request("HEAD", f"/{route.prefix}")
    assert client.getresponse().read() == b""
    assert post(client, route, body("one"))[0] == 429
    post(client, route, body("one"))
    post(client, route, body("two"))
    post(client, route, body("two"), "/v1/messages/count_tokens")
    client.close()
    assert [(request.method, request.path, request.outcome) for request in route.requests] == [
        ("HEAD", "/", "side request"),
        ("POST", "/v1/messages", "fault: status 429"),
        ("POST", "/v1/messages", "entry 1 step 1"),
        ("POST", "/v1/messages", "unmatched: no entry for the user text 'two'"),
        ("POST", "/v1/messages/count_tokens", "side request"),
    ]
    good = route.requests[2]
    assert good.body == body("one")
    assert (good.entry, good.step, good.fault) == (1, 1, None)
    assert before <= good.time <= time.time()
    assert route.unmatched == ("no entry for the user text 'two'",)


def test_routes_do_not_see_each_other(server: ModelServer) -> None:
    first, second = open_route(server, "[{say: one}]"), open_route(server, "[{say: two}]")
    assert first.prefix != second.prefix
    assert len(first.prefix) >= 20
    assert first.base_url == f"http://127.0.0.1:{server.port}/{first.prefix}"
    client = connect(server)
    assert text_of(post(client, second, body())[1]) == "two"
    client.close()
    assert first.requests == ()


def test_a_stray_is_refused_and_kept_apart(server: ModelServer) -> None:
    route = open_route(server)
    client = connect(server)
    for prefix in ("guess", route.prefix[:-1]):
        client.request("POST", f"/{prefix}/v1/messages?x=1", json.dumps(body()))
        response = client.getresponse()
        assert (response.status, json.loads(response.read())["error"]["type"]) == (404, "not_found_error")
    client.close()
    assert [stray.path for stray in server.strays] == [
        "/guess/v1/messages",
        f"/{route.prefix[:-1]}/v1/messages",
    ]
    assert {stray.body for stray in server.strays} == {None}
    assert route.requests == ()


def test_a_closed_route_answers_nothing_and_keeps_its_requests(server: ModelServer) -> None:
    route = open_route(server)
    client = connect(server)
    post(client, route, body())
    server.close_route(route)
    assert post(client, route, body())[0] == 404
    client.close()
    assert len(route.requests) == 1
    assert len(server.strays) == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"messages": 3}', b"\xff\xfe", b"[" * 200_000],
    ids=lambda content: repr(content[:9]),
)
def test_a_body_that_makes_no_sense_is_a_bad_request(server: ModelServer, content: bytes) -> None:
    route = open_route(server)
    client = connect(server)
    status, answer = post(client, route, content)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert route.requests[0].outcome.startswith("bad request: ")
    assert post(client, route, body())[0] == 200, "the connection goes on"
    client.close()


def test_a_body_in_chunks_is_read(server: ModelServer) -> None:
    route = open_route(server, "[{say: '{{user}}'}]")
    client = connect(server)
    pieces = iter(json.dumps(body("in pieces")).encode().partition(b"user"))
    client.request(
        "POST",
        f"/{route.prefix}/v1/messages",
        pieces,
        encode_chunked=True,
        headers={"Transfer-Encoding": "chunked"},
    )
    assert text_of(json.loads(client.getresponse().read())) == "in pieces"
    assert post(client, route, body())[0] == 200
    client.close()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Length": str(64 * 1024**2 + 1)}, 413),
        ({"Content-Length": "9" * 5_000}, 400),
        ({"Content-Length": "-1"}, 400),
    ],
)
def test_a_body_of_an_impossible_size_is_refused_unread(
    server: ModelServer, headers: dict[str, str], status: int
) -> None:
    route = open_route(server)
    client = connect(server)
    client.putrequest("POST", f"/{route.prefix}/v1/messages")
    for name, value in headers.items():
        client.putheader(name, value)
    client.endheaders()
    response = client.getresponse()
    assert (response.status, response.getheader("Connection")) == (status, "close")
    response.read()
    client.close()
    assert route.requests[0].outcome.startswith("refused: ")


def test_a_chunked_body_is_bounded_too(server: ModelServer) -> None:
    route = open_route(server)
    client = connect(server)
    client.putrequest("POST", f"/{route.prefix}/v1/messages")
    client.putheader("Transfer-Encoding", "chunked")
    client.endheaders()
    client.send(b"5\r\nhello\r\n4000000\r\n")
    assert client.getresponse().status == 413
    client.close()


def test_other_paths_and_methods_are_not_found(server: ModelServer) -> None:
    route = open_route(server)
    client = connect(server)
    assert post(client, route, body(), "/v1/unknown")[0] == 404
    client.request("GET", f"/{route.prefix}/v1/messages")
    response = client.getresponse()
    assert (response.status, response.read()[:16]) == (404, b'{"type": "error"')
    client.close()
    assert [request.outcome for request in route.requests] == ["no such path", "no such path"]
    assert route.unmatched == ()


class Broken:
    """A source with a bug."""

    def answer(self, conversation: Conversation, route: RouteView) -> Answer:
        raise ZeroDivisionError(f"{len(conversation.messages)} messages in {route.workspace}")


def test_a_bug_of_ours_names_itself(server: ModelServer, capfd: pytest.CaptureFixture[str]) -> None:
    route = server.open_route(Broken(), workspace=WORKSPACE)
    client = connect(server)
    status, answer = post(client, route, body())
    client.close()
    assert status == 500
    assert "internal error of the model server: ZeroDivisionError('1 messages in /ws')" in answer["error"]["message"]
    assert route.requests[0].outcome.startswith("internal error")
    assert capfd.readouterr().err == ""


def test_many_clients_at_once_each_get_their_own_answer(server: ModelServer) -> None:
    routes = [open_route(server, f"[{{say: 'route {number}'}}]") for number in range(16)]

    def talk(number: int) -> set[str]:
        client = connect(server)
        padding = "x" * 70_000
        said = {text_of(post(client, routes[number], body(f"{padding} {step}"))[1]) for step in range(5)}
        client.close()
        return said

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(talk, range(16))) == [{f"route {number}"} for number in range(16)]
    assert [len(route.requests) for route in routes] == [5] * 16


def test_a_client_that_goes_away_disturbs_nobody(server: ModelServer, capfd: pytest.CaptureFixture[str]) -> None:
    route = open_route(server, f"[{{say: '{'x' * 500_000}'}}]")
    content = json.dumps(body(stream=True)).encode()
    head = f"POST /{route.prefix}/v1/messages HTTP/1.1\r\nContent-Length: {len(content)}\r\n\r\n".encode()
    for sent in (head[:20], head, head + content[:10], head + content):
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # end with a reset
            client.sendall(sent)
    client_after = connect(server)
    assert post(client_after, route, body())[0] == 200
    client_after.close()
    assert capfd.readouterr().err == ""


def test_closing_does_not_wait_for_open_connections() -> None:
    before = threading.active_count()
    server = ModelServer().start()
    route = open_route(server)
    idle, half = connect(server), connect(server)
    post(idle, route, body())
    half.putrequest("POST", f"/{route.prefix}/v1/messages")
    half.putheader("Content-Length", "1000")
    half.endheaders(b"{")
    begun = time.monotonic()
    server.close()
    server.close()
    assert time.monotonic() - begun < 1
    assert idle.sock.recv(1) == b""
    idle.close()
    half.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(route.origin.rpartition(":")[2])))
    deadline = time.monotonic() + 2
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before
    assert len(route.requests) == 1


def test_a_server_that_does_not_run_says_so() -> None:
    with pytest.raises(RuntimeError, match="call start"):
        _ = ModelServer().port
    with ModelServer() as server, pytest.raises(RuntimeError, match="running already"):
        server.start()

"""The way to the model from outside: one address, whatever is asked for, and no connection that outlives it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skillup.environments.address import Address, at_port
from skillup.environments.gate import open_gate, readdressed
from tests.support import certificate

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfine"


class Server:
    """Answers each connection by a function, with TLS or without; `heads` are what it was sent first."""

    def __init__(self, answer: Callable[[socket.socket], None], tls: ssl.SSLContext | None = None) -> None:
        self.heads: list[bytes] = []
        self._answer, self._tls = answer, tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
                with self._tls.wrap_socket(connection, server_side=True) if self._tls else connection as plain:
                    self.heads.append(_whole(plain))
                    self._answer(plain)
            except ssl.SSLError:
                continue
            except OSError:
                return

    def close(self) -> None:
        self._listener.close()


def _whole(connection: socket.socket) -> bytes:
    """A request with its body, if it has one: what is not read when a connection is closed breaks it off."""
    read = connection.recv(65536)
    while not read.endswith(b"body" if read.startswith(b"POST") else b"\r\n\r\n"):
        read += connection.recv(65536)
    return read


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    made: list[Server] = []
    yield made
    for server in made:
        server.close()


def ask(path: Path, request: bytes = b"POST /v1 HTTP/1.1\r\nHost: 127.0.0.1:9\r\nX-Key: k\r\n\r\nbody") -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(str(path))
        client.sendall(request)
        parts = bytearray()
        while part := client.recv(65536):
            parts += part
        return bytes(parts)


@pytest.mark.parametrize(
    ("url", "address", "name"),
    [
        ("https://api.example.com/v1", Address("api.example.com", 443, tls=True), "api.example.com"),
        ("http://127.0.0.1:4711/secret", Address("127.0.0.1", 4711, tls=False), "127.0.0.1:4711"),
        ("http://[::1]:80", Address("::1", 80, tls=False), "[::1]"),
    ],
)
def test_the_server_of_a_url(url: str, address: Address, name: str) -> None:
    assert Address.of(url) == address
    assert address.name == name
    assert at_port(url, 5).startswith("http://127.0.0.1:5")
    assert at_port(url, 5).endswith(url.split("/", 3)[3] if url.count("/") > 2 else ":5")


@pytest.mark.parametrize("url", ["", "ftp://x", "https://", "nonsense"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ValueError, match=r"is no http\(s\) address"):
        Address.of(url)


def test_a_request_is_addressed_to_its_server_and_is_the_last_of_its_connection() -> None:
    head = b"GET /v1 HTTP/1.1\r\nhost: evil\r\nAccept: */*\r\nConnection: keep-alive, x\r\n\r\n"
    expected = b"GET /v1 HTTP/1.1\r\nHost: good\r\nConnection: close\r\nAccept: */*\r\n\r\n"
    assert readdressed(head, "good") == expected


@pytest.mark.parametrize(
    "request_",
    [
        b"GET http://evil/ HTTP/1.1\r\n\r\n",
        b"CONNECT evil:443 HTTP/1.1\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET /secret HTTP/1.1\nHost: evil\n\nGET / HTTP/1.1\r\nA: b\r\n\r\n",
        b"GET / HTTP/1.1\rHost: evil\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: b\r\n Host: evil\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: b\nHost: evil\r\n\r\n",
    ],
)
def test_what_could_name_another_server_goes_nowhere(servers: list[Server], tmp_path: Path, request_: bytes) -> None:
    """One server may be the front of many."""
    server = Server(lambda connection: connection.sendall(ANSWER))
    servers.append(server)
    with open_gate(tmp_path / "way", Address("127.0.0.1", server.port, tls=False), {}):
        assert ask(tmp_path / "way", request_).startswith(b"HTTP/1.1 400 Bad Request")
    assert server.heads == []


def test_requests_and_answers_go_through_whole(servers: list[Server], tmp_path: Path) -> None:
    body = b"x" * 3_000_000

    def answer(connection: socket.socket) -> None:
        connection.sendall(ANSWER.replace(b"4", str(len(body)).encode(), 1).replace(b"fine", body))

    server = Server(answer)
    servers.append(server)
    with open_gate(tmp_path / "way", Address("127.0.0.1", server.port, tls=False), {}):
        assert ask(tmp_path / "way").endswith(b"\r\n\r\n" + body)
    head = b"POST /v1 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\nX-Key: k\r\n\r\n" % server.port
    assert server.heads[0].startswith(head)


def test_tls_begins_at_the_gate_and_is_checked(servers: list[Server], tmp_path: Path) -> None:
    tls, cert = certificate(tmp_path)
    server = Server(lambda connection: connection.sendall(ANSWER), tls)
    servers.append(server)
    address = Address("localhost", server.port, tls=True)
    with open_gate(tmp_path / "way", address, {"NODE_EXTRA_CA_CERTS": str(cert)}):
        assert ask(tmp_path / "way") == ANSWER
    assert b"Host: localhost:" in server.heads[0]
    with open_gate(tmp_path / "other", address, {}):
        assert b"502 Bad Gateway" in (refused := ask(tmp_path / "other"))
    assert b"cannot be reached: [SSL: CERTIFICATE_VERIFY_FAILED]" in refused


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with open_gate(tmp_path / "way", Address("127.0.0.1", port, tls=False), {}):
        assert b"127.0.0.1:%d cannot be reached: [Errno 111]" % port in ask(tmp_path / "way")


def test_an_answer_that_never_ends_ends_with_the_gate(servers: list[Server], tmp_path: Path) -> None:
    ended = threading.Event()

    def answer(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nbegin")
        connection.settimeout(10)
        if connection.recv(10) == b"":
            ended.set()

    server = Server(answer)
    servers.append(server)
    with socket.socket(socket.AF_UNIX) as client:
        with open_gate(tmp_path / "way", Address("127.0.0.1", server.port, tls=False), {}):
            client.connect(str(tmp_path / "way"))
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert client.recv(100).endswith(b"begin")
        assert client.recv(100) == b""
    assert ended.wait(10)


def test_a_client_that_goes_away_is_told_to_the_server(servers: list[Server], tmp_path: Path) -> None:
    ended = threading.Event()

    def answer(connection: socket.socket) -> None:
        connection.settimeout(10)
        if connection.recv(10) == b"":
            ended.set()

    server = Server(answer)
    servers.append(server)
    with open_gate(tmp_path / "way", Address("127.0.0.1", server.port, tls=False), {}):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(tmp_path / "way"))
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            while not server.heads:
                pass
        assert ended.wait(10)


def test_a_path_that_is_too_long_is_an_error(tmp_path: Path) -> None:
    with (
        pytest.raises(OSError, match="too long"),
        open_gate(tmp_path / ("x" * 120), Address("127.0.0.1", 1, tls=False), {}),
    ):
        pass

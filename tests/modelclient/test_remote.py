"""Endpoints that speak HTTP and nothing else that anybody expects."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from skillup.errors import Cancelled, ModelCallError
from skillup.modelclient.client import ModelRef, Provider, Question
from skillup.modelclient.clients import ModelClients

QUESTION = Question("Judge.", "Is it so?", None, 20)


@contextmanager
def endpoint(content: bytes, *, status: int = 200, kind: str = "application/json") -> Iterator[str]:
    """An address that answers everything with the same bytes."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def error_of(provider: Provider, address: str) -> ModelCallError:
    with pytest.raises(ModelCallError) as caught:
        ModelClients(threading.Event()).of(ModelRef(provider, "judge-1", address, "key")).ask(QUESTION)
    return caught.value


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'"yes"',
        b"<html><body>Welcome to our proxy</body></html>",
        b'{"choices": []}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {"role": "assistant", "content": 7}}]}',
        b'{"content": 7}',
        b'{"error": {"message": "not today"}}',
        b"\xff\xfe\x00",
    ],
)
def test_nonsense_is_an_error_with_the_models_name(provider: Provider, content: bytes) -> None:
    with endpoint(content) as address:
        error = error_of(provider, address)
    assert error.kind == "output"
    assert error.message.startswith(f"{provider}/judge-1 sent what is no answer")


def test_a_page_of_a_proxy_is_an_error_with_its_status() -> None:
    with endpoint(b"<html>" + b"x" * 10_000, status=407, kind="text/html") as address:
        error = error_of("openai", address)
    assert error.kind == "request"
    assert "answered 407" in error.message
    assert len(error.message) < 700


def test_a_call_ends_when_the_user_stops() -> None:
    stopped = threading.Event()
    stopped.set()
    with endpoint(b"{}") as address, pytest.raises(Cancelled):
        ModelClients(stopped).of(ModelRef("openai", "judge-1", address, "key")).ask(QUESTION)


def test_one_client_serves_many_threads() -> None:
    said = b"""{"id": "1", "object": "chat.completion", "created": 1, "model": "judge-1", "choices": [{"index": 0,
        "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}}"""
    heard: list[str] = []
    with endpoint(said) as address:
        client = ModelClients(threading.Event()).of(ModelRef("openai", "judge-1", address, "key"))
        threads = [threading.Thread(target=lambda: heard.append(client.ask(QUESTION).text)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert heard == ["yes"] * 8

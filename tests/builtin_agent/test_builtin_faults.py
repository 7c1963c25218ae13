"""Faults of the provider: what is tried again, how often, and the kind that the end event gives it."""

import itertools
import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builtin_agent.model import (
    Agent,
    Answer,
    Model,
    Request,
    agent_with,
    refuse,
    results,
    say,
    send_bytes,
    use,
)

START = b'data: {"type":"message_start","message":{"usage":{"input_tokens":1}}}\n\n'
STOP = b'data: {"type":"message_stop"}\n\n'


def first(count: int, fault: Answer, then: Callable[[Request], Answer]) -> Callable[[Request], Answer]:
    """The fault for the first requests, and after them a model that works."""
    numbers = itertools.count()
    return lambda request: fault if next(numbers) < count else then(request)


def stream_error(kind: str) -> Answer:
    event = {"type": "error", "error": {"type": kind, "message": "so sorry"}}
    return send_bytes(START + f"event: error\ndata: {json.dumps(event)}\n\n".encode())


@pytest.mark.parametrize(
    ("status", "kind", "retry"),
    [
        (400, "request", None),
        (401, "auth", None),
        (402, "quota", None),
        (403, "auth", None),
        (404, "request", None),
        (413, "request", None),
        (422, "request", None),
        (429, "rate_limit", "rate_limit"),
        (500, "overloaded", "server_error"),
        (502, "overloaded", "server_error"),
        (503, "overloaded", "overloaded"),
        (504, "overloaded", "server_error"),
        (524, "overloaded", "server_error"),
        (529, "overloaded", "overloaded"),
        (301, "request", None),
        (202, "output", "malformed"),
    ],
)
def test_a_status_has_one_kind_and_is_tried_again_only_where_that_can_help(
    tmp_path: Path, status: int, kind: str, retry: str | None
) -> None:
    with agent_with(tmp_path, lambda _: refuse(status, "because of this")) as (agent, model):
        finished = agent.turn("hi", "--max-retries", "1")
    assert finished.code == 1
    assert (finished.end["reason"], finished.end["text"]) == ("error", None)
    error = finished.end["error"]
    assert (error["kind"], error["status"]) == (kind, status)
    assert "because of this" in error["message"]
    assert error["message"] in finished.stderr
    assert len(model.requests) == finished.end["requests"] == (2 if retry else 1)
    shown = {
        "type": "retry",
        "attempt": 1,
        "max_retries": 1,
        "delay_ms": 200,
        "status": status,
        "error": retry,
        "retry_after": None,
    }
    assert finished.of("retry") == ([shown] if retry else [])


def test_waits_grow_and_a_fault_that_passes_leaves_only_its_retry_events(tmp_path: Path) -> None:
    with agent_with(tmp_path, first(2, refuse(529), lambda _: say("there"))) as (agent, model):
        finished = agent.turn("hi")
    assert (finished.code, finished.end["text"], finished.end["error"]) == (0, "there", None)
    assert [event["delay_ms"] for event in finished.of("retry")] == [200, 400]
    assert [event["attempt"] for event in finished.of("retry")] == [1, 2]
    times = [received.time for received in model.received]
    assert times[1] - times[0] >= 0.2
    assert times[2] - times[1] >= 0.4
    assert (finished.end["requests"], finished.end["steps"]) == (3, 1)


def test_every_reply_has_retries_of_its_own(tmp_path: Path) -> None:
    numbers = itertools.count()

    def answer(request: Request) -> Answer:
        if next(numbers) % 2 == 0:
            return refuse(500)
        return say("done") if results(request) else use("bash", command="true")

    with agent_with(tmp_path, answer) as (agent, _):
        finished = agent.turn("hi", "--max-retries", "1")
    assert (finished.code, finished.end["requests"]) == (0, 4)


@pytest.mark.parametrize(
    ("header", "delay_ms"),
    [("1", 1000), ("0.05", 200), ("nonsense", 200), ("-5", 200), ("nan", 200), ("inf", 200)],
)
def test_retry_after_is_the_least_that_is_waited(tmp_path: Path, header: str, delay_ms: int) -> None:
    fault = refuse(429, retry_after=header)
    with agent_with(tmp_path, first(1, fault, lambda _: say("there"))) as (agent, model):
        finished = agent.turn("hi")
    assert finished.of("retry")[0]["delay_ms"] == delay_ms
    assert model.received[1].time - model.received[0].time >= delay_ms / 1000


def test_a_retry_after_of_hours_is_cut_to_thirty_seconds(tmp_path: Path) -> None:
    with agent_with(tmp_path, lambda _: refuse(429, retry_after="7200")) as (agent, _):
        running = agent.start("hi", *agent.flags())
        while not [event for event in running.events() if event["type"] == "retry"]:
            time.sleep(0.01)
        running.process.terminate()
        finished = running.finish()
    assert (finished.of("retry")[0]["delay_ms"], finished.of("retry")[0]["retry_after"]) == (30_000, 7200)


def test_what_the_provider_asked_for_is_told_with_the_end(tmp_path: Path) -> None:
    with agent_with(tmp_path, lambda _: refuse(429, retry_after="7200")) as (agent, _):
        finished = agent.turn("hi", "--max-retries", "0")
    assert finished.end["error"]["retry_after"] == 7200


@pytest.mark.parametrize("events_sent", [0, 1, 4, 5, 7])
def test_a_stream_that_is_dropped_once_is_asked_for_again_and_shown_once(tmp_path: Path, events_sent: int) -> None:
    dropped = say("the whole answer", events_sent=events_sent)
    with agent_with(tmp_path, first(1, dropped, lambda _: say("the whole answer"))) as (agent, _):
        finished = agent.turn("hi")
    assert finished.code == 0
    assert [event["text"] for event in finished.of("text")] == ["the whole answer"]
    assert [(event["status"], event["error"]) for event in finished.of("retry")] == [(None, "network")]
    assert finished.end["usage"]["input_tokens"] == 10


def test_a_tool_call_in_a_dropped_stream_does_not_run(tmp_path: Path) -> None:
    call = use("bash", command="echo x >> runs")
    dropped = Answer(call.blocks, "tool_use", events_sent=7)

    def works(request: Request) -> Answer:
        return say("done") if results(request) else call

    with agent_with(tmp_path, first(1, dropped, works)) as (agent, _):
        finished = agent.turn("hi")
    assert len(finished.of("tool_call")) == 1
    assert (agent.workspace / "runs").read_text() == "x\n"


def test_a_stream_that_is_always_dropped_is_a_network_fault(tmp_path: Path) -> None:
    with agent_with(tmp_path, lambda _: say("x", events_sent=4)) as (agent, model):
        finished = agent.turn("hi", "--max-retries", "1")
    assert finished.code == 1
    assert (finished.end["error"]["kind"], finished.end["error"]["status"]) == ("network", None)
    assert "broke off" in finished.end["error"]["message"]
    assert len(model.requests) == 2
    assert finished.of("text") == []


def test_a_body_shorter_than_it_said_is_a_network_fault(tmp_path: Path) -> None:
    body = b'{"type":"message","content":[]'
    short = Answer(body=body, content_type="application/json", headers=(("content-length", "500"),))
    with agent_with(tmp_path, lambda _: short) as (agent, _):
        finished = agent.turn("hi", "--max-retries", "0")
    assert finished.end["error"]["kind"] == "network"


@pytest.mark.parametrize(
    "answer",
    [
        send_bytes(b"data: {not json}\n\n"),
        send_bytes(b"this is no event stream\n"),
        send_bytes(b"data: \xff\xfe\n\n"),
        send_bytes(b"data: [1]\n\n"),
        send_bytes(b'data: {"no":"type"}\n\n'),
        send_bytes(START + b'data: {"type":"content_block_delta","index":0}\n\n' + STOP),
        send_bytes(
            START
            + b'data: {"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"x"}}\n\n'
            + STOP
        ),
        send_bytes(START + b'data: {"type":"content_block_start","index":0,"content_block":"x"}\n\n' + STOP),
        send_bytes(b"data: " + b"[" * 100_000 + b"\n\n"),
        send_bytes(b"<html>Sign in to the wireless network</html>", "text/html"),
        send_bytes(b"", "application/json"),
        send_bytes(b'{"content": [{"type": "tool_use", "id": "", "name": "bash"}]}', "application/json"),
        send_bytes(b'{"content": "text"}', "application/json"),
        send_bytes(b'{"content": [{"type": "text", "text": 3}]}', "application/json"),
    ],
    ids=lambda answer: str(answer.body)[:40],
)
def test_an_answer_that_cannot_be_understood_is_tried_again_and_then_an_output_fault(
    tmp_path: Path, answer: Answer
) -> None:
    with agent_with(tmp_path, lambda _: answer) as (agent, model):
        finished = agent.turn("hi", "--max-retries", "1")
    assert finished.code == 1
    assert (finished.end["error"]["kind"], finished.end["error"]["status"]) == ("output", None)
    assert [event["error"] for event in finished.of("retry")] == ["malformed"]
    assert len(model.requests) == 2
    assert "Traceback" not in finished.stderr


def test_a_malformed_answer_that_passes_completes(tmp_path: Path) -> None:
    with agent_with(tmp_path, first(1, send_bytes(b"data: {oops\n\n"), lambda _: say("there"))) as (agent, _):
        finished = agent.turn("hi")
    assert (finished.code, finished.end["text"]) == (0, "there")
    assert [event["error"] for event in finished.of("retry")] == ["malformed"]


@pytest.mark.parametrize(
    ("told", "kind", "retry"),
    [
        ("overloaded_error", "overloaded", "overloaded"),
        ("rate_limit_error", "rate_limit", "rate_limit"),
        ("api_error", "overloaded", "server_error"),
        ("a_new_error", "overloaded", "server_error"),
        ("authentication_error", "auth", None),
        ("invalid_request_error", "request", None),
    ],
)
def test_an_error_inside_a_stream_is_classified_as_its_status_would_be(
    tmp_path: Path, told: str, kind: str, retry: str | None
) -> None:
    with agent_with(tmp_path, lambda _: stream_error(told)) as (agent, _):
        finished = agent.turn("hi", "--max-retries", "1")
    assert (finished.end["error"]["kind"], finished.end["error"]["status"]) == (kind, None)
    assert "so sorry" in finished.end["error"]["message"]
    assert [event["error"] for event in finished.of("retry")] == ([retry] if retry else [])


def test_a_stream_may_have_comments_unknown_events_and_other_line_ends(tmp_path: Path) -> None:
    stream = (
        b": a comment\r\n\r\nid: 4\r\nretry: 10\r\n" + START.replace(b"\n", b"\r\n") + b'data: {"type":"news"}\n\n'
        b'data:{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
        b'event: content_block_delta\ndata: {"type":"content_block_delta",\n'
        b'data: "index":0,"delta":{"type":"text_delta","text":"gr\xc3\xbc\xc3\x9fe"}}\n\n'
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}\n\n' + STOP
    )
    with agent_with(tmp_path, lambda _: send_bytes(stream, None)) as (agent, _):
        finished = agent.turn("hi")
    assert (finished.code, finished.end["text"], finished.end["stop_reason"]) == (0, "grüße", None)


def test_a_model_that_is_silent_for_too_long_is_a_network_fault(tmp_path: Path) -> None:
    with agent_with(tmp_path, lambda _: say("late", silent_seconds=30)) as (agent, _):
        began = time.monotonic()
        finished = agent.turn("hi", "--timeout", "0.3", "--max-retries", "1")
    assert time.monotonic() - began < 10
    assert (finished.code, finished.end["error"]["kind"]) == (1, "network")
    assert "silent for 0.3 s" in finished.end["error"]["message"]
    assert finished.end["requests"] == 2


def test_a_slow_trickle_is_not_silence(tmp_path: Path) -> None:
    with agent_with(tmp_path, lambda _: say("slow", pause_seconds=0.1)) as (agent, _):
        finished = agent.turn("hi", "--timeout", "0.7", "--max-retries", "0")
    assert (finished.code, finished.end["text"]) == (0, "slow")


def test_a_stream_without_an_end_is_cut_at_its_limit(tmp_path: Path) -> None:
    delta = b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}\n\n'
    block = b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
    stream = START + block + (delta % (b"x" * 10_000)) * 1_800
    with agent_with(tmp_path, lambda _: send_bytes(stream)) as (agent, _):
        finished = agent.turn("hi", "--max-retries", "0")
    assert (finished.code, finished.end["error"]["kind"]) == (1, "output")
    assert "longer than" in finished.end["error"]["message"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_refused_connection_is_a_network_fault_that_does_not_tell_the_path(tmp_path: Path) -> None:
    port = free_port()
    agent = Agent(tmp_path, f"http://127.0.0.1:{port}/secret")
    finished = agent.turn("hi", "--max-retries", "1")
    assert (finished.code, finished.end["error"]["kind"]) == (1, "network")
    assert [event["error"] for event in finished.of("retry")] == ["network"]
    assert f"127.0.0.1:{port}" in finished.end["error"]["message"]
    assert "secret" not in finished.end["error"]["message"]


@pytest.mark.parametrize(
    ("greeting", "kind"), [(b"SSH-2.0-OpenSSH_9.2\r\n", "output"), (b"", "network")], ids=["ssh", "hangs up"]
)
def test_a_server_that_speaks_no_http_is_named_as_what_it_is(tmp_path: Path, greeting: bytes, kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(greeting)

        thread = threading.Thread(target=greet)
        thread.start()
        agent = Agent(tmp_path, f"http://127.0.0.1:{server.getsockname()[1]}")
        finished = agent.turn("hi", "--max-retries", "0")
        thread.join()
    assert (finished.code, finished.end["error"]["kind"]) == (1, kind)


def test_a_refusal_that_comes_before_the_request_was_read_is_still_seen(tmp_path: Path) -> None:
    with Model(lambda _: refuse(413, "too large"), reads=False) as model:
        finished = Agent(tmp_path, model.url).turn("x" * 20_000_000)
    assert (finished.end["error"]["kind"], finished.end["error"]["status"]) == ("request", 413)


def test_an_answer_that_speaks_of_rate_limits_is_only_an_answer(tmp_path: Path) -> None:
    text = "Error 429: rate_limit_error, authentication failed, overloaded"
    with agent_with(tmp_path, lambda _: say(text)) as (agent, _):
        finished = agent.turn("hi")
    assert (finished.code, finished.end["error"], finished.of("retry")) == (0, None, [])
    assert finished.end["text"] == text


def test_a_failed_command_is_the_agents_matter_and_no_fault_of_the_turn(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        return say("it failed") if results(request) else use("bash", command="echo 'HTTP 401' >&2; exit 1")

    with agent_with(tmp_path, answer) as (agent, _):
        finished = agent.turn("hi")
    assert (finished.code, finished.end["reason"], finished.end["error"]) == (0, "completed", None)

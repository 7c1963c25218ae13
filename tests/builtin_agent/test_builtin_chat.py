"""The built-in agent on Chat Completions: the same verdicts and faults as on Messages, and what only this API has."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.builtin_agent.model import Agent, Answer, Finished, Model, Request, send_bytes
from tests.claude.test_faults import PROVIDER, RECOVERED, code_of, failing
from tests.claude.test_same_verdict import CASES, outcome_of, states_of
from tests.support import Project


def test_one_case_file_means_the_same_on_both_apis(project: Project) -> None:
    for name, (_, text) in CASES.items():
        project.write(f"cases/{name}.yaml", text)
    agents = ("--agent", "builtin", "--agent", "builtin_openai")
    done = project.run("cases", *agents, "--model", "scripted", "--parallelism", "4")
    expected = {name: outcome for name, (outcome, _) in CASES.items()}
    assert {name: outcome_of(done, name, "builtin_openai") for name in CASES} == expected
    assert states_of(done, "builtin_openai") == states_of(done, "builtin")
    asked = {request["path"] for name in CASES for request in done.requests(name, "builtin_openai")}
    assert asked == {"/v1/chat/completions"}


def profile(project: Project, retries: int) -> None:
    settings = f"{{api: openai_chat, max_retries: {retries}}}"
    project.write("agents/chat.yaml", f"engine: builtin\nmodel: scripted\nsettings: {settings}\n")


def test_a_planned_fault_with_every_request_is_an_error_of_its_kind(project: Project) -> None:
    profile(project, retries=0)
    for name, (fault, _) in PROVIDER.items():
        failing(project, name, fault)
    done = project.run("cases", "--agent", "chat", "--parallelism", "4")
    expected = {name: f"ERROR {kind}" for name, (_, kind) in PROVIDER.items()}
    assert {name: code_of(done, name) for name in PROVIDER} == expected
    assert done.run.totals.valid == 0


def test_a_planned_fault_that_the_agent_gets_over_is_noted(project: Project) -> None:
    profile(project, retries=2)
    for name, (fault, _) in RECOVERED.items():
        failing(project, name, fault)
    failing(project, "dropped-once", "{drop: true, times: 1}")
    done = project.run("cases", "--agent", "chat", "--parallelism", "4")
    assert done.code == 0, done.stdout
    notes = {name: done.trial(name).turn_results[0].notes for name in (*RECOVERED, "dropped-once")}
    assert notes == {
        **{name: (note,) for name, (_, note) in RECOVERED.items()},
        "dropped-once": ("retried: network ×1",),
    }


def test_a_provider_that_refuses_the_connection_is_a_network_error(project: Project) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        port = taken.getsockname()[1]
        project.write(
            "agents/away.yaml",
            f"""
            engine: builtin
            model: {{name: some-model, base_url: "http://127.0.0.1:{port}/v1"}}
            env: {{OPENAI_API_KEY: none}}
            settings: {{api: openai_chat, max_retries: 1}}
            """,
        )
        failing(project, "hello", "")
        done = project.run("cases", "--agent", "away")
    error = done.trial().error
    assert error is not None
    assert error.kind == "network"
    assert f"127.0.0.1:{port}" in error.message
    assert "OPENAI_BASE_URL" in error.message


def test_an_agent_without_an_address_says_which_variable_is_missing(project: Project) -> None:
    failing(project, "hello", "")
    done = project.run("cases", "--agent", "builtin_openai", "--model", "m", env={"OPENAI_API_KEY": "dummy-of-no-use"})
    error = done.trial().error
    assert error is not None
    assert error.kind == "setup"
    assert "OPENAI_BASE_URL must be the http:// or https:// address of a Chat Completions API" in error.message


# What the wire looks like, against a server of the test's own.


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return b"data: " + json.dumps({"choices": choices, **more}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
STOP = chunk({}, "stop")


def refused(messages: list[dict[str, Any]]) -> str | None:
    """Why the API would refuse this history; None when it would not."""
    open_calls: list[str] = []
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                return f"messages[{number}] answers no call"
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            return f"messages[{number}] stands before the results of {open_calls}"
        elif message["role"] == "assistant":
            open_calls = [call["id"] for call in message.get("tool_calls", ())]
            if not open_calls and not message["content"]:
                return f"messages[{number}] says nothing"
    return f"open calls at the end: {open_calls}" if open_calls else None


@contextmanager
def chat_with(root: Path, answer: Callable[[Request], Answer]) -> Iterator[tuple[Agent, Model]]:
    with Model(answer, check=refused) as model:
        yield Agent(root, model.url), model


def turn(agent: Agent, *flags: str, resume: str | None = None) -> Finished:
    variables = {"OPENAI_BASE_URL": agent.url, "OPENAI_API_KEY": "sk-chat", "ANTHROPIC_API_KEY": ""}
    return agent.run("hi", *agent.flags(resume=resume), "--api", "openai_chat", *flags, **variables)


def test_the_request_is_a_chat_with_its_key_and_without_a_limit_of_tokens(tmp_path: Path) -> None:
    with chat_with(tmp_path, lambda _: send_bytes(chunk({"content": "hello"}) + STOP + DONE)) as (agent, model):
        finished = turn(agent)
    (received,) = model.received
    assert received.path.endswith("/chat/completions")
    assert received.headers["authorization"] == "Bearer sk-chat"
    assert set(received.body) == {"model", "messages", "tools", "stream", "stream_options"}
    assert [message["role"] for message in received.body["messages"]] == ["system", "user"]
    assert received.body["messages"][1]["content"] == "hi"
    assert [tool["function"]["name"] for tool in received.body["tools"]] == ["bash", "read", "write", "edit"]
    assert (finished.code, finished.end["text"], finished.end["stop_reason"]) == (0, "hello", "stop")
    assert set(finished.end["usage"].values()) == {None}, "what the reply did not tell is unknown"


def test_calls_in_pieces_run_once_each_and_their_results_go_back(tmp_path: Path) -> None:
    pieces = [
        {"index": 0, "id": "call_a", "type": "function", "function": {"name": "write", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"path": "a.txt", '}},
        {"index": 1, "id": "call_b", "type": "function", "function": {"name": "bash", "arguments": "{"}},
        {"index": 0, "function": {"arguments": '"content": "one"}'}},
        {"index": 1, "id": "call_b", "function": {"arguments": '"command": "exit 3"}'}},
    ]
    called = b"".join(chunk({"tool_calls": [piece]}) for piece in pieces)
    usage = {"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 6}}
    told = b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"

    def answer(request: Request) -> Answer:
        last = request["messages"][-1]["role"] == "tool"
        begun = chunk({"role": "assistant", "content": None, "reasoning": "hm"})
        body = chunk({"content": "done"}) + STOP if last else begun + called + chunk({}, "tool_calls")
        return send_bytes(body + told + DONE)

    with chat_with(tmp_path, answer) as (agent, model):
        finished = turn(agent)
        session = finished.of("session")[0]["session_id"]
        again = turn(agent, resume=session)
    assert finished.kinds == ["session", "thinking", *["tool_call", "tool_result"] * 2, "text", "end"]
    assert [event["status"] for event in finished.of("tool_result")] == ["ok", "error"]
    assert (agent.workspace / "a.txt").read_text() == "one"
    second = model.requests[1]["messages"]
    assert [message["role"] for message in second] == ["system", "user", "assistant", "tool", "tool"]
    assert "hm" not in json.dumps(second), "no reasoning goes back"
    assert [call["function"]["name"] for call in second[2]["tool_calls"]] == ["write", "bash"]
    expected = {"input_tokens": 8, "output_tokens": 8, "cache_read_tokens": 12, "cache_write_tokens": None}
    assert finished.end["usage"] == expected
    assert again.code == 0
    assert [message["role"] for message in model.requests[2]["messages"]][-2:] == ["assistant", "user"]


def test_whole_calls_that_all_have_the_first_index_are_two_calls(tmp_path: Path) -> None:
    def call(identity: str, command: str) -> bytes:
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        return chunk({"tool_calls": [{"index": 0, "id": identity, "function": function}]})

    def answer(request: Request) -> Answer:
        last = request["messages"][-1]["role"] == "tool"
        begun = call("x", "touch one") + call("y", "touch two") + chunk({}, "tool_calls")
        return send_bytes((STOP if last else begun) + DONE)

    with chat_with(tmp_path, answer) as (agent, _):
        finished = turn(agent)
    assert [event["status"] for event in finished.of("tool_result")] == ["ok", "ok"]
    assert (finished.code, finished.end["text"]) == (0, None)
    assert {path.name for path in agent.workspace.iterdir()} == {"one", "two"}


def test_arguments_that_are_no_object_are_told_to_the_model(tmp_path: Path) -> None:
    function = {"name": "bash", "arguments": "{broken"}

    def answer(request: Request) -> Answer:
        last = request["messages"][-1]["role"] == "tool"
        called = chunk({"tool_calls": [{"index": 0, "id": "x", "function": function}]}, "tool_calls")
        return send_bytes((STOP if last else called) + DONE)

    with chat_with(tmp_path, answer) as (agent, model):
        finished = turn(agent)
    assert finished.code == 0
    assert "not a JSON object: {broken" in model.requests[1]["messages"][-1]["content"]


def test_a_server_that_does_not_stream_is_understood(tmp_path: Path) -> None:
    message = {"role": "assistant", "content": None, "refusal": "I will not", "reasoning_content": "bad idea"}
    body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5}}
    answer = send_bytes(json.dumps(body).encode(), "application/json")
    with chat_with(tmp_path, lambda _: answer) as (agent, _):
        finished = turn(agent)
    assert (finished.code, finished.end["text"]) == (0, "I will not")
    assert [event["text"] for event in finished.of("thinking")] == ["bad idea"]
    assert (finished.end["usage"]["input_tokens"], finished.end["usage"]["output_tokens"]) == (5, None)


def test_a_reply_is_whole_when_its_reason_to_finish_has_come(tmp_path: Path) -> None:
    with chat_with(tmp_path, lambda _: send_bytes(chunk({"content": "all of it"}, "stop"))) as (agent, _):
        finished = turn(agent)
    assert (finished.code, finished.end["text"]) == (0, "all of it")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (chunk({"content": "half of"}), "network"),
        (b"", "network"),
        (b"data: {not json}\n\n", "output"),
        (b'data: {"choices": 3}\n\n', "output"),
        (b'data: {"no": "choices"}\n\n', "output"),
        (DONE, "output"),
        (chunk({"content": 3}) + STOP + DONE, "output"),
        (chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}) + DONE, "output"),
        (chunk({"tool_calls": [{"index": 0, "id": "x", "function": {"arguments": "{}"}}]}) + DONE, "output"),
        (b'data: {"error": {"message": "so sorry", "code": 503}}\n\n', "overloaded"),
        (b'data: {"error": {"message": "so sorry", "code": "rate_limit_exceeded"}}\n\n', "rate_limit"),
        (b'data: {"error": {"message": "so sorry", "type": "invalid_request_error"}}\n\n', "request"),
        (b'data: {"error": "so sorry"}\n\n', "overloaded"),
        (b'data: {"error": {"message": "so sorry", "code": ["new"]}}\n\n', "output"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_stream_that_is_no_whole_reply_is_a_fault_of_its_kind(tmp_path: Path, body: bytes, kind: str) -> None:
    with chat_with(tmp_path, lambda _: send_bytes(body)) as (agent, _):
        finished = turn(agent, "--max-retries", "0")
    assert (finished.code, finished.end["error"]["kind"], finished.end["error"]["status"]) == (1, kind, None)
    assert finished.of("tool_call") == finished.of("text") == []
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize(
    ("code", "kind", "tried"), [("insufficient_quota", "quota", 1), ("rate_limit_exceeded", "rate_limit", 2)]
)
def test_a_429_for_lack_of_money_is_quota_and_not_tried_again(tmp_path: Path, code: str, kind: str, tried: int) -> None:
    body = json.dumps({"error": {"message": "because of this", "type": code, "code": code}}).encode()
    answer = Answer(status=429, body=body, content_type="application/json")
    with chat_with(tmp_path, lambda _: answer) as (agent, model):
        finished = turn(agent, "--max-retries", "1")
    assert (finished.end["error"]["kind"], finished.end["error"]["status"]) == (kind, 429)
    assert "because of this" in finished.end["error"]["message"]
    assert len(model.requests) == tried


def test_commands_do_not_get_the_key_of_either_api(tmp_path: Path) -> None:
    function = {"name": "bash", "arguments": json.dumps({"command": "env"})}

    def answer(request: Request) -> Answer:
        last = request["messages"][-1]["role"] == "tool"
        called = chunk({"tool_calls": [{"index": 0, "id": "x", "function": function}]}, "tool_calls")
        return send_bytes((STOP if last else called) + DONE)

    with chat_with(tmp_path, answer) as (agent, _):
        variables = {"OPENAI_BASE_URL": agent.url, "OPENAI_API_KEY": "sk-chat", "ANTHROPIC_API_KEY": "sk-other"}
        finished = agent.run("hi", *agent.flags(), "--api", "openai_chat", **variables)
    (result,) = finished.of("tool_result")
    assert "OPENAI_BASE_URL" in result["content"]
    assert "sk-" not in result["content"]

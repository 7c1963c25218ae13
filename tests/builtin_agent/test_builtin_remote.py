"""What the built-in agent can be given: tools that are answered elsewhere, fewer of its own, a history."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.builtin_agent.model import Agent, Answer, Request, agent_with, results, say, use

LOOK = {"name": "look", "description": "Look.", "input_schema": {"type": "object", "properties": {}}}

Answers = Callable[[str, dict[str, Any]], tuple[int, bytes]]


@contextmanager
def tools_at(answer: Answers) -> Iterator[str]:
    """A server of tools; `answer` gets the path below its prefix and the body, and gives status and bytes."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, content = answer(self.path.removeprefix("/prefix"), body)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/prefix"
        server.shutdown()


def answers(path: str, body: dict[str, Any]) -> tuple[int, bytes]:
    """A tool that gives back what it was asked, and fails when it is told to."""
    if path == "/tools":
        return 200, json.dumps({"tools": [LOOK]}).encode()
    return 200, json.dumps({"content": json.dumps(body), "failed": "fail" in body["arguments"]}).encode()


def looking(**arguments: Any) -> Callable[[Request], Answer]:
    return lambda request: say("done") if results(request) else use("look", **arguments)


@pytest.mark.parametrize(("arguments", "status"), [({"at": "é"}, "ok"), ({"fail": 1}, "error")])
def test_a_call_is_answered_elsewhere_and_told_like_any_other(
    tmp_path: Path, arguments: dict[str, Any], status: str
) -> None:
    with agent_with(tmp_path, looking(**arguments)) as (agent, model), tools_at(answers) as url:
        finished = agent.run("hi", *agent.flags(), BUILTIN_AGENT_TOOLS_URL=url)
    assert finished.code == 0
    (result,) = finished.of("tool_result")
    assert (result["status"], json.loads(result["content"])) == (status, {"name": "look", "arguments": arguments})
    assert model.requests[0]["tools"] == [LOOK]
    assert finished.of("session")[0]["tools"] == ["look"]


def test_commands_do_not_learn_where_the_tools_are_answered(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        return say("done") if results(request) else use("bash", command="env")

    with agent_with(tmp_path, answer) as (agent, model), tools_at(answers) as url:
        finished = agent.run("hi", *agent.flags(), "--tools", "bash", BUILTIN_AGENT_TOOLS_URL=url)
    (result,) = finished.of("tool_result")
    assert "ANTHROPIC_BASE_URL" in result["content"]
    assert "TOOLS_URL" not in result["content"]
    assert [tool["name"] for tool in model.requests[0]["tools"]] == ["bash", "look"]


BROKEN: dict[str, Answers] = {
    "no list": lambda _path, _body: (200, b"{}"),
    "no JSON": lambda _path, _body: (200, b"<html>"),
    "a tool without a schema": lambda _path, _body: (200, b'{"tools": [{"name": "a", "description": "b"}]}'),
    "a refusal": lambda _path, _body: (500, b"{}"),
    "no answer to a call": lambda path, body: answers(path, body) if path == "/tools" else (200, b'{"content": 3}'),
    "a refused call": lambda path, body: answers(path, body) if path == "/tools" else (404, b"{}"),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_tools_that_nobody_answers_are_a_fault_of_the_environment(tmp_path: Path, broken: Answers) -> None:
    with agent_with(tmp_path, looking()) as (agent, _), tools_at(broken) as url:
        finished = agent.run("hi", *agent.flags(), BUILTIN_AGENT_TOOLS_URL=url)
    assert (finished.code, finished.end["error"]["kind"]) == (1, "environment")
    assert "Traceback" not in finished.stderr
    assert url not in finished.stderr, "the address is a secret"


def test_tools_whose_server_is_gone_are_a_fault_of_the_environment(tmp_path: Path) -> None:
    with tools_at(answers) as url:
        pass
    with agent_with(tmp_path, looking()) as (agent, _):
        finished = agent.run("hi", *agent.flags(), BUILTIN_AGENT_TOOLS_URL=url)
    assert (finished.code, finished.end["error"]["kind"]) == (1, "environment")


@pytest.mark.parametrize(("given", "offered"), [("bash,read", ["bash", "read"]), ("", None)])
def test_only_the_tools_that_are_named_are_offered(tmp_path: Path, given: str, offered: list[str] | None) -> None:
    def answer(request: Request) -> Answer:
        return say("done") if results(request) else use("write", path="a.txt", content="x")

    with agent_with(tmp_path, answer) as (agent, model):
        finished = agent.turn("hi", "--tools", given)
    request = model.requests[0]
    assert ([tool["name"] for tool in request["tools"]] if "tools" in request else None) == offered
    (result,) = finished.of("tool_result")
    assert (result["status"], result["content"]) == (
        "error",
        f"write: there is no such tool; there are {', '.join(offered or ['none'])}",
    )
    assert list(agent.workspace.iterdir()) == []


def history(agent: Agent, messages: object) -> str:
    path = agent.root / "history.json"
    path.write_text(messages if isinstance(messages, str) else json.dumps(messages), "utf-8")
    return str(path)


BEFORE = [
    {"role": "user", "content": [{"type": "text", "text": "what is it"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "a heron"}]},
]


def test_a_new_session_begins_after_its_history_and_keeps_it(tmp_path: Path) -> None:
    with agent_with(tmp_path, lambda _: say("fine")) as (agent, model):
        first = agent.turn("go on", "--history", history(agent, BEFORE))
        agent.turn("and on", resume=first.of("session")[0]["session_id"])
    assert model.requests[0]["messages"][:2] == BEFORE
    assert model.requests[0]["messages"][2]["content"] == [{"type": "text", "text": "go on"}]
    assert len(model.requests[1]["messages"]) == 5


@pytest.mark.parametrize("written", ["{}", "[3]", "no JSON", '[{"role": "system", "content": []}]'])
def test_a_history_that_is_none_is_a_fault_and_no_session_begins(tmp_path: Path, written: str) -> None:
    with agent_with(tmp_path, lambda _: say("fine")) as (agent, model):
        finished = agent.turn("go on", "--history", history(agent, written))
    assert (finished.code, finished.end["error"]["kind"]) == (1, "session")
    assert "cannot be understood" in finished.end["error"]["message"]
    assert model.requests == []
    assert not agent.home.exists()


def test_a_tool_that_is_not_its_own_is_a_wrong_call(tmp_path: Path) -> None:
    with agent_with(tmp_path, lambda _: say("fine")) as (agent, _):
        finished = agent.turn("go on", "--tools", "bash,grep")
    assert (finished.code, finished.events) == (2, ())
    assert "there is no tool 'grep'" in finished.stderr

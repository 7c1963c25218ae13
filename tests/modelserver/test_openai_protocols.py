"""OpenAI's two protocols over the wire: the same script gives the same steps, streamed and not."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from skillup.modelserver.route import Route
from skillup.modelserver.scripted import ScriptedSource
from skillup.modelserver.server import ModelServer
from skillup.spec.script import ScriptEntry

SCRIPT = [
    {
        "user": "list the files",
        "replies": [
            {"say": "looking", "calls": [{"tool": "bash", "args": {"command": "ls"}}]},
            {"say": "found {{result}}"},
        ],
    },
    {"user": "refused", "faults": [{"status": 429, "message": "slow down", "retry_after": 7}]},
]

PARAMETERS = {"type": "object", "properties": {"command": {"type": "string"}}}


@pytest.fixture
def route(tmp_path: Path) -> Iterator[Route]:
    script = tuple(ScriptEntry.model_validate(entry) for entry in SCRIPT)
    with ModelServer() as server:
        yield server.open_route(ScriptedSource(script), workspace=tmp_path)


def post(route: Route, path: str, body: dict[str, Any]) -> tuple[int, http.client.HTTPMessage, str]:
    """Status, headers and text of one request."""
    address = urlsplit(route.base_url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
    connection.request("POST", f"{address.path}{path}", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers, text


def events(text: str) -> list[dict[str, Any]]:
    """The JSON of a stream's data lines."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


class TestChat:
    PATH = "/v1/chat/completions"
    TOOLS = ({"type": "function", "function": {"name": "bash", "parameters": PARAMETERS}},)

    def body(self, *messages: dict[str, Any], stream: bool = False) -> dict[str, Any]:
        return {"model": "m", "messages": list(messages), "tools": list(self.TOOLS), "stream": stream}

    def test_a_step_of_tool_calls_and_the_one_after_its_results(self, route: Route) -> None:
        user = {"role": "user", "content": [{"type": "text", "text": "list the files"}]}
        first = json.loads(post(route, self.PATH, self.body(user))[2])["choices"][0]
        assert first["finish_reason"] == "tool_calls"
        assert first["message"]["content"] == "looking"
        (call,) = first["message"]["tool_calls"]
        assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("bash", {"command": "ls"})
        result = {"role": "tool", "tool_call_id": call["id"], "content": "a.txt"}
        system = {"role": "developer", "content": "be brief"}
        second = json.loads(post(route, self.PATH, self.body(system, user, first["message"], result))[2])
        assert second["choices"][0]["message"]["content"] == "found a.txt"
        assert second["choices"][0]["finish_reason"] == "stop"
        usage = second["usage"]
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]

    def test_a_stream_says_the_same_in_pieces(self, route: Route) -> None:
        user = {"role": "user", "content": "list the files"}
        whole = json.loads(post(route, self.PATH, self.body(user))[2])["choices"][0]["message"]
        _, _, text = post(route, self.PATH, self.body(user, stream=True))
        assert text.endswith("data: [DONE]\n\n")
        deltas = [event["choices"][0]["delta"] for event in events(text) if event["choices"]]
        assert "".join(delta.get("content") or "" for delta in deltas) == whole["content"]
        (call,) = [call for delta in deltas for call in delta.get("tool_calls", ())]
        assert call["id"] == whole["tool_calls"][0]["id"]

    def test_a_fault_has_openais_shape_and_what_is_no_request_is_refused(self, route: Route) -> None:
        status, headers, text = post(route, self.PATH, self.body({"role": "user", "content": "refused"}))
        assert (status, headers["Retry-After"]) == (429, "7")
        assert json.loads(text)["error"]["message"] == "slow down"
        status, _, text = post(route, self.PATH, {"messages": [{"role": "nobody"}]})
        assert status == 400
        assert "messages[0].role" in json.loads(text)["error"]["message"]


class TestResponses:
    PATH = "/v1/responses"
    TOOLS = ({"type": "function", "name": "bash", "parameters": PARAMETERS},)

    def body(self, *items: dict[str, Any], stream: bool = False) -> dict[str, Any]:
        return {"model": "m", "input": list(items), "tools": list(self.TOOLS), "stream": stream}

    def test_a_step_of_tool_calls_and_the_one_after_its_results(self, route: Route) -> None:
        user = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "list the files"}]}
        first = json.loads(post(route, self.PATH, self.body(user))[2])["output"]
        assert [item["type"] for item in first] == ["message", "function_call"]
        call = first[1]
        assert (call["name"], json.loads(call["arguments"])) == ("bash", {"command": "ls"})
        output = "Chunk ID: 1\nWall time: 0.0 seconds\nOutput:\na.txt\n"
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": output}
        second = json.loads(post(route, self.PATH, self.body(user, *first, result))[2])
        assert second["output"][0]["content"][0]["text"] == "found a.txt", "the header of Codex is no part of it"
        assert second["status"] == "completed"

    def test_a_stream_ends_with_the_same_response(self, route: Route) -> None:
        body = {"model": "m", "input": "list the files", "tools": list(self.TOOLS)}
        whole = json.loads(post(route, self.PATH, body)[2])
        told = events(post(route, self.PATH, {**body, "stream": True})[2])
        assert [event["type"] for event in told][:2] == ["response.created", "response.in_progress"]
        assert told[-1] == {"type": "response.completed", "response": whole}
        done = [event["item"] for event in told if event["type"] == "response.output_item.done"]
        assert done == whole["output"]

    def test_a_tool_of_a_namespace_is_called_by_both_names_and_a_custom_one_with_plain_text(
        self, tmp_path: Path
    ) -> None:
        script = [
            {
                "replies": [
                    {
                        "calls": [
                            {"tool": "mcp:files/find", "args": {"name": "x"}},
                            {"tool": "write", "args": {"path": "a.txt", "content": "one\n"}},
                        ]
                    }
                ]
            }
        ]
        tools = [
            {"type": "namespace", "name": "mcp__files", "tools": [{"type": "function", "name": "find"}]},
            {"type": "custom", "name": "apply_patch"},
        ]
        with ModelServer() as server:
            entries = tuple(ScriptEntry.model_validate(entry) for entry in script)
            route = server.open_route(ScriptedSource(entries), workspace=tmp_path)
            body = {"model": "m", "input": "go", "tools": tools}
            find, patch = json.loads(post(route, self.PATH, body)[2])["output"]
        assert (find["type"], find["namespace"], find["name"]) == ("function_call", "mcp__files", "find")
        assert (patch["type"], patch["name"]) == ("custom_tool_call", "apply_patch")
        assert patch["input"] == "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch"

    def test_what_is_no_request_is_refused(self, route: Route) -> None:
        status, _, text = post(route, self.PATH, {"input": [7]})
        assert status == 400
        assert "input: expected text or a list of items" in json.loads(text)["error"]["message"]

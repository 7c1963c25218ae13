"""The Anthropic Messages protocol, as pure translation."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import pytest

from skillup.modelserver.anthropic import AnthropicMessages
from skillup.modelserver.protocol import BadRequestError
from skillup.modelserver.source import Conversation, Msg, ToolCall, ToolOffer, make_reply

PROTOCOL = AnthropicMessages()
CONVERSATION = Conversation((Msg("user", ("hello",)),), model="some-model", stream=True)


def read(**body: Any) -> Conversation:
    return PROTOCOL.conversation("/v1/messages", body)


def events(stream: bytes) -> list[dict[str, Any]]:
    """The data of a stream, each with its event line checked against its type."""
    found = []
    for block in stream.decode().strip().split("\n\n"):
        first, second = block.split("\n")
        data = json.loads(second.removeprefix("data: "))
        assert first == f"event: {data['type']}"
        found.append(data)
    return found


def assembled(stream: list[dict[str, Any]]) -> dict[str, Any]:
    """The message that a client puts together from a stream."""
    message = dict(stream[0]["message"])
    blocks: list[dict[str, Any]] = []
    for event in stream[1:]:
        if event["type"] == "content_block_start":
            blocks.append(dict(event["content_block"]))
            pieces = ""
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            if delta["type"] == "input_json_delta":
                pieces += delta["partial_json"]
                blocks[-1]["input"] = pieces
            else:
                key = delta["type"].removesuffix("_delta")
                blocks[-1][key] += delta[key]
        elif event["type"] == "message_delta":
            message |= {"stop_reason": event["delta"]["stop_reason"], "usage": event["usage"]}
    for block in blocks:
        if block["type"] == "tool_use":
            block["input"] = json.loads(block["input"])
    return message | {"content": blocks}


def test_a_request_is_read_into_roles_texts_calls_and_results() -> None:
    conversation = read(
        model="m",
        stream=True,
        system=[{"type": "text", "text": "be"}, {"type": "text", "text": "brief"}],
        tools=[{"name": "Bash", "input_schema": {"type": "object"}}, {"type": "web_search"}],
        messages=[
            {"role": "user", "content": "plain"},
            {"role": "system", "content": "skills: none"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "look"},
                    {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "1", "content": "a"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "2",
                        "content": [{"type": "text", "text": "b"}, {"type": "image"}],
                    },
                    {"type": "tool_result", "tool_use_id": "3"},
                    {"type": "text", "text": "note", "cache_control": {"type": "ephemeral"}},
                ],
            },
        ],
    )
    assert conversation == Conversation(
        messages=(
            Msg("user", ("plain",)),
            Msg("system", ("skills: none",)),
            Msg("assistant", ("look",), (ToolCall("Bash", {"command": "ls"}),)),
            Msg("user", ("note",), (), ("a", "b", "")),
        ),
        tools=(ToolOffer("Bash", {"type": "object"}),),
        system="be\nbrief",
        model="m",
        stream=True,
    )


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": "hi"},
        {"messages": ["hi"]},
        {"messages": [{"role": "robot", "content": "hi"}]},
        {"messages": [{"role": "user"}]},
        {"messages": [{"role": "user", "content": [3]}]},
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        {"messages": [], "tools": {"name": "Bash"}},
        {"messages": [], "system": 3},
    ],
)
def test_a_body_that_the_protocol_does_not_allow_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError):
        PROTOCOL.conversation("/v1/messages", body)


def test_a_stream_and_a_body_hold_the_same_message() -> None:
    calls = (ToolCall("Bash", {"command": "ls ü"}), ToolCall("Bash", {"command": "ls ü"}))
    reply = make_reply(CONVERSATION, text="long " * 1_000, thinking="hm", calls=calls)
    body = PROTOCOL.reply_body(CONVERSATION, reply)
    stream = events(b"".join(PROTOCOL.reply_events(CONVERSATION, reply)))
    assert assembled(stream) == body
    assert [block["type"] for block in body["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert body["stop_reason"] == "tool_use"
    assert body["usage"]["output_tokens"] == reply.usage.output_tokens
    assert sum(event["type"] == "content_block_delta" for event in stream) > 6
    assert [stream[0]["type"], stream[-1]["type"]] == ["message_start", "message_stop"]


def test_an_empty_reply_has_no_blocks() -> None:
    """The provider refuses empty text blocks in the next request."""
    body = PROTOCOL.reply_body(CONVERSATION, make_reply(CONVERSATION))
    assert (body["content"], body["stop_reason"]) == ([], "end_turn")


def test_ids_repeat_for_a_repeated_request_and_never_within_a_conversation() -> None:
    call = ToolCall("Bash", {"command": "ls"})
    ids: list[str] = []
    for length in (1, 2, 3):
        conversation = Conversation(CONVERSATION.messages * length)
        reply = make_reply(conversation, calls=(call, call))
        body = PROTOCOL.reply_body(conversation, reply)
        assert body == PROTOCOL.reply_body(conversation, reply)
        ids += [body["id"], *(block["id"] for block in body["content"])]
    assert len(set(ids)) == 9


def test_an_endless_reply_is_a_text_that_goes_on() -> None:
    stream = events(b"".join(islice(PROTOCOL.endless_events(CONVERSATION), 50)))
    assert [event["type"] for event in stream[:2]] == ["message_start", "content_block_start"]
    assert {event["type"] for event in stream[2:]} == {"content_block_delta"}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (418, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_errors_have_the_providers_types(status: int, kind: str) -> None:
    assert PROTOCOL.error_body(status, "why")["error"] == {"type": kind, "message": "why"}
    assert PROTOCOL.error_body(status, "")["error"]["message"]


def test_tokens_are_counted_without_a_reply() -> None:
    body = {"messages": [{"role": "user", "content": "12345"}]}
    assert PROTOCOL.side_reply("/v1/messages/count_tokens", body) == {"input_tokens": 2}
    assert PROTOCOL.side_reply("/v1/messages", body) is None

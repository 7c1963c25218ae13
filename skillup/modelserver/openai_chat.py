"""The OpenAI Chat Completions protocol: request JSON to `Conversation`, `Reply` to JSON or server-sent events."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from skillup.modelserver.openai import OpenAIProtocol, arguments, identifier, texts
from skillup.modelserver.protocol import BadRequestError
from skillup.modelserver.source import (
    Conversation,
    JsonObject,
    Msg,
    Reply,
    Role,
    ToolCall,
    ToolOffer,
    make_reply,
)

_ROLES: Final[Mapping[str, Role]] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "user",
}
_STOPS: Final = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}


class OpenAIChat(OpenAIProtocol):
    """`POST /v1/chat/completions`, streaming and not."""

    name = "openai_chat"
    paths = ("/v1/chat/completions", "/chat/completions")

    def conversation(self, path: str, body: JsonObject) -> Conversation:  # noqa: ARG002 - other protocols need the path
        """The request in neutral terms; parts that are not text are left out.

        Raises:
            BadRequestError: `messages` is missing, or one of them has no known role.
        """
        messages = body.get("messages")
        if not isinstance(messages, list):
            raise BadRequestError("messages: expected a list")
        return Conversation(
            messages=tuple(_merged([_message(at, message) for at, message in enumerate(messages)])),
            tools=tuple(
                ToolOffer(str(tool["function"]["name"]), tool["function"].get("parameters") or {})
                for tool in body.get("tools") or []
                if isinstance(tool, dict) and isinstance(tool.get("function"), dict) and "name" in tool["function"]
            ),
            model=str(body.get("model", "")),
            stream=body.get("stream") is True,
        )

    def reply_body(self, conversation: Conversation, reply: Reply) -> JsonObject:
        """The reply as one `chat.completion` object."""
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
        calls = _calls(conversation, reply)
        if calls:
            message["tool_calls"] = calls
        if reply.thinking:
            message["reasoning_content"] = reply.thinking
        choice = {"index": 0, "message": message, "finish_reason": _STOPS[reply.stop], "logprobs": None}
        return _envelope(conversation, reply, "chat.completion") | {"choices": [choice], "usage": _usage(reply)}

    def reply_events(self, conversation: Conversation, reply: Reply) -> Iterator[bytes]:
        """The reply in chunks, to `[DONE]`."""
        envelope = _envelope(conversation, reply, "chat.completion.chunk")

        def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
            return _event({**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more})

        yield chunk({"role": "assistant", "content": ""})
        yield chunk({"content": ""})
        if reply.thinking:
            yield chunk({"reasoning_content": reply.thinking})
        if reply.text:
            yield chunk({"content": reply.text})
        for index, call in enumerate(_calls(conversation, reply)):
            yield chunk({"tool_calls": [{"index": index, **call}]})
        yield chunk({}, _STOPS[reply.stop])
        yield _event({**envelope, "choices": [], "usage": _usage(reply)})
        yield b"data: [DONE]\n\n"

    def endless_events(self, conversation: Conversation) -> Iterator[bytes]:
        """One word after the other."""
        envelope = _envelope(conversation, make_reply(conversation), "chat.completion.chunk")
        for number in itertools.count(1):
            delta = {"index": 0, "delta": {"content": f"{number} "}, "finish_reason": None}
            yield _event({**envelope, "choices": [delta]})


def _message(at: int, message: Any) -> Msg:
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        raise BadRequestError(f"messages[{at}].role: expected one of {', '.join(_ROLES)}")
    said = tuple(texts(message.get("content")))
    if message["role"] == "tool":
        return Msg("user", tool_results=("\n".join(said),))
    calls = tuple(
        ToolCall(str(call["function"].get("name", "")), arguments(call["function"].get("arguments")))
        for call in message.get("tool_calls") or ()
        if isinstance(call, dict) and isinstance(call.get("function"), dict)
    )
    return Msg(_ROLES[message["role"]], said, calls)


def _merged(messages: list[Msg]) -> Iterator[Msg]:
    """The results of one step as one message, as the other protocols have them."""
    for results, group in itertools.groupby(messages, key=lambda message: bool(message.tool_results)):
        if results:
            yield Msg("user", tool_results=tuple(text for message in group for text in message.tool_results))
        else:
            yield from group


def _calls(conversation: Conversation, reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": identifier("call", conversation, [index, call.name, call.args]),
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.args)},
        }
        for index, call in enumerate(reply.calls)
    ]


def _envelope(conversation: Conversation, reply: Reply, kind: str) -> dict[str, Any]:
    said = [reply.text, reply.thinking, [call.name for call in reply.calls]]
    return {
        "id": identifier("chatcmpl", conversation, said),
        "object": kind,
        "created": 0,
        "model": conversation.model,
    }


def _usage(reply: Reply) -> dict[str, Any]:
    usage = reply.usage
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def _event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()

"""The Anthropic Messages protocol: request JSON to `Conversation`, `Reply` to JSON or server-sent events."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from skillup.modelserver.protocol import BadRequestError
from skillup.modelserver.source import (
    Conversation,
    JsonObject,
    Msg,
    Reply,
    Role,
    ToolCall,
    ToolOffer,
    fingerprint,
    make_reply,
    tokens,
)

_MESSAGES: Final = "/v1/messages"
_COUNT_TOKENS: Final = "/v1/messages/count_tokens"

_ROLES: Final[Mapping[str, Role]] = {"user": "user", "assistant": "assistant", "system": "system"}

_ERROR_TYPES: Final[Mapping[int, tuple[str, str]]] = {
    400: ("invalid_request_error", "The request is not valid"),
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Payment is required"),
    403: ("permission_error", "The key lacks the permission"),
    404: ("not_found_error", "Not found"),
    413: ("request_too_large", "The request is too large"),
    429: ("rate_limit_error", "This request would exceed the rate limit"),
    500: ("api_error", "Internal server error"),
    504: ("timeout_error", "The request timed out"),
    529: ("overloaded_error", "Overloaded"),
}

_PIECE_CHARACTERS: Final = 2_000
"""The longest delta: long answers come in several events, as from a real model, short ones cost one."""


class AnthropicMessages:
    """`POST /v1/messages`, streaming and not, and `POST /v1/messages/count_tokens`."""

    name = "anthropic"

    def serves(self, path: str) -> bool:
        """Whether this protocol knows the path."""
        return path in (_MESSAGES, _COUNT_TOKENS)

    def side_reply(self, path: str, body: JsonObject) -> JsonObject | None:
        """The token count, for a request that asks for no more."""
        if path != _COUNT_TOKENS:
            return None
        return {"input_tokens": tokens(self.conversation(path, body).characters)}

    def conversation(self, path: str, body: JsonObject) -> Conversation:  # noqa: ARG002 - other protocols need the path
        """The request in neutral terms. Blocks that hold no text (images, thinking) are left out.

        Raises:
            BadRequestError: `messages` is missing or something in it is not what the protocol says.
        """
        messages = body.get("messages")
        if not isinstance(messages, list):
            raise BadRequestError("messages: Field required")
        return Conversation(
            messages=tuple(_message(f"messages.{at}", message) for at, message in enumerate(messages)),
            tools=tuple(
                ToolOffer(str(tool["name"]), tool.get("input_schema") or {})
                for tool in _objects("tools", body.get("tools") or [])
                if "name" in tool
            ),
            system=_text("system", body.get("system") or ""),
            model=str(body.get("model", "")),
            stream=body.get("stream") is True,
        )

    def reply_body(self, conversation: Conversation, reply: Reply) -> JsonObject:
        """The reply as one `message` object."""
        return _envelope(conversation, reply) | {
            "content": _blocks(conversation, reply),
            "stop_reason": reply.stop,
            "usage": _usage(reply.usage.input_tokens, reply.usage.output_tokens),
        }

    def reply_events(self, conversation: Conversation, reply: Reply) -> Iterator[bytes]:
        """The reply from `message_start` to `message_stop`."""
        yield _event("message_start", message=_envelope(conversation, reply))
        yield _event("ping")
        for index, block in enumerate(_blocks(conversation, reply)):
            yield from _block_events(index, block)
        yield _event(
            "message_delta",
            delta={"stop_reason": reply.stop, "stop_sequence": None},
            usage=_usage(reply.usage.input_tokens, reply.usage.output_tokens),
        )
        yield _event("message_stop")

    def endless_events(self, conversation: Conversation) -> Iterator[bytes]:
        """An opened text block and one word after the other."""
        yield _event("message_start", message=_envelope(conversation, make_reply(conversation)))
        yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for number in itertools.count(1):
            delta = {"type": "text_delta", "text": f"{number} "}
            yield _event("content_block_delta", index=0, delta=delta)

    def error_body(self, status: int, message: str) -> JsonObject:
        """`{"type": "error", "error": {"type": …, "message": …}}`."""
        fallback = _ERROR_TYPES[500 if status >= 500 else 400]
        kind, usual = _ERROR_TYPES.get(status, fallback)
        return {"type": "error", "error": {"type": kind, "message": message or usual}}


def _message(place: str, message: Any) -> Msg:
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        raise BadRequestError(f"{place}.role: Input should be 'user', 'assistant' or 'system'")
    content = message.get("content")
    texts: list[str] = []
    calls: list[ToolCall] = []
    results: list[str] = []
    if isinstance(content, str):
        texts.append(content)
    else:
        for block in _objects(f"{place}.content", content):
            kind = block.get("type")
            if kind == "text":
                texts.append(_text(f"{place}.content", block.get("text")))
            elif kind == "tool_use":
                calls.append(ToolCall(str(block.get("name", "")), block.get("input") or {}))
            elif kind == "tool_result":
                results.append(_text(f"{place}.content", block.get("content") or ""))
    return Msg(_ROLES[message["role"]], tuple(texts), tuple(calls), tuple(results))


def _objects(place: str, value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise BadRequestError(f"{place}: Input should be a list of objects")
    return value


def _text(place: str, value: Any) -> str:
    """Text that is given as a string or as a list of blocks."""
    if isinstance(value, str):
        return value
    return "\n".join(str(block["text"]) for block in _objects(place, value) if "text" in block)


def _usage(input_tokens: int, output_tokens: int) -> dict[str, int]:
    return {
        "input_tokens": input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens,
    }


def _id(prefix: str, conversation: Conversation, content: Any) -> str:
    """An id that a repeated request gets again, and that no other message of the conversation has."""
    return f"{prefix}_{fingerprint([conversation.identity, content])}"


def _envelope(conversation: Conversation, reply: Reply) -> dict[str, Any]:
    """The message before anything of the answer is known, as `message_start` has it."""
    return {
        "id": _id("msg", conversation, [reply.text, reply.thinking, [call.name for call in reply.calls]]),
        "type": "message",
        "role": "assistant",
        "model": conversation.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        # A stream counts output when it has been written: its first event says 1.
        "usage": _usage(reply.usage.input_tokens, 1),
    }


def _blocks(conversation: Conversation, reply: Reply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.thinking:
        signature = fingerprint(["thinking", reply.thinking])
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": signature})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for index, call in enumerate(reply.calls):
        identity = _id("toolu", conversation, [index, call.name, call.args])
        blocks.append({"type": "tool_use", "id": identity, "name": call.name, "input": call.args})
    return blocks


def _block_events(index: int, block: dict[str, Any]) -> Iterator[bytes]:
    kind = block["type"]
    if kind == "tool_use":
        opened = block | {"input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(json.dumps(block["input"]))]
    elif kind == "thinking":
        opened = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    else:
        opened = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
    yield _event("content_block_start", index=index, content_block=opened)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _pieces(text: str) -> list[str]:
    return [text[at : at + _PIECE_CHARACTERS] for at in range(0, len(text), _PIECE_CHARACTERS)]


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind} | fields)}\n\n".encode()

"""The OpenAI Responses protocol: request JSON to `Conversation`, `Reply` to JSON or server-sent events.

A request is a flat list of items. What the model said and called in one go stands as several items there; they are
one assistant message here, so that the step of a script is the same on every protocol.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
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

_CUSTOM: Final = "custom"
_CALLS: Final = ("function_call", "custom_tool_call")
_RESULTS: Final = ("function_call_output", "custom_tool_call_output")


class OpenAIResponses(OpenAIProtocol):
    """`POST /v1/responses`, streaming and not."""

    name = "openai_responses"
    paths = ("/v1/responses", "/responses")

    def conversation(self, path: str, body: JsonObject) -> Conversation:  # noqa: ARG002 - other protocols need the path
        """The request in neutral terms; reasoning items and images are left out.

        Raises:
            BadRequestError: `input` is missing, or something in it is not an item.
        """
        given = body.get("input")
        if isinstance(given, str):
            given = [{"role": "user", "content": given}]
        if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
            raise BadRequestError("input: expected text or a list of items")
        return Conversation(
            messages=tuple(_messages(given)),
            tools=tuple(_offers(body.get("tools") or [])),
            system=str(body.get("instructions") or ""),
            model=str(body.get("model", "")),
            stream=body.get("stream") is True,
        )

    def reply_body(self, conversation: Conversation, reply: Reply) -> JsonObject:
        """The reply as one `response` object."""
        output = list(_items(conversation, reply))
        return _envelope(conversation, reply) | {"status": "completed", "output": output, "usage": _usage(reply)}

    def reply_events(self, conversation: Conversation, reply: Reply) -> Iterator[bytes]:
        """The reply from `response.created` to `response.completed`."""
        envelope = _envelope(conversation, reply)
        yield _event("response.created", response=envelope)
        yield _event("response.in_progress", response=envelope)
        for index, item in enumerate(_items(conversation, reply)):
            yield _event("response.output_item.added", output_index=index, item=_opened(item))
            for part in item.get("content", ()):
                delta = {"item_id": item["id"], "output_index": index, "content_index": 0, "delta": part["text"]}
                yield _event("response.output_text.delta", **delta)
            yield _event("response.output_item.done", output_index=index, item=item)
        yield _event("response.completed", response=self.reply_body(conversation, reply))

    def endless_events(self, conversation: Conversation) -> Iterator[bytes]:
        """An opened message and one word after the other."""
        yield _event("response.created", response=_envelope(conversation, make_reply(conversation)))
        item = {"type": "message", "id": "msg_endless", "role": "assistant", "content": [], "status": "in_progress"}
        yield _event("response.output_item.added", output_index=0, item=item)
        for number in itertools.count(1):
            delta = {"item_id": item["id"], "output_index": 0, "content_index": 0, "delta": f"{number} "}
            yield _event("response.output_text.delta", **delta)


def _messages(items: list[dict[str, Any]]) -> Iterator[Msg]:
    """Items as messages: what the model said and called between two inputs is one."""
    said: list[str] = []
    calls: list[ToolCall] = []
    results: list[str] = []
    for item in items:
        kind, role = item.get("type", "message"), item.get("role")
        if results and kind not in _RESULTS:
            yield Msg("user", tool_results=tuple(results))
            results = []
        if kind == "message" and role == "assistant":
            said += texts(item.get("content"))
        elif kind in _CALLS:
            calls.append(_call(item))
        elif kind == "message" or kind in _RESULTS:
            if said or calls:
                yield Msg("assistant", tuple(said), tuple(calls))
                said, calls = [], []
            if kind in _RESULTS:
                results.append(_result("\n".join(texts(item.get("output")))))
            else:
                neutral: Role = "user" if role == "user" else "system"
                yield Msg(neutral, tuple(texts(item.get("content"))))
    if results:
        yield Msg("user", tool_results=tuple(results))
    if said or calls:
        yield Msg("assistant", tuple(said), tuple(calls))


def _result(text: str) -> str:
    """A tool's output without the header that Codex puts above it (chunk id, wall time, exit code)."""
    if text.startswith("Chunk ID: ") and "\nOutput:\n" in text:
        return text.partition("\nOutput:\n")[2].removesuffix("\n")
    return text


def _call(item: dict[str, Any]) -> ToolCall:
    name = str(item.get("name", ""))
    if item["type"] == "custom_tool_call":
        return ToolCall(name, {"input": item.get("input", "")})
    return ToolCall(name, arguments(item.get("arguments")))


def _offers(tools: Any) -> Iterator[ToolOffer]:
    """The tools of a request; one in a namespace is offered as `namespace__name`."""
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict):
            continue
        if tool.get("type") == "namespace":
            for inner in _offers(tool.get("tools")):
                yield ToolOffer(f"{tool.get('name')}__{inner.name}", inner.schema)
        elif tool.get("type") == _CUSTOM:
            yield ToolOffer(str(tool.get("name")), {"type": _CUSTOM})
        elif "name" in tool:
            yield ToolOffer(str(tool["name"]), tool.get("parameters") or {})


def _envelope(conversation: Conversation, reply: Reply) -> dict[str, Any]:
    said = [reply.text, reply.thinking, [call.name for call in reply.calls]]
    return {
        "id": identifier("resp", conversation, said),
        "object": "response",
        "status": "in_progress",
        "model": conversation.model,
        "output": [],
        "usage": None,
    }


def _items(conversation: Conversation, reply: Reply) -> Iterator[dict[str, Any]]:
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        yield {"type": "reasoning", "id": identifier("rs", conversation, reply.thinking), "summary": summary}
    if reply.text or not (reply.calls or reply.thinking):
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        identity = identifier("msg", conversation, reply.text)
        yield {"type": "message", "id": identity, "role": "assistant", "status": "completed", "content": content}
    custom = {offer.name for offer in conversation.tools if offer.schema.get("type") == _CUSTOM}
    plain = {offer.name for offer in conversation.tools if "__" not in offer.name}
    for index, call in enumerate(reply.calls):
        call_id = identifier("call", conversation, [index, call.name, call.args])
        item: dict[str, Any] = {"id": f"item_{call_id}", "call_id": call_id, "name": call.name, "status": "completed"}
        if call.name in custom:
            yield {"type": "custom_tool_call", **item, "input": str(call.args.get("input", ""))}
            continue
        if call.name not in plain and "__" in call.name:
            namespace, _, name = call.name.rpartition("__")
            item |= {"name": name, "namespace": namespace}
        yield {"type": "function_call", **item, "arguments": json.dumps(call.args)}


def _opened(item: dict[str, Any]) -> dict[str, Any]:
    empty = {"status": "in_progress", "content": [], "arguments": "", "input": "", "summary": []}
    return {key: empty.get(key, value) for key, value in item.items()}


def _usage(reply: Reply) -> dict[str, Any]:
    usage = reply.usage
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind} | fields)}\n\n".encode()

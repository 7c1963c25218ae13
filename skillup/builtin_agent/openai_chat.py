"""The OpenAI Chat Completions API, which most providers and local servers speak: a request, and a reply of either form.

A session keeps its history as the Messages API has it; here it is put into this API's words for each request.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from skillup.builtin_agent.client import Request
from skillup.builtin_agent.faults import MESSAGE_CHARACTERS, NETWORK, ModelError, class_of_status
from skillup.builtin_agent.replies import Reply, Usage, call_block, count_of, object_of, text_of

_DONE = b"[DONE]"
# An error inside a stream has a code or a type where a plain answer has a status.
_STATUS_OF_CODE: Mapping[object, int] = MappingProxyType(
    {
        "invalid_request_error": 400,
        "context_length_exceeded": 400,
        "invalid_api_key": 401,
        "authentication_error": 401,
        "permission_error": 403,
        "model_not_found": 404,
        "rate_limit_exceeded": 429,
        "rate_limit_error": 429,
        "server_overloaded": 503,
    }
)
# Servers differ in what they call the reasoning; none wants it back.
_REASONING = ("reasoning_content", "reasoning")


class ChatCompletions:
    """`POST <address>/chat/completions`; the address ends with the version, as in `https://api.openai.com/v1`."""

    title = "Chat Completions API"
    key_variable = "OPENAI_API_KEY"
    address_variable = "OPENAI_BASE_URL"
    path = "/chat/completions"

    def headers(self, key: str) -> Mapping[str, str]:
        """The key."""
        return {"authorization": f"Bearer {key}"}

    def body(self, request: Request) -> Mapping[str, Any]:
        """The request's JSON. No limit of tokens: its name differs between servers, and all have one of their own."""
        tools = [{"type": "function", "function": _function(tool)} for tool in request.tools]
        return {
            "model": request.model,
            "messages": [{"role": "system", "content": request.system}, *_messages(request.messages)],
            "stream": True,
            "stream_options": {"include_usage": True},
            **({"tools": tools} if tools else {}),
        }

    def streamed(self, events: Iterator[bytes]) -> Reply:
        """The reply of all chunks. It is whole when its reason to finish has come; the counts may follow.

        Raises:
            ModelError: the stream breaks off before that, or tells of a fault.
            ValueError, LookupError, TypeError, AttributeError, RecursionError: it is not of this API.
        """
        growing = _Growing()
        usage: Mapping[str, Any] | None = None
        for data in events:
            if data.strip() == _DONE:
                return growing.reply(usage)
            chunk = object_of(data)
            if chunk.get("error"):
                raise _told(chunk["error"])
            usage = chunk.get("usage") or usage
            for choice in chunk["choices"][:1]:
                growing.add(choice.get("delta") or {}, choice.get("finish_reason"))
        if growing.stop_reason is None:
            raise ModelError(NETWORK, "the model's stream broke off before the end of the reply")
        return growing.reply(usage)

    def whole(self, message: dict[str, Any]) -> Reply:
        """The reply of one `chat.completion` object.

        Raises:
            ModelError: it tells of a fault.
            ValueError, LookupError, TypeError, AttributeError, RecursionError: it is not of this API.
        """
        if message.get("error"):
            raise _told(message["error"])
        growing = _Growing()
        choice = message["choices"][0]
        growing.add(choice["message"], choice.get("finish_reason"))
        return growing.reply(message.get("usage"))


@dataclass(slots=True)
class _Call:
    """A tool call whose arguments may come in pieces."""

    identity: str
    index: object
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Growing:
    """What has come of a reply; pieces are joined once, because adding to a long text again and again is slow."""

    stop_reason: str | None = None
    said: list[str] = field(default_factory=list)
    thought: list[str] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    chunks: int = 0

    def add(self, delta: Mapping[str, Any], stop_reason: object) -> None:
        """Takes in a part of the message, or all of it."""
        self.chunks += 1
        # A refusal that ends the reply as usual is the model's answer.
        self.said += [text_of(delta[name]) for name in ("content", "refusal") if delta.get(name)]
        thoughts = (delta[name] for name in _REASONING if delta.get(name))
        self.thought += [text_of(thought) for thought in list(thoughts)[:1]]
        for part in delta.get("tool_calls") or ():
            self._add_call(part)
        if stop_reason is not None:
            self.stop_reason = text_of(stop_reason)

    def _add_call(self, part: Mapping[str, Any]) -> None:
        """A new id begins a call; anything else goes on with the call of its index."""
        identity, index = part.get("id"), part.get("index")
        if identity and all(call.identity != identity for call in self.calls):
            self.calls.append(_Call(text_of(identity), index))
        call = [call for call in self.calls if index is None or call.index == index][-1]
        function = part["function"]
        call.name = call.name or text_of(function.get("name") or "")
        call.arguments += [text_of(function["arguments"])] if function.get("arguments") else []

    def reply(self, usage: Mapping[str, Any] | None) -> Reply:
        """The whole reply.

        Raises:
            ValueError, TypeError: there was none.
        """
        if not self.chunks:
            raise ValueError("it holds no reply")
        unreadable: dict[str, str] = {}
        said, thought = "".join(self.said), "".join(self.thought)
        content: list[dict[str, Any]] = [{"type": "thinking", "thinking": thought}] if thought else []
        content += [{"type": "text", "text": said}] if said.strip() else []
        for call in self.calls:
            arguments = "".join(call.arguments) or "{}"
            content.append(call_block(call.identity, call.name, arguments, unreadable))
        return Reply(tuple(content), self.stop_reason, _usage(usage or {}), MappingProxyType(unreadable))


def _usage(told: Mapping[str, Any]) -> Usage:
    """Here the prompt's tokens include those that came from a cache; of writing to one this API says nothing."""
    prompt = count_of(told.get("prompt_tokens"))
    cached = count_of((told.get("prompt_tokens_details") or {}).get("cached_tokens"))
    fresh = prompt if prompt is None or cached is None else max(0, prompt - cached)
    return Usage(fresh, count_of(told.get("completion_tokens")), cached, None)


def _told(error: object) -> ModelError:
    """The fault of an error object that came with HTTP 200; some servers send a mere text."""
    known = error if isinstance(error, Mapping) else {"message": error}
    code, kind = known.get("code"), known.get("type")
    status = code if isinstance(code, int) else _STATUS_OF_CODE.get(code) or _STATUS_OF_CODE.get(kind, 500)
    named = next((str(name) for name in (code, kind) if name), "an error")
    message = f"the model API sent {named} in its answer: {known.get('message')}"
    return ModelError(class_of_status(status, known), message[:MESSAGE_CHARACTERS])


def _function(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": tool["name"], "description": tool["description"], "parameters": tool["input_schema"]}


def _messages(history: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """A session's history in this API's words: each tool result is a message, and no thought goes back."""
    for message in history:
        texts = [block["text"] for block in message["content"] if block["type"] == "text"]
        if message["role"] == "assistant":
            calls = [_call(block) for block in message["content"] if block["type"] == "tool_use"]
            if texts or calls:
                said = {"role": "assistant", "content": "".join(texts) or None}
                yield {**said, "tool_calls": calls} if calls else said
            continue
        for block in message["content"]:
            if block["type"] == "tool_result":
                yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": block["content"]}
        for text in texts:
            yield {"role": "user", "content": text}


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": block["name"], "arguments": json.dumps(block["input"])}
    return {"id": block["id"], "type": "function", "function": function}

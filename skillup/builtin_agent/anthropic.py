"""The Anthropic Messages API: what a request looks like, and a reply, streamed or whole."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from skillup.builtin_agent.client import Request
from skillup.builtin_agent.faults import MESSAGE_CHARACTERS, NETWORK, ModelError, class_of_status
from skillup.builtin_agent.replies import Reply, Usage, call_block, count_of, object_of, text_of

API_VERSION = "2023-06-01"
# The most that every current Claude model accepts; a longer answer ends with stop_reason max_tokens.
MAX_TOKENS = 8192

# An error inside a stream has a type where a plain answer has a status; the API documents these pairs.
_STATUS_OF_TYPE: Mapping[str, int] = MappingProxyType(
    {
        "invalid_request_error": 400,
        "authentication_error": 401,
        "billing_error": 402,
        "permission_error": 403,
        "not_found_error": 404,
        "request_too_large": 413,
        "rate_limit_error": 429,
        "api_error": 500,
        "timeout_error": 504,
        "overloaded_error": 529,
    }
)
# Type of a delta -> the member that holds its text, and the member of the block that grows by it.
_DELTAS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "text_delta": ("text", "text"),
        "thinking_delta": ("thinking", "thinking"),
        "signature_delta": ("signature", "signature"),
        "input_json_delta": ("partial_json", "input"),
    }
)


class Messages:
    """`POST <address>/v1/messages`; the history of a session is what this API takes."""

    title = "Messages API"
    key_variable = "ANTHROPIC_API_KEY"
    address_variable = "ANTHROPIC_BASE_URL"
    path = "/v1/messages"

    def headers(self, key: str) -> Mapping[str, str]:
        """Version and key."""
        return {"anthropic-version": API_VERSION, "x-api-key": key}

    def body(self, request: Request) -> Mapping[str, Any]:
        """The request's JSON."""
        return {
            "model": request.model,
            "max_tokens": MAX_TOKENS,
            "system": request.system,
            "messages": request.messages,
            "stream": True,
            **({"tools": request.tools} if request.tools else {}),
        }

    def streamed(self, events: Iterator[bytes]) -> Reply:
        """The reply, from `message_start` to `message_stop`.

        Raises:
            ModelError: the stream breaks off before that, or tells of a fault.
            ValueError, LookupError, TypeError, AttributeError, RecursionError: it is not of this API.
        """
        usage: dict[str, Any] = {}
        stop_reason: str | None = None
        blocks: dict[int, dict[str, Any]] = {}
        grown: dict[tuple[int, str], list[str]] = {}  # joined once: adding to a long text again and again is slow
        for event in map(object_of, events):
            match event["type"]:
                case "message_start":
                    _update(usage, event["message"].get("usage"))
                case "content_block_start":
                    blocks[event["index"]] = dict(event["content_block"])
                case "content_block_delta" if event["delta"]["type"] in _DELTAS:
                    source, target = _DELTAS[event["delta"]["type"]]
                    grown.setdefault((event["index"], target), []).append(event["delta"][source])
                case "message_delta":
                    stop_reason = event["delta"].get("stop_reason", stop_reason)
                    _update(usage, event.get("usage"))
                case "message_stop":
                    for (index, target), parts in grown.items():
                        start = blocks[index].get(target)
                        text = (start if isinstance(start, str) else "") + "".join(parts)
                        blocks[index][target] = text or start
                    return _reply(list(blocks.values()), stop_reason, usage)
                case "error":
                    raise _told(event["error"])
                case _:  # ping, content_block_stop, and what later versions add
                    pass
        raise ModelError(NETWORK, "the model's stream broke off before the end of the reply")

    def whole(self, message: dict[str, Any]) -> Reply:
        """The reply of one `message` object.

        Raises:
            ModelError: it tells of a fault.
            ValueError, LookupError, TypeError, AttributeError, RecursionError: it is not of this API.
        """
        if message.get("type") == "error":
            raise _told(message["error"])
        usage: dict[str, Any] = {}
        _update(usage, message.get("usage"))
        return _reply(message["content"], message.get("stop_reason"), usage)


def _told(error: Mapping[str, Any]) -> ModelError:
    """The fault of an error object that came with HTTP 200."""
    status = _STATUS_OF_TYPE.get(error["type"], 500)
    message = f"the model API sent {error['type']} in its answer: {error.get('message')}"
    return ModelError(class_of_status(status), message[:MESSAGE_CHARACTERS])


def _reply(blocks: list[dict[str, Any]], stop_reason: str | None, usage: Mapping[str, Any]) -> Reply:
    content: list[dict[str, Any]] = []
    unreadable: dict[str, str] = {}
    for block in blocks:
        match block["type"]:
            case "text" if text_of(block["text"]).strip():  # the API refuses a history with a blank text
                content.append({"type": "text", "text": block["text"]})
            case "thinking":
                signature = text_of(block.get("signature", ""))
                content.append({"type": "thinking", "thinking": text_of(block["thinking"]), "signature": signature})
            case "redacted_thinking":
                content.append({"type": "redacted_thinking", "data": text_of(block["data"])})
            case "tool_use":
                content.append(call_block(block["id"], block["name"], block.get("input", {}), unreadable))
            case _:  # a blank text, or a block of a tool that the provider ran itself
                pass
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts = Usage(*(count_of(usage.get(name)) for name in names))
    return Reply(tuple(content), stop_reason and text_of(stop_reason), counts, MappingProxyType(unreadable))


def _update(usage: dict[str, Any], update: Mapping[str, Any] | None) -> None:
    """Take over the counts of a later event: in a stream they are cumulative, the last one is right."""
    usage.update({name: value for name, value in (update or {}).items() if value is not None})

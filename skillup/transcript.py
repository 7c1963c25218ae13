"""One normalised transcript, whatever the engine: messages, tool calls, tool results, usage.

The words are the contract's (§6). `None` always means unknown; it is never 0 and never the empty text.
"""

from __future__ import annotations

import math
import re
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, model_validator

CanonicalTool = Literal[
    "bash",
    "read",
    "write",
    "edit",
    "glob",
    "grep",
    "list",
    "web_fetch",
    "web_search",
    "skill",
    "subagent",
    "todo",
    "ask_user",
    "other",
]
"""The tool names that rules can use on every engine; MCP tools are `mcp:<server>/<tool>` beside them."""

CANONICAL_TOOLS: tuple[str, ...] = get_args(CanonicalTool)

Role = Literal["user", "assistant", "reasoning", "tool_call", "tool_result", "system"]
Source = Literal["case", "simulator", "agent"]
CallStatus = Literal["ok", "error", "denied", "unknown"]
Basis = Literal["stream", "session_file"]
"""Where a tool call was seen: in the CLI's output, or in the file that it keeps of this session alone."""


MAX_DEPTH = 100
"""How deep the arguments of a tool call may nest; writers and readers of JSON give up not far beyond."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def storable(value: Any, depth: int = 0) -> Any:
    r"""Plain data of foreign origin in a form that every reader of UTF-8 JSON takes.

    Half characters (an agent may print `"\ud800"`) become U+FFFD, numbers that JSON does not have become None, and
    what nests deeper than `MAX_DEPTH` becomes a note.
    """
    if isinstance(value, str):
        return value if value.isascii() else _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (dict, list, tuple)) and depth > MAX_DEPTH:
        return f"[left out: nested more than {MAX_DEPTH} deep]"
    if isinstance(value, dict):
        return {storable(key): storable(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [storable(inner, depth + 1) for inner in value]
    return value


class Value(BaseModel):
    """A frozen value that is written to disk and read back; whatever it is made from, it can be written."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_serialization_defaults_required=True)

    @model_validator(mode="before")
    @classmethod
    def _storable(cls, data: Any, info: ValidationInfo) -> Any:
        if info.mode == "json" or not isinstance(data, dict):
            return data  # what was read back is in order since it was written
        return {key: storable(value) for key, value in data.items()}


class ToolCall(Value):
    """One call of a tool by the agent.

    `name` and `raw_arguments` are the engine's own; `tool` is the canonical name (`bash`, `mcp:server/tool`, …) and
    `arguments` are canonical: no shell wrapper, `path` relative to the workspace. `parent` is the id of the call
    that started the subagent which made this call. `status` is `unknown` while no result was seen. `basis` says where
    the call was seen.
    """

    id: str
    name: str
    tool: str
    arguments: dict[str, Any]
    raw_arguments: dict[str, Any]
    status: CallStatus = "unknown"
    parent: str | None = None
    basis: Basis = "stream"

    @property
    def label(self) -> str:
        """What people are shown: the canonical name, or the engine's own where there is none."""
        return self.name if self.tool == "other" else self.tool


class ToolResult(Value):
    """What a tool call gave back, as text."""

    call_id: str
    status: CallStatus
    content: str


class Message(Value):
    """One entry of the transcript.

    `turn` counts from 1. `time` is seconds since the start of the turn at which we saw it. A message holds a tool
    call or a tool result exactly when its role says so.
    """

    role: Role
    turn: int
    source: Source
    text: str = ""
    time: float | None = None
    tool_call: ToolCall | None = None
    tool_result: ToolResult | None = None
    parent: str | None = None


class Usage(Value):
    """Tokens and money of one turn; `basis` says how the figures were got.

    `input_tokens` excludes what was read from or written to a cache. `cost_usd` is what the CLI claims.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None
    basis: Literal["per_turn", "cumulative_delta", "unknown"] = "unknown"

    @property
    def total_tokens(self) -> int | None:
        """Input and output together, caches left out."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


def add_usage(parts: list[Usage]) -> Usage:
    """The sum of several turns; a figure is unknown as soon as one of its parts is."""
    if not parts:
        return Usage()

    def total(values: list[Any]) -> Any:
        return None if any(value is None for value in values) else sum(values)

    return Usage(
        input_tokens=total([part.input_tokens for part in parts]),
        output_tokens=total([part.output_tokens for part in parts]),
        cache_read_tokens=total([part.cache_read_tokens for part in parts]),
        cache_write_tokens=total([part.cache_write_tokens for part in parts]),
        cost_usd=total([part.cost_usd for part in parts]),
        basis=parts[0].basis if len({part.basis for part in parts}) == 1 else "unknown",
    )

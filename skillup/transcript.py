"""One normalised transcript, whatever the engine: messages, tool calls, tool results, usage.

The words are the contract's (§6). `None` always means unknown; it is never 0 and never the empty text.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict

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


class Value(BaseModel):
    """A frozen value that is written to disk and read back."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ToolCall(Value):
    """One call of a tool by the agent.

    `name` and `raw_arguments` are the engine's own; `tool` is the canonical name (`bash`, `mcp:server/tool`, …) and
    `arguments` are canonical: no shell wrapper, `path` relative to the workspace. `parent` is the id of the call
    that started the subagent which made this call. `status` is `unknown` while no result was seen.
    """

    id: str
    name: str
    tool: str
    arguments: dict[str, Any]
    raw_arguments: dict[str, Any]
    status: CallStatus = "unknown"
    parent: str | None = None


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

"""What the output of an agent CLI means, whatever the CLI: the events that engines make of its lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillup.errors import ErrorKind
from skillup.transcript import Basis, CallStatus, Usage


@dataclass(frozen=True)
class SessionSeen:
    """The CLI named its session; `details` is what it said of itself (tools, skills, MCP servers, version, …)."""

    id: str
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Said:
    """A text of the agent; `parent` is the call that started the subagent which said it."""

    text: str
    parent: str | None = None


@dataclass(frozen=True)
class Thought:
    """A reasoning text of the agent."""

    text: str
    parent: str | None = None


@dataclass(frozen=True)
class Called:
    """A tool call: the engine's own `name` and `raw_arguments`, and their canonical forms."""

    id: str
    name: str
    raw_arguments: dict[str, Any]
    tool: str
    arguments: dict[str, Any]
    parent: str | None = None
    basis: Basis = "stream"


@dataclass(frozen=True)
class Returned:
    """The result of a tool call."""

    call_id: str
    status: CallStatus
    content: str
    parent: str | None = None


@dataclass(frozen=True)
class Working:
    """The agent shows that it is alive (a partial message, progress of a subagent) and nothing else."""


@dataclass(frozen=True)
class Waiting:
    """The CLI waits for the model: not a sign of the agent at work."""


@dataclass(frozen=True)
class EngineFault:
    """What went wrong on the way to the provider or in the CLI, as its structured output says: see `engines/faults.py`.

    `retry_after` is the pause in seconds for which the provider asked, `resets_at` when a limit that was reached ends,
    in seconds since 1970. `doubt` orders how the kind is known: 0 by the CLI's class, 3 by nothing that it said.
    """

    kind: ErrorKind
    message: str
    hint: str = ""
    retry_after: float | None = None
    resets_at: float | None = None
    doubt: int = 0

    def wait(self, now: float) -> float | None:
        """The seconds from `now` until the provider may be asked again; None where it says nothing of that."""
        return self.retry_after if self.resets_at is None else max(0.0, self.resets_at - now)


@dataclass(frozen=True)
class Retrying:
    """The CLI met a fault and tries again, after so many seconds where it says so."""

    fault: EngineFault
    attempt: int
    delay: float | None = None


@dataclass(frozen=True)
class Failing:
    """The CLI says that a request failed for good; the `Finished` that follows says whether the turn did."""

    fault: EngineFault


@dataclass(frozen=True)
class LimitReached:
    """The CLI says that a limit of the account is reached and when that ends; whether the turn fails is to be seen."""

    resets_at: float


@dataclass(frozen=True)
class Withheld:
    """The CLI kept a tool from the agent because of how it was set up: however the turn ends, it measures nothing."""

    fault: EngineFault


@dataclass(frozen=True)
class Noted:
    """Something that a reader of the report should know: `name` is a short word, `text` a sentence."""

    name: str
    text: str


@dataclass(frozen=True)
class Finished:
    """The CLI's final word on the turn; a later one replaces an earlier one.

    `text` is the answer, None when the CLI gave none. `fault` is set when the turn failed, `limit` when the agent ran
    into a limit of the CLI's own (`steps`, `cost`). `denied` are ids of calls that were refused for lack of permission.
    `steps` are the replies of the model that the turn took, None where the CLI does not say.
    """

    text: str | None
    usage: Usage
    fault: EngineFault | None = None
    limit: str | None = None
    denied: tuple[str, ...] = ()
    steps: int | None = None


Event = (
    SessionSeen
    | Said
    | Thought
    | Called
    | Returned
    | Working
    | Waiting
    | Retrying
    | Failing
    | Withheld
    | LimitReached
    | Noted
    | Finished
)


def inside_workspace(path: str, workspace: Path) -> str:
    """A tool's path relative to the workspace where it lies in it, else unchanged."""
    prefix = f"{workspace}/"
    if path.startswith(prefix):
        return path[len(prefix) :]
    return path.removeprefix("./") or path

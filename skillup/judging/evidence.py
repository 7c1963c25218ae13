"""What rules look at: the saved, masked trial, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skillup.environments.snapshot_log import SavedEntry, SavedSnapshots
from skillup.results import TrialRecord, TurnRecord
from skillup.transcript import ToolCall

_RAN = ("completed", "failed", "timed_out", "limit", "error")
_COMPLETE = ("completed", "failed")


@dataclass(frozen=True)
class Evidence:
    """A trial's record with its snapshots; `ignore_case` is the case's default for texts."""

    record: TrialRecord
    snapshots: SavedSnapshots
    ignore_case: bool = False

    @property
    def turns(self) -> tuple[TurnRecord, ...]:
        """The turns that ran, whole or cut."""
        return tuple(turn for turn in self.record.turns if turn.status in _RAN)

    def turn(self, number: int) -> TurnRecord | None:
        """A turn that ran, by number."""
        return next((turn for turn in self.turns if turn.number == number), None)

    def complete(self, turn: TurnRecord) -> bool:
        """Whether the turn came to its end, so that absence can be told."""
        return turn.status in _COMPLETE or (turn.status == "error" and turn.response is not None)

    @property
    def all_complete(self) -> bool:
        """Whether every turn that ran came to its end."""
        return bool(self.turns) and all(self.complete(turn) for turn in self.turns)

    def tree(self, turn: int) -> Mapping[str, SavedEntry] | None:
        """What the workspace held after a turn (0: before the first), or None when no snapshot was taken."""
        return self.snapshots.tree(turn)

    @property
    def final_turn(self) -> int | None:
        """The last turn that has a snapshot; 0 is the workspace before the first turn."""
        return self.snapshots.last_turn


def calls_of(turn: TurnRecord) -> tuple[ToolCall, ...]:
    """The tool calls of one turn, those of subagents included."""
    return tuple(message.tool_call for message in turn.messages if message.tool_call)

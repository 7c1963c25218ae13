"""What rules look at: the saved, masked trial, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from skillup.environments.snapshot_log import SavedEntry, SavedSnapshots
from skillup.judging.outcome import Outcome
from skillup.results import TrialRecord, TurnRecord
from skillup.spec.rules import Rule
from skillup.transcript import ToolCall


@dataclass(frozen=True)
class Evidence:
    """A trial's record with its snapshots; `ignore_case` is the case's default for texts."""

    record: TrialRecord
    snapshots: SavedSnapshots
    ignore_case: bool = False

    @property
    def turns(self) -> tuple[TurnRecord, ...]:
        """The turns that took place, whole or cut; not one that a fault kept from beginning."""
        return tuple(turn for turn in self.record.turns if took_place(turn))

    def turn(self, number: int) -> TurnRecord | None:
        """A turn that took place, by number."""
        return next((turn for turn in self.turns if turn.number == number), None)

    def complete(self, turn: TurnRecord) -> bool:
        """Whether the turn came to its end, so that absence can be told. One whose capture failed did."""
        if turn.status == "error":
            return any(failure.kind == "capture" and failure.turn == turn.number for failure in self.record.failures)
        return turn.status in ("completed", "failed")

    def all_complete(self, turns: Sequence[TurnRecord]) -> bool:
        """Whether every one of these turns came to its end."""
        return all(self.complete(turn) for turn in turns)

    def more_unseen(self, turns: Sequence[TurnRecord], said: str) -> Outcome | None:
        """Unknown, when the agent may have said and done more in these turns than there is of it; `said` is that."""
        if not self.all_complete(turns):
            return Outcome("unknown", f"{said}; but the turn was cut", "incomplete")
        missing = next((why for turn in turns for why in not_seen(turn)), None)
        return Outcome("unknown", f"{said}; but {missing}", "unobservable") if missing else None

    def tree(self, turn: int) -> Mapping[str, SavedEntry] | None:
        """What the workspace held after a turn (0: before the first), or None when no snapshot was taken."""
        return self.snapshots.tree(turn)

    def named_by(self, rule: Rule) -> tuple[TurnRecord, ...] | Outcome:
        """The turns that a rule is about, or why none of them can be judged.

        `turn: N` and `turn: last` name one turn of the case, whether it took place or not; `any` and no `turn` are
        about the conversation that took place.
        """
        number = self.record.turns_total if rule.turn == "last" else rule.turn
        if isinstance(number, int):
            turn = self.turn(number)
            return (turn,) if turn else self.absent(number)
        return self.turns or self.absent(1)

    def missing(self) -> Outcome | None:
        """Why there is no whole conversation to judge; None when there is."""
        ending = self.record.ending
        if ending.by_skip:
            return Outcome("unknown", f"the conversation was ended: {ending.reason}", "skip_gate")
        if not ending.whole or not self.turns:
            return Outcome("unknown", f"nothing was judged: {ending.reason or 'no turn took place'}", "not_reached")
        return None

    def absent(self, number: int) -> Outcome:
        """Why a turn cannot be judged: it did not take place."""
        ending = self.record.ending
        if ending.by_skip:
            return Outcome("unknown", f"turn {number} was skipped: {ending.reason}", "skip_gate")
        why = ending.reason or "the conversation ended before"
        return Outcome("unknown", f"turn {number} did not take place: {why}", "not_reached")


def took_place(turn: TurnRecord) -> bool:
    """Whether the agent was started for this turn."""
    if turn.status == "error":
        return turn.changes is not None or bool(turn.messages)
    return turn.status != "skipped"


def not_seen(turn: TurnRecord) -> Iterator[str]:
    """What the agent may have said and done in a turn beyond what there is of it."""
    if turn.stream_corrupt is not None and turn.stream_corrupt.lost:
        yield f"more may be lost in the damaged output of turn {turn.number}"
    if turn.messages_left_out:
        yield f"{turn.messages_left_out:,} messages of turn {turn.number} are not kept"


def calls_of(turn: TurnRecord) -> tuple[ToolCall, ...]:
    """The tool calls of one turn, those of subagents included."""
    return tuple(message.tool_call for message in turn.messages if message.tool_call)

"""The events of one turn, folded into its transcript as they come, with what is needed to tell work from waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from skillup.engines.events import (
    Called,
    EngineFault,
    Event,
    Failing,
    Finished,
    LimitReached,
    Noted,
    Retrying,
    Returned,
    Said,
    SessionSeen,
    Thought,
    Withheld,
    Working,
)
from skillup.engines.faults import surer, with_reset
from skillup.execution.kept_messages import KeptMessages
from skillup.results import StreamDamage
from skillup.transcript import Message, ToolCall, ToolResult

MAX_DAMAGE_NOTES = 5
"""Damaged lines are counted, and this many of them shown."""

MAX_DAMAGED = 100_000
"""After so many lines that are none of its format a CLI does not speak it, or runs wild: the turn is ended."""

_MAX_LISTED = 1000
"""Notes, sessions and tasks of one turn: more say nothing new, and a CLI that runs wild may print millions."""

_SAMPLE_BYTES = 80

_ANSWER_LOST = EngineFault("output", "the output is damaged behind the last text, so the answer may be lost")

_BY_MODEL = frozenset({"subagent"})
"""Tools whose open call is no sign of work: what a subagent does shows in events of its own, or its model is silent."""


@dataclass
class TurnStream:
    """What a turn's events amount to so far. Times are seconds since the turn began.

    `cut_at` is set when we ended the turn: what calls
    returned after it is the CLI's answer to that, and says nothing of the agent. `closing` is set when the time is up:
    the final word that is there, or the one that comes next, is the last. A CLI that is interrupted ends its background
    tasks, asks the model about them, and would replace the answer, or a limit that was reached, by what it says then.
    `hopeless` says why nothing more is to be expected of the output. `finished_at` is when the final word came,
    `last_event` when anything did. `waits_until` is when the CLI tries again what failed, where it said so.
    `on_trouble` is told each fault that the CLI tells, the moment that it does.
    """

    turn: int
    on_trouble: Callable[[EngineFault], None] = lambda _: None
    session_ids: list[str] = field(default_factory=list)
    details: dict[str, object] = field(default_factory=dict)
    finished: Finished | None = None
    cut_at: float | None = None
    closing: bool = False
    hopeless: str = ""
    finished_at: float = 0.0
    last_event: float = 0.0
    waits_until: float | None = None
    _damaged: int = 0
    _lost: int = 0
    _first_damage: int = 0
    _lost_since_said: bool = False
    _open: set[str] = field(default_factory=set)
    _open_at_end: frozenset[str] = frozenset()
    _stopped: list[str] = field(default_factory=list)
    _last_said: str | None = None
    _last_work: float | None = None
    _trouble: EngineFault | None = None
    _failing: EngineFault | None = None
    _withheld: EngineFault | None = None
    _retried: EngineFault | None = None
    _resets_at: float | None = None
    _trouble_since: float | None = None
    _retries: Counter[str] = field(default_factory=Counter)
    _notes: list[str] = field(default_factory=list)
    _kept: KeptMessages = field(init=False)

    def __post_init__(self) -> None:
        self._kept = KeptMessages(self.turn)

    def add(self, event: Event, at: float) -> None:
        """Takes one event in."""
        self.last_event = at
        if self.closing and self.finished is not None and not isinstance(event, Noted):
            return
        match event:
            case Said() | Thought() | Called() | Returned():
                self._transcribe(event, at)
            case SessionSeen():
                self.finished = None  # a CLI that names its session again goes on: another final word is to come
                if event.id not in self.session_ids and len(self.session_ids) < _MAX_LISTED:
                    self.session_ids.append(event.id)
                self.details = event.details or self.details
            case Retrying() | Failing() | Withheld():
                self._went_wrong(event, at)
            case LimitReached():
                self._resets_at = event.resets_at
            case Noted():
                self._note(event)
            case Finished():
                self.finished, self.finished_at = event, at
                self._open_at_end = frozenset(self._open)
                self._open.clear()
                if self.fault is not None:
                    self.on_trouble(self.fault)
        if isinstance(event, (Said, Thought, Called, Returned, Working)):
            self._last_work, self._trouble, self._failing, self._trouble_since = at, None, None, None
            self.waits_until = None
        elif self._trouble is not None and self._trouble_since is None:
            self._trouble_since = at

    def _transcribe(self, event: Said | Thought | Called | Returned, at: float) -> None:
        match event:
            case Said():
                self._kept.say("assistant", at, event.text, event.parent)
                if event.parent is None:
                    self._last_said, self._lost_since_said = event.text, False
            case Thought():
                self._kept.say("reasoning", at, event.text, event.parent)
            case Called() if event.id in self._kept.calls:
                pass  # a CLI may show a call again when it is done
            case Called():
                call = ToolCall(
                    id=event.id,
                    name=event.name,
                    tool=event.tool,
                    arguments=event.arguments,
                    raw_arguments=event.raw_arguments,
                    parent=event.parent,
                    basis=event.basis,
                )
                if event.tool not in _BY_MODEL and len(self._open) < _MAX_LISTED:
                    self._open.add(event.id)
                self._kept.call(at, call)
            case Returned():
                self._open.discard(event.call_id)
                result = ToolResult(call_id=event.call_id, status=event.status, content=event.content)
                self._kept.result(at, result, event.parent)

    def _went_wrong(self, event: Retrying | Failing | Withheld, at: float) -> None:
        match event:
            case Retrying():
                self._retries[event.fault.kind] += 1
                self._trouble = self._retried = event.fault
                self.waits_until = None if event.delay is None else at + event.delay
            case Failing():
                self._trouble = self._failing = event.fault
                self.waits_until = None
            case Withheld():
                self._withheld = self._withheld or event.fault
                return
        self.on_trouble(self.trouble or event.fault)

    def _note(self, event: Noted) -> None:
        if event.name != "unfinished_background":
            listed, text = self._notes, f"{event.name}: {event.text}"
        elif self.finished is not None:
            # Before the answer it is a task that the agent stopped itself, or one of an earlier turn.
            listed, text = self._stopped, event.text
        else:
            return
        if len(listed) < _MAX_LISTED:
            listed.append(text)

    def damaged(self, line: bytes, why: str, position: int, *, lost: bool) -> None:
        """Notes a line that was not as it should be; `position` is its first byte, `lost` that it may hide an event."""
        self._first_damage = self._first_damage if self._damaged else position
        self._damaged += 1
        self._lost += lost
        self._lost_since_said = self._lost_since_said or lost
        if self._damaged > MAX_DAMAGED:
            self.hopeless = f"printed more than {MAX_DAMAGED:,} lines that are none of its format"
        if self._damaged <= MAX_DAMAGE_NOTES:
            self._notes.append(f"stream_corrupt: at byte {position:,}: {why}{_sample(line)}")

    @property
    def damage(self) -> StreamDamage | None:
        """What was wrong with the output, if anything was."""
        if not self._damaged:
            return None
        return StreamDamage(count=self._damaged, first_position=self._first_damage, lost=self._lost)

    @property
    def fault(self) -> EngineFault | None:
        """Why the turn failed, as the CLI says in its final word and in the error event before it."""
        if self.finished is None:
            return None
        fault = self._failing if self._ends_well_without_an_answer else self.finished.fault
        if fault is None:
            lost = _ANSWER_LOST if self._lost_since_said and not self.finished.text else None
            return self._withheld or lost
        return with_reset(surer(fault, self._failing), self._retried, self._resets_at)

    @property
    def _ends_well_without_an_answer(self) -> bool:
        """Whether the CLI says that all is well although a request had failed for good, and nothing came after that."""
        if self.finished is None or self.finished.fault is not None or self._failing is None:
            return False
        return self.finished.text in (None, "", self._failing.message)

    @property
    def unfinished(self) -> tuple[str, ...]:
        """What the CLI ended of its own after the answer: tasks, and calls that had no result when it gave that."""
        well = self.finished is not None and self.finished.fault is None and self.finished.limit is None
        left = self._open_at_end - self._kept.returned.keys() if well and self.cut_at is None else frozenset[str]()
        calls = (call for call in self._kept.calls.values() if call.id in left)
        shown = (call.arguments.get("command", call.label) for call in calls)
        return (*self._stopped, *(f"{what} (had not ended when the turn did)" for what in shown))

    @property
    def failing(self) -> EngineFault | None:
        """The last fault that the CLI called its end, where no sign of work followed."""
        return self._failing and with_reset(self._failing, self._retried, self._resets_at)

    @property
    def trouble(self) -> EngineFault | None:
        """The last fault that was followed by no sign of work."""
        return self._trouble and with_reset(self._trouble, self._retried, self._resets_at)

    def in_trouble_for(self, now: float) -> float:
        """Seconds since the first fault that was followed by no sign of work; 0 when there is none."""
        return 0.0 if self._trouble_since is None else now - self._trouble_since

    @property
    def tool_runs(self) -> bool:
        """Whether a tool runs that may take as long as it likes."""
        return bool(self._open)

    @property
    def answer(self) -> str | None:
        """The agent's answer: the CLI's final word, or the last text where that is empty (some CLIs lose it)."""
        final = None if self.finished is None or self._ends_well_without_an_answer else self.finished.text
        return final or (final if self._last_said is None else self._last_said)

    def at_work(self, now: float, window: float) -> bool:
        """Whether the agent was working: a tool ran, or it showed a sign of work in the last `window` seconds."""
        if self._trouble is not None:
            return False
        return bool(self._open) or (self._last_work is not None and now - self._last_work <= window)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The transcript, every call with the status of its result."""
        denied = frozenset(self.finished.denied) if self.finished else frozenset()
        return self._kept.messages(denied, self.cut_at)

    @property
    def left_out(self) -> int:
        """How many messages were too many to be kept."""
        return self._kept.left_out

    @property
    def notes(self) -> tuple[str, ...]:
        """What was out of the ordinary."""
        retried = [f"retried: {kind} ×{count}" for kind, count in sorted(self._retries.items())]
        more = self._damaged - MAX_DAMAGE_NOTES
        rest = [f"stream_corrupt: {more} more damaged lines"] if more > 0 else []
        rest += [f"messages_left_out: {self.left_out:,} of this turn are not kept"] if self.left_out else []
        left = [f"unfinished_background: {text}" for text in self.unfinished]
        return (*retried, *dict.fromkeys(self._notes), *left, *rest)


def _sample(line: bytes) -> str:
    """The beginning of a damaged line, in whole words: of a part of a secret nobody could tell that it is one."""
    text = line[:_SAMPLE_BYTES].decode("utf-8", errors="replace")
    shown = text if len(line) <= _SAMPLE_BYTES else text.rpartition(" ")[0]
    return f": {''.join(one if one.isprintable() else ' ' for one in shown).strip()}" if shown.strip() else ""

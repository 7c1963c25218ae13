"""What a trial's folder holds from before: attempts that ended, those that were torn, and what they took.

All of it comes from the files of the trial, which are written whole or not at all; the journal is not asked.

    attempt-N/result.json       the attempt ended, and was judged
    attempt-N/record.json       its conversation ended, and is to be judged
    attempt-N/ without both     it was torn when skillup died: what is there stays, and counts for nothing but its cost
    result.json                 the trial ended
    earlier/result-N.json       it had ended with attempt N, and was opened again
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from skillup.execution.store import move, read_model
from skillup.results import SavedTurn, TornAttempt, TrialResult
from skillup.transcript import add_usage

_ATTEMPT = re.compile(r"attempt-([1-9][0-9]*)")
"""The folder of an attempt; beside it may lie what somebody has copied for a look."""

_EARLIER = re.compile(r"result-([1-9][0-9]*)\.json")


def has_record(attempt_folder: Path) -> bool:
    """Whether the conversation of an attempt ended, and all of it is on disk."""
    return (attempt_folder / "record.json").exists()


def attempts_in(trial: Path) -> tuple[int, ...]:
    """The numbers of a trial's attempts, in order, however they ended."""
    names = (_ATTEMPT.fullmatch(path.name) for path in trial.glob("attempt-*"))
    return tuple(sorted(int(name[1]) for name in names if name))


@dataclass(frozen=True)
class SavedTrial:
    """The attempts at a trial from before, by their numbers, in order.

    `whole` have a conversation that ended, `torn` were cut off. Attempts up to `settled` had given the trial a result
    before it was opened again: the retry policy does not count them. `repeated` is how often the judging of the
    others has been done again, for which it stands in, too.
    """

    folder: Path
    whole: tuple[int, ...] = ()
    torn: tuple[int, ...] = ()
    settled: int = 0
    repeated: int = 0

    @property
    def last(self) -> int:
        """The highest number of an attempt; 0 when there is none."""
        return max((*self.whole, *self.torn), default=0)


def saved_trial(trial: Path) -> SavedTrial:
    """What there is of a trial; nothing where it has not begun. No attempt at it may be running."""
    numbers = attempts_in(trial)
    whole = tuple(number for number in numbers if has_record(trial / f"attempt-{number}"))
    earlier = (_EARLIER.fullmatch(path.name) for path in trial.glob("earlier/result-*.json"))
    settled = max((int(name[1]) for name in earlier if name), default=0)
    torn = tuple(number for number in numbers if number not in whole)
    judged = (trial / f"attempt-{number}" / "revisions" for number in whole if number > settled)
    return SavedTrial(trial, whole, torn, settled, sum(len(list(folder.glob("*"))) for folder in judged))


def reopen(trial: Path) -> None:
    """Takes a trial that has ended for one that has not: it is run once more, and its result so far is kept.

    Raises:
        OSError: it cannot be moved.
    """
    move(trial / "result.json", trial / "earlier" / f"result-{max(attempts_in(trial), default=0)}.json")


def torn_attempts(trial: Path) -> tuple[TornAttempt, ...]:
    """The attempts that were torn, with what their finished turns took; what the torn turn took nobody knows.

    Raises:
        RunDirectoryError: a saved turn is damaged.
    """
    return tuple(_torn(trial / f"attempt-{number}", number) for number in saved_trial(trial).torn)


def ended_attempts(trial: Path) -> dict[Path, TrialResult]:
    """The attempts that ended and were judged, by their folders.

    Raises:
        RunDirectoryError: the result of one is damaged.
    """
    folders = (trial / f"attempt-{number}" for number in saved_trial(trial).whole)
    results = ((folder, folder / "result.json") for folder in folders)
    return {folder: read_model(result, TrialResult) for folder, result in results if result.exists()}


def finished_turns(attempt_folder: Path) -> tuple[SavedTurn, ...]:
    """The turns of an attempt that ended, in order; there is none before the first.

    Raises:
        RunDirectoryError: one of them is damaged.
    """
    turns = [read_model(path, SavedTurn) for path in attempt_folder.glob("turn-*/turn.json")]
    return tuple(sorted(turns, key=lambda turn: turn.number))


def _torn(folder: Path, number: int) -> TornAttempt:
    turns = finished_turns(folder)
    usage = add_usage([turn.usage for turn in turns])
    return TornAttempt(
        attempt=number,
        turns=len(turns),
        duration_ms=sum(turn.duration_ms for turn in turns),
        usage=usage,
        cost_usd=usage.cost_usd,
        folder="/".join(folder.parts[-5:]),
    )

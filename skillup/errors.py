"""Everything that skillup raises on purpose.

    SkillupError                 message + hint
    ├─ InputError                a file or an option of the user's; holds every Fault found            exit 2
    ├─ TrialError                this trial cannot go on: one `kind` of a closed list                  status ERROR
    ├─ RunDirectoryError         the run directory cannot be written, or read back                     exit 2
    └─ Cancelled                 the user asked us to stop                                             exit 130

What the *agent* does wrong is never an exception: it is data in the trial's record. Anything that is raised
and stands not in this tree is a bug of ours (ERROR `internal`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

ErrorKind = Literal[
    "setup",
    "environment",
    "engine_missing",
    "auth",
    "quota",
    "rate_limit",
    "overloaded",
    "request",
    "network",
    "timeout",
    "crash",
    "output",
    "session",
    "capture",
    "template",
    "simulator",
    "judge",
    "unobservable",
    "internal",
]
"""Why a trial ended in ERROR; the closed list of the contract."""

ERROR_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)

Phase = Literal["plan", "setup", "conversation", "judging"]
"""Which part of a trial an error belongs to."""


class SkillupError(Exception):
    """An expected failure: what happened, and what to do next."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True, order=True)
class Fault:
    """One thing wrong with one place of a file of the user's.

    `line` and `column` count from 1 and are 0 when the place is unknown; `key` is the path of the key, such as
    `input.turns[2].post_condition`, and empty for a fault of the whole file.
    """

    path: str
    line: int
    column: int
    key: str
    message: str
    hint: str = ""


class InputError(SkillupError):
    """Files or options that cannot be used. Nothing has been started and nothing written."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(sorted(set(faults)))
        count = len(self.faults)
        super().__init__(f"{count} fault{'' if count == 1 else 's'} in the input")


class TrialError(SkillupError):
    """A trial cannot go on because of us, the machine or the provider, never because of the agent.

    `turn` is the 1-based turn, or None outside the turns; `tail` is the end of what the process said;
    `retry_after` is what the provider asked for, in seconds.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        phase: Phase = "conversation",
        turn: int | None = None,
        hint: str = "",
        tail: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind: ErrorKind = kind
        self.phase: Phase = phase
        self.turn = turn
        self.tail = tail
        self.retry_after = retry_after


class ModelCallError(SkillupError):
    """A model that we call ourselves, to judge a trial, gave no answer.

    `kind` says why, in the words of a trial's errors: what the judge's provider cannot do is no fault of the agent's.
    `retry_after` is in seconds; `streams` is where an agent's CLI left what it printed.
    """

    def __init__(
        self, kind: ErrorKind, message: str, *, hint: str = "", retry_after: float | None = None, streams: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind: ErrorKind = kind
        self.retry_after = retry_after
        self.streams = streams


class RunDirectoryError(SkillupError):
    """A run directory cannot be written, or is not one that we can read."""


class Cancelled(SkillupError):
    """The user stopped the run; what was finished is on disk."""

    def __init__(self) -> None:
        super().__init__("stopped by the user")


def kind_of_status(status: int) -> ErrorKind:
    """What an HTTP status of the provider means, whoever met it; 4xx that say nothing else are `request`."""
    if status in (401, 403):
        return "auth"
    if status == 402:
        return "quota"
    if status == 429:
        return "rate_limit"
    return "overloaded" if status >= 500 else "request"

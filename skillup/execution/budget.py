"""What a run has taken so far, and whether another trial, or another attempt at one, may begin."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from skillup.results import AttemptResult, TornAttempt, TrialResult
from skillup.spec.budget import Budget

NO_BUDGET = Budget()

Tried = TrialResult | AttemptResult | TornAttempt
"""One attempt at a trial, however it ended."""


@dataclass(frozen=True)
class _Taken:
    """What one attempt and its judging took, as far as that is known; `unsaid` figures are not 0 but unknown.

    `silent` says of which of the two figures of its own, without judging, an attempt of this very run said nothing.
    """

    folder: str
    cost_usd: float
    tokens: int
    cost_unsaid: bool
    tokens_unsaid: bool
    silent: tuple[bool, bool]


class RunBudget:
    """The budget of a run and what was taken of it, judging included. May be used from any thread."""

    def __init__(self, most: Budget = NO_BUDGET) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._taken: dict[Path, _Taken] = {}

    def add(self, folder: Path, tried: Tried, *, earlier: bool = False) -> None:
        """Counts the attempt kept in a folder; one that is counted again, because it was judged again, counts once.

        An `earlier` one is from before the run was resumed: what it did not say keeps nobody from going on.
        """
        with self._lock:
            self._taken[folder] = _taken(tried, earlier=earlier)

    @property
    def reached(self) -> str:
        """Which limit is reached, or that nobody can tell, in words; empty while there is something left."""
        with self._lock:
            taken = tuple(self._taken.values())
        most = self._most
        cost, tokens = sum(one.cost_usd for one in taken), sum(one.tokens for one in taken)
        seconds = time.monotonic() - self._began
        if most.max_cost_usd is not None and cost >= most.max_cost_usd:
            unsaid = _unsaid(sum(one.cost_unsaid for one in taken), "cost")
            return f"max_cost_usd of the run: ${cost:.4f} of ${most.max_cost_usd:.4f} spent{unsaid}"
        if most.max_tokens is not None and tokens >= most.max_tokens:
            unsaid = _unsaid(sum(one.tokens_unsaid for one in taken), "used")
            return f"max_tokens of the run: {tokens:,} of {most.max_tokens:,} used{unsaid}"
        if most.max_seconds is not None and seconds >= most.max_seconds:
            return f"max_seconds of the run: {seconds:.0f} s of {most.max_seconds:g} s have passed"
        return self.unknown

    @property
    def unknown(self) -> str:
        """Why nobody can tell whether the limit of money, or tokens, is reached, in words; empty where all is known."""
        with self._lock:
            taken = tuple(self._taken.values())
        for one in taken:
            cost_silent, tokens_silent = one.silent
            for most, silent, what in (
                (self._most.max_cost_usd, cost_silent, "what it cost"),
                (self._most.max_tokens, tokens_silent, "how many tokens it used"),
            ):
                if most is not None and silent:
                    return f"the budget cannot be held to: {one.folder} did not say {what}"
        return ""


def _taken(tried: Tried, *, earlier: bool) -> _Taken:
    judging = None if isinstance(tried, TornAttempt) else tried.judging
    torn = isinstance(tried, TornAttempt)  # what its last turn took is in no figure
    idle = isinstance(tried, TrialResult) and _never_began(tried)
    cost, tokens = tried.cost_usd, tried.usage.total_tokens
    return _Taken(
        folder=tried.folder,
        cost_usd=(cost or 0.0) + (judging.known_cost_usd if judging else 0.0),
        tokens=(tokens or 0) + (judging.known_tokens if judging else 0),
        cost_unsaid=torn or (cost is None and not idle) or (judging is not None and judging.cost_usd is None),
        tokens_unsaid=torn or (tokens is None and not idle) or (judging is not None and judging.total_tokens is None),
        silent=(False, False) if earlier or idle else (cost is None, tokens is None),
    )


def _never_began(tried: TrialResult) -> bool:
    """Whether no CLI was started, so that nothing was taken; one that was lost in its first turn has no turn, too."""
    error = tried.error
    before = error is None or error.phase in ("plan", "setup") or error.kind == "engine_missing"
    return tried.turns == 0 and before


def _unsaid(count: int, what: str) -> str:
    """How many attempts may have taken more than is known."""
    return f", and {count} attempt{'' if count == 1 else 's'} did not say what all of it {what}" if count else ""

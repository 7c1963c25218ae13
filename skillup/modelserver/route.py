"""One trial's way into the server: its secret address, where its replies come from, and what it has asked."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from skillup.modelserver.source import Answer, Fault, JsonObject, Source
from skillup.modelserver.tool_service import ToolService

_PREFIX_BYTES = 16
"""Randomness of a prefix: nobody on this machine guesses another trial's address."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request that a route received.

    `path` begins below the prefix and has no query. `time` is in seconds since the epoch. `body` is parsed
    JSON, None without one. `outcome` says in words how it was answered; `entry` and `step` (from 1) and
    `fault` say which part of the source did.
    """

    method: str
    path: str
    time: float
    body: JsonObject | None
    outcome: str
    entry: int | None = None
    step: int | None = None
    fault: Fault | None = None

    @classmethod
    def now(
        cls,
        method: str,
        path: str,
        outcome: str,
        *,
        body: JsonObject | None = None,
        answer: Answer | None = None,
    ) -> RecordedRequest:
        """A request that has just come."""
        if answer is None:
            return cls(method, path, time.time(), body, outcome)
        return cls(method, path, time.time(), body, outcome, answer.entry, answer.step, answer.fault)


@dataclass(eq=False)
class Route:
    """One trial's base address and the requests that came by it. Safe for many threads.

    It leads to a model (`source`) or to tools, never to both.
    """

    origin: str
    source: Source | None
    workspace: Path
    tools: ToolService | None = None
    prefix: str = field(default_factory=lambda: secrets.token_urlsafe(_PREFIX_BYTES))
    closed: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _requests: list[RecordedRequest] = field(default_factory=list, repr=False)
    _unmatched: list[str] = field(default_factory=list, repr=False)
    _open: dict[int, float] = field(default_factory=dict, repr=False)
    sent_at: float = 0.0

    @property
    def base_url(self) -> str:
        """The address to give to the agent, without a slash at the end."""
        return f"{self.origin}/{self.prefix}"

    @property
    def requests(self) -> tuple[RecordedRequest, ...]:
        """All requests so far, in the order in which they were answered; readable after closing, too."""
        with self._lock:
            return tuple(self._requests)

    @property
    def unmatched(self) -> tuple[str, ...]:
        """Short descriptions of the requests that the source had no answer for, in order."""
        with self._lock:
            return tuple(self._unmatched)

    def open_since(self, moment: float) -> float | None:
        """When the oldest request came that is not answered yet, of those that came after a moment; None without one.

        Moments are those of the monotonic clock, as is `sent_at`, when a part of a reply was last sent.
        """
        with self._lock:
            return min((came for came in self._open.values() if came >= moment), default=None)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """While one request is being answered."""
        came = time.monotonic()
        with self._lock:
            self._open[threading.get_ident()] = came
        try:
            yield
        finally:
            with self._lock:
                del self._open[threading.get_ident()]

    def sent(self) -> None:
        """A part of a reply leaves."""
        self.sent_at = time.monotonic()

    def record(self, request: RecordedRequest, *, unmatched: str | None = None) -> None:
        """Keep a request."""
        with self._lock:
            self._requests.append(request)
            if unmatched is not None:
                self._unmatched.append(unmatched)

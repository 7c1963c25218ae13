"""How long is waited after a fault of the provider, and who waits: the trial that met it, and all that have not begun.

A provider that limits one trial limits the next one, too, whoever starts it with the same credential. So trials of the
same pool do not begin while one is paused; those that run go on, and those of other providers are not concerned.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from skillup.engines.events import EngineFault
from skillup.errors import ErrorKind
from skillup.execution.agents import provider_of
from skillup.results import Failure
from skillup.spec.agent import Agent

Chance = Callable[[float, float], float]
"""A number between two others, such as `random.uniform`."""

Pool = tuple[str, str]
"""What tells one account of a provider from another; it may hold a secret, and is never shown."""

FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 60.0
"""The longest pause doubles from attempt to attempt, up to this; which part of it is waited is left to chance."""

LONGEST_ASKED_SECONDS: Final = 600.0
"""As long as a provider may ask us to wait; whoever asks for more is asked no more in this run."""

_NEWS_SECONDS: Final = 0.5
"""A pause that becomes longer by less is not told again."""

PAUSING: Final[frozenset[ErrorKind]] = frozenset({"rate_limit", "overloaded"})
"""Faults that the next trial would meet, too."""


def pause_after(failures: int, asked: float | None, chance: Chance = random.uniform) -> float | None:
    """Seconds until the next attempt after so many that failed; None where the provider asks for too much.

    Full jitter: trials that failed together do not come back together. What the provider asks for is the least.
    """
    if asked is not None:
        return asked + chance(0.0, FIRST_PAUSE_SECONDS) if asked <= LONGEST_ASKED_SECONDS else None
    return chance(0.0, longest_pause(failures))


def longest_pause(failures: int) -> float:
    """The most that is waited after so many failures in a row, when nobody asks for more; in seconds."""
    return min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** (failures - 1))


def pool_of(agent: Agent) -> Pool | None:
    """The pool of an agent: the address and the credential, or the login, that its CLI uses.

    None with a scripted model: each trial has its own, and what that refuses says nothing of the next one's.
    """
    if agent.model.scripted:
        return None
    credential = next((agent.env[name] for name in provider_of(agent).credentials if agent.env.get(name)), None)
    if credential is None:
        return (f"login of {agent.engine}", str(agent.shared_home or ""))
    return (agent.model.base_url or "", credential)


@dataclass(frozen=True)
class Paused:
    """Trials of an agent's provider do not begin before `until`, because of a fault of this kind."""

    agent: str
    kind: ErrorKind
    until: datetime


class Pools:
    """Which providers are left alone, and for how long. May be used from any thread."""

    def __init__(self, tell: Callable[[Paused], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._until: dict[Pool, float] = {}
        self._failures: dict[Pool, int] = {}
        self._closed: dict[Pool, Paused] = {}

    def warned(self, agent: Agent, fault: EngineFault) -> None:
        """Takes in what the agent's CLI met on its way to the provider, whether it tries again or not."""
        if fault.kind in PAUSING:
            self._pause(agent, fault.kind, fault.wait(time.time()))

    def heard(self, agent: Agent, error: Failure | None) -> None:
        """Takes in how an attempt ended: what was too much for the provider pauses it, an answer ends its bad luck."""
        if error is not None and error.kind in PAUSING:
            if error.retry_after is not None and error.retry_after > LONGEST_ASKED_SECONDS:
                self._close(agent, error.kind, error.retry_after)
            self._pause(agent, error.kind, error.retry_after)
        elif error is None and (pool := pool_of(agent)) is not None:
            with self._lock:
                self._failures.pop(pool, None)

    def _pause(self, agent: Agent, kind: ErrorKind, asked: float | None) -> None:
        """A provider that asks for more than can be waited for is not paused: it is closed when a trial ends by it."""
        pool, now = pool_of(agent), time.monotonic()
        if pool is None:
            return
        with self._lock:
            before, failures = self._until.get(pool, 0.0), self._failures.get(pool, 0)
            # Those that fail together are one failure, also where another was answered in between.
            self._failures[pool] = failures = failures + 1 if before <= now else max(failures, 1)
            seconds = longest_pause(failures) if asked is None else asked
            if seconds > LONGEST_ASKED_SECONDS or now + seconds <= before:
                return
            self._until[pool] = now + seconds
        if now + seconds > max(now, before) + _NEWS_SECONDS:
            self._tell(Paused(agent.name, kind, datetime.now().astimezone() + timedelta(seconds=seconds)))

    def _close(self, agent: Agent, kind: ErrorKind, seconds: float) -> None:
        """Leaves a provider alone for the rest of the run."""
        pool = pool_of(agent)
        if pool is not None:
            with self._lock:
                self._closed[pool] = Paused(agent.name, kind, datetime.now().astimezone() + timedelta(seconds=seconds))

    def is_closed(self, agent: Agent) -> bool:
        """Whether no trial of this agent's provider is to begin in this run any more."""
        pool = pool_of(agent)
        with self._lock:
            return pool in self._closed

    @property
    def closed(self) -> str:
        """Which agents' providers do not answer for longer than can be waited for, in words; empty without any."""
        with self._lock:
            closed = tuple(self._closed.values())
        return "; ".join(f"{one.kind} on {one.agent} until {one.until:%Y-%m-%d %H:%M}" for one in closed)

    def seconds_left(self, agent: Agent) -> float:
        """How long no trial of this agent's provider should begin; 0 when one may."""
        pool = pool_of(agent)
        with self._lock:
            return 0.0 if pool is None else max(0.0, self._until.get(pool, 0.0) - time.monotonic())

"""The value that one trial is made of, and the services that all trials of a run share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from skillup.execution.budget import RunBudget
from skillup.execution.inputs import Input
from skillup.execution.journal import Journal
from skillup.execution.processes import Processes
from skillup.execution.single_shot import joined
from skillup.execution.waiting import Paused, Pools
from skillup.modelclient.client import ModelRef
from skillup.modelclient.clients import ModelClients
from skillup.modelserver.server import ModelServer
from skillup.results import Ending, Failure, Status, Variant
from skillup.spec.agent import Agent
from skillup.spec.case import Case
from skillup.spec.suite import Environment, InstalledSkill, RetryPolicy
from skillup.spec.turn import Turn

Keep = Literal["failed", "all", "none"]

_LOOK_SECONDS = 0.5
"""How often a long wait looks whether the seconds of the run have passed; an interruption ends it at once."""


@dataclass(frozen=True)
class TrialTask:
    """One trial to be run, or one attempt at it: a plain picklable value. `folder` is the trial's.

    What planning found: `obstacle` is why it cannot run, `unmet` what the case requires and this agent has not. With
    `single_shot` all messages of the user go out as one. `judges` are the models that are asked about criteria, by the
    ids of the case's judges; "" is the only one's. `after` are the folders of the trials that it depends on, each with
    its case's id, and `withheld` is why it does not run because of one of them. `waited_seconds` is how
    long this attempt waited for its turn. `inputs` are the files of the suite that it is made from.
    """

    case: Case
    suite_root: Path
    environment: Environment
    skills: tuple[InstalledSkill, ...]
    agent: Agent
    engine_version: str | None
    variant: Variant
    trial: int
    attempt: int
    folder: Path
    trial_base: Path
    keep: Keep
    obstacle: Failure | None = None
    judges: Mapping[str, ModelRef] = field(default_factory=dict)
    unmet: str = ""
    single_shot: bool = False
    after: Mapping[Path, str] = field(default_factory=dict)
    withheld: Ending | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    waited_seconds: float = 0.0
    inputs: tuple[Input, ...] = ()

    @property
    def attempt_folder(self) -> Path:
        """Where this attempt is kept."""
        return self.folder / f"attempt-{self.attempt}"

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The user's messages as they are sent."""
        return (joined(self.case.turns),) if self.single_shot else self.case.turns

    @property
    def label(self) -> str:
        """How progress and messages name it."""
        again = f" · attempt {self.attempt}" if self.attempt > 1 else ""
        number = f" · trial {self.trial}" if self.trial > 1 else ""
        return f"{self.case.id} · {self.agent.name}{number}{again}"


@dataclass(frozen=True)
class Progress:
    """A trial has come so far: `turn` of `turns` begins, or it ended with `status`."""

    label: str
    turn: int
    turns: int
    status: Status | None = None
    reason: str = ""


class SessionClaims:
    """Which trial each session of this run belongs to. May be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owners: dict[str, Path] = {}

    def owner(self, session_id: str, trial: Path) -> Path:
        """The trial that named this session first, which is the one that asks unless two sessions were mixed."""
        with self._lock:
            return self._owners.setdefault(session_id, trial)


@dataclass(frozen=True)
class Services(Processes):
    """What all trials of a run share. `models` starts the loopback model when it is first asked for.

    `clients` opens the models that judge; `pools` knows which providers are to be left alone. `journal` keeps what
    happens. `budget` is what the run may take, and has taken.
    """

    models: Callable[[], ModelServer]
    clients: ModelClients
    tell: Callable[[Progress | Paused], None]
    pools: Pools
    journal: Journal
    sessions: SessionClaims = field(default_factory=SessionClaims)
    budget: RunBudget = field(default_factory=RunBudget)

    def wait_for(self, agent: Agent | None, seconds: float) -> float:
        """Waits so long, and on while the agent's provider, if one is asked, is left alone; gives the seconds it took.

        What the run withholds meanwhile is waited for no longer.

        Raises:
            Cancelled: the user stopped the run.
        """
        begun = now = time.monotonic()
        while not self.withholds(agent):
            left = max(begun + seconds - now, self.pools.seconds_left(agent) if agent else 0.0)
            if left <= 0:
                break
            self.pause(min(left, _LOOK_SECONDS))
            now = time.monotonic()
        return now - begun

    def withholds(self, agent: Agent | None = None) -> bool:
        """Whether no further attempt at a trial is to begin, for a reason of the run's and not of the trial's own.

        The run's budget is reached, or the provider of the agent that would be asked cannot be waited for.
        """
        return bool(self.budget.reached) or (agent is not None and self.pools.is_closed(agent))

    def begins_no_more(self) -> bool:
        """Whether no further trial is to begin: the user stopped the run, or its budget is reached."""
        return self.cancelled.is_set() or self.withholds()

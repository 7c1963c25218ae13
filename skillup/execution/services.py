"""The services of a run, opened and closed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from skillup.environments.process import Nursery
from skillup.execution.budget import RunBudget
from skillup.execution.journal import Journal
from skillup.execution.task import Progress, Services
from skillup.execution.waiting import Paused, Pools
from skillup.modelclient.clients import ModelClients
from skillup.modelserver.server import ModelServer


@contextmanager
def open_services(
    nursery: Nursery,
    cancelled: threading.Event,
    host: Mapping[str, str],
    tell: Callable[[Progress | Paused], None],
    journal: Journal | None = None,
    *,
    budget: RunBudget | None = None,
) -> Iterator[Services]:
    """Services for a run; the loopback model starts with the first trial that asks for it.

    Without a `journal` nothing is kept of what happens, as where a run that is over is judged.
    Nobody has to listen to `tell`: a terminal that was closed must not cost a trial.
    """
    lock = threading.Lock()
    started: list[ModelServer] = []

    def models() -> ModelServer:
        with lock:
            if not started:
                started.append(ModelServer().start())
            return started[0]

    def told(progress: Progress | Paused) -> None:
        with suppress(OSError):
            tell(progress)

    try:
        yield Services(
            nursery=nursery,
            host=host,
            cancelled=cancelled,
            models=models,
            clients=ModelClients(cancelled),
            tell=told,
            pools=Pools(told),
            journal=journal or Journal(),
            budget=budget or RunBudget(),
        )
    finally:
        for server in started:
            server.close()

"""The services of a run, opened and closed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from skillup.environments.process import Nursery
from skillup.execution.task import Progress, Services
from skillup.modelserver.server import ModelServer


@contextmanager
def open_services(
    nursery: Nursery, cancelled: threading.Event, host: Mapping[str, str], tell: Callable[[Progress], None]
) -> Iterator[Services]:
    """Services for a run; the loopback model starts with the first trial that asks for it."""
    lock = threading.Lock()
    started: list[ModelServer] = []

    def models() -> ModelServer:
        with lock:
            if not started:
                started.append(ModelServer().start())
            return started[0]

    try:
        yield Services(nursery, models, cancelled, host, tell)
    finally:
        for server in started:
            server.close()

"""What judging starts processes with."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from skillup.environments.process import Nursery


@dataclass(frozen=True)
class Processes:
    """The owner of the processes, the variables of whoever called us, and whether the user has stopped it all."""

    nursery: Nursery
    host: Mapping[str, str]
    cancelled: threading.Event

"""Where the processes of a trial run: a value that turns each command into the one that is really started.

Everything that runs for a trial goes through it: the CLI's turns, set-up steps, git, the commands of rules and the
scripts of judges. Paths mean the same inside as on the host, so what a trial writes is looked at where it lies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from skillup.environments.host import TrialRoot
from skillup.environments.process import Command, Nursery
from skillup.spec.suite import Environment


@dataclass(frozen=True)
class Missing:
    """What keeps an environment from being used on this machine, and what to do about it."""

    message: str
    hint: str


@dataclass(frozen=True)
class Site:
    """What an environment is made of: what the suite wants, the trial root, and the host's variables.

    `nursery` owns what has to run as long as the environment is open. `shared` are folders outside of the root that the
    agent works in, too; `reads` are those of the commands to come.
    """

    wanted: Environment
    root: TrialRoot
    host: Mapping[str, str]
    nursery: Nursery
    shared: tuple[Path, ...] = ()
    reads: tuple[Path, ...] = ()


class TrialEnvironment(Protocol):
    """Where the processes of one trial root run. A value: it may be used from any thread, until it is closed."""

    def command(self, command: Command) -> Command:
        """The command as it is started.

        Raises:
            ExecutableNotFoundError: its program is not there.
            StartFailedError: the environment is no longer what it was.
        """

    def reaching(self, addresses: Sequence[str]) -> AbstractContextManager[tuple[TrialEnvironment, Mapping[str, str]]]:
        """The same environment for a process that may reach these addresses, and by what address it does.

        Raises:
            OSError: the way there cannot be opened.
        """


class EnvironmentKind(Protocol):
    """One value of `environment.type`."""

    def missing(self, wanted: Environment, host: Mapping[str, str], nursery: Nursery) -> Missing | None:
        """Why it cannot be used on this machine, None when it can."""

    def open(self, site: Site) -> AbstractContextManager[TrialEnvironment]:
        """The environment of one trial root.

        Raises:
            TrialError: `environment`, it cannot be had.
        """


class OnHost:
    """The processes run on the host, as whoever started skillup: both the kind and the environment."""

    def missing(self, wanted: Environment, host: Mapping[str, str], nursery: Nursery) -> Missing | None:
        """Nothing."""
        del wanted, host, nursery
        return None

    @contextmanager
    def open(self, site: Site) -> Iterator[TrialEnvironment]:
        """The host."""
        del site
        yield self

    def command(self, command: Command) -> Command:
        """As it is."""
        return command

    @contextmanager
    def reaching(self, addresses: Sequence[str]) -> Iterator[tuple[TrialEnvironment, Mapping[str, str]]]:
        """Every address is reached as it is."""
        yield self, {address: address for address in addresses}

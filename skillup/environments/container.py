"""Every process of a trial in one container of its own, run by docker or podman: `environment.type: docker`.

The container's first process is a nursery, the same program that owns processes on the host
(`skillup.environments.supervisor`). It comes to a socket of ours that is bound into the container, and each command is
handed to it over that socket, with its standard streams: so a command starts as quickly as on the host, and its exit
code, signals, leftovers and grace are seen by the same code. The container ends when that socket closes, whoever dies.

Set-up steps, turns and git share the container, and with it all that they install. The trial root lies in it at its own
path, so paths mean the same inside as outside. Who works there is never root, and has no capabilities.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from skillup.environments.address import Address, at_port
from skillup.environments.base import Missing, Site, TrialEnvironment
from skillup.environments.container_engine import find_engine, last_line
from skillup.environments.container_run import START_SECONDS, STOP_SECONDS, WANTED_IN_IMAGE, mounts_of, run_container
from skillup.environments.gate import open_gate
from skillup.environments.handover import hand_over
from skillup.environments.host import TrialRoot, child_variables, passing_root
from skillup.environments.process import (
    Command,
    Nursery,
    ProcessError,
    Running,
    StartFailedError,
    SupervisorLostError,
    listen_in,
)
from skillup.errors import TrialError
from skillup.spec.suite import Environment

_FIRST_USER: Final = 1000
"""Who works in the containers of a skillup that root has started: the first user of most systems and images."""

_OF_THE_HOST: Final = ("PATH", "SHELL", "USER", "LOGNAME")
"""Variables that say something of the host's files and users, and nothing of the image's."""


@dataclass(frozen=True)
class Container:
    """The container of one trial root. `variables` are those that the image gives, `user` who works in it."""

    wanted: Environment
    root: TrialRoot
    host: Mapping[str, str]
    control: socket.socket
    variables: Mapping[str, str]
    user: tuple[int, int]
    service: Running | None = None

    def command(self, command: Command) -> Command:
        """The command in the container.

        Raises:
            StartFailedError: what the suite names as `entrypoint` has ended, or the trial root cannot be handed over.
        """
        self._check_service()
        try:
            hand_over(self.root, self.user)
        except OSError as error:
            raise StartFailedError(f"the container's user cannot be given the trial root: {error}") from error
        of_the_host = (child_variables(self.host, self.root), self.host)
        own = {
            name: value
            for name, value in command.env.items()
            if name not in _OF_THE_HOST or all(other.get(name) != value for other in of_the_host)
        }
        argv = ("python3", *command.argv[1:]) if command.argv[0] == sys.executable else command.argv
        return replace(command, argv=argv, env={**self.variables, **own}, control=self.control)

    @contextmanager
    def reaching(self, addresses: Sequence[str]) -> Iterator[tuple[TrialEnvironment, Mapping[str, str]]]:
        """The same; every address that it could not reach is one of its own ports now.

        Raises:
            OSError: the way there cannot be opened.
        """
        ports: dict[Address, int] = {}
        with ExitStack() as stack:
            for address in filter(None, map(self._led, addresses)):
                if address not in ports:
                    listener = stack.enter_context(listen_in(self.control))
                    stack.enter_context(open_gate(listener, address, self.host))
                    ports[address] = listener.getsockname()[1]
            yield self, {url: at_port(url, ports[to]) if (to := self._led(url)) else url for url in addresses}

    def _led(self, url: str) -> Address | None:
        """The server of a URL that could not be reached from the container's own network."""
        if self.wanted.reach != "full":
            return Address.of(url)
        with suppress(ValueError):  # an engine's own word for its address; the engine says what is wrong with it
            address = Address.of(url)
            if _is_loopback(address.host):
                return address
        return None

    def _check_service(self) -> None:
        try:
            ended = self.service.wait(0) if self.service else None
        except SupervisorLostError as error:
            raise StartFailedError(f"environment.entrypoint: {error}") from error
        if ended is not None:
            how = f"signal {ended.signal}" if ended.signal else f"exit code {ended.exit_code}"
            said = last_line(_service_log(self.root)) or "it printed nothing"
            raise StartFailedError(f"environment.entrypoint ended with {how}, and should go on: {said}")


class ContainerKind:
    """`environment.type: docker`, with docker or podman."""

    def missing(self, wanted: Environment, host: Mapping[str, str], nursery: Nursery) -> Missing | None:
        """Why there can be no container of this image on this machine: one is tried."""
        engine = find_engine(host, nursery)
        if isinstance(engine, Missing):
            return engine
        image, name = str(wanted.image), engine.argv[0]
        try:
            found = engine.call("image", "inspect", "--format", "{{.Id}}", image)
            if found.exit_code != 0:
                message = f"{name} has no image {image}: {found.last_error}"
                return Missing(message, f"`{name} pull {image}`, or build it: skillup pulls none")
            with passing_root() as root, self.open(Site(wanted, root, host, nursery)) as container:
                output = root.scratch / "output"
                command = container.command(Command(("/bin/sh", "-c", "echo > probe"), {}, root.workspace))
                ended = nursery.run(command, stdout=output, stderr=output, deadline_seconds=START_SECONDS)
                if ended.exit_code != 0 or not (root.workspace / "probe").exists():
                    message = f"the user of a container of {image} cannot write what lies on this host"
                    return Missing(
                        f"{message}: {last_line(output)}", "a daemon without root, or elsewhere, cannot be used"
                    )
        except TrialError as error:
            return Missing(error.message, error.hint)
        except ProcessError as error:
            return Missing(f"no container of {image} can be used: {error}", WANTED_IN_IMAGE)
        return None

    @contextmanager
    def open(self, site: Site) -> Iterator[TrialEnvironment]:
        """The container of one trial root.

        Raises:
            TrialError: `environment`, it cannot be had.
        """
        wanted, root = site.wanted, site.root
        engine = find_engine(site.host, site.nursery)
        if isinstance(engine, Missing):
            raise TrialError("environment", engine.message, phase="setup", hint=engine.hint)
        user = _user()
        if site.shared and user[0] != os.getuid():
            message = f"{site.shared[0]} is root's, and nobody is root in a container"
            raise TrialError(
                "environment", message, phase="setup", hint="use `login: copy`, or start skillup as its user"
            )
        try:
            hand_over(root, user)
            with run_container(engine, wanted, root, mounts_of(site), user) as (control, variables):
                container = Container(wanted, root, site.host, control, variables, user)
                with _service(container, site.nursery) as service:
                    yield replace(container, service=service)
        except OSError as error:
            raise TrialError("environment", f"the container cannot be prepared: {error}", phase="setup") from error


@contextmanager
def _service(container: Container, nursery: Nursery) -> Iterator[Running | None]:
    """What the suite wants to run beside the trial, if anything, until the trial is over.

    Raises:
        TrialError: `environment`, it cannot be started.
    """
    if not container.wanted.entrypoint:
        yield None
        return
    root = container.root
    variables = child_variables(container.host, root, container.wanted.env)
    command = container.command(Command(container.wanted.entrypoint, variables, root.workspace))
    log = _service_log(root)
    try:
        running = nursery.start(command, stdout=log, stderr=log, deadline_seconds=None)
    except ProcessError as error:
        raise TrialError("environment", f"environment.entrypoint: {error}", phase="setup") from error
    try:
        yield running
    finally:
        running.end()
        with suppress(SupervisorLostError):
            running.wait(STOP_SECONDS)


def _service_log(root: TrialRoot) -> Path:
    return root.scratch / "entrypoint.log"


def _user() -> tuple[int, int]:
    """Who works in a container: whoever started skillup, and never root."""
    return (os.getuid(), os.getgid()) if os.getuid() else (_FIRST_USER, _FIRST_USER)


def _is_loopback(host: str) -> bool:
    """Whether a name or address means the machine itself, which a container is not."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")

"""Every process of a trial in a sandbox of its own, made by bubblewrap: `environment.type: bubblewrap`.

What a process finds there: the system's programs and libraries and its own, read-only; the trial's workspace, home and
temporary folder; own processes, IPC and host name, and as much of a network as the suite allows. Nothing else of the
host is there, so nothing else can be read. A sandbox lives as long as one command; what is to last from turn to turn
lies in the trial root.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from skillup.environments import inside
from skillup.environments.address import Address, at_port
from skillup.environments.base import Missing, Site, TrialEnvironment
from skillup.environments.host import CERTIFICATES, TrialRoot, passing_root
from skillup.environments.process import NURSERY_ENVIRONMENT, Command, Nursery, ProcessError, find_executable
from skillup.environments.programs import followed, places_of
from skillup.environments.shown import from_etc, outermost, read_only, system, within
from skillup.errors import TrialError
from skillup.spec.suite import Environment

_NETWORK_SETTINGS: Final = ("hosts", "resolv.conf")

_ALONE: Final = (
    *("--die-with-parent", "--as-pid-1", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
    *("--unshare-cgroup-try", "--cap-drop", "ALL", "--hostname", "localhost"),
)

_INSIDE: Final = (
    *("-I", "-S", "-B", "-c"),
    f"import sys; sys.path.insert(0, sys.argv[1]); import {inside.__name__} as m; m.main(sys.argv[2])",
)
"""How the first process is started: by the Python that runs us, without anything that is installed beside it.

That we import it, too, leaves it compiled where it is read from; to compile it takes longer than to start it.
"""

_HOSTS: Final = "127.0.0.1 localhost\n::1 localhost\n"

_FIRST_FREE_PORT: Final = 1024
_LAST_PORT: Final = 65535

_PROBE_SECONDS: Final = 20.0
_INSTALL: Final = (
    "install it (`apt-get install bubblewrap`, `dnf install bubblewrap`), or use `environment: {type: none}`"
)


@dataclass(frozen=True)
class Bubblewrap:
    """The sandboxes of one trial root.

    `shared` are folders outside of the root that may be written, `ways` the ports of 127.0.0.1 that lead out, each with
    the Unix socket that stands for it.
    """

    program: str
    root: TrialRoot
    wanted: Environment
    host: Mapping[str, str]
    shared: tuple[Path, ...] = ()
    ways: tuple[tuple[int, str], ...] = ()

    def command(self, command: Command) -> Command:
        """The command in a sandbox.

        Raises:
            ExecutableNotFoundError: its program is not there.
        """
        package, python = Path(__file__).resolve().parents[1], Path(sys.executable).resolve()
        path = command.env.get("PATH", os.defpath)
        places = [*places_of(Path(find_executable(command)), path), *places_of(python, path), package]
        read = (*command.reads, *(Path(command.env[name]) for name in CERTIFICATES if command.env.get(name)))
        places += [place for one in read for place in followed(one)]
        shown = outermost(place for place in places if os.path.lexists(place))
        asked = {"ways": self.ways, "limits": self.wanted.limit_numbers}
        return replace(
            command,
            enclosure=(
                *(self.program, *_ALONE, *self._network, *system(), *_variables()),
                *("--proc", "/proc", "--dev", "/dev", *self._temporary(shown)),
                *(word for place in shown for word in read_only(place)),
                *(word for place in self.shared for word in ("--bind", str(place), str(place))),
                *("--bind", str(self.root.path), str(self.root.path)),
                *("--ro-bind", str(self.root.scratch), str(self.root.scratch)),
                *("--remount-ro", "/", "--chdir", "/", "--"),
                *(str(python), *_INSIDE, str(package.parent), json.dumps(asked)),
            ),
        )

    @contextmanager
    def reaching(self, addresses: Sequence[str]) -> Iterator[tuple[TrialEnvironment, Mapping[str, str]]]:
        """The same, for a process that may reach these addresses, and by what address it does.

        Raises:
            OSError: the way there cannot be opened.
        """
        if self.wanted.reach != "model_only":
            yield self, {address: address for address in addresses}
            return
        from skillup.environments.gate import open_gate  # noqa: PLC0415 - its event loop takes a tenth of a second to import

        ways: dict[Address, int] = {}
        with ExitStack() as stack:
            for address in map(Address.of, addresses):
                if address not in ways:
                    port = _inner_port(address, ways.values())
                    stack.enter_context(open_gate(self._socket(port), address, self.host))
                    ways[address] = port
            inner = {url: at_port(url, ways[Address.of(url)]) for url in addresses}
            yield replace(self, ways=tuple((port, str(self._socket(port))) for port in ways.values())), inner

    def _socket(self, port: int) -> Path:
        return self.root.scratch / f"way-{port}"

    @property
    def _network(self) -> tuple[str, ...]:
        if self.wanted.reach == "full":
            return tuple(word for name in _NETWORK_SETTINGS for word in from_etc(name))
        return ("--unshare-net", "--ro-bind", str(_hosts(self.root)), "/etc/hosts")

    def _temporary(self, shown: Sequence[Path]) -> tuple[str, ...]:
        """The trial's own /tmp. Where we have to show something below it, it begins empty with each command.

        A place to mount on is looked for by its path, and the agent could have put a link there.
        """
        if any(within(place, ("/tmp",)) for place in (self.root.path, *self.shared, *shown)):  # noqa: S108 - the sandbox's own
            return ("--tmpfs", "/tmp")  # noqa: S108 - as above
        return ("--bind", str(self.root.tmp), "/tmp")  # noqa: S108 - as above


class BubblewrapKind:
    """`environment.type: bubblewrap`."""

    def missing(self, wanted: Environment, host: Mapping[str, str], nursery: Nursery) -> Missing | None:
        """Why there can be no sandbox on this machine: one is tried."""
        program = _program(host)
        if program is None:
            return Missing("bubblewrap is not installed: there is no `bwrap` on the PATH", _INSTALL)
        with passing_root() as root:
            output = root.scratch / "output"
            try:
                with self.open(Site(wanted, root, host, nursery)) as environment:
                    command = environment.command(Command(("/bin/sh", "-c", ":"), {}, root.workspace))
                    nursery.run(command, stdout=output, stderr=output, deadline_seconds=_PROBE_SECONDS)
            except (ProcessError, TrialError) as error:
                return Missing(f"bubblewrap cannot make a sandbox here: {error}", _what_is_off())
        return None

    @contextmanager
    def open(self, site: Site) -> Iterator[TrialEnvironment]:
        """The sandboxes of one trial root.

        Raises:
            TrialError: `environment`, they cannot be had.
        """
        program, root = _program(site.host), site.root
        if program is None:
            raise TrialError("environment", "bubblewrap is not installed", phase="setup", hint=_INSTALL)
        try:
            _hosts(root).write_text(_HOSTS, encoding="utf-8")
        except OSError as error:
            raise TrialError("environment", f"the sandbox cannot be prepared: {error}", phase="setup") from error
        yield Bubblewrap(program, root, site.wanted, site.host, site.shared)


def _hosts(root: TrialRoot) -> Path:
    """The names that are known in a sandbox without the host's network."""
    return root.scratch / "hosts"


def _inner_port(address: Address, taken: Collection[int]) -> int:
    """The port that stands for an address inside: its own, if anybody may listen on it."""
    port = address.port if address.port >= _FIRST_FREE_PORT else _FIRST_FREE_PORT + address.port
    while port in taken:
        port = port + 1 if port < _LAST_PORT else _FIRST_FREE_PORT
    return port


def _program(host: Mapping[str, str]) -> str | None:
    return shutil.which("bwrap", path=host.get("PATH", os.defpath))


def _variables() -> Iterator[str]:
    """What our Python cannot start without; the command gets its own variables, and none of these."""
    for name in NURSERY_ENVIRONMENT:
        if name in os.environ:
            yield from ("--setenv", name, os.environ[name])


def _what_is_off() -> str:
    """Which switch of the kernel keeps users from sandboxes, as far as it can be seen."""
    for switch, wrong, right in (
        ("user/max_user_namespaces", "0", "10000"),
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ):
        try:
            found = Path("/proc/sys", switch).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if found == wrong:
            return f"user namespaces are off: `sysctl -w {switch.replace('/', '.')}={right}` switches them on"
    return "it needs user namespaces: allow them, also to the container if this runs in one"

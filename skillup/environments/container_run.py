"""A container while it runs: how docker or podman is asked for it, how it is met, and how it is taken down.

The engine's own process is started like any other and stays as long as the container does, so it has an owner. The
container itself ends when the control socket closes, whether we close it or die.
"""

from __future__ import annotations

import json
import os
import resource
import secrets
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from skillup.environments.base import Site
from skillup.environments.container_engine import CHOOSE, LABEL, ContainerEngine, last_line
from skillup.environments.host import CERTIFICATES, TrialRoot
from skillup.environments.process import SUPERVISOR, Grace, ProcessError, Running, SupervisorLostError
from skillup.errors import TrialError
from skillup.spec.suite import Environment

_OLDEST_PYTHON: Final = (3, 9)
WANTED_IN_IMAGE: Final = "the image needs Python 3.9 or newer as `python3`, and /bin/sh"

START_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.05
STOP_SECONDS: Final = 20.0
_HELLO_BYTES: Final = 1 << 20

_PATIENT: Final = Grace(interrupt=10.0, terminate=5.0)
"""For the engine's own process when skillup dies: the nursery inside first ends what runs there, with its own grace."""


@contextmanager
def run_container(
    engine: ContainerEngine, wanted: Environment, root: TrialRoot, mounts: Sequence[str], user: tuple[int, int]
) -> Iterator[tuple[socket.socket, dict[str, str]]]:
    """A running container: the control socket of its nursery, and the variables of its image.

    Raises:
        TrialError: `environment`, it did not start.
        OSError: the meeting place cannot be made.
    """
    name, log = f"skillup-{secrets.token_hex(8)}", root.scratch / "container.log"
    door = root.scratch / "door"
    words = _words(engine, wanted, root, mounts, user)
    call = engine.command("run", "--rm", "--name", name, *words, str(door), "tree")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(door))
        os.chown(door, *user)
        listener.listen(1)
        listener.settimeout(_LOOK_SECONDS)
        try:
            running = engine.nursery.start(call, stdout=log, stderr=log, deadline_seconds=None, grace=_PATIENT)
        except ProcessError as error:
            raise TrialError("environment", f"no container can be started: {error}", phase="setup") from error
        try:
            control, said = _meet(listener, running, log, str(wanted.image))
        except BaseException:
            _take_down(engine, name, running)
            raise
    try:
        door.unlink()
        yield control, said
    finally:
        control.close()
        _take_down(engine, name, running)


def _meet(listener: socket.socket, running: Running, log: Path, image: str) -> tuple[socket.socket, dict[str, str]]:
    """Waits until the container's nursery has come, and said what its image gives.

    Raises:
        TrialError: `environment`, it did not come.
    """
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        try:
            control, _ = listener.accept()
        except TimeoutError:
            pass
        else:
            return control, _introduced(control, image)
        try:
            ended = running.wait(0)
        except SupervisorLostError as error:
            raise _unusable(f"a container of {image} was lost as it started: {error}") from error
        if ended is not None:
            said_last = last_line(log) or f"it ended with exit code {ended.exit_code}"
            raise _unusable(f"a container of {image} does not start: {said_last}")
    raise _unusable(f"a container of {image} did not start within {START_SECONDS:g} s")


def _introduced(control: socket.socket, image: str) -> dict[str, str]:
    """The variables that an image gives its programs, as its nursery says them first.

    Raises:
        TrialError: `environment`, it went away, or is too old.
    """
    control.settimeout(START_SECONDS)
    said = json.loads(_hello(control) or b"{}")
    control.settimeout(None)
    if tuple(said.get("python", ())) < _OLDEST_PYTHON:
        control.close()
        raise _unusable(f"the Python of {image} cannot be used: {said.get('python', 'it ended at once')}")
    return {_text(name): _text(value) for name, value in said["variables"].items()}


def _unusable(message: str) -> TrialError:
    hint = WANTED_IN_IMAGE if "python" in message.lower() else CHOOSE
    return TrialError("environment", message, phase="setup", hint=hint)


def _hello(control: socket.socket) -> bytes:
    """The first line that a nursery says; empty when it goes before its end."""
    said = bytearray()
    while b"\n" not in said and len(said) < _HELLO_BYTES:
        part = control.recv(1 << 16)
        if not part:
            return b""
        said += part
    return bytes(said)


def _text(image: str) -> str:
    """A text from the Latin-1 image of its bytes."""
    return os.fsdecode(image.encode("latin-1"))


def _take_down(engine: ContainerEngine, name: str, running: Running) -> None:
    """Waits until a container is gone whose control socket is closed; one that resists is removed."""
    with suppress(ProcessError):
        ended = running.wait(STOP_SECONDS)
        if ended is not None and ended.exit_code == 0:  # else it may not have come to removing the container
            return
        running.end()
    with suppress(ProcessError):
        engine.call("rm", "--force", name)
        running.wait(STOP_SECONDS)


def mounts_of(site: Site) -> tuple[str, ...]:
    """What of the host is in a container: the trial root, our own package, and what the site shares and reads."""
    root, at = site.root, site.wanted.workspace_mount
    ours = (SUPERVISOR.parents[1], root.scratch, *_certificates(site.host), *site.reads)
    alias = (_mount(root.workspace, at=at),) if at else ()
    written = (_mount(one) for one in (root.path, *site.shared))
    return (*written, *(_mount(one, read_only=True) for one in dict.fromkeys(ours)), *alias)


def _words(
    engine: ContainerEngine, wanted: Environment, root: TrialRoot, mounts: Sequence[str], user: tuple[int, int]
) -> tuple[str, ...]:
    """The arguments of `run`, but for those of the nursery."""
    return (
        *("--pull", "never", "--label", f"{LABEL}={root.path}", "--stop-timeout", "0"),
        *("--user", f"{user[0]}:{user[1]}", "--cap-drop", "all", "--security-opt", "no-new-privileges"),
        # SELinux would keep a container from the trial root, whose label is the host's.
        *("--security-opt", "label=disable"),
        # Without root, podman would make another user of ours.
        *(("--userns", "keep-id") if engine.is_podman and os.getuid() else ()),
        *(("--network", "none") if wanted.reach != "full" else ()),
        *(word for limit in _limits(wanted) for word in ("--ulimit", limit)),
        *(word for mount in mounts for word in ("--mount", mount)),
        *("--workdir", "/", "--entrypoint", "python3", str(wanted.image)),
        *("-I", "-S", "-B", "-W", "ignore", str(SUPERVISOR)),
    )


def _mount(place: Path, *, at: str | None = None, read_only: bool = False) -> str:
    """A folder of the host in the container, by default at its own path; both engines read this as a line of CSV."""
    words = ("type=bind", f"source={place}", f"target={at or place}", *(("readonly",) if read_only else ()))
    return ",".join('"' + word.replace('"', '""') + '"' for word in words)


def _certificates(host: Mapping[str, str]) -> tuple[Path, ...]:
    """The files of certificates that the host's variables name; the variables are handed on, too."""
    places = (Path(host[name]) for name in CERTIFICATES if host.get(name))
    return tuple(dict.fromkeys(place for place in places if place.is_absolute() and place.exists()))


def _limits(wanted: Environment) -> Iterator[str]:
    """What a process may use: as on the host, since an engine's own defaults can be more than it may give."""
    files, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield f"nofile={files}:{most_files}"
    processes = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    with suppress(OSError, ValueError):  # no engine can give more than there can be
        most = int(Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii"))
        processes = most if processes < 0 else min(most, processes)
    yield f"nproc={processes}:{processes}"
    names = {"file_size_mb": "fsize", "memory_mb": "data"}
    for name, number in wanted.limit_numbers.items():
        yield f"{names[name]}={number << 20}:{number << 20}"

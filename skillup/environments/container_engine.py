"""The program that runs containers, docker or podman: which one it is here, and what is asked of it beside a container.

It is named by SKILLUP_CONTAINER_ENGINE, with arguments where a machine needs some (`podman --runtime runc`). Otherwise
it is docker, or podman where docker is not there or its daemon does not answer. It gets all variables of whoever
started skillup, because these say where its daemon and its images are; what runs in a container gets none of them.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from skillup.environments.base import Missing
from skillup.environments.host import is_abandoned
from skillup.environments.process import Command, ExecutableNotFoundError, Nursery, ProcessError

ENGINE_VARIABLE: Final = "SKILLUP_CONTAINER_ENGINE"
"""Names the program, with arguments of its own."""

LABEL: Final = "skillup.trial"
"""On every container of ours; its value is the trial root that it belongs to."""

_NAMES: Final = ("docker", "podman")
_CALL_SECONDS: Final = 30.0
_TAIL_BYTES: Final = 2000

_INSTALL: Final = "install docker or podman (`apt-get install podman`), or use `environment: {type: bubblewrap}`"
CHOOSE: Final = f"start its service, or name another program, with its arguments, in {ENGINE_VARIABLE}"


@dataclass(frozen=True)
class Answer:
    """What a call of the engine came to."""

    exit_code: int | None
    output: str
    last_error: str


@dataclass(frozen=True)
class ContainerEngine:
    """A docker or podman that answers; `argv` begins each of its calls."""

    argv: tuple[str, ...]
    host: Mapping[str, str]
    nursery: Nursery
    is_podman: bool = False

    def call(self, *words: str) -> Answer:
        """Runs one of its commands to the end.

        Raises:
            ProcessError: the program cannot be started.
        """
        with TemporaryDirectory(prefix="skillup-") as folder:
            output, errors = Path(folder, "output"), Path(folder, "errors")
            ended = self.nursery.run(self.command(*words), stdout=output, stderr=errors, deadline_seconds=_CALL_SECONDS)
            text = output.read_text(encoding="utf-8", errors="replace")
            return Answer(
                ended.exit_code, text, last_line(errors) or f"it ended within {_CALL_SECONDS:g} s with nothing said"
            )

    def command(self, *words: str) -> Command:
        """One of its commands, to be started."""
        return Command((*self.argv, *words), self.host, Path("/"))


def find_engine(host: Mapping[str, str], nursery: Nursery) -> ContainerEngine | Missing:
    """The engine of this machine, or why there is none."""
    chosen = host.get(ENGINE_VARIABLE, "").strip()
    if chosen:
        try:
            candidates = [tuple(shlex.split(chosen))]
        except ValueError as error:
            return Missing(f"{ENGINE_VARIABLE} is {chosen!r}, which cannot be read: {error}", CHOOSE)
    else:
        path = host.get("PATH", os.defpath)
        candidates = [(name,) for name in _NAMES if shutil.which(name, path=path)]
    if not candidates:
        return Missing("there is no docker or podman on the PATH", _INSTALL)
    faults = []
    for argv in candidates:
        engine = ContainerEngine(argv, host, nursery)
        try:
            said = engine.call("version")
        except ExecutableNotFoundError as error:
            faults.append(str(error))
            continue
        except ProcessError as error:
            faults.append(f"{argv[0]} cannot be started: {error}")
            continue
        if said.exit_code == 0:
            return ContainerEngine(argv, host, nursery, is_podman="podman" in said.output.lower())
        faults.append(f"{argv[0]} does not work: {said.last_error}")
    return Missing("; ".join(faults), CHOOSE)


def left_containers(engine: ContainerEngine, base: Path) -> tuple[tuple[str, str], ...]:
    """Containers of runs that died, with trial roots below `base`: the name and the trial root of each.

    Raises:
        ProcessError: the engine cannot be started.
    """
    ids = engine.call("ps", "--all", "--quiet", "--filter", f"label={LABEL}").output.split()
    shown = f'{{{{.Name}}}} {{{{index .Config.Labels "{LABEL}"}}}}'
    # One by one: where one of several is gone by now, the engine tells of none.
    lines = (engine.call("container", "inspect", "--format", shown, one).output for one in ids)
    found = (line.strip().lstrip("/").partition(" ") for line in lines)
    return tuple((name, root) for name, _, root in found if Path(root).parent == base and is_abandoned(Path(root)))


def sweep_containers(base: Path, host: Mapping[str, str], nursery: Nursery) -> tuple[str, ...]:
    """Removes the containers of runs that died, with trial roots below `base`; a line for each that resists."""
    engine = find_engine(host, nursery)
    if isinstance(engine, Missing):
        return ()
    try:
        said = {name: engine.call("rm", "--force", name) for name, _ in left_containers(engine, base)}
    except ProcessError as error:
        return (f"containers of runs that died cannot be looked for: {error}",)
    return tuple(
        f"the container {name}, of a run that died, cannot be removed: {one.last_error}"
        for name, one in said.items()
        if one.exit_code != 0
    )


def last_line(log: Path) -> str:
    """The last line of a program's messages; empty when there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = file.read().decode("utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""

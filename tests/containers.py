"""An image for the tests, made of this machine's own programs: nothing is pulled from anywhere."""

from __future__ import annotations

import io
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from skillup.environments.container import ContainerKind
from skillup.environments.container_engine import ENGINE_VARIABLE
from skillup.environments.process import Nursery
from skillup.spec.suite import Environment

# The second is for machines without systemd, and with the old and the new control groups side by side.
ENGINES = ("docker", "podman", "podman --runtime runc --cgroup-manager=cgroupfs")

PROGRAMS = (
    *("bash", "sh", "cat", "chmod", "cp", "cut", "env", "git", "grep", "head", "id", "ln", "ls", "mkdir"),
    *("rm", "setsid", "sleep", "sort", "touch", "tr", "wc"),
)
LEFT_OUT = {
    "__pycache__",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "pydoc_data",
    "site-packages",
    "test",
    "tkinter",
    "turtledemo",
}
ACCOUNTS = b"root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n"


@dataclass(frozen=True)
class Containers:
    """A container engine that works here, and images that it has."""

    engine: str
    image: str
    empty: str

    @property
    def variables(self) -> dict[str, str]:
        """What tells skillup which engine to use."""
        return {ENGINE_VARIABLE: self.engine}

    def call(self, *words: str) -> str:
        """What one of the engine's commands prints."""
        argv = [*shlex.split(self.engine), *words]
        return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout

    def below(self, base: Path) -> list[str]:
        """The containers of trials below a folder, whether they run or not."""
        shown = self.call("ps", "--all", "--filter", "label=skillup.trial", "--format", "{{.Names}} {{.Labels}}")
        return [line for line in shown.splitlines() if str(base) in line]


def find_containers(folder: Path) -> Containers | str:
    """An engine with its images, which are made if they are not there yet; else why none can be used."""
    names = f"localhost/skillup-tests-{os.getuid()}"
    faults = []
    # Where its user has no privileges, podman keeps images in a home; the tests give skillup another one.
    at_home = f"env HOME={shlex.quote(str(Path.home()))} " if os.getuid() else ""
    for words in filter(None, (os.environ.get(ENGINE_VARIABLE), *(at_home + engine for engine in ENGINES))):
        found = Containers(words, f"{names}:{platform.python_version()}", f"{names}:empty")
        if shutil.which(shlex.split(words)[0]) is None:
            faults.append(f"{words} is not installed")
            continue
        try:
            for image, programs in ((found.empty, False), (found.image, True)):
                if image not in found.call("images", "--format", "{{.Repository}}:{{.Tag}}").split():
                    pack(folder / "root.tar", programs=programs)
                    found.call("import", str(folder / "root.tar"), image)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            faults.append(str(error))
            continue
        with Nursery() as nursery:
            wanted = Environment(type="docker", image=found.image, network="none")
            missing = ContainerKind().missing(wanted, {**os.environ, **found.variables}, nursery)
        if missing is None:
            return found
        faults.append(f"{words}: {missing.message}")
    return "; ".join(faults)


def pack(archive: Path, *, programs: bool) -> None:
    """Writes the file system of an image."""
    with tarfile.open(archive, "w") as tar:
        for name, mode in (("tmp", 0o1777), ("home", 0o755), ("etc", 0o755)):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, mode
            tar.addfile(folder)
        link = tarfile.TarInfo("bin")
        link.type, link.linkname = tarfile.SYMTYPE, "usr/bin"
        tar.addfile(link)
        accounts = tarfile.TarInfo("etc/passwd")
        accounts.size = len(ACCOUNTS)
        tar.addfile(accounts, io.BytesIO(ACCOUNTS))
        for place, source in sorted(dict(_files()).items()) if programs else ():
            with source.open("rb") as data:
                found = tar.gettarinfo(str(source), place.lstrip("/"))
                found.uid = found.gid = 0
                found.mode |= 0o444
                tar.addfile(found, data)


def _files() -> Iterator[tuple[str, Path]]:
    """Where each file lies in the image, and where it is here."""
    python = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib"))
    yield "/usr/bin/python3", python
    yield from _libraries(python)
    for name in PROGRAMS:
        program = Path(shutil.which(name, path="/usr/bin:/bin") or "")
        yield f"/usr/bin/{name}", program.resolve()
        yield from _libraries(program)
    for folder, folders, files in os.walk(library):
        folders[:] = [name for name in folders if name not in LEFT_OUT and not name.startswith("config-")]
        for name in files:
            source = Path(folder, name)
            yield f"/usr/lib/{library.name}/{source.relative_to(library)}", source
            if name.endswith(".so"):
                yield from _libraries(source)


def _libraries(program: Path) -> Iterator[tuple[str, Path]]:
    """The shared libraries that a program is linked with, and the loader: where the system has them, or would."""
    said = subprocess.run(
        ["ldd", str(program)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    )
    for place in re.findall(r"(/\S+) \(0x", said.stdout):
        usual = place.startswith(("/lib", "/usr/"))
        yield os.path.normpath(place if usual else f"/usr/lib/{Path(place).name}"), Path(place).resolve()

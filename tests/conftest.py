"""Fixtures that the tests share."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from skillup.environments.bubblewrap import BubblewrapKind
from skillup.environments.process import Nursery
from skillup.spec.suite import Environment
from tests.containers import Containers, find_containers
from tests.forked import Forked
from tests.support import REPOSITORY, Project


@pytest.fixture
def project(tmp_path: Path, command_line: Forked) -> Iterator[Project]:
    """A project without any foreign CLI on its PATH."""
    made = Project(tmp_path / "project", forked=command_line)
    yield made
    made.close()


@pytest.fixture(scope="session")
def tools() -> Path:
    """The folder with the pinned real CLIs, installed on first use."""
    script = REPOSITORY / "tests" / "tools" / "install.sh"
    done = subprocess.run(["sh", str(script)], check=True, stdout=subprocess.PIPE, text=True)
    return Path(done.stdout.strip())


@pytest.fixture(scope="session")
def bubblewrap() -> None:
    """A machine on which a bubblewrap sandbox can be made; `make tools` installs what it needs."""
    with Nursery() as nursery:
        missing = BubblewrapKind().missing(Environment(type="bubblewrap"), os.environ, nursery)
    if missing is not None:
        pytest.skip(f"{missing.message}; {missing.hint}")


@pytest.fixture(scope="session")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Containers:
    """A container engine with an image of this machine's programs; `make tools` installs what it needs."""
    folder = tmp_path_factory.mktemp("containers")
    with FileLock(Path(tempfile.gettempdir()) / f"skillup-tests-{os.getuid()}.lock"):
        found = find_containers(folder)
    if isinstance(found, str):
        pytest.skip(f"no container can be run here: {found}")
    return found


@pytest.fixture
def claude(tmp_path: Path, tools: Path, command_line: Forked) -> Iterator[Project]:
    """A project with the real Claude Code on its PATH."""
    made = Project(tmp_path / "project", tools, command_line)
    yield made
    made.close()


@pytest.fixture(scope="session")
def forked() -> Iterator[Forked]:
    """The command line for tests that cut its calls off."""
    with Forked() as made:
        yield made


@pytest.fixture(scope="session")
def command_line() -> Iterator[Forked]:
    """The command line for tests that wait for the end of their calls."""
    with Forked() as made:
        yield made

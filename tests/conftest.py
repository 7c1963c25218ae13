"""Fixtures that the tests share."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import REPOSITORY, Project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project without any foreign CLI on its PATH."""
    made = Project(tmp_path / "project")
    yield made
    made.close()


@pytest.fixture(scope="session")
def tools() -> Path:
    """The folder with the pinned real CLIs, installed on first use."""
    script = REPOSITORY / "tests" / "tools" / "install.sh"
    done = subprocess.run(["sh", str(script)], check=True, stdout=subprocess.PIPE, text=True)
    return Path(done.stdout.strip())


@pytest.fixture
def claude(tmp_path: Path, tools: Path) -> Iterator[Project]:
    """A project with the real Claude Code on its PATH."""
    made = Project(tmp_path / "project", tools)
    yield made
    made.close()

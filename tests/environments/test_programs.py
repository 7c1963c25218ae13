"""Of a program that is installed in a home its own files are shown, and nothing beside them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from skillup.environments.programs import places_of

PATH = "/usr/bin:/bin"


def program(place: Path, text: str = "\x7fELF") -> Path:
    """An executable file; its parents are made."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    place.chmod(0o755)
    return place


def below(home: Path, places: tuple[Path, ...]) -> set[str]:
    return {str(place.relative_to(home)) for place in places if place.is_relative_to(home)}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with what must stay its own."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/id").write_text("CANARY")
    return tmp_path.resolve()


def test_a_single_file_is_shown_alone(home: Path) -> None:
    assert below(home, places_of(program(home / ".local/share/cli/versions/1.0"), PATH)) == {
        ".local/share/cli/versions/1.0"
    }


def test_every_link_on_the_way_is_shown(home: Path) -> None:
    program(home / ".local/share/cli/versions/1.0")
    (home / ".local/bin").mkdir()
    (home / ".local/bin/cli").symlink_to("../share/cli/current")
    (home / ".local/share/cli/current").symlink_to(home / ".local/share/cli/versions/1.0")
    assert below(home, places_of(home / ".local/bin/cli", PATH)) == {
        ".local/bin/cli",
        ".local/share/cli/current",
        ".local/share/cli/versions/1.0",
    }


def test_a_folder_may_be_the_link(home: Path) -> None:
    program(home / "tools/v1/cli")
    (home / "tools/latest").symlink_to("v1")
    assert below(home, places_of(home / "tools/latest/cli", PATH)) == {"tools/latest", "tools/v1/cli"}


def test_a_package_of_npm_brings_its_folder_and_its_interpreter(home: Path) -> None:
    version = home / ".nvm/versions/v20"
    program(version / "bin/node")
    (version / "lib/node_modules").mkdir(parents=True)
    program(version / "lib/node_modules/cli/bin/cli.js", "#!/usr/bin/env -S A=b node --flag\n")
    (version / "bin/cli").symlink_to("../lib/node_modules/cli/bin/cli.js")
    assert below(home, places_of(version / "bin/cli", f"{version}/bin:{PATH}")) == {
        ".nvm/versions/v20/bin/cli",
        ".nvm/versions/v20/lib/node_modules",
        ".nvm/versions/v20/bin/node",
        ".nvm/versions/v20/lib",
    }
    local = program(home / "project/node_modules/cli/node_modules/dep/run")
    assert below(home, places_of(local, PATH)) == {"project/node_modules"}


def test_a_script_is_shown_with_its_interpreter_and_not_with_its_neighbours(home: Path) -> None:
    (home / "suite/lib").mkdir(parents=True)
    interpreter = program(home / "opt/bin/read")
    script = program(home / "suite/bin/agent", f"#!{interpreter}\n")
    assert below(home, places_of(script, PATH)) == {"suite/bin/agent", "opt/bin/read"}


def test_a_virtual_environment_brings_its_packages(home: Path) -> None:
    venv = home / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "lib").mkdir()
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (venv / "bin/python").symlink_to(sys.executable)
    script = program(venv / "bin/cli", f"#!{venv}/bin/python\n")
    assert below(home, places_of(script, PATH)) == {"venv/bin/cli", "venv/pyvenv.cfg", "venv/lib", "venv/bin/python"}


def test_circles_end(home: Path) -> None:
    (home / "a").symlink_to("b")
    (home / "b").symlink_to("a")
    assert below(home, places_of(home / "a", PATH)) <= {"a", "b"}
    circle = program(home / "script", f"#!{home}/script\n")
    assert below(home, places_of(circle, PATH)) == {"script"}
    assert below(home, places_of(home / "missing", os.defpath)) == {"missing"}

"""What a trial's workspace and engine home hold before the first turn: fixture, files, git, skills, login."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from skillup.environments.host import TrialRoot
from skillup.environments.process import Command, Ended, ProcessError
from skillup.errors import TrialError

Run = Callable[[Command, str, float], Ended]
"""Runs a set-up command to its end: (command, name of its output files, time limit in seconds)."""

GIT_SECONDS = 60.0
_GIT_DATE = "2024-01-01T00:00:00Z"
"""Fixed, because the last commit reaches the model: two trials of a comparison must see the same."""


def copy_fixture(fixture: Path, workspace: Path) -> None:
    """Copies a fixture folder, symbolic links as links.

    Raises:
        TrialError: `setup`, the fixture cannot be copied.
    """
    try:
        shutil.copytree(fixture, workspace, symlinks=True, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        raise TrialError("setup", f"the fixture {fixture.name} cannot be copied: {error}", phase="setup") from error


def write_files(files: Mapping[str, str], workspace: Path) -> None:
    """Writes `context.files` over the fixture; parents are made.

    Raises:
        TrialError: `setup`, a file cannot be written inside the workspace.
    """
    base = Path(os.path.realpath(workspace))
    for name, text in files.items():
        place = workspace / name
        # The fixture may hold a link to somewhere else; nothing is written through it.
        if not Path(os.path.realpath(place)).is_relative_to(base):
            raise TrialError("setup", f"context.files: {name} leads out of the workspace", phase="setup")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        except OSError as error:
            raise TrialError("setup", f"context.files: {name} cannot be written: {error}", phase="setup") from error


def init_git(root: TrialRoot, variables: Mapping[str, str], run: Run) -> None:
    """Makes the workspace a repository with one commit, the same bytes in every trial.

    Raises:
        TrialError: `setup`, git is missing or refuses.
    """
    env = {**variables, "GIT_AUTHOR_DATE": _GIT_DATE, "GIT_COMMITTER_DATE": _GIT_DATE}
    quiet = ("-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=false")
    for step in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "--all", "--force"),
        (*quiet, "commit", "--quiet", "--allow-empty", "--message", "Initial state"),
    ):
        set_up(("git", *step), root.workspace, env, run, GIT_SECONDS)


def set_up(argv: tuple[str, ...], cwd: Path, env: Mapping[str, str], run: Run, seconds: float) -> None:
    """Runs one set-up command.

    Raises:
        TrialError: `setup`, it is missing, fails, or does not end in time.
    """
    shown = " ".join(argv)
    try:
        ended = run(Command(argv, env, cwd), "setup", seconds)
    except ProcessError as error:
        raise TrialError("setup", f"`{shown}` cannot be started: {error}", phase="setup") from error
    if ended.how == "deadline":
        raise TrialError("setup", f"`{shown}` did not end within {seconds:g} s", phase="setup")
    if ended.exit_code != 0:
        code = f"signal {ended.signal}" if ended.signal else f"exit code {ended.exit_code}"
        raise TrialError("setup", f"`{shown}` failed with {code}", phase="setup")


def install_skill(folder: Path, files: tuple[str, ...], target: Path) -> None:
    """Copies the chosen files of a skill into the engine home.

    Raises:
        TrialError: `setup`, a file cannot be copied.
    """
    try:
        for name in files:
            place = target / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / name, place)
    except OSError as error:
        raise TrialError("setup", f"the skill {folder.name} cannot be installed: {error}", phase="setup") from error


def copy_login(files: tuple[tuple[str, str], ...], user_home: Path, home: Path) -> None:
    """Copies the credential files alone into the private home, readable by the owner only.

    Raises:
        TrialError: `auth`, there is no login to copy.
    """
    copied = False
    for source, target in files:
        if (user_home / source).is_file():
            place = home / target
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(user_home / source, place)
            place.chmod(0o600)
            copied = True
    if not copied:
        names = ", ".join(f"~/{source}" for source, _ in files) or "none for this engine"
        raise TrialError(
            "auth",
            f"`login: copy` found no login to copy (looked for {names})",
            phase="setup",
            hint="log in with the CLI first, or pass a key by `env`",
        )

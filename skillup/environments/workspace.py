"""What a trial's workspace and engine home hold before the first turn: fixture, files, skills, login.

A fixture may be a stranger's: nothing of it is run, and nothing is written through its links.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from skillup.environments.process import Command, Ended, ProcessError
from skillup.errors import TrialError
from skillup.loading.repositories import git_folders, repository_elsewhere

Run = Callable[[Command, float], tuple[Ended, str]]
"""Runs a set-up command to its end within a limit in seconds; how it ended, and the end of what it printed."""

_NO_FILTERS = "\n* -filter\n"
"""For `.git/info/attributes`, which outranks every other: filters are programs, named by the repository itself."""

_MIN_LOGIN_SECRET = 16
"""Tokens are longer; what is shorter in a login file is a kind, a scope or a name."""


def copy_fixture(fixture: Path, workspace: Path) -> None:
    """Copies a fixture folder, symbolic links as links. Repositories in it lose their filters.

    Raises:
        TrialError: `setup`, the fixture cannot be copied, or its `.git` leads to a repository elsewhere.
    """
    try:
        shutil.copytree(fixture, workspace, symlinks=True, dirs_exist_ok=True)
        complaint = repository_elsewhere(workspace)
        if complaint is not None:
            message, hint = complaint
            raise TrialError("setup", f"the fixture {fixture.name} cannot be used: {message}", phase="setup", hint=hint)
        for git in git_folders(workspace):
            _disarm(git)
    except (OSError, shutil.Error) as error:
        raise TrialError(
            "setup", f"the fixture {fixture.name} cannot be copied: {_first(error)}", phase="setup"
        ) from error


def disarm_made(workspace: Path) -> None:
    """Takes their filters from folders that files of the case, or a patch, made look like repositories.

    Raises:
        TrialError: `setup`, that cannot be done.
    """
    try:
        for git in git_folders(workspace):
            if git.name != ".git":  # neither files nor patches get there
                _disarm(git)
    except OSError as error:
        raise TrialError("setup", f"the workspace cannot be looked at: {error}", phase="setup") from error


def _disarm(git: Path) -> None:
    attributes = git / "info" / "attributes"
    if attributes.parent.is_symlink():
        attributes.parent.unlink()
    attributes.parent.mkdir(exist_ok=True)
    own = attributes.is_file() and not attributes.is_symlink()
    old = attributes.read_text(encoding="utf-8", errors="surrogateescape") if own else ""
    if not old.endswith(_NO_FILTERS):
        attributes.unlink(missing_ok=True)  # it may be a link
        attributes.write_text(old + _NO_FILTERS, encoding="utf-8", errors="surrogateescape")


def _first(error: Exception) -> str:
    """The first of the faults that copying a folder collects, in words."""
    listed = error.args[0] if error.args else error
    if isinstance(listed, list) and listed:
        source, _target, why = listed[0]
        return f"{source}: {why}" + (f" (and {len(listed) - 1} more)" if len(listed) > 1 else "")
    return str(error)


def write_files(files: Mapping[str, str], workspace: Path) -> None:
    """Writes `context.files` over the fixture; parents are made.

    Raises:
        TrialError: `setup`, a file cannot be written inside the workspace.
    """
    base = Path(os.path.realpath(workspace))
    for name, text in files.items():
        place = workspace / name
        # The fixture may hold a link to somewhere else, or into its repository; nothing is written through it.
        real = Path(os.path.realpath(place))
        if not real.is_relative_to(base):
            raise TrialError("setup", f"context.files: {name} leads out of the workspace", phase="setup")
        if ".git" in (part.lower() for part in real.relative_to(base).parts):
            raise TrialError("setup", f"context.files: {name} leads into a .git", phase="setup")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        except OSError as error:
            raise TrialError("setup", f"context.files: {name} cannot be written: {error}", phase="setup") from error


def check_workspace(workspace: Path) -> None:
    """Makes sure that a turn can take place in the workspace: agents can remove, lock or replace it.

    Raises:
        TrialError: `environment`, it is no folder any more, or may not be entered.
    """
    try:
        status = workspace.lstat()
    except OSError as error:
        state = f"is gone: {error.strerror}"
    else:
        if stat.S_ISDIR(status.st_mode):
            if os.access(workspace, os.X_OK):
                return
            state = f"cannot be entered any more: its permissions are {stat.filemode(status.st_mode)}"
        else:
            state = f"is a link to {workspace.readlink()} now" if workspace.is_symlink() else "is no folder any more"
    raise TrialError(
        "environment",
        f"the workspace {state}",
        hint="the agent did that in an earlier turn: see its tool calls",
    )


def set_up(
    command: Command,
    run: Run,
    seconds: float,
    *,
    key: str,
    shown: str,
    codes: tuple[int, ...] = (0,),
    slow_hint: str = "",
) -> int:
    """Runs one set-up command, and gives its exit code.

    `key` is the key that asked for it, `shown` what messages show of it, `slow_hint` what to do about its limit.

    Raises:
        TrialError: `setup`, it is missing, ends with none of the `codes`, or not in time.
    """
    said = f"{key}: `{shown}`"
    try:
        ended, tail = run(command, seconds)
    except ProcessError as error:
        raise TrialError("setup", f"{said} cannot be started: {error}", phase="setup") from error
    if ended.how == "deadline":
        raise TrialError("setup", f"{said} did not end within {seconds:g} s", phase="setup", hint=slow_hint, tail=tail)
    if ended.exit_code is None or ended.exit_code not in codes:
        code = f"signal {ended.signal}" if ended.signal else f"exit code {ended.exit_code}"
        raise TrialError("setup", f"{said} failed with {code}", phase="setup", tail=tail)
    return ended.exit_code


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


def make_home(home: Path) -> None:
    """Makes the CLI's own folder, if it is not there: some CLIs do not start without.

    Raises:
        TrialError: `setup`, it cannot be made.
    """
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise TrialError("setup", f"the engine home {home} cannot be made: {error}", phase="setup") from error


def skills_below(workspace: Path, folders: tuple[str, ...]) -> tuple[Path, ...]:
    """Every SKILL.md below these folders of the workspace, in order, links followed as CLIs follow them."""
    found: list[Path] = []
    seen: set[str] = set()
    for folder in folders:
        for place, below, files in os.walk(workspace / folder, followlinks=True):
            real = os.path.realpath(place)
            if real in seen:
                below.clear()  # a link may lead into a circle
            elif "SKILL.md" in files:
                found.append(Path(place) / "SKILL.md")
            seen.add(real)
    return tuple(sorted(found))


def copy_login(files: tuple[str, ...], host_home: Path, home: Path) -> None:
    """Copies the credential files alone into the private home, readable by the owner only.

    Raises:
        TrialError: `auth`, there is no login to copy, or it cannot be.
    """
    there = [(host_home / name, home / name) for name in files if (host_home / name).is_file()]
    if not there:
        places = " and ".join(str(host_home / name) for name in files)
        looked = f"there is no {places}" if places else "this engine has no login that could be copied"
        raise TrialError(
            "auth",
            f"`login: copy` found no login: {looked}",
            phase="setup",
            hint="log in with the CLI first, or pass a key by the profile's `env`",
        )
    for source, place in there:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, place)
            place.chmod(0o600)
        except OSError as error:
            raise TrialError("auth", f"the login {source} cannot be copied: {error}", phase="setup") from error


def login_secrets(files: tuple[str, ...], host_home: Path) -> tuple[str, ...]:
    """The texts in the credential files that may be secrets; a file that is not JSON is one as a whole."""
    found: list[str] = []
    for name in files:
        place = host_home / name
        try:
            if not place.is_file():  # an agent on a shared home can put a pipe there, and reading it would never end
                continue
            text = place.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # there is none; where one is needed, copying it or the CLI says so
        try:
            found += _texts(json.loads(text))
        except (ValueError, RecursionError):
            found += text.splitlines()
    return tuple(text for text in found if len(text) >= _MIN_LOGIN_SECRET)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)

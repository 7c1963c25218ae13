"""Where a trial lives on the host: a private root with a workspace, an engine home and a temp folder, and the
variables that its processes get.

The root lies under `/var/tmp/skillup-<uid>/` (0700): outside every suite and repository, and not below `$TMPDIR`,
where one CLI's sandbox breaks. Path names say nothing about the case.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillup.errors import TrialError

ROOT_VARIABLE = "SKILLUP_TRIAL_ROOT"
"""Names another base folder for trial roots."""

INSTRUCTION_NAMES = ("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", ".claude", ".agents", ".codex", ".git")
"""What agent CLIs read from the parents of their working folder; none of it may lie above a trial."""

_PASSED = ("PATH", "LANG", "LANGUAGE", "TZ", "TERM", "SHELL", "USER", "LOGNAME")
_PASSED_PREFIXES = ("LC_",)
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_CERTIFICATES = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
)

GIT_IDENTITY = {
    "GIT_AUTHOR_NAME": "Sample Author",
    "GIT_AUTHOR_EMAIL": "author@example.com",
    "GIT_COMMITTER_NAME": "Sample Author",
    "GIT_COMMITTER_EMAIL": "author@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
}


@dataclass(frozen=True)
class TrialRoot:
    """The folders of one trial; `scratch` is ours, for stdin and stdout, and nothing in the agent's variables names it."""

    path: Path

    @property
    def workspace(self) -> Path:
        """Where the agent works."""
        return self.path / "workspace"

    @property
    def home(self) -> Path:
        """HOME, and the engine home."""
        return self.path / "home"

    @property
    def tmp(self) -> Path:
        """TMPDIR."""
        return self.path / "tmp"

    @property
    def scratch(self) -> Path:
        """Files of ours."""
        return self.path / "io"


def trial_base(host: Mapping[str, str]) -> Path:
    """The folder below which trial roots are made."""
    chosen = host.get(ROOT_VARIABLE)
    return Path(chosen).absolute() if chosen else Path(f"/var/tmp/skillup-{os.getuid()}")  # noqa: S108 - 0700, see open_trial_root


def instructions_above(base: Path) -> tuple[Path, ...]:
    """Files and folders at or above a base that agent CLIs would read as instructions."""
    resolved = Path(os.path.realpath(base))
    places = (resolved, *resolved.parents)
    return tuple(place / name for place in places for name in INSTRUCTION_NAMES if os.path.lexists(place / name))


@contextmanager
def open_trial_root(base: Path) -> Iterator[TrialRoot]:
    """A fresh private root, removed at the end whatever the agent did to it.

    Raises:
        TrialError: `setup`, the base cannot be made or is not ours alone.
    """
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = base.lstat()
        if stat.S_ISLNK(owner.st_mode) or owner.st_uid != os.getuid() or owner.st_mode & 0o077:
            raise TrialError(
                "setup",
                f"{base} is not a private folder of this user",
                phase="setup",
                hint=f"remove it, or set {ROOT_VARIABLE} to a folder with mode 0700",
            )
        root = TrialRoot(base / secrets.token_hex(8))
        for folder in (root.path, root.workspace, root.home, root.tmp, root.scratch):
            folder.mkdir(mode=0o700)
    except OSError as error:
        raise TrialError("setup", f"no trial root can be made below {base}: {error}", phase="setup") from error
    try:
        yield root
    finally:
        remove_tree(root.path)


def remove_tree(path: Path) -> None:
    """Removes a folder, also one whose permissions were taken away."""

    def unlock(function: Callable[..., Any], name: str, _error: BaseException) -> None:
        parent = Path(name).parent
        for place in (parent, Path(name)):
            if not place.is_symlink() and place.exists():
                place.chmod(0o700)
        if function in (os.scandir, os.open, os.lstat):
            remove_tree(Path(name))
        else:
            function(name)

    # `onexc` is Python 3.12's name of the same hook.
    try:
        shutil.rmtree(path, onerror=lambda function, name, info: unlock(function, name, info[1]))
    except OSError:
        shutil.rmtree(path, ignore_errors=True)


def child_variables(host: Mapping[str, str], root: TrialRoot, *extra: Mapping[str, str]) -> dict[str, str]:
    """The variables of every process of a trial: an allow-list of the host's, our own, then `extra` in order."""
    passed = {
        name: value
        for name, value in host.items()
        if name in (*_PASSED, *_CERTIFICATES) or name.startswith(_PASSED_PREFIXES) or name.lower() in _PROXIES
    }
    loopback = "127.0.0.1,localhost"
    for name in [name for name in passed if name.lower() == "no_proxy"]:
        passed[name] = f"{passed[name]},{loopback}"
    if any(name.lower() in _PROXIES for name in passed):
        passed.setdefault("NO_PROXY", loopback)
        passed.setdefault("no_proxy", loopback)
    own = {"HOME": str(root.home), "TMPDIR": str(root.tmp), **GIT_IDENTITY}
    variables = {**passed, **own}
    for more in extra:
        variables |= more
    return variables

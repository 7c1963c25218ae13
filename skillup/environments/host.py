"""Where a trial lives on the host, a private root with workspace, engine home and temp folder, and its variables.

The root lies under `/var/tmp/skillup-<uid>/` (0700): outside every suite and repository, and not below `$TMPDIR`,
where one CLI's sandbox breaks. Path names say nothing about the case.

Beside every root `<name>/` lie our own files `<name>.io/`, and `<name>.lock`, locked by the process that the trial
belongs to. The lock is there before the others and goes after them, and the system frees it when that process dies,
however it does: what lies beside a free lock belongs to nobody, and the next run removes it.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from skillup.environments.removal import remove_tree
from skillup.errors import TrialError

ROOT_VARIABLE = "SKILLUP_TRIAL_ROOT"
"""Names another base folder for trial roots."""

INSTRUCTION_NAMES = ("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", ".claude", ".agents", ".codex", ".git")
"""What agent CLIs read from the parents of their working folder; none of it may lie above a trial."""

_PASSED = ("PATH", "LANG", "LANGUAGE", "TZ", "TERM", "SHELL", "USER", "LOGNAME")
_PASSED_PREFIXES = ("LC_",)
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
CERTIFICATES = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
)
"""Variables that name files with the certificates that a process trusts."""

GIT_IDENTITY = {
    "GIT_AUTHOR_NAME": "Sample Author",
    "GIT_AUTHOR_EMAIL": "author@example.com",
    "GIT_COMMITTER_NAME": "Sample Author",
    "GIT_COMMITTER_EMAIL": "author@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    # A program that the configuration of a fixture's repository can name; CLIs ask git for the state of the workspace
    # before the model has said a word, and git would run it.
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
}

_NAME_BYTES = 8
_LOCK = re.compile(r"[0-9a-f]{16}\.lock\Z")


@dataclass(frozen=True)
class TrialRoot:
    """The folders of one trial. `scratch` is ours, for stdin and stdout; no variable of the agent names it.

    It lies beside the root, where an agent that cleans up too much does not come by.
    """

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
        return self.path.with_suffix(".io")


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
        if not _is_private(base):
            raise TrialError(
                "setup",
                f"{base} is not a private folder of this user",
                phase="setup",
                hint=f"remove it, or set {ROOT_VARIABLE} to a folder with mode 0700",
            )
        path, lock = _lease(base)
    except OSError as error:
        raise TrialError("setup", f"no trial root can be made below {base}: {error}", phase="setup") from error
    try:
        root = TrialRoot(path)
        try:
            _make(root)
        except OSError as error:
            raise TrialError("setup", f"no trial root can be made below {base}: {error}", phase="setup") from error
        yield root
    finally:
        _release(path, lock)


@contextmanager
def passing_root() -> Iterator[TrialRoot]:
    """A root for a look at the machine, where no trial takes place: in the system's temporary folder."""
    with TemporaryDirectory(prefix="skillup-") as folder:
        root = TrialRoot(Path(folder) / "root")
        _make(root)
        yield root


def _make(root: TrialRoot) -> None:
    for folder in (root.path, root.workspace, root.home, root.tmp, root.scratch):
        folder.mkdir(mode=0o700)


def sweep(base: Path) -> tuple[Path, ...]:
    """Removes the roots of runs that died; the roots of living ones stay. Those that resisted are given back."""
    left = []
    for path, lock in _abandoned(base):
        with suppress(OSError):
            if not _release(path, lock):
                left.append(path)
    return tuple(left)


def left_roots(base: Path) -> tuple[Path, ...]:
    """The roots of runs that died, which the next run removes."""
    found = []
    for path, lock in _abandoned(base):
        os.close(lock)
        found.append(path)
    return tuple(found)


def _abandoned(base: Path) -> Iterator[tuple[Path, int]]:
    """The roots of runs that died, each with its lock, held."""
    if not base.exists() or not _is_private(base):
        return
    for place in sorted(base.glob("*.lock")):
        if _LOCK.match(place.name):
            lock = None
            with suppress(OSError):  # its run lives, another sweep was quicker, or it is no lock of ours
                lock = _lock(place, os.O_RDWR, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock is not None:
                yield place.with_suffix(""), lock


def is_abandoned(path: Path) -> bool:
    """Whether the run that a root belonged to has died, or removed the root."""
    try:
        lock = _lock(path.with_suffix(".lock"), os.O_RDWR, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return not path.exists()  # a root for a passing look has no lock
    except OSError:
        return False
    if lock is not None:
        os.close(lock)
    return True


def _is_private(base: Path) -> bool:
    status = base.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077


def _lease(base: Path) -> tuple[Path, int]:
    """A name for a root, and its lock, held.

    Raises:
        OSError: no lock file can be made.
    """
    while True:
        path = base / secrets.token_hex(_NAME_BYTES)
        # Between the making of the file and its locking a sweep may take it for a dead run's; then another name is.
        lock = _lock(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_EXCL, fcntl.LOCK_EX)
        if lock is not None:
            return path, lock


def _lock(place: Path, flags: int, how: int) -> int | None:
    """A descriptor with the lock on a file; None when the file went away, or is no lock file.

    Raises:
        OSError: the file cannot be opened, or another process holds its lock.
    """
    lock = os.open(place, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, how)
        opened = os.fstat(lock)
        with suppress(FileNotFoundError):
            if stat.S_ISREG(opened.st_mode) and os.path.samestat(opened, place.lstat()):
                return lock
    except BaseException:
        os.close(lock)
        raise
    os.close(lock)
    return None


def _release(path: Path, lock: int) -> bool:
    """Removes a root and then its lock; the lock of a root that resists stays, for the next sweep to try again."""
    try:
        left = [place for place in (path, TrialRoot(path).scratch) if not remove_tree(place)]
        if not left:
            path.with_suffix(".lock").unlink(missing_ok=True)
    finally:
        os.close(lock)
    return not left


def child_variables(host: Mapping[str, str], root: TrialRoot, *extra: Mapping[str, str]) -> dict[str, str]:
    """The variables of every process of a trial: an allow-list of the host's, our own, then `extra` in order."""
    passed = {
        name: value
        for name, value in host.items()
        if name in (*_PASSED, *CERTIFICATES) or name.startswith(_PASSED_PREFIXES) or name.lower() in _PROXIES
    }
    # Relative entries, and an empty one, would look for programs in the workspace: a fixture could bring its own git.
    path = passed.get("PATH", os.defpath).split(os.pathsep)
    passed["PATH"] = os.pathsep.join(place for place in path if place.startswith("/")) or os.defpath
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

"""Git repositories of fixtures, as far as their files show them: nothing is run."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from skillup.errors import Fault
from skillup.loading.document import Document
from skillup.loading.paths import Ground, TooManyEntriesError, walk
from skillup.loading.spelling import closest
from skillup.spec.case import Case
from skillup.spec.problems import quoted

LARGEST_DIFF = 64 * 1024 * 1024
"""Bytes; a patch that is larger should be a fixture."""

_DIFF_BEGINS = (b"diff --git ", b"--- ")
_SHOWN_BRANCHES = 10
_LONGEST_PATH = 4096
_LARGEST_CONFIG = 1_000_000
_INCLUDE = re.compile(r"(?im)^\s*\[\s*include")
_WORKING_TREE = re.compile(r"(?im)(?:^|\])[ \t]*worktree[ \t]*=(.*)$")
_PLAIN_PATH = re.compile(r"[\w.-][\w./ -]*\Z")
"""A relative path that git reads as it is written: without quotes, escapes or a comment."""


def git_folders(folder: Path) -> tuple[Path, ...]:
    """Folders at or below one that git takes for repositories: called .git, or with the parts of one; sorted.

    Raises:
        OSError: a folder cannot be read.
    """
    below = (Path(entry.path) for entry in walk(folder, most=sys.maxsize) if entry.is_dir(follow_symlinks=False))
    parts = ("HEAD", "objects", "refs")
    return tuple(
        sorted(
            place
            for place in (folder, *below)
            if place.name == ".git" or all(os.path.lexists(place / part) for part in parts)
        )
    )


def repository_elsewhere(folder: Path) -> tuple[str, str] | None:
    """Message and hint when a repository at or below a folder has parts elsewhere; None when all are whole.

    Raises:
        OSError: a folder cannot be read.
    """
    for entry in walk(folder, most=sys.maxsize):
        if entry.name == ".git" and not entry.is_dir(follow_symlinks=False) and not _is_submodule(entry, folder):
            return _elsewhere(f"{os.path.relpath(entry.path, folder)} is no folder")
    for git in git_folders(folder):
        shown = os.path.relpath(git, folder)
        for name in ("commondir", "objects/info/alternates"):
            if os.path.lexists(git / name):
                return _elsewhere(f"{shown}/{name} leads there")
        configured = _configured_elsewhere(git, folder)
        if configured:
            return _elsewhere(f"{shown}/{configured}")
        # In a folder that is called otherwise only these are git's.
        for place in (git,) if git.name == ".git" else (git / "objects", git / "refs"):
            if place.is_symlink():
                return _elsewhere(f"{os.path.relpath(place, folder)} is a link")
            for entry in walk(place, most=sys.maxsize) if place.is_dir() else ():
                if entry.is_symlink():
                    return _elsewhere(f"{os.path.relpath(entry.path, folder)} is a link")
    return None


def _configured_elsewhere(git: Path, folder: Path) -> str | None:
    """What a repository's configuration says of a working tree that is not in the folder, or may say somewhere else."""
    for name in ("config", "config.worktree"):
        if not (git / name).is_file():
            continue
        with (git / name).open("rb") as file:
            text = file.read(_LARGEST_CONFIG + 1).decode("utf-8", "surrogateescape")
        if len(text) > _LARGEST_CONFIG or _INCLUDE.search(text):
            return f"{name} includes other files, or is too large to be looked at"
        for match in _WORKING_TREE.finditer(text):
            written = match[1].strip()
            real = Path(os.path.realpath(git / written))
            if not _PLAIN_PATH.match(written) or not real.is_relative_to(os.path.realpath(folder)):
                return f"{name} says that it works in {written}"
    return None


def _elsewhere(what: str) -> tuple[str, str]:
    hint = "agents would work in that repository; leave .git out of the fixture, or make it a clone"
    return f"it is the working tree of a repository elsewhere: its {what}", hint


def _is_submodule(entry: os.DirEntry[str], folder: Path) -> bool:
    """Whether a `.git` below the top is a file that leads to a folder of the repository at the top."""
    path = Path(entry.path)
    if path.parent == folder or not entry.is_file(follow_symlinks=False):
        return False
    with path.open("rb") as file:
        target = os.fsdecode(file.read(_LONGEST_PATH)).removeprefix("gitdir:").strip()
    real = Path(os.path.realpath(path.parent / target))
    return not target.startswith("/") and "\0" not in target and real.is_relative_to(os.path.realpath(folder / ".git"))


def git_faults(case: Case, document: Document, ground: Ground, *, prepared: bool) -> Iterator[Fault]:
    """What `context.git` asks for and cannot have; `prepared` when set-up steps may make a repository first."""
    git, fixture = case.context.git, case.context.repo_fixture
    folder = ground.root / fixture if fixture else None
    if folder is not None and (not folder.is_dir() or not ground.holds(folder)):
        return  # that is told already
    own = folder / ".git" if folder is not None and (folder / ".git").is_dir() else None
    if own and not os.path.lexists(own / "HEAD") and (git.init or git.checkout or git.remotes):
        hint = "leave .git out of the fixture, or git out of the context"
        yield document.fault(("context", "git"), f"the .git of {fixture} is no repository: it has no HEAD", hint=hint)
        return
    for key in ("checkout", "remotes") if not (git.init or own or prepared) else ():
        if getattr(git, key):
            hint = "add `init: true`, or use a fixture with a .git of its own"
            yield document.fault(("context", "git", key), "there will be no repository in the workspace", hint=hint)
    if own and git.checkout and not prepared:
        known = _branches(own)
        if known is not None and git.checkout not in known:
            meant = closest(git.checkout, sorted(known))
            hint = f"did you mean {quoted(meant)}?" if meant else f"it has {_listed(known)}"
            message = f"the repository of {fixture} has no branch {quoted(git.checkout)}"
            yield document.fault(("context", "git", "checkout"), message, hint=hint)
    complaint = _diff_complaint(git.apply_diff, ground) if git.apply_diff else None
    if complaint:
        yield document.fault(("context", "git", "apply_diff"), complaint[0], hint=complaint[1])


def _diff_complaint(written: str, ground: Ground) -> tuple[str, str] | None:
    path = ground.root / written
    complaint = ground.complaint(written)
    if complaint:
        return complaint
    if not path.is_file():
        message = f"{written} is no file" if path.exists() else f"there is no file {written}"
        return message, f"paths are relative to {ground.root}"
    try:
        if path.stat().st_size > LARGEST_DIFF:
            return f"{written} is larger than {LARGEST_DIFF >> 20} MB", "put the files into a fixture"
        with path.open("rb") as file:
            is_diff = any(line.startswith(_DIFF_BEGINS) for line in file)
    except OSError as error:
        return f"{written} cannot be read: {error.strerror}", ""
    return None if is_diff else (f"{written} holds no diff", "write it with `git diff --binary`")


def _branches(git: Path) -> frozenset[str] | None:
    """The branches that can be switched to, those of remotes included; None when any can, or it cannot be told."""
    try:
        names = {name for name in _references(git) if name.startswith(("refs/heads/", "refs/remotes/"))}
        head = (git / "HEAD").read_text(encoding="utf-8", errors="replace").strip().removeprefix("ref: ")
    except (OSError, TooManyEntriesError):
        return None
    if (git / "reftable").exists() or (head.startswith("refs/") and head not in names):
        return None  # nothing is committed yet, so that the branch is made
    return frozenset(name.split("/", 2 if name.startswith("refs/heads/") else 3)[-1] for name in names) - {"HEAD"}


def _references(git: Path) -> Iterator[str]:
    """Names of references, in files of their own and in the packed list."""
    for entry in walk(git / "refs") if (git / "refs").is_dir() else ():
        if entry.is_file(follow_symlinks=False):
            yield os.path.relpath(entry.path, git)
    if (git / "packed-refs").is_file():
        for line in (git / "packed-refs").read_text(encoding="utf-8", errors="replace").splitlines():
            if not line.startswith(("#", "^")):
                yield line.partition(" ")[2]


def _listed(names: frozenset[str]) -> str:
    shown = ", ".join(sorted(names)[:_SHOWN_BRANCHES])
    return f"{shown} and {len(names) - _SHOWN_BRANCHES} more" if len(names) > _SHOWN_BRANCHES else shown or "none"

"""Git repositories of fixtures, as far as their files show them: nothing is run."""

from __future__ import annotations

import os
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


def repository_elsewhere(folder: Path) -> tuple[str, str] | None:
    """Message and hint when the `.git` of a folder has parts elsewhere; None when it is whole, or there is none.

    Raises:
        OSError: it cannot be read.
    """
    git = folder / ".git"
    if not os.path.lexists(git):
        return None
    hint = "agents would work in that repository; leave .git out of the fixture, or make it a clone"
    begin = "it is the working tree of a repository elsewhere"
    if git.is_symlink() or not git.is_dir():
        return f"{begin}: its .git is no folder", hint
    for name in ("commondir", "objects/info/alternates"):
        if os.path.lexists(git / name):
            return f"{begin}: .git/{name} leads there", hint
    try:
        link = next((entry.path for entry in walk(git) if entry.is_symlink()), None)
    except TooManyEntriesError:
        return "its .git has too many entries", "run `git gc` in it"
    return (f"{begin}: .git/{os.path.relpath(link, git)} is a link", hint) if link else None


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

"""What users write in `context.git`: a repository in the workspace, its branch, its remotes, a patch."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, model_validator

from skillup.spec.problems import fault_at, quoted
from skillup.spec.values import Flag, Spec, Words

_BAD_IN_BRANCH = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
"""What git allows in no name of a branch."""

_REMOTE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_TRANSPORT = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::")
"""`ext::`, `fd::` and others: git runs a program of that name, or what stands behind it."""

_OPTION = re.compile(r"-|[^/]*@-|[A-Za-z][A-Za-z0-9+.-]*://([^/]*@)?-")
"""A host that a program would take for an option."""


def _branch(name: str) -> str:
    parts = name.split("/")
    if name.startswith("-"):
        raise fault_at(f"the branch {quoted(name)} begins with -, so git would take it for an option")
    if (
        _BAD_IN_BRANCH.search(name)
        or name in ("", "@", "HEAD")
        or name.endswith(".")
        or any(not part or part.startswith(".") or part.endswith(".lock") for part in parts)
    ):
        raise fault_at(
            f"{quoted(name)} cannot name a branch",
            hint="write its short name, such as main or feature/login; commits and tags are no branches",
        )
    return name


def _remote_name(name: str) -> str:
    if not _REMOTE_NAME.match(name) or ".." in name or name.endswith((".", ".lock")):
        raise fault_at(
            f"{quoted(name)} cannot name a remote", hint="begin with a letter or digit, go on with these, `.`, `_`, `-`"
        )
    return name


def _remote_url(url: str) -> str:
    if not url or any(not character.isprintable() or character.isspace() for character in url):
        raise fault_at(f"{quoted(url)} is no address: it is empty, or holds blanks or control characters")
    if _TRANSPORT.match(url):
        raise fault_at(
            f"{quoted(url)} names a program that git would run", hint="use https://, ssh://, file:// or a path"
        )
    if _OPTION.match(url):
        raise fault_at(f"{quoted(url)} holds a - where git, or ssh, would take what follows for an option")
    return url


BranchName = Annotated[str, AfterValidator(_branch)]
"""The short name of a branch."""

RemoteName = Annotated[str, AfterValidator(_remote_name)]
"""The name of a remote."""


class Remote(Spec):
    """A remote that the repository knows; nothing is ever fetched from it."""

    name: RemoteName
    url: Annotated[str, AfterValidator(_remote_url)]


class Git(Spec):
    """Git in the workspace: see docs/cases.md for what happens in which order."""

    init: Flag = False
    checkout: BranchName | None = None
    apply_diff: Words | None = None
    remotes: tuple[Remote, ...] = ()

    @model_validator(mode="after")
    def _no_remote_twice(self) -> Git:
        for index, remote in enumerate(self.remotes):
            if any(remote.name == other.name for other in self.remotes[:index]):
                raise fault_at(f"there is a remote {quoted(remote.name)} already", "remotes", index, "name")
        return self

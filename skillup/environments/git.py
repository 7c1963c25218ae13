"""Git in the workspace before the first turn: a repository, its remotes, a branch, one commit, a patch.

The repository may be a stranger's. Nothing that it names is run: no hooks, filters, monitors, and no programs that
fetch what it lacks; and no other place that it names is worked in. Dates and names are ours, so that two trials get
the same commits.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skillup.environments.host import TrialRoot
from skillup.environments.process import Command
from skillup.environments.workspace import Run, set_up
from skillup.spec.git import Git

SECONDS = 60.0
_DATE = "2024-01-01T00:00:00Z"
"""Fixed, because the last commit reaches the model: two trials of a comparison must see the same."""

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "commit.gpgsign=false",
    "submodule.recurse=false",  # git in a submodule would obey that one's configuration
    "gc.auto=0",  # what it would do in the background has not ended when the trial begins
    "maintenance.auto=false",
)
_QUIET = tuple(part for setting in _SETTINGS for part in ("-c", setting))


@dataclass(frozen=True)
class WorkspaceGit:
    """What a case wants of git in one trial's workspace. `open` comes before the case's files, `close` after them."""

    wanted: Git
    root: TrialRoot
    variables: Mapping[str, str]
    run: Run

    def open(self) -> bool:
        """Makes the repository, or takes the one that is there; its remotes, its branch. Whether it is a new one.

        Raises:
            TrialError: `setup`, git is missing or refuses.
        """
        is_new = self.wanted.init and not os.path.lexists(self.root.workspace / ".git")
        if is_new:
            self._make(self.wanted.checkout or "main")
        for remote in self.wanted.remotes:
            self._git("remotes", "remote", "add", "--", remote.name, remote.url)
        if self.wanted.checkout is not None and not is_new:
            self._switch(self.wanted.checkout)
        return is_new

    def close(self, *, is_new: bool, diff: Path | None) -> None:
        """Makes all that is there the first commit of a new repository, then applies the patch to the files.

        Raises:
            TrialError: `setup`, git is missing or refuses.
        """
        if is_new:
            self._git("init", "add", "--all", "--force")
            self._git("init", "commit", "--quiet", "--allow-empty", "--message", "Initial state")
        if diff is not None:
            self._git("apply_diff", "apply", "--whitespace=nowarn", "-", stdin=diff)

    def _make(self, branch: str) -> None:
        command = ("git", *_QUIET, "init", "--quiet", f"--initial-branch={branch}", "--template=")
        # Not with our variables: git would write the working tree that they name into the configuration.
        place = Command(command, self.variables, self.root.workspace)
        set_up(place, self.run, SECONDS, key="context.git.init", shown="git init")

    def _switch(self, branch: str) -> None:
        # Names are checked, so none is an option. Only where nothing is committed yet a branch is made.
        if not self._has("HEAD") and not self._has(f"refs/heads/{branch}"):
            self._git("checkout", "switch", "--quiet", "--create", branch)
            return
        self._git("checkout", "switch", "--quiet", "--guess", branch)
        # Files that a repository lacks are left out by git, which then ends as if all were well.
        self._git("checkout", "rev-list", "--objects", "--no-walk", "--quiet", "HEAD")

    def _git(self, key: str, *arguments: str, stdin: Path | None = None, codes: tuple[int, ...] = (0,)) -> int:
        command = Command(("git", *_QUIET, *arguments), self._environment, self.root.workspace, stdin)
        shown = f"git {' '.join(arguments)}" + (f" < {self.wanted.apply_diff}" if stdin else "")
        return set_up(command, self.run, SECONDS, key=f"context.git.{key}", shown=shown, codes=codes)

    def _has(self, name: str) -> bool:
        return self._git("checkout", "rev-parse", "--quiet", "--verify", name, codes=(0, 1)) == 0

    @property
    def _environment(self) -> dict[str, str]:
        """Names the repository and its working tree: neither is looked for, and its configuration names no other.

        Where there is no repository, a patch is applied without one.
        """
        return {
            **self.variables,
            "GIT_DIR": str(self.root.workspace / ".git"),
            "GIT_WORK_TREE": str(self.root.workspace),
            "GIT_AUTHOR_DATE": _DATE,
            "GIT_COMMITTER_DATE": _DATE,
            # A repository may say that what it lacks is to be fetched, and by which program.
            "GIT_ALLOW_PROTOCOL": "",
            "GIT_NO_LAZY_FETCH": "1",
        }

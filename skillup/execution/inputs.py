"""The files of a suite by their digests, so that nobody changes them under a run unnoticed.

An agent on the host can write wherever its user can. A trial is made only from what was there when the run was planned,
and the run says in the end what is not any more.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from skillup.errors import TrialError
from skillup.loading.paths import shown
from skillup.spec.case import Case
from skillup.spec.suite import InstalledSkill, Suite

UNREADABLE = ""
"""Instead of a digest: then whoever needs the file says what is wrong with it."""


@dataclass(frozen=True)
class Input:
    """A file or folder as it was when the run was planned; of a skill's folder the chosen `files` alone."""

    path: Path
    sha256: str
    files: tuple[str, ...] | None = None

    @classmethod
    def now(cls, path: Path, files: tuple[str, ...] | None = None) -> Input:
        """As it is now."""
        try:
            sha256 = tree_digest(path) if files is None else files_digest(path, files)
        except OSError:
            sha256 = UNREADABLE
        return cls(path, sha256, files)

    @property
    def changed(self) -> bool:
        """Whether it is not what it was."""
        return Input.now(self.path, self.files) != self


@dataclass(frozen=True)
class Inputs:
    """What a run takes from its suites: what each case is set up and judged by, and all the files that were read."""

    cases: dict[str, tuple[Input, ...]]
    read: tuple[Input, ...]

    @classmethod
    def of(cls, suites: tuple[Suite, ...]) -> Inputs:
        """As they are now; each is looked at once."""
        known: dict[tuple[Path, tuple[str, ...] | None], Input] = {}

        def look(path: Path, files: tuple[str, ...] | None = None) -> Input:
            if (path, files) not in known:
                known[path, files] = Input.now(path, files)
            return known[path, files]

        cases: dict[str, tuple[Input, ...]] = {}
        for suite in suites:
            skills = [look(skill.folder, skill.files) for skill in suite.skills]
            for case in suite.cases:
                cases[case.id] = (*(look(suite.root / name) for name in dict.fromkeys(_named(case))), *skills)
            for path in suite.files:
                look(path)
        return cls(cases, tuple(known.values()))

    def changed(self) -> tuple[str, ...]:
        """The paths of all that is not what it was."""
        return tuple(sorted({shown(one.path) for one in self.read if one.changed}))


def refuse_changed(inputs: tuple[Input, ...]) -> None:
    """Makes sure that a trial is made from what was planned.

    Raises:
        TrialError: `setup`, something has changed since.
    """
    for one in inputs:
        if one.changed:
            hint = "run again when nobody writes there; an agent is kept from it by `environment: {type: bubblewrap}`"
            said = f"{shown(one.path)} has changed since the run was planned"
            raise TrialError("setup", said, phase="setup", hint=hint)


def _named(case: Case) -> Iterator[str]:
    """What a case is set up and judged by and has to be there as a file, by its path below the suite's root."""
    yield from named_files(case)
    yield from (script.path for script, _ in case.judge_scripts)
    yield from (file.path for _, _, program in case.programs for file in program.files)


def named_files(case: Case) -> Iterator[str]:
    """The files and folders that a case uses and whose contents are no part of it, as those of scripts are."""
    if case.context.repo_fixture is not None:
        yield case.context.repo_fixture
    if case.context.git.apply_diff is not None:
        yield case.context.git.apply_diff


def skill_digest(skill: InstalledSkill) -> str:
    """The digest of a skill as it is installed.

    Raises:
        OSError: a file of it cannot be read.
    """
    return files_digest(skill.folder, skill.files)


def files_digest(folder: Path, files: tuple[str, ...]) -> str:
    """The digest of some files of a folder.

    Raises:
        OSError: one of them cannot be read.
    """
    return text_digest("".join(f"{name}\0{_digest(folder / name)}\n" for name in files))


def tree_digest(path: Path) -> str:
    """The digest of a file, or of all that a folder holds; links count by their targets, and are not followed.

    Raises:
        OSError: a file cannot be read.
    """
    if path.is_file():
        return _digest(path)
    lines = []
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            place = Path(folder, name)
            said = f"-> {place.readlink()}" if place.is_symlink() else _digest(place) if place.is_file() else "/"
            lines.append(f"{place.relative_to(path)}\0{said}\n")
    return text_digest("".join(sorted(lines)))


def text_digest(text: str) -> str:
    """The digest of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""Skills that a suite installs: the folder, its SKILL.md, and the files chosen from it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from skillup.errors import Fault, InputError
from skillup.loading.document import Document
from skillup.loading.paths import LONGEST_WALK, Ground, TooManyEntriesError, shown, walk
from skillup.loading.yamlfile import parse_yaml
from skillup.spec.problems import quoted
from skillup.spec.suite import InstalledSkill, Skill
from skillup.spec.values import path_matches

ALWAYS_LEFT_OUT = ("evals/**", ".git/**", "**/__pycache__/**", "*-workspace/**")
"""Answer keys, histories, compiled files and run directories are never installed."""

MAX_MANIFEST_BYTES = 1_000_000
"""A SKILL.md is read by a model; a larger one is something else."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}\Z", re.IGNORECASE)
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


def load_skill(
    skill: Skill, index: int, document: Document, ground: Ground, hidden: frozenset[Path] = frozenset()
) -> InstalledSkill:
    """The skill as it will be installed, without the files `hidden`: those that say what is checked.

    Raises:
        InputError: what is wrong with it, at its place in the suite's file or in SKILL.md.
    """

    def fault(message: str, hint: str = "") -> InputError:
        return InputError([document.fault(("skills", index, "path"), message, hint=hint)])

    complaint = ground.complaint(skill.path)
    if complaint:
        raise fault(*complaint)
    folder = Path(os.path.realpath(ground.root / skill.path))
    manifest = folder / "SKILL.md"
    if not manifest.is_file():
        missing = f"{skill.path} holds no SKILL.md" if folder.is_dir() else f"there is no folder {skill.path}"
        raise fault(missing, f"paths are relative to {ground.root}")
    try:
        files = _chosen(folder, skill, ground, hidden)
    except TooManyEntriesError:
        raise fault(
            f"{skill.path} has more than {LONGEST_WALK:,} entries", "move the skill into its own folder"
        ) from None
    except ValueError as error:
        raise fault(str(error), "leave it out by `exclude`, or copy what it leads to") from None
    if "SKILL.md" not in files:
        raise fault("include and exclude leave SKILL.md itself out", "add it to `include`")
    name = _name_of(manifest, folder)
    if name in [""]:
        raise fault(f"{skill.path}/SKILL.md has no name")
    return InstalledSkill(name=name, folder=folder, files=files)


def _name_of(manifest: Path, folder: Path) -> str:
    """The skill's name from its front matter, else its folder's.

    Raises:
        InputError: no agent could load it.
    """
    front = _front_matter(manifest)
    display = front.display
    data = front.data if isinstance(front.data, dict) else None
    if data is None:
        raise InputError(
            [Fault(display, 2, 1, "", "the front matter is not a mapping", "write name: and description:")]
        )
    name, description = data.get("name", folder.name), data.get("description")
    faults = []
    if not isinstance(name, str) or not _NAME.match(name):
        written = quoted(str(name))
        hint = "use letters, digits, `.`, `_` and `-`, at most 64"
        faults.append(front.fault(("name",), f"{written} cannot name a skill", hint=hint))
    if not isinstance(description, str) or not description.strip():
        message = "the skill has no description, so no agent would ever choose it"
        faults.append(front.fault(("description",), message, hint="say in `description:` when it is to be used"))
    if faults:
        raise InputError(faults)
    return str(name)


def _front_matter(manifest: Path) -> Document:
    """The front matter of a SKILL.md, with the positions that it has in the file.

    Raises:
        InputError: there is none, or it is not YAML.
    """
    display = shown(manifest)
    with manifest.open("rb") as file:
        raw = file.read(MAX_MANIFEST_BYTES + 1)
    if len(raw) > MAX_MANIFEST_BYTES:
        raise InputError([Fault(display, 0, 0, "", f"larger than {MAX_MANIFEST_BYTES // 1_000_000} MB")])
    match = _FRONT_MATTER.match(raw.decode(errors="replace").removeprefix("\ufeff"))
    if match is None:
        hint = "begin the file with ---, name: and description:, ---"
        raise InputError([Fault(display, 1, 1, "", "no front matter, so no agent would load the skill", hint)])
    # The line of the opening --- is put back, so that positions are those of the file.
    return parse_yaml(f"\n{match.group(1)}", display)


def _chosen(folder: Path, skill: Skill, ground: Ground, hidden: frozenset[Path]) -> tuple[str, ...]:
    """The files to install, relative to the folder.

    Raises:
        TooManyEntriesError: the folder is too large.
        ValueError: a link that cannot be installed.
    """
    found = []
    top = str(folder)

    def enter(entry: os.DirEntry[str]) -> bool:
        left_out = entry.name == "evals" or entry.name.endswith("-workspace")
        return entry.name not in (".git", "__pycache__") and not (left_out and Path(entry.path).parent == folder)

    for entry in walk(folder, enter=enter):
        path = entry.path[len(top) + 1 :]
        if entry.is_dir(follow_symlinks=False) or not _wanted(path, skill):
            continue
        real = Path(entry.path).resolve()
        if real in hidden:
            continue
        if not ground.holds(real):
            raise ValueError(f"{path} of the skill is a link that leaves the suite's folder")
        if entry.is_symlink() and real.is_dir():
            raise ValueError(f"{path} of the skill is a link to a folder, and links are not followed")
        if not real.is_file():
            raise ValueError(f"{path} of the skill is no regular file")
        found.append(path)
    return tuple(sorted(found))


def _wanted(path: str, skill: Skill) -> bool:
    chosen = not skill.include or any(path_matches(path, pattern) for pattern in skill.include)
    return chosen and not any(path_matches(path, pattern) for pattern in (*skill.exclude, *ALWAYS_LEFT_OUT))

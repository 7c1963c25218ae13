"""Skills that a suite installs: the folder, its SKILL.md, and the files chosen from it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from skillup.errors import Fault, InputError
from skillup.loading.paths import Ground
from skillup.loading.yamlfile import Document, parse_yaml
from skillup.spec.suite import InstalledSkill, Skill
from skillup.spec.values import path_matches

ALWAYS_LEFT_OUT = ("evals/**", ".git/**", "**/__pycache__/**", "*-workspace/**")
"""Answer keys, histories and leftovers are never installed."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}\Z", re.IGNORECASE)
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


def load_skill(skill: Skill, index: int, document: Document, ground: Ground) -> InstalledSkill:
    """The skill as it will be installed.

    Raises:
        InputError: what is wrong with it, at its place in the suite's file or in SKILL.md.
    """
    place = ("skills", index, "path")

    def fault(message: str, hint: str = "") -> InputError:
        return InputError([document.fault(place, message, hint=hint)])

    complaint = ground.complaint(skill.path)
    if complaint:
        raise fault(*complaint)
    folder = Path(os.path.realpath(ground.root / skill.path))
    manifest = folder / "SKILL.md"
    if not manifest.is_file():
        raise fault(f"{skill.path} holds no SKILL.md", f"paths are relative to {ground.root}")
    front = _front_matter(manifest)
    name = front.get("name", folder.name)
    if not isinstance(name, str) or not _NAME.match(name):
        raise fault(f"the name in {skill.path}/SKILL.md cannot name a folder: {name!r}")
    description = front.get("description")
    if not isinstance(description, str) or not description.strip():
        raise fault(f"{skill.path}/SKILL.md has no description", "without one no agent would ever choose the skill")
    files = tuple(sorted(_chosen(folder, skill)))
    if "SKILL.md" not in files:
        raise fault("include and exclude leave SKILL.md itself out")
    for name_of_file in files:
        if not ground.holds(folder / name_of_file):
            raise fault(f"{skill.path}/{name_of_file} is a link that leaves the suite's folder")
    return InstalledSkill(name=name, folder=folder, files=files)


def _front_matter(manifest: Path) -> dict[str, object]:
    """The front matter of a SKILL.md.

    Raises:
        InputError: there is none, or it is not a mapping in YAML.
    """
    display = str(manifest)
    text = manifest.read_text(encoding="utf-8", errors="replace").removeprefix("\ufeff")
    match = _FRONT_MATTER.match(text)
    if match is None:
        hint = "begin with ---, name: and description:, ---"
        raise InputError([Fault(display, 1, 1, "", "no front matter, so no agent would load the skill", hint)])
    data = parse_yaml(match.group(1), display).data
    if not isinstance(data, dict):
        raise InputError([Fault(display, 2, 1, "", "the front matter is not a mapping")])
    return data


def _chosen(folder: Path, skill: Skill) -> list[str]:
    found = []
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in (".git", "__pycache__", "evals", "node_modules")]
        for name in names:
            path = (Path(here) / name).relative_to(folder).as_posix()
            wanted = not skill.include or any(path_matches(path, pattern) for pattern in skill.include)
            refused = any(path_matches(path, pattern) for pattern in (*skill.exclude, *ALWAYS_LEFT_OUT))
            if wanted and not refused:
                found.append(path)
    return found

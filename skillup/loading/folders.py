"""What a folder without an eval.yaml of its own holds: suites and bare case files, at any depth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from skillup.errors import Fault, InputError
from skillup.loading.formats import looks_like_tasks
from skillup.loading.paths import LONGEST_WALK, shown

SUITE_NAMES = ("eval.yaml", "eval.yml", "evals/eval.yaml", "evals/eval.yml")

NO_CASES = frozenset({"agents", "fixtures", "skills", "node_modules"})
"""Folders whose YAML files are no cases."""

NO_CASE_FILES = frozenset({"expected.yaml", "expected.yml"})
"""What `--expected` reads lies beside the cases."""


def is_case_file(path: Path) -> bool:
    """Whether a file is a case by its name."""
    return path.suffix in (".yaml", ".yml") and path.name not in NO_CASE_FILES


@dataclass(frozen=True)
class Found:
    """Suites by their file, and bare case files; both sorted."""

    suites: tuple[Path, ...]
    cases: tuple[Path, ...]


def suite_file(folder: Path) -> Path | None:
    """The suite's file of a folder that is a suite."""
    return next((folder / name for name in SUITE_NAMES if (folder / name).is_file()), None)


def search(folder: Path) -> Found:
    """The suites and case files below a folder. Left out: hidden ones, run directories, NO_CASES, other skills.

    Raises:
        InputError: there is none, or the folder is too large to be searched.
    """
    suites: list[Path] = []
    cases: list[Path] = []
    seen = 0
    todo = [folder]
    while todo:
        place = todo.pop()
        suite = suite_file(place)
        if suite is not None:
            suites.append(suite)
            continue
        if place != folder and (place / "SKILL.md").is_file():
            continue
        for path in place.iterdir():
            seen += 1
            if seen > LONGEST_WALK:
                hint = "name the suites or the folders of cases"
                raise InputError([Fault(shown(folder), 0, 0, "", f"more than {LONGEST_WALK:,} files", hint)])
            if path.name.startswith("."):
                continue
            if path.is_dir() and not path.is_symlink():
                if path.name not in NO_CASES and not path.name.endswith("-workspace"):
                    todo.append(path)
            elif path.is_file() and (is_case_file(path) or (path.suffix == ".json" and looks_like_tasks(path))):
                cases.append(path)
    if not suites and not cases:
        hint = "a case is a .yaml file, a data set a .json file; name one, a folder of them, or a suite's eval.yaml"
        raise InputError([Fault(shown(folder), 0, 0, "", "the folder holds no eval.yaml and no case files", hint)])
    return Found(tuple(sorted(suites)), tuple(sorted(cases)))

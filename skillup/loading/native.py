"""Suites and bare cases in the native format, from files to one `Suite`, all faults of all files in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from skillup.errors import Fault, InputError
from skillup.loading.checks import case_faults, case_warnings, judge_faults
from skillup.loading.faults import faults_from_validation
from skillup.loading.paths import Ground, expand, shown, suite_root
from skillup.loading.skills import load_skill
from skillup.loading.yamlfile import Document, read_yaml
from skillup.spec.case import Case
from skillup.spec.suite import CaseDefaults, InstalledSkill, Suite, SuiteFile, with_defaults

DEFAULT_PATHS = ("evals/eval.yaml", "eval.yaml", "cases")
"""Where `skillup run` looks when it is not told."""

SUITE_NAMES = ("eval.yaml", "eval.yml", "evals/eval.yaml", "evals/eval.yml")


def load_suites(paths: Sequence[Path], allowed: Sequence[Path] = ()) -> tuple[Suite, ...]:
    """Every suite, case file or folder that is named; without a name the default places.

    Raises:
        InputError: with all faults of all files.
    """
    chosen = list(paths) or [Path(name) for name in DEFAULT_PATHS if Path(name).exists()][:1]
    if not chosen:
        places = ", ".join(DEFAULT_PATHS)
        raise InputError([Fault(".", 0, 0, "", f"nothing to run here (looked for {places})", "name a suite or a case")])
    faults: list[Fault] = []
    suites: list[Suite] = []
    for path in chosen:
        try:
            suites.append(_load(path.absolute(), tuple(allowed)))
        except InputError as error:
            faults += error.faults
    faults += _same_ids([case for suite in suites for case in suite.cases], suites)
    if faults:
        raise InputError(faults)
    return tuple(suites)


def _same_ids(cases: list[Case], suites: list[Suite]) -> list[Fault]:
    if len(suites) < 2:
        return []  # within one suite the fault stands at the file
    ids = [case.id for case in cases]
    twice = sorted({identity for identity in ids if ids.count(identity) > 1})
    return [Fault(str(suites[0].source), 0, 0, "id", f"two cases of this run have the id {name}") for name in twice]


def _load(path: Path, allowed: tuple[Path, ...]) -> Suite:
    if path.is_dir():
        suite = next((path / name for name in SUITE_NAMES if (path / name).is_file()), None)
        if suite is not None:
            return _suite(read_yaml(suite, shown(suite)), suite, allowed)
        files = sorted(p for p in path.rglob("*") if p.suffix in (".yaml", ".yml") and p.is_file())
        if not files:
            raise InputError([Fault(shown(path), 0, 0, "", "the folder holds no eval.yaml and no case files")])
        return _bare(path, path, files, allowed)
    document = read_yaml(path, shown(path))
    if isinstance(document.data, dict) and {"schema_version", "cases"} & document.data.keys():
        return _suite(document, path, allowed)
    return _bare(path, path.parent, [path], allowed)


def _bare(source: Path, folder: Path, files: Sequence[Path], allowed: tuple[Path, ...]) -> Suite:
    """Case files without a suite: no defaults, paths relative to the folder."""
    ground = Ground(folder, allowed)
    loader = _CaseLoader(ground, CaseDefaults(), None)
    for file in files:
        loader.load(file)
    loader.finish()
    return Suite(source.stem, folder, source, tuple(loader.cases), warnings=tuple(loader.warnings))


def _suite(document: Document, path: Path, allowed: tuple[Path, ...]) -> Suite:
    try:
        written = SuiteFile.model_validate(document.data)
    except ValidationError as error:
        raise InputError(faults_from_validation(error, document, SuiteFile)) from None
    root = suite_root(path.parent)
    ground = Ground(root, allowed)
    loader = _CaseLoader(ground, written.cases.defaults, (written, document))
    for index, entry in enumerate(written.cases.files):
        place = ("cases", "files", index)
        complaint = ground.complaint(entry)
        files = [] if complaint else expand(entry, root)
        if complaint:
            loader.faults.append(document.fault(place, complaint[0], hint=complaint[1]))
        elif not files:
            loader.faults.append(document.fault(place, f"nothing matches {entry}", hint=f"looked below {root}"))
        for file in files:
            loader.load(file)
    skills: list[InstalledSkill] = []
    for index, skill in enumerate(written.skills):
        try:
            skills.append(load_skill(skill, index, document, ground))
        except InputError as error:
            loader.faults += error.faults
    names = [skill.name for skill in skills]
    for name in sorted({name for name in names if names.count(name) > 1}):
        loader.faults.append(document.fault(("skills",), f"two skills have the name {name}"))
    if (root / "SKILL.md").is_file() and not written.skills:
        hint = "add `skills: [{path: .}]`"
        loader.warnings.append(
            f"{document.display}: {shown(root)}/SKILL.md is not installed: no `skills` are listed; {hint}"
        )
    loader.finish()
    return Suite(
        name=written.name or root.name,
        root=root,
        source=path,
        cases=tuple(loader.cases),
        engine=written.engine,
        environment=written.environment,
        skills=tuple(skills),
        parallelism=written.cases.parallelism,
        warnings=tuple(loader.warnings),
    )


class _CaseLoader:
    """Loads case files one after another and gathers what is wrong with them."""

    def __init__(self, ground: Ground, defaults: CaseDefaults, suite: tuple[SuiteFile, Document] | None) -> None:
        self.cases: list[Case] = []
        self.faults: list[Fault] = []
        self.warnings: list[str] = []
        self._ground = ground
        self._defaults = defaults
        self._suite = suite
        self._files: dict[Path, str] = {}
        self._ids: dict[str, str] = {}

    def load(self, path: Path) -> None:
        """Loads one file; its faults are kept for `finish`."""
        display = shown(path)
        if path in self._files:
            self.faults.append(Fault(display, 0, 0, "", "the file is named twice in cases.files"))
            return
        self._files[path] = display
        if not self._ground.holds(path):
            self.faults.append(Fault(display, 0, 0, "", "the file is a link that leaves the suite's folder"))
            return
        try:
            document = read_yaml(path, display)
            case = self._case(document, path)
        except InputError as error:
            self.faults += error.faults
            return
        if case.id in self._ids:
            self.faults.append(document.fault(("id",), f"the id {case.id} is taken by {self._ids[case.id]}"))
        self._ids.setdefault(case.id, display)
        self.faults += case_faults(case, document, self._ground)
        own_judge = isinstance(document.data, dict) and "judge" in document.data
        if own_judge or self._suite is None:
            self.faults += judge_faults(case.judge, len(case.turns), document)
        else:
            self.faults += judge_faults(case.judge, len(case.turns), self._suite[1], case_id=case.id)
        self.warnings += case_warnings(case, display)
        self.cases.append(case)

    def _case(self, document: Document, path: Path) -> Case:
        data: Any = document.data
        if isinstance(data, dict) and "id" not in data:
            data = {"id": path.stem, **data}
        try:
            case = Case.model_validate(data)
        except ValidationError as error:
            raise InputError(faults_from_validation(error, document, Case)) from None
        return with_defaults(case, self._defaults, self._suite[0].judge if self._suite else None)

    def finish(self) -> None:
        """Raises what was found.

        Raises:
            InputError: with the faults of all files.
        """
        if self.faults:
            raise InputError(self.faults)

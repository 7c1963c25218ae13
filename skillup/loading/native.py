"""Suites and bare cases in the native format, from files to suites, all faults of all files in one pass."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import ValidationError

from skillup.errors import Fault, InputError
from skillup.loading.agents import suite_agents
from skillup.loading.cases import CaseLoader, WrittenSuite, required_engines
from skillup.loading.checks import suite_warnings
from skillup.loading.dependencies import needed
from skillup.loading.document import Document
from skillup.loading.faults import faults_from_validation
from skillup.loading.folders import SUITE_NAMES, search, suite_file
from skillup.loading.formats import is_agentv
from skillup.loading.jsonfile import read_document
from skillup.loading.paths import LONGEST_WALK, Ground, TooManyEntriesError, expand, shown, suite_root
from skillup.loading.rendering import printable
from skillup.loading.skills import load_skill
from skillup.loading.yamlfile import read_yaml
from skillup.spec.suite import InstalledSkill, Suite, SuiteFile

DEFAULT_PATHS = ("evals/eval.yaml", "eval.yaml", "cases")
"""Where `skillup run` looks when it is not told."""

HIGHEST_SUITE = 5
"""How many folders above a case file its suite is looked for: `cases/group/` and `evals/` are two of them."""

_OTHER_FORMATS = {
    "evals": "an evals.json of the agent skills format",
}
"""Keys that only files of another format have at their top, and what such a file is."""


def load_suites(paths: Sequence[Path], allowed: Sequence[Path] = ()) -> tuple[Suite, ...]:
    """Every suite, case file or folder that is named; without a name the default places.

    Raises:
        InputError: with all faults of all files.
    """
    chosen = list(paths) or [Path(name) for name in DEFAULT_PATHS if Path(name).exists()][:1]
    if not chosen:
        places = ", ".join(DEFAULT_PATHS)
        raise InputError([Fault(".", 0, 0, "", f"nothing to run here (looked for {places})", "name a suite or a case")])
    loader = _Loader(tuple(place.absolute() for place in allowed))
    for path in dict.fromkeys(Path(os.path.normpath(path.absolute())) for path in chosen):
        loader.load(path)
    if loader.faults:
        raise InputError(loader.faults)
    return tuple(loader.suites)


class _Loader:
    """Loads what is named, one thing after another, and gathers suites and faults."""

    def __init__(self, allowed: tuple[Path, ...]) -> None:
        self.suites: list[Suite] = []
        self.faults: list[Fault] = []
        self._allowed = allowed
        self._ids: dict[str, str] = {}

    def load(self, path: Path) -> None:
        """A suite, a folder or a case file."""
        try:
            if path.is_dir():
                self._folder(path)
            else:
                self._file(path)
        except InputError as error:
            self.faults += error.faults

    def _folder(self, folder: Path) -> None:
        own = suite_file(folder)
        if own is not None:
            document = read_yaml(own, shown(own))
            if is_agentv(document):
                self._bare([own], own)
            else:
                self._suite(own, document)
            return
        found = search(folder)
        for path in found.suites:
            self.load(path)
        for parent in dict.fromkeys(path.parent for path in found.cases):
            self._bare([path for path in found.cases if path.parent == parent], parent)

    def _file(self, path: Path) -> None:
        document = read_document(path, shown(path))
        _refuse_other_formats(document)
        data = document.data
        names_cases = path.name in SUITE_NAMES or (isinstance(data, dict) and {"schema_version", "cases"} & data.keys())
        if names_cases and not is_agentv(document):
            self._suite(path, document)
            return
        suite = _suite_of(path)
        if suite is not None:
            self._suite(suite, read_yaml(suite, shown(suite)), only=path)
        else:
            self._bare([path], path)

    def _bare(self, files: Sequence[Path], source: Path) -> None:
        """Case files without a suite: no defaults, paths relative to the folder that holds them."""
        folder = source if source.is_dir() else source.parent
        loader = CaseLoader(Ground(folder, self._allowed), None, self._ids, files)
        for file in files:
            loader.load(file)
        loader.finish()
        self.faults += loader.faults
        self.suites.append(
            Suite(
                source.stem,
                folder,
                source,
                tuple(loader.cases),
                formats=("json", "agentv") if any(case.scoring for case in loader.cases) else ("json",),
                required_engines=tuple(loader.required_engines),
                evaluators=tuple(loader.evaluators),
                files=(*files, *loader.references.paths.values()),
                warnings=tuple(loader.warnings),
            )
        )

    def _suite(self, path: Path, document: Document, only: Path | None = None) -> None:
        try:
            written = SuiteFile.model_validate(document.data)
        except ValidationError as error:
            self.faults += faults_from_validation(error, document, SuiteFile)
            self._cases_of_a_faulty_suite(document, path)
            return
        root = suite_root(path.parent)
        ground = Ground(root, self._allowed)
        files = _case_files(written.cases.files, path, document, ground, self.faults)
        sources = (path, *(file for _, file in files))
        skills, faults = _skills(written, document, ground, frozenset(source.resolve() for source in sources))
        names = None if faults else [skill.name for skill in skills]
        loader = CaseLoader(ground, WrittenSuite(written, document), self._ids, sources, skills=names)
        for index, file in files:
            if only is None or file == only:
                loader.load(file, named_at=("cases", "files", index))
        alone = {case.id for case in loader.cases}
        if any(case.depends_on for case in loader.cases):
            for index, file in files:
                if file != only and only is not None:
                    loader.load(file, named_at=("cases", "files", index))
        loader.finish()
        chosen = needed(alone, loader.cases)
        loader.faults += faults
        skills = [loader.references.without_answers(skill) for skill in skills]  # known once the cases are loaded
        warnings = [*suite_warnings(written, document), *loader.warnings]
        if (root / "SKILL.md").is_file() and not written.skills:
            hint = "add `skills: [{path: .}]`, or the agent works without it"
            warnings.append(printable(f"{document.display}: {shown(root / 'SKILL.md')} is not installed; {hint}"))
        self.faults += loader.faults
        mark = document.marks.get(("engine", "name"))
        money = document.marks.get(("budget", "max_cost_usd"))
        self.suites.append(
            Suite(
                name=written.name or root.name,
                root=root,
                source=path,
                cases=tuple(case for case in loader.cases if case.id in chosen),
                engine=written.engine,
                engine_place=mark.value if mark else (0, 0),
                agents=suite_agents(written.agents, document, ground, self.faults),
                environment=written.environment,
                skills=tuple(skills),
                parallelism=written.cases.parallelism,
                retry=written.cases.retry_policy,
                fallback=written.fallback,
                budget=written.budget,
                budget_place=money.value if money else (0, 0),
                formats=written.report.formats,
                required_engines=(*required_engines(written.requires, document), *loader.required_engines),
                evaluators=tuple(loader.evaluators),
                files=(*sources, *loader.references.paths.values()),
                warnings=tuple(warnings),
            )
        )

    def _cases_of_a_faulty_suite(self, document: Document, path: Path) -> None:
        """The faults of the cases as well, as far as the suite's file says which they are."""
        ground = Ground(suite_root(path.parent), self._allowed)
        loader = CaseLoader(ground, None, self._ids, lenient=True)
        for _, file in _case_files(_entries(document), path, document, ground, loader.faults):
            loader.load(file)
        self.faults += loader.faults


def _skills(
    written: SuiteFile, document: Document, ground: Ground, hidden: frozenset[Path]
) -> tuple[list[InstalledSkill], list[Fault]]:
    """The skills of a suite, and what is wrong with the others."""
    skills: list[InstalledSkill] = []
    faults: list[Fault] = []
    for index, skill in enumerate(written.skills):
        try:
            installed = load_skill(skill, index, document, ground, hidden)
        except InputError as error:
            faults += error.faults
            continue
        if installed.name in [other.name for other in skills]:
            faults.append(document.fault(("skills", index), f"another skill has the name {installed.name}, too"))
        skills.append(installed)
    return skills, faults


def _entries(document: Document) -> list[str]:
    """The entries of `cases.files`, whatever else is wrong with the suite's file."""
    data = document.data
    cases = data.get("cases") if isinstance(data, dict) else None
    files = cases.get("files") if isinstance(cases, dict) else None
    return [entry for entry in files if isinstance(entry, str) and entry.strip()] if isinstance(files, list) else []


def _suite_of(path: Path) -> Path | None:
    """The suite that a case file belongs to: the nearest one above it that names it.

    Raises:
        InputError: there is a suite, and it cannot be read.
    """
    for folder in path.parents[:HIGHEST_SUITE]:
        suite = suite_file(folder)
        if suite is None or suite == path:
            continue
        root = suite_root(suite.parent)
        try:
            named = [file for entry in _entries(read_yaml(suite, shown(suite))) for file in expand(entry, root)]
        except TooManyEntriesError:
            continue
        if path in named:
            return suite
    return None


def _case_files(
    entries: Iterable[str], suite: Path, document: Document, ground: Ground, faults: list[Fault]
) -> list[tuple[int, Path]]:
    """The case files of a suite, each with the index of the entry that names it; faults are added."""
    found: list[tuple[int, Path]] = []
    for index, entry in enumerate(entries):
        place = ("cases", "files", index)
        complaint = ground.complaint(entry)
        if complaint:
            faults.append(document.fault(place, complaint[0], hint=complaint[1]))
            continue
        try:
            files = [file for file in expand(entry, ground.root) if file != suite]
        except TooManyEntriesError:
            message = f"{entry} looks at more than {LONGEST_WALK:,} entries"
            faults.append(document.fault(place, message, hint="name a folder in front of the first *"))
            continue
        if not files or not any(file.exists() for file in files):
            hint = f"paths are relative to {ground.root}"
            faults.append(document.fault(place, f"no case file matches {entry}", hint=hint))
            continue
        found += [(index, file) for file in files]
    return found


def _refuse_other_formats(document: Document) -> None:
    data = document.data
    for key, what in _OTHER_FORMATS.items():
        if isinstance(data, dict) and key in data and "cases" not in data:
            message = f"this looks like {what}, which cannot be read yet"
            raise InputError([document.fault((key,), message, hint="write eval.yaml and cases/*.yaml", on_key=True)])

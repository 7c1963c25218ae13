"""Case files one after another: read, checked, merged with their suite's defaults, all faults kept."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from skillup.errors import Fault, InputError
from skillup.loading.attachments import with_attachments
from skillup.loading.checks import Fixtures, case_faults, case_warnings, judge_faults, placed_judges, skill_faults
from skillup.loading.dependencies import dependency_faults
from skillup.loading.document import Document, KeyPath
from skillup.loading.faults import faults_from_validation
from skillup.loading.formats import is_agentv, is_dataset, is_eval_set
from skillup.loading.jsonfile import read_document
from skillup.loading.masks import judge_mask_faults, mask_faults
from skillup.loading.paths import Ground, shown
from skillup.loading.references import References
from skillup.loading.repositories import git_faults
from skillup.spec.case import Case, can_be_an_id
from skillup.spec.problems import quoted
from skillup.spec.requires import Requires
from skillup.spec.suite import SuiteFile, with_defaults


@dataclass(frozen=True)
class WrittenSuite:
    """A suite's file: what it says, and where it says it."""

    file: SuiteFile
    document: Document


def required_engines(requires: Requires | None, document: Document) -> Iterator[tuple[str, Fault]]:
    """The engines that a file names in `requires`, each with a fault at its place, message to come."""
    for index, name in enumerate(requires.engines if requires else ()):
        yield name, document.fault(("requires", "engines", index), "")


class CaseLoader:
    """Loads the case files of one suite and gathers what is wrong with them.

    `suite` is None for bare cases; `ids` are those taken so far in this run, with the file that took each; `sources`
    are the files that no workspace may hold; `skills` the names of those that are installed, None when not all of them
    could be read. With `lenient` only what a file says itself is judged, because the suite
    is faulty.
    """

    def __init__(
        self,
        ground: Ground,
        suite: WrittenSuite | None,
        ids: dict[str, str],
        sources: Iterable[Path] = (),
        *,
        skills: Collection[str] | None = (),
        lenient: bool = False,
    ) -> None:
        self.cases: list[Case] = []
        self.faults: list[Fault] = []
        self.warnings: list[str] = []
        self.required_engines: list[tuple[str, Fault]] = []
        self.evaluators: list[tuple[str, Fault]] = []
        self._files: set[Path] = set()
        self._placed: list[tuple[Case, Document]] = []
        self._ground = ground
        self._suite = suite
        self._ids = ids
        self._skills = skills
        self._lenient = lenient
        self._fixtures = Fixtures(ground, sources)
        self.references = References(ground)

    def load(self, path: Path, named_at: KeyPath = ()) -> None:
        """Loads one file, named at that place of the suite's file."""
        display = shown(path)
        if path in self._files:
            self.faults.append(self._fault_at(named_at, display, f"{display} is named twice"))
            return
        self._files.add(path)
        if not self._ground.holds(path):
            message = f"{display} is a link that leaves the suite's folder"
            self.faults.append(self._fault_at(named_at, display, message, "copy the file, or pass --allow-path DIR"))
            return
        try:
            document = read_document(path, display)
            if is_agentv(document) or is_eval_set(document) or is_dataset(document, path):
                for case, own in self._foreign(document, path):
                    self._take(self._merged(case, own), own)
            else:
                self._take(self._case(document, path), document)
        except InputError as error:
            # Files share a test_config.json, and its faults are told once.
            self.faults += [fault for fault in error.faults if fault not in self.faults]

    def _foreign(self, document: Document, path: Path) -> Iterable[tuple[Case, Document]]:
        """The cases of a file in the format of another tool; what reads it is loaded only now, as such files are rare.

        Raises:
            InputError: with all faults of the file.
        """
        if is_agentv(document):
            from skillup.loading.agentv import tests_of

            cases, warnings = tests_of(document, os.path.relpath(path.parent, self._ground.root), self.references)
            self.warnings += warnings
            return cases
        if is_eval_set(document):
            from skillup.loading.adk import eval_cases_of

            return eval_cases_of(document, path, self.references)
        from skillup.loading.datasets import tasks_of

        found = tasks_of(document, path.stem)
        self.faults += found.faults
        self.warnings += found.warnings
        return found.cases

    def _take(self, case: Case, document: Document) -> None:
        """Keeps a case, and whatever is wrong with it."""
        if not self._lenient:
            case, faults = self.references.filled(case, self._places(document))
            self.faults += [fault for fault in faults if fault not in self.faults]  # the suite's are told once
            case = with_attachments(case, self._ground, self._judging(document), self.faults)
        self._check(case, document)
        self.warnings += case_warnings(case, document)
        self.cases.append(case)
        self._placed.append((case, document))

    def finish(self) -> None:
        """Tells what is wrong between cases, once all of them are loaded."""
        self.faults += dependency_faults(self._placed)

    def _places(self, document: Document) -> tuple[tuple[str, Document, KeyPath], ...]:
        """Which document holds the case's `expect` and `judge`, and where."""
        own = document.data if isinstance(document.data, dict) else {}
        if self._suite is None:
            return tuple((name, document, (name,)) for name in ("expect", "judge", "judges"))
        defaults = self._suite.document
        golden = isinstance(own.get("expect"), dict) and "golden_file" in own["expect"]
        return (
            ("expect", document, ("expect",)) if golden else ("expect", defaults, ("cases", "defaults", "expect")),
            *((name, self._judging(document), (name,)) for name in ("judge", "judges")),
        )

    def _fault_at(self, place: KeyPath, display: str, message: str, hint: str = "") -> Fault:
        if self._suite is None:
            return Fault(display, 0, 0, "", message, hint)
        return self._suite.document.fault(place, message, hint=hint)

    def _case(self, document: Document, path: Path) -> Case:
        data: Any = document.data
        if isinstance(data, dict) and "id" not in data:
            if not can_be_an_id(path.stem):
                message = f"the id is the file's name, and {quoted(path.stem)} cannot name a folder"
                self.faults.append(document.fault(("id",), message, hint="give an `id:`, or rename the file"))
            data = {"id": path.stem if can_be_an_id(path.stem) else f"unnamed-{len(self._files)}", **data}
        try:
            case = Case.model_validate(data)
        except ValidationError as error:
            raise InputError(faults_from_validation(error, document, Case)) from None
        return self._merged(case, document)

    def _merged(self, case: Case, document: Document) -> Case:
        """The case with the suite's defaults."""
        self._require(case, document)
        if self._suite is None:
            return case
        suite = self._suite.file
        judges, combine = suite.judges, suite.combine
        return with_defaults(case, suite.cases.defaults, suite.judge, suite.requires, judges=judges, combine=combine)

    def _require(self, case: Case, document: Document) -> None:
        """Keeps the engines that a case requires, with their places, and what could never be met."""
        if case.requires is None:
            return
        self.required_engines += required_engines(case.requires, document)
        suite = self._suite.file.requires if self._suite else None
        if suite is not None and case.requires.excludes(suite):
            message = f"the suite requires {' or '.join(suite.engines)}: no agent could run this case"
            self.faults.append(
                document.fault(("requires", "engines"), message, hint="let both name an engine, or remove one")
            )

    def _check(self, case: Case, document: Document) -> None:
        if case.id in self._ids:
            written = "id" in document.data
            hint = "" if written else "the id is the file's name; give one of the two an `id:` of its own"
            message = f"the id {case.id} is taken by {self._ids[case.id]}"
            self.faults.append(document.fault(("id",), message, hint=hint))
        self._ids.setdefault(case.id, document.display)
        if self._lenient:
            return
        self.faults += case_faults(case, document)
        self.faults += self._fixtures.faults(case, document)
        prepared = self._suite is not None and bool(self._suite.file.environment.setup_steps)
        self.faults += git_faults(case, document, self._ground, prepared=prepared)
        self.faults += self._fixtures.answer_faults(case, self.references.named_by(case), document)
        judged_by = self._judging(document)
        case_id = "" if judged_by is document else case.id
        self.faults += judge_faults(case, judged_by, case_id=case_id)
        masked = (*mask_faults(case, document), *judge_mask_faults(case, judged_by))
        self.faults += (fault for fault in masked if fault not in self.faults)  # a suite's judge is that of many cases
        for at, judge in placed_judges(case):
            if judge.evaluator is not None:
                self.references.add_evaluator(judge.evaluator)
                self.evaluators.append((judge.evaluator, judged_by.fault((*at, "evaluator"), "")))
        if self._skills is not None:
            self.faults += skill_faults(case, self._skills, judged_by, case_id=case_id)

    def _judging(self, document: Document) -> Document:
        """The file that holds the judge of a case: its own, or the suite's."""
        own = self._suite is None or any(document.data.get(key) for key in ("judge", "judges"))
        return document if own or self._suite is None else self._suite.document

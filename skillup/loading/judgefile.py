"""A file with another judge for cases that have been run: `skillup judge RUN --judge FILE`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Self

from pydantic import ValidationError, model_validator

from skillup.errors import Fault, InputError
from skillup.loading.attachments import with_attachments
from skillup.loading.checks import judge_faults, skill_faults
from skillup.loading.document import Document
from skillup.loading.faults import faults_from_validation
from skillup.loading.masks import judge_mask_faults
from skillup.loading.paths import Ground, shown
from skillup.loading.references import References
from skillup.loading.yamlfile import read_yaml
from skillup.spec.case import Case
from skillup.spec.judge import Judge
from skillup.spec.judges import Combine, JudgeMember, refuse_unclear
from skillup.spec.problems import fault_at
from skillup.spec.values import Spec


class JudgeFile(Spec):
    """Who judges, as in a case."""

    judge: Judge | None = None
    judges: tuple[JudgeMember, ...] = ()
    combine: Combine | None = None

    @model_validator(mode="after")
    def _somebody(self) -> Self:
        if self.judge is None and not self.judges:
            raise fault_at("nobody judges here", hint="give `judge:` or `judges:`, as in a case")
        refuse_unclear(self.judge, self.judges, self.combine)
        return self


class OtherJudge:
    """The judge of a file, read once and put on one case after another. Paths are relative to the file's folder."""

    def __init__(self, path: Path) -> None:
        """Reads the file.

        Raises:
            InputError: with all faults of the file.
        """
        self._document: Document = read_yaml(path, shown(path))
        self._ground = Ground(path.absolute().parent, ())
        self._references = References(self._ground)
        try:
            self._file = JudgeFile.model_validate(self._document.data)
        except ValidationError as error:
            raise InputError(faults_from_validation(error, self._document, JudgeFile)) from None

    def on(self, case: Case, skills: Collection[str], only: str | None = None) -> Case:
        """The case with this judge instead of its own; with `only`, instead of that one of its several judges.

        Raises:
            InputError: what the judge asks of this case cannot be.
        """
        faults: list[Fault] = []
        file, document = self._file, self._document
        written = case.model_copy(update={"judge": file.judge, "judges": file.judges, "combine": file.combine})
        places = tuple((name, document, (name,)) for name in ("judge", "judges"))
        whole, found = self._references.filled(written, places)
        faults += found
        whole = with_attachments(whole, self._ground, document, faults)
        faults += judge_faults(whole, document, case_id=case.id)
        faults += judge_mask_faults(whole, document)
        faults += skill_faults(whole, skills, document, case_id=case.id)
        if only is not None and whole.judge is None:
            message = f"one judge is to be replaced: {only}"
            faults.append(document.fault(("judges",), message, hint="give `judge:` alone"))
        if faults:
            raise InputError(faults)
        return whole if only is None or whole.judge is None else _in_place(case, whole.judge, only)


def _in_place(case: Case, judge: Judge, only: str) -> Case:
    """The case with one of its judges replaced; the others, and how they are combined, stay."""

    def replaced(member: JudgeMember) -> JudgeMember:
        own = {name: getattr(member, name) for name in ("id", "weight", "required") if name in member.model_fields_set}
        return JudgeMember.model_validate({**judge.model_dump(exclude_unset=True), **own})

    members = tuple(replaced(member) if member.id == only else member for member in case.judges)
    return case.model_copy(update={"judges": members})

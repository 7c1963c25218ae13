"""Texts that a judge is given beside the trial: read when the case is loaded, so that judging needs no suite."""

from __future__ import annotations

from typing import TypeVar

from skillup.errors import Fault
from skillup.loading.document import Document, KeyPath
from skillup.loading.paths import Ground
from skillup.spec.case import Case
from skillup.spec.judge import Judge

_J = TypeVar("_J", bound=Judge)

MAX_BYTES = 256 * 1024
"""About 60,000 tokens; a larger text leaves no room for the trial."""


def with_attachments(case: Case, ground: Ground, document: Document, faults: list[Fault]) -> Case:
    """The case with the texts of its judges' attachments and skills; `document` is the file that holds the judges."""

    def whole(judge: _J, at: KeyPath) -> _J:
        return _with_texts(judge, at, ground, document, faults)

    members = tuple(whole(member, ("judges", index)) for index, member in enumerate(case.judges))
    judge = whole(case.judge, ("judge",)) if case.judge else None
    return case.model_copy(update={"judge": judge, "judges": members}) if case.all_judges else case


def _with_texts(judge: _J, at: KeyPath, ground: Ground, document: Document, faults: list[Fault]) -> _J:
    if not (judge.context.attachments or judge.skills):
        return judge
    attachments, skills = [], []
    for index, attachment in enumerate(judge.context.attachments):
        place = (*at, "context", "attachments", index)
        text = attachment.text or _text(attachment.path or "", ground, document, place, faults)
        attachments.append(attachment.model_copy(update={"text": text}))
    for index, skill in enumerate(judge.skills):
        manifest = f"{skill.path.rstrip('/')}/SKILL.md"
        text = skill.text or _text(manifest, ground, document, (*at, "skills", index), faults)
        skills.append(skill.model_copy(update={"text": text}))
    context = judge.context.model_copy(update={"attachments": tuple(attachments)})
    return judge.model_copy(update={"context": context, "skills": tuple(skills)})


def _text(path: str, ground: Ground, document: Document, place: KeyPath, faults: list[Fault]) -> str | None:
    """The text of a file; None, and a fault, when it cannot be used."""
    complaint = ground.complaint(path) or _unusable(path, ground)
    if complaint is None:
        return (ground.root / path).read_text(encoding="utf-8")
    faults.append(document.fault(place, complaint[0], hint=complaint[1]))
    return None


def _unusable(path: str, ground: Ground) -> tuple[str, str] | None:
    """Message and hint when a file is none that a judge can read."""
    file = ground.root / path
    if not file.is_file():
        missing = "is no file" if file.exists() else "does not exist"
        return f"{path} {missing}", f"paths are relative to {ground.root}"
    try:
        data = file.read_bytes()
        text = data.decode()
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}", ""
    except UnicodeDecodeError:
        return f"{path} is no text", "a judge reads UTF-8 only"
    if len(data) > MAX_BYTES:
        return f"{path} has {len(data):,} bytes, and {MAX_BYTES:,} are the most", "attach the part that matters"
    return None if text.strip() else (f"{path} is empty", "attach something, or remove the entry")

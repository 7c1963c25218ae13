"""What one file cannot know alone: templates and captures, turns that rules name, fixtures, cases without a check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from skillup.errors import Fault
from skillup.loading.paths import Ground
from skillup.loading.yamlfile import Document
from skillup.spec.case import Case, Judge
from skillup.spec.template import placeholders


def case_faults(case: Case, document: Document, ground: Ground) -> Iterator[Fault]:
    """Faults of a case that are visible once it is merged with its suite's defaults."""
    yield from _templates(case, document)
    yield from _fixture(case, document, ground)
    limit = case.constraints.max_turns
    if limit is not None and len(case.turns) > limit:
        yield document.fault(("input", "turns"), f"{len(case.turns)} turns, but max_turns is {limit}")
    if case.judge is None and case.checks_nothing:
        yield document.fault(
            (),
            "the case checks nothing, so it could only pass",
            hint="add `judge`, `expect` or a `post_condition`; or say so with judge: {type: none}",
        )


def case_warnings(case: Case, display: str) -> Iterator[str]:
    """What is allowed and seldom meant."""
    last = case.turns[-1]
    if last.post_condition is not None and last.post_condition.on_fail == "skip_remaining":
        yield f"{display}: skip_remaining on the last turn makes the case SKIP, as nothing remains"


def judge_faults(judge: Judge | None, turns: int, document: Document, *, case_id: str = "") -> Iterator[Fault]:
    """Rules that name a turn which the case does not have; `case_id` when the judge is the suite's."""
    for key, items in (("success", judge.success), ("failure", judge.failure)) if judge else ():
        for index, item in enumerate(items):
            number = item.rule.turn
            if isinstance(number, int) and number > turns:
                whose = f"the case {case_id}" if case_id else "the case"
                count = f"{turns} turn{'' if turns == 1 else 's'}"
                yield document.fault(
                    ("judge", key, index, item.name, "turn"),
                    f"turn {number} does not exist: {whose} has {count}",
                    hint="turns count from 1",
                )


def _templates(case: Case, document: Document) -> Iterator[Fault]:
    known = set(case.vars)
    later = {capture.variable: n for n, turn in enumerate(case.turns, start=1) for capture in turn.capture}
    for index, turn in enumerate(case.turns):
        place: tuple[str | int, ...] = (
            ("input", "prompt") if case.input.prompt else ("input", "turns", index, "content")
        )
        for name in placeholders(turn.content):
            if name in known:
                continue
            if name in later:
                message = f"{{{{{name}}}}} is used before it exists: turn {later[name]} captures it"
            else:
                message = f"{{{{{name}}}}} is neither in `vars` nor captured by an earlier turn"
            names = ", ".join(sorted(known)) or "none"
            yield document.fault(place, message, hint=f"known here: {names}; {{{{!{name}}}}} writes it out literally")
        known |= {capture.variable for capture in turn.capture}


def _fixture(case: Case, document: Document, ground: Ground) -> Iterator[Fault]:
    written = case.context.repo_fixture
    if written is None:
        return
    place = ("context", "repo_fixture")
    complaint = ground.complaint(written)
    if complaint:
        yield document.fault(place, complaint[0], hint=complaint[1])
        return
    folder: Path = ground.root / written
    if not folder.is_dir():
        yield document.fault(place, f"there is no folder {written}", hint=f"paths are relative to {ground.root}")
        return
    out = ground.link_out(folder)
    if out:
        yield document.fault(place, f"the fixture {written} cannot be used: {out}")

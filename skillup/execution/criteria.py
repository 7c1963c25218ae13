"""The step of judging that asks a model: before the verdict, saved beside the trial, and repeated only on demand.

criteria.json       what the model said: the verdict is made from this, today and later
judge-calls.jsonl   every question and answer, a line each, to see how it came about
judge-turns/N/      what the CLI of an agent that judges printed, turn by turn; none is ever replaced
judges/ID/…         all of one of several judges
revisions/N/        both, and the grading made of them, as they were before the trial was judged otherwise
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from skillup.execution.judge_agent import opener
from skillup.execution.masked import masked
from skillup.execution.record import stamp
from skillup.execution.revisions import Revision
from skillup.execution.store import read_model, write_json, write_lines
from skillup.execution.task import Services
from skillup.judging.asking import Asked, Call, ask, open_sets
from skillup.judging.evidence import Evidence
from skillup.masking import Masker
from skillup.modelclient.client import ModelRef, Reply
from skillup.results import Criteria, CriterionResult
from skillup.spec.case import Case
from skillup.spec.judge import Judge
from skillup.transcript import add_usage

Ask = Literal["saved", "missing", "all", "rest"]
"""`saved` takes what is there, `missing` asks for what has no verdict, `all` asks anew; `rest` goes on
with what was asked while the conversation went on: what is left is asked, and is part of the same judging."""

FILE = "criteria.json"
CALLS = "judge-calls.jsonl"


@dataclass(frozen=True)
class CriteriaStep:
    """How the criteria of a trial come by their verdicts. Without a model they are what was saved, or unknown.

    `models` are those of the case's judges by their ids; "" is the only judge's. `only` one of several is heard anew.
    Without `services` nobody is asked, and evaluators in Python say what they have said before.
    """

    how: Ask = "saved"
    models: Mapping[str, ModelRef] = field(default_factory=dict)
    services: Services | None = None
    only: str | None = None
    masker: Masker = field(default_factory=Masker)

    def take_all(self, folder: Path, case: Case, evidence: Evidence, before: Revision) -> dict[str, Criteria | None]:
        """What models say about a trial's criteria, by the id of the judge; "" is the only one's.

        `before` is kept before any of it is replaced.

        Raises:
            Cancelled: the user stopped the run.
            RunDirectoryError, OSError: it cannot be read, or saved.
        """
        if not case.judges:
            return {"": self._take("", folder, case, evidence, before)}
        return {
            member.id: self._take(member.id, folder / "judges" / member.id, case.judged_by(member), evidence, before)
            for member in case.judges
        }

    def _take(self, judge: str, folder: Path, case: Case, evidence: Evidence, before: Revision) -> Criteria | None:
        """What a model says about the criteria of one judge, saved before it is returned; None when none was asked."""
        saved = read_model(folder / FILE, Criteria) if case.criteria and (folder / FILE).exists() else None
        model, services = self.models.get(judge), self.services
        if self.how == "saved" or model is None or services is None or case.judge is None:
            return saved
        known = _known(saved) if self.how in ("missing", "rest") else {}
        if not open_sets(case, evidence, known):
            return saved
        revision = saved.revision + 1 if saved else 1
        now = stamp(datetime.now(UTC))
        opened = opener(model, case.judge, services, folder, self.masker)
        asked = ask(case, evidence, model, opened, known=known, revision=revision, now=now)
        if self.how == "rest" and saved is not None:
            self._go_on(folder, asked, saved)
        else:
            before.keep()
            self._save(folder, asked)
        return read_model(folder / FILE, Criteria)

    def _save(self, folder: Path, asked: Asked) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        write_lines(folder / CALLS, [self.masker.value(_line(call)) for call in asked.calls])
        write_json(folder / FILE, masked(asked.criteria, self.masker))

    def _go_on(self, folder: Path, asked: Asked, before: Criteria) -> None:
        """Adds to what is saved; the calls first, so that none is lost."""
        earlier = [json.loads(line) for line in (folder / CALLS).read_text(encoding="utf-8").splitlines()]
        write_lines(folder / CALLS, [*earlier, *(self.masker.value(_line(call)) for call in asked.calls)])
        now = asked.criteria
        results = {one.id: one for one in before.results} | {one.id: one for one in now.results}
        whole = now.model_copy(
            update={
                "revision": before.revision,
                "results": tuple(results.values()),
                "calls": before.calls + now.calls,
                "usage": add_usage([before.usage, now.usage]),
                "known_tokens": before.known_tokens + now.known_tokens,
                "known_cost_usd": before.known_cost_usd + now.known_cost_usd,
                "notes": tuple(dict.fromkeys((*before.notes, *now.notes))),
            }
        )
        write_json(folder / FILE, masked(whole, self.masker))


SAVED = CriteriaStep()
"""Takes what is there and asks nobody."""


def forget_answers(folder: Path, asked: Case, case: Case, before: Revision) -> None:
    """Removes what models said about other criteria than those that the case has now; `before` is kept first.

    Raises:
        OSError: it cannot be kept, or removed.
    """
    were: dict[str, Judge | None] = {member.id: member for member in asked.judges} or {"": asked.judge}
    now: dict[str, Judge | None] = {member.id: member for member in case.judges} or {"": case.judge}
    for name in {*were, *now}:
        own = folder / "judges" / name if name else folder
        if _question(were.get(name)) != _question(now.get(name)) and (own / FILE).exists():
            before.keep()
            (own / FILE).unlink()
            (own / CALLS).unlink(missing_ok=True)


def _question(judge: Judge | None) -> tuple[object, ...]:
    """All of a judge that an answer depends on; the threshold only where points are measured by it."""
    if judge is None:
        return ()
    scored = any(criterion.scored for criterion in judge.criteria)
    return judge.engine, judge.criteria, judge.context, judge.skills, judge.threshold if scored else None


def _known(saved: Criteria | None) -> Mapping[str, CriterionResult]:
    return {result.id: result for result in saved.results if result.verdict is not None} if saved else {}


def _line(call: Call) -> dict[str, Any]:
    reply = call.reply
    return {
        "criteria": list(call.criteria),
        "sample": call.sample,
        "attempt": call.attempt,
        "request": {"system": call.system, "user": call.text, "schema": dict(call.schema)},
        "reply": None if reply is None else _answer(reply),
        "error": call.error,
        "complaints": list(call.complaints),
        "streams": call.streams,
    }


def _answer(reply: Reply) -> dict[str, Any]:
    kept = {name: value for name, value in asdict(reply).items() if name != "streams"}  # the line names them itself
    return {**kept, "usage": reply.usage.model_dump(mode="json")}

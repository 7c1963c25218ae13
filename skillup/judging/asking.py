"""Asks a model, or an agent, about a saved trial's criteria: one question for all criteria about the same thing.

Nothing here decides: what comes out is saved beside the trial and read by `criteria.py` like any other evidence. A
model is asked only while the verdict is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Final

from skillup.errors import ModelCallError
from skillup.judging.answers import Bearing, read_answers
from skillup.judging.criteria import absent, criteria_checks
from skillup.judging.earlier import earlier
from skillup.judging.evidence import Evidence
from skillup.judging.folder import SavedFolder
from skillup.judging.judge import certain_checks
from skillup.judging.questions import INSTRUCTIONS, beside, correction, question, schema
from skillup.judging.quotes import Quotable
from skillup.judging.samples import together
from skillup.judging.shown import About, Shown, budget, fitted, shown
from skillup.judging.verdict import decide
from skillup.modelclient.client import ModelClient, ModelRef, Question, Reply
from skillup.results import Criteria, CriterionResult, CriterionSample, JudgeIdentity
from skillup.spec.case import Case
from skillup.spec.criteria import Criterion
from skillup.spec.judge import DEFAULT_JUDGE_SECONDS, Judge
from skillup.transcript import Usage, add_usage

TRIES: Final = 2
"""A question is asked once, and once more where the answer cannot be taken; then the judging has failed."""

_ROOM: Final = 0.8
"""The share of what a model can be told that the record may take; the criteria and the attachments need the rest."""


Opened = Callable[[SavedFolder | None], AbstractContextManager[ModelClient]]
"""Opens who is asked, for one sample: an agent with the folder that it may look into, a model without."""


@dataclass(frozen=True)
class Call:
    """One question and what came back, for the file that shows how the verdict came about.

    `streams` is where an agent's CLI left what it printed.
    """

    criteria: tuple[str, ...]
    sample: int
    attempt: int
    system: str
    text: str
    schema: Mapping[str, Any]
    reply: Reply | None
    error: str
    complaints: tuple[str, ...]
    streams: str = ""


@dataclass(frozen=True)
class Asked:
    """What the model said, and every call that it took."""

    criteria: Criteria
    calls: tuple[Call, ...]


def open_sets(
    case: Case, evidence: Evidence, said: Mapping[str, CriterionResult]
) -> tuple[tuple[About, tuple[Criterion, ...]], ...]:
    """The criteria that still have to be asked, by what they are about; none when FAIL or an error is certain."""
    judge = case.judge
    if judge is None or not is_open(case, evidence, said):
        return ()
    sets: dict[About, list[Criterion]] = {}
    for criterion in judge.criteria:
        known = said.get(criterion.id)
        if (known is None or known.verdict is None) and absent(criterion, evidence) is None:
            sets.setdefault(About.of(criterion), []).append(criterion)
    return tuple((about, tuple(criteria)) for about, criteria in sets.items())


def ask(
    case: Case,
    evidence: Evidence,
    ref: ModelRef,
    opened: Opened,
    *,
    known: Mapping[str, CriterionResult],
    revision: int,
    now: str,
) -> Asked:
    """Asks what is open. `known` are results that stay as they are; `opened` is called when somebody is to be asked.

    Raises:
        Cancelled: the user stopped the run.
    """
    results = dict(known)
    calls: list[Call] = []
    notes: list[str] = []
    judge = case.judge
    for about, criteria in open_sets(case, evidence, results):
        if judge is None or not is_open(case, evidence, results):
            break
        whole = shown(evidence, judge.context, about, earlier(case.input))
        folder = SavedFolder.of(evidence, about) if ref.engine else None
        found = _Set(judge, criteria, about, whole, folder, opened, calls)
        try:
            results |= found.results()
        except ModelCallError as error:
            who = f"the agent that judges, {ref.label}" if ref.engine else "the judge's model"
            results |= _failed(criteria, f"{who}: {error.message}")
            break  # a provider that does not answer is not asked for the rest
        finally:
            notes += found.notes
    replies = [call.reply for call in calls if call.reply is not None]
    identity = JudgeIdentity(
        type=judge.type if judge else "",
        provider=ref.provider,
        model=ref.name,
        base_url=ref.base_url,
        engine=ref.engine,
        answered_by=next((reply.model for reply in replies if reply.model), None),
        structured=all(reply.structured for reply in replies) if replies else None,
        temperature=replies[-1].temperature if replies else None,
    )
    listed = tuple(results.get(criterion.id, CriterionResult(id=criterion.id)) for criterion in case.criteria)
    criteria_said = Criteria(
        revision=revision,
        asked_at=now,
        judge=identity,
        results=listed,
        calls=len(calls),
        usage=_spent(calls),
        known_tokens=sum(usage.total_tokens or 0 for usage in _usages(calls)),
        known_cost_usd=sum(usage.cost_usd or 0.0 for usage in _usages(calls)),
        notes=tuple(dict.fromkeys(notes)),
    )
    return Asked(criteria_said, tuple(calls))


def is_open(case: Case, evidence: Evidence, said: Mapping[str, CriterionResult]) -> bool:
    """Whether an answer could still matter: the trial is no ERROR already, and FAIL is not certain.

    Where parts of the conversation are scored, each score is wanted for itself, so only a requirement outside of them
    makes FAIL certain.
    """
    if evidence.record.ending.how == "error" or evidence.record.ending.never_began:
        return False
    so_far = Criteria(revision=0, asked_at="", judge=None, results=tuple(said.values()), calls=0, usage=Usage())
    checks = (*certain_checks(case, evidence), *criteria_checks(case, evidence, so_far))
    return decide(evidence.record.ending, checks, evidence.record.failures).status != "FAIL"


@dataclass
class _Set:
    """The criteria about one thing, while they are asked; every call is added to `calls`."""

    judge: Judge
    criteria: tuple[Criterion, ...]
    about: About
    whole: Shown
    folder: SavedFolder | None
    opened: Opened
    calls: list[Call]
    notes: tuple[str, ...] = ()

    def results(self) -> dict[str, CriterionResult]:
        """What all samples come to.

        Raises:
            ModelCallError: the model gave no answer.
        """
        samples: list[Mapping[str, CriterionSample]] = []
        for number in range(1, self.judge.samples + 1):
            with self.opened(self.folder) as client:
                what = self._fitted(client)
                if what is None:
                    size = f"{len(self.whole.text):,} characters"
                    return _failed(self.criteria, f"the record does not fit into what the judge can be told ({size})")
                self.notes = what.notes
                read, complaints = self._sample(client, what, number)
            if complaints:
                why = f"the judge's answer could not be taken, twice: {'; '.join(complaints)}"
                return _failed(self.criteria, why)
            samples.append(read)
        return {
            one.id: together(one, [sample[one.id] for sample in samples], self.judge.threshold) for one in self.criteria
        }

    def _fitted(self, client: ModelClient) -> Shown | None:
        """What is shown, as far as there is room for it; None when there is not enough."""
        room = int(client.max_characters * _ROOM) - sum(len(text) for _, text in self._beside)
        gaps = self.folder.gaps if self.folder else ()
        whole = replace(self.whole, pieces=(*self.whole.pieces, *gaps))
        return fitted(whole, budget(self.judge.context.limits, room))

    def _sample(
        self, client: ModelClient, what: Shown, number: int
    ) -> tuple[Mapping[str, CriterionSample], tuple[str, ...]]:
        """One answer to every criterion, or what was wrong with the second try."""
        bearing = _bearing(what, self.about, self.folder)
        complaints: tuple[str, ...] = ()
        shape = schema(self.criteria)
        for attempt in range(1, TRIES + 1):
            if complaints and client.remembers:
                text = correction(self.criteria, complaints)
            else:
                looks = self.folder is not None
                text = question(self.criteria, what, self.about, self._beside, complaints, looks=looks)
            call = Call(self._ids, number, attempt, INSTRUCTIONS, text, shape, None, "", ())
            try:
                seconds = self.judge.timeout_seconds or DEFAULT_JUDGE_SECONDS
                reply = client.ask(Question(INSTRUCTIONS, text, shape, seconds))
            except ModelCallError as error:
                self.calls.append(replace(call, error=f"{error.kind}: {error.message}", streams=error.streams))
                raise
            read = read_answers(reply.text, self.criteria, bearing, self.judge.threshold, cut=reply.cut)
            complaints = read.complaints
            self.calls.append(replace(call, reply=reply, complaints=complaints, streams=reply.streams))
            if not complaints:
                return read.samples, ()
        return {}, complaints

    @property
    def _beside(self) -> tuple[tuple[str, str], ...]:
        """What the evaluator gives; an agent has the judge's skills as its own."""
        return beside(self.judge, self.about, skills=self.folder is None)

    @property
    def _ids(self) -> tuple[str, ...]:
        return tuple(criterion.id for criterion in self.criteria)


def _bearing(what: Shown, about: About, folder: SavedFolder | None) -> Bearing:
    pieces = (*what.pieces, *(folder.pieces if folder else ()))
    own = [piece for piece in pieces if piece.side == "agent" and about.turn in (None, piece.turn)]
    return Bearing(Quotable.of(pieces), Quotable.of(own))


def _failed(criteria: Sequence[Criterion], why: str) -> dict[str, CriterionResult]:
    return {criterion.id: CriterionResult(id=criterion.id, error=why) for criterion in criteria}


def _spent(calls: Sequence[Call]) -> Usage:
    """What all calls cost together; a call without an answer cost nobody knows what."""
    if not calls:
        return Usage()
    return add_usage(list(_usages(calls)))


def _usages(calls: Sequence[Call]) -> Iterator[Usage]:
    for call in calls:
        yield call.reply.usage if call.reply is not None else Usage()

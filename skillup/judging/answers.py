"""From what a judge's model wrote to one sample a criterion, or to what is wrong with it.

Models fence their JSON, talk before and after it, stop in the middle, leave criteria out, invent others, answer one
twice, and quote what nobody said. Nothing of that is guessed at: it is told once, and then the judging has failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from skillup.judging.questions import PLAIN, UNSURE
from skillup.judging.quotes import Quotable, asks_for_a_verdict
from skillup.results import CriterionSample, CriterionVerdict
from skillup.spec.criteria import Criterion

MAX_QUOTES: Final = 10
MAX_QUOTE: Final = 600
"""Characters of a quote that are kept: it is found by its beginning."""

MAX_REASON: Final = 2_000

_MIDDLE: Final = 0.5
"""A score that is given beside a verdict, and lies on the other side of this, contradicts it."""


@dataclass(frozen=True)
class Read:
    """The samples by criterion, and in our own words what could not be taken; both are never full at once."""

    samples: Mapping[str, CriterionSample]
    complaints: tuple[str, ...]


@dataclass(frozen=True)
class Bearing:
    """What evidence is held against: all that was shown, and of it what the agent said and did."""

    everything: Quotable
    of_the_agent: Quotable


class _UnusableError(Exception):
    """Why an answer cannot be taken."""


def read_answers(text: str, criteria: Sequence[Criterion], bearing: Bearing, threshold: float, *, cut: bool) -> Read:
    """What the model answered. `threshold` is the score from which a scored criterion counts as met."""
    try:
        items = _items(text, cut=cut)
    except _UnusableError as error:
        return Read({}, (str(error),))
    by_id = {criterion.id: criterion for criterion in criteria}
    samples: dict[str, CriterionSample] = {}
    complaints: list[str] = []
    for identity, item in items:
        criterion = by_id.get(identity)
        if criterion is None:
            complaints.append("an answer has an id that no criterion has")
            continue
        try:
            sample = _sample(item, criterion, bearing, threshold)
        except _UnusableError as error:
            complaints.append(f"{criterion.id}: {error}")
            continue
        earlier = samples.setdefault(criterion.id, sample)
        if (earlier.verdict, earlier.score) != (sample.verdict, sample.score):
            complaints.append(f"{criterion.id}: answered twice, with verdicts that contradict each other")
    told = {identity for identity, _ in items}
    complaints += [f"{name}: not answered" for name in by_id if name not in told]
    return Read({}, tuple(dict.fromkeys(complaints))) if complaints else Read(samples, ())


_Items = list[tuple[str, Mapping[str, Any]]]
"""Answers with their ids, in order; an id may come twice."""


def _items(text: str, *, cut: bool) -> _Items:
    """The answers in a text, wherever they stand in it.

    Raises:
        _UnusableError: there are none, or there are several that differ.
    """
    found = [items for value in _values(text) if (items := _answers_in(value)) is not None]
    if not found:
        if not text.strip():
            raise _UnusableError("the answer is empty")
        broken = cut or text.count("{") > text.count("}")
        raise _UnusableError("the answer breaks off" if broken else "the answer holds no JSON object with `answers`")
    if any(other != found[0] for other in found):
        raise _UnusableError("the answer holds several JSON objects that contradict each other")
    return found[0]


class _Object(dict[str, Any]):
    """A JSON object that remembers all its pairs, also those of a key that is given twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


_DECODER = json.JSONDecoder(object_pairs_hook=_Object)


def _values(text: str) -> Iterator[Any]:
    """Every outermost JSON object or list in a text."""
    at = 0
    while (at := min((place for mark in "{[" if (place := text.find(mark, at)) >= 0), default=-1)) >= 0:
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
        else:
            yield value


def _answers_in(value: Any) -> _Items | None:
    """The answers that a value holds: under their ids, or as a list with an `id` each, with or without a frame."""
    held = value.get("answers", value) if isinstance(value, dict) else value
    if isinstance(held, dict) and {"id", "verdict"} <= held.keys():
        held = [held]
    if isinstance(held, list):
        pairs: list[tuple[Any, Any]] = [(item.get("id"), item) for item in held if isinstance(item, dict)]
        whole = len(pairs) == len(held)
    else:
        pairs = held.pairs if isinstance(held, _Object) else []
        whole = True
    sound = all(isinstance(name, str) and isinstance(item, dict) and "verdict" in item for name, item in pairs)
    return pairs if pairs and whole and sound else None


def _sample(item: Mapping[str, Any], criterion: Criterion, bearing: Bearing, threshold: float) -> CriterionSample:
    """One answer as a sample.

    Raises:
        _UnusableError: it says too little, contradicts itself, or its evidence is not there.
    """
    reason = item.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise _UnusableError("no reason is given")
    score = _score(item, criterion)
    verdict: CriterionVerdict = "cannot_determine"
    if score is not None:
        verdict = "met" if score >= (threshold if criterion.scored else 1.0) else "not_met"
    quotes = _quotes(item.get("evidence"))
    for number, quote in enumerate(quotes, start=1):
        if not bearing.everything.holds(quote):
            raise _UnusableError(
                f"quote {number} of the evidence does not stand in the record, character for character"
            )
    proves = any(bearing.of_the_agent.holds(quote) and not asks_for_a_verdict(quote) for quote in quotes)
    if score is not None and score > (0.1 if criterion.scored else 0.0) and not proves:
        raise _UnusableError("no quote of what the agent said or did in the turns in question bears the verdict")
    kept = tuple(quote[:MAX_QUOTE] for quote in quotes[:MAX_QUOTES])
    return CriterionSample(verdict=verdict, score=score, evidence=kept, reason=reason.strip()[:MAX_REASON])


def _score(item: Mapping[str, Any], criterion: Criterion) -> float | None:
    """The score in [0, 1]; None when the model cannot determine it.

    Raises:
        _UnusableError: it is none of those that can be given.
    """
    verdict = item.get("verdict")
    word = "_".join(verdict.casefold().replace("-", " ").split()) if isinstance(verdict, str) else verdict
    if word == UNSURE:
        return None
    beside = _points(item["score"]) if item.get("score") is not None else None
    if criterion.scored:
        given = _points(word)
        if given is None and (word is None or word in PLAIN):
            given = beside
        if given is None:
            raise _UnusableError("the verdict is no number from 1 to 10")
        if beside is not None and beside != given:
            raise _UnusableError("the verdict and the score contradict each other")
        return given
    if word not in PLAIN:
        raise _UnusableError(f"the verdict is none of {', '.join(PLAIN)}")
    score = 1.0 if word == "met" else 0.0
    if beside is not None and (beside > _MIDDLE) != (score > _MIDDLE):
        raise _UnusableError("the verdict and the score contradict each other")
    return score


def _points(value: Any) -> float | None:
    """A number from 1 to 10, also one that is written as a text, divided by 10; None for anything else."""
    if isinstance(value, str):
        try:
            value = float(value.removesuffix("/10"))
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1 <= value <= 10:
        return None
    return float(value) / 10


def _quotes(evidence: Any) -> list[str]:
    """The quotes; one alone may be a text.

    Raises:
        _UnusableError: it is neither a list of texts nor a text.
    """
    listed = [evidence] if isinstance(evidence, str) else evidence
    if listed is None:
        return []
    if not isinstance(listed, list) or not all(isinstance(quote, str) for quote in listed):
        raise _UnusableError("the evidence is no list of quotes")
    return [quote for quote in listed if quote.strip()]

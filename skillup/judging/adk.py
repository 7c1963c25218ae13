"""The metrics of Google's ADK that need no model, as evaluators: scores of each turn, and their mean.

They compute what ADK computes. Only what ADK never meets is ours: a turn that did not come to its end scores 0, and
calls that an engine does not show are no calls that were not made.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

from skillup.judging.calls import Made, made_in, same_tool, unseen_calls
from skillup.judging.evaluators import Evaluation, TurnEvaluation
from skillup.judging.evidence import Evidence
from skillup.judging.json_rules import same
from skillup.judging.stemming import stem
from skillup.results import TurnRecord
from skillup.spec.case import Case

MatchType = Literal["exact", "in_order", "any_order"]

_T = TypeVar("_T")

_SPLIT = ((0x0E00, 0x0E7F), (0x0E80, 0x0EFF), (0x1780, 0x17FF), (0x1000, 0x109F))
"""Thai, Lao, Khmer, Myanmar: scripts without spaces, in which marks belong to the letter before them."""

_SINGLE = ((0x4E00, 0x9FFF), (0x3040, 0x309F), (0x30A0, 0x30FF), (0xAC00, 0xD7AF))
"""Chinese, Japanese, Korean: each character counts as a word."""

_SHORTEST_STEMMED = 4


class UnseenCallsError(Exception):
    """Not all calls can be seen, so nobody knows which were made."""


def tool_trajectory_avg_score(
    trial: Evidence,
    case: Case,  # noqa: ARG001 - what every evaluator gets
    *,
    expected: Sequence[Sequence[Mapping[str, Any]]],
    match_type: MatchType = "exact",
    ignore_args: bool = False,
) -> Evaluation:
    """The share of turns whose tool calls are the expected ones; `expected` has the `name` and `args` of each, by turn.

    Raises:
        UnseenCallsError: the engine does not show the calls of some tool, or calls of a whole turn may be lost.
    """
    whole = [turn for turn in trial.turns if trial.complete(turn)]
    unseen = unseen_calls(trial) or trial.more_unseen(whole, "not every call is known")
    if unseen is not None:
        raise UnseenCallsError(unseen.evidence)

    def compared(turn: TurnRecord, wanted: Sequence[Mapping[str, Any]]) -> tuple[float, str]:
        made = made_in([turn])
        good = _matches(wanted, made, match_type, ignore_args=ignore_args)
        names = ", ".join(str(one["name"]) for one in wanted) or "none"
        calls = ", ".join(one.call.label for one in made) or "none"
        return float(good), f"expected calls: {names}; made: {calls}{'' if good else f' (not {match_type})'}"

    return _mean("the expected tool calls", trial, expected, compared)


def response_match_score(
    trial: Evidence,
    case: Case,  # noqa: ARG001 - what every evaluator gets
    *,
    references: Sequence[str],
) -> Evaluation:
    """The mean of how far each reply has the words of its reference (ROUGE-1); `references` has one for each turn."""

    def compared(turn: TurnRecord, reference: str) -> tuple[float, str]:
        score = rouge_1(turn.response or "", reference)
        return score, f"{score:.2f} of the words of the reference and the reply are the same"

    return _mean("the words of the references", trial, references, compared)


def _mean(
    what: str, trial: Evidence, wanted: Sequence[_T], compared: Callable[[TurnRecord, _T], tuple[float, str]]
) -> Evaluation:
    """The scores of the turns that took place, and their mean over all that there are to be."""
    turns = []
    for number, one in enumerate(wanted, start=1):
        turn = trial.turn(number)
        if turn is None:
            continue
        score, reasoning = compared(turn, one) if trial.complete(turn) else (0.0, "the turn was cut")
        turns.append(TurnEvaluation(turn=number, score=score, reasoning=reasoning))
    score = sum(turn.score or 0.0 for turn in turns) / len(wanted)
    each = "; ".join(f"turn {turn.turn}: {turn.reasoning}" for turn in turns)
    return Evaluation(score=round(score, 9), reasoning=f"{what}: {each}", turns=tuple(turns))


def _matches(
    expected: Sequence[Mapping[str, Any]], made: Sequence[Made], match_type: MatchType, *, ignore_args: bool
) -> bool:
    """Whether the calls are the expected ones: these alone, or these among others in order or in any."""

    def meant(wanted: Mapping[str, Any], one: Made) -> bool:
        return same_tool(wanted["name"], one.call) and (ignore_args or same(wanted.get("args", {}), one.call.arguments))

    if match_type == "exact":
        return len(expected) == len(made) and all(map(meant, expected, made))
    left = list(made)
    for wanted in expected:
        place = next((place for place, one in enumerate(left) if meant(wanted, one)), None)
        if place is None:
            return False
        left = left[place + 1 :] if match_type == "in_order" else [*left[:place], *left[place + 1 :]]
    return True


def rouge_1(candidate: str, reference: str) -> float:
    """The F-measure of the words that two texts share, each as often as it stands in both: 0 to 1."""
    ours, theirs = Counter(_words(candidate)), Counter(_words(reference))
    shared = (ours & theirs).total()
    return 2 * shared / (ours.total() + theirs.total()) if shared else 0.0


def _words(text: str) -> list[str]:
    """The words of a text in small letters; those of ASCII letters without their endings, from four letters on."""
    parts = "".join(_spaced(unicodedata.normalize("NFKC", text).lower())).split()
    found: list[str] = []
    for part in parts:
        if part.isascii():
            found += [stem(word) if len(word) >= _SHORTEST_STEMMED else word for word in re.findall("[a-z0-9]+", part)]
        else:
            found.append(part)
    return found


def _spaced(text: str) -> Iterator[str]:
    """The characters of words, with a blank wherever one may begin or end."""
    for character in text:
        mark = unicodedata.category(character).startswith("M")
        if _within(character, _SINGLE):
            yield f" {character} "
        elif _within(character, _SPLIT):
            yield character if mark else f" {character}"
        else:
            yield character if mark or character.isalnum() else " "


def _within(character: str, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(low <= ord(character) <= high for low, high in ranges)

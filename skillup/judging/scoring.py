"""From judged checks to the scores of a conversation's parts, and from those to one score. Pure.

What is unknown could be 0 or 1, so every score is a range until all of it is known; a gate or a mean moves both ends
the same way. A turn that `on_turn_failure: stop` took away is no unknown: it scores 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillup.judging.criteria import score_check
from skillup.judging.evidence import Evidence
from skillup.results import Check, GraderScore, PartAssertion, PartScore, PartVerdict
from skillup.spec.case import Case
from skillup.spec.scoring import Gated, Grader, Leaf, Part, Scoring


@dataclass(frozen=True)
class Range:
    """A score when everything unknown were 0, and when it were 1."""

    low: float
    high: float

    @property
    def known(self) -> float | None:
        """The score, None while it could still be another."""
        return self.low if self.low == self.high else None


@dataclass(frozen=True)
class Scored:
    """The parts in order, and the check whether the whole reaches the threshold."""

    parts: tuple[PartScore, ...]
    check: Check


NOTHING = Range(0.0, 0.0)
FULL = Range(1.0, 1.0)


def rule_check_id(part: Part, grader: str, index: int) -> str:
    """The id of the check of a graded rule; `grader` is its grader's name as `Leaf` has it."""
    return f"judge.scoring.{part.name}.{grader}[{index}]"


def scored(case: Case, scoring: Scoring, evidence: Evidence, checks: Sequence[Check]) -> Scored:
    """The scores that judged checks amount to."""
    judging = _Judging(case, evidence, {check.id: check for check in checks})
    ranges = [judging.part(part) for part in scoring.parts]
    whole = _aggregated(scoring, ranges)
    pairs = list(zip(scoring.parts, ranges, strict=True))
    parts = tuple(judging.row(part, value) for part, value in pairs)
    unknown = [(check, check.text) for check in judging.members(scoring) if _range(check).known is None]
    listed = ", ".join(f"{part.name} {_shown(value)}" for part, value in pairs)
    shown = f"{_shown(whole)} ({listed})"
    return Scored(parts, score_check("conversation", judging.threshold, (whole.low, whole.high), shown, unknown))


def part_range(case: Case, part: Part, evidence: Evidence, checks: Sequence[Check]) -> Range:
    """The score of one part alone, as the conversation goes on."""
    return _Judging(case, evidence, {check.id: check for check in checks}).part(part)


@dataclass(frozen=True)
class _Judging:
    """The checks of one trial by id, and what the parts are held against."""

    case: Case
    evidence: Evidence
    checks: Mapping[str, Check]

    @property
    def threshold(self) -> float:
        """The score that every part, and the whole, must reach."""
        assert self.case.judge is not None  # noqa: S101 - scoring is a part of the judge
        return self.case.judge.threshold

    def members(self, scoring: Scoring) -> list[Check]:
        """The checks of all parts."""
        return [check for part, leaf in scoring.leaves for check in self._checks(part, leaf)]

    def part(self, part: Part) -> Range:
        """The weighted mean of the graders; 0 where a required one is not good enough."""
        if self._stopped(part):
            return NOTHING
        if not part.graders:
            return FULL
        return self._weighed(self._named(part), part.graders)

    def row(self, part: Part, value: Range) -> PartScore:
        """A part as results show it."""
        named = {} if self._stopped(part) else self._named(part)
        kinds = {grader.kind for grader in part.graders}
        return PartScore(
            name=part.name,
            type=kinds.pop() if len(kinds) == 1 else "composite" if kinds else "rubrics",
            turn=part.turn,
            score=value.known,
            verdict="skip" if self._stopped(part) else self._verdict(value),
            assertions=tuple(one for leaf in part.leaves for one in _assertions(self._checks(part, leaf))),
            scores=tuple(self._row(grader, named, grader.name) for grader in part.graders if named),
        )

    def _named(self, part: Part) -> Mapping[str, tuple[Check, ...]]:
        """The checks of a part's graders by their names."""
        return {leaf.name: tuple(self._checks(part, leaf)) for leaf in part.leaves}

    def _row(self, grader: Grader, named: Mapping[str, Sequence[Check]], name: str) -> GraderScore:
        value = self._grader(grader, named, name)
        return GraderScore(
            name=grader.name,
            type=grader.kind,
            weight=grader.weight,
            required=bool(grader.required),
            score=value.known,
            verdict=self._verdict(value, grader.pass_threshold),
            assertions=_assertions(named.get(name, ())),
            scores=tuple(self._row(member, named, f"{name}.{member.name}") for member in grader.graders),
        )

    def _verdict(self, value: Range, own: float | None = None) -> PartVerdict:
        threshold = own or self.threshold
        if value.low >= threshold:
            return "pass"
        return "fail" if value.high < threshold else "unknown"

    def _stopped(self, part: Part) -> bool:
        ending = self.evidence.record.ending
        return ending.how == "stopped" and part.turn is not None and part.turn > (ending.turn or 0)

    def _grader(self, grader: Grader, named: Mapping[str, Sequence[Check]], name: str) -> Range:
        """The score of its members, after their own gates and turned round where it is negated; 0 below `min_score`."""
        ranges = [_range(check) for check in named.get(name, ())]
        ranges = (
            [_turned(value) for value in ranges] if grader.negate else ranges
        )  # the checks are turned round already
        if grader.graders:
            value = self._weighed(named, grader.graders, f"{name}.", passing=grader.aggregation == "passing")
        elif grader.criteria:
            weights = {criterion.id: criterion.weight for criterion in self.case.criteria}
            ranges = [_floored(value, one.min_score) for value, one in zip(ranges, grader.criteria, strict=True)]
            value = _mean([weights[one.id] for one in grader.criteria], ranges, grader.criteria, self.threshold)
        else:
            value = _mean([1.0] * len(ranges), ranges, (), self.threshold)
        return _floored(_turned(value) if grader.negate else value, grader.min_score)

    def _weighed(
        self,
        named: Mapping[str, Sequence[Check]],
        graders: Sequence[Grader],
        prefix: str = "",
        *,
        passing: bool = False,
    ) -> Range:
        """The weighted mean of graders side by side, or the share that pass; 0 where a required one falls short."""
        ranges = [self._grader(grader, named, f"{prefix}{grader.name}") for grader in graders]
        weights = [grader.weight for grader in graders]
        if passing:
            ranges = [self._passing(grader, value) for grader, value in zip(graders, ranges, strict=True)]
            weights = [1.0] * len(graders)  # they are counted
        return _mean(weights, ranges, graders, self.threshold)

    def _passing(self, grader: Grader, value: Range) -> Range:
        """1 where a grader passes, 0 where it does not."""
        verdict = self._verdict(value, grader.pass_threshold)
        return Range(float(verdict == "pass"), float(verdict != "fail"))

    def _checks(self, part: Part, leaf: Leaf) -> list[Check]:
        ids = [f"judge.criteria.{one.id}" for one in leaf.grader.criteria]
        ids += [rule_check_id(part, leaf.name, index) for index in range(len(leaf.grader.rules))]
        ids += [f"judge.scoring.{part.name}.{leaf.name}.program"] if leaf.grader.program else []
        return [self.checks[identity] for identity in ids]


def _assertions(checks: Sequence[Check]) -> tuple[PartAssertion, ...]:
    """Checks as a part's assertions; of a program's, those that it made itself."""
    own = (
        PartAssertion(
            text=check.text,
            passed=check.state == "met",
            evidence=check.evidence,
            score=_range(check).known,
            state=check.state,
        )
        for check in checks
    )
    return tuple(one for check, row in zip(checks, own, strict=True) for one in check.assertions or (row,))


def _range(check: Check) -> Range:
    """The score of one check: the model's, else 1 for what holds, and of what does not the share that does."""
    score = check.score if check.role == "criterion" else {"met": 1.0, "not_met": 0.0}.get(check.state)
    score = score if check.share is None or check.state == "unknown" else check.share
    return Range(0.0, 1.0) if score is None else Range(score, score)


def _turned(value: Range) -> Range:
    return Range(round(1.0 - value.high, 9), round(1.0 - value.low, 9))


def _floored(value: Range, floor: float | None) -> Range:
    return Range(*(0.0 if floor is not None and end < floor else end for end in (value.low, value.high)))


def _mean(weights: Sequence[float], ranges: Sequence[Range], gates: Sequence[Gated], threshold: float) -> Range:
    """The weighted mean of both ends, 0 for an end at which a required member is below its floor."""
    floors = [gate.floor(threshold) for gate in gates] or [None] * len(ranges)
    total = sum(weights)

    def end(values: Sequence[float]) -> float:
        if any(floor is not None and value < floor for floor, value in zip(floors, values, strict=True)):
            return 0.0
        # Rounded against the noise of floating point: 0.8 is to reach 0.8.
        return round(sum(weight * value for weight, value in zip(weights, values, strict=True)) / total, 9)

    return Range(end([one.low for one in ranges]), end([one.high for one in ranges]))


def _aggregated(scoring: Scoring, ranges: Sequence[Range]) -> Range:
    def end(values: Sequence[float]) -> float:
        match scoring.aggregation:
            case "min":
                return min(values)
            case "max":
                return max(values)
        return round(sum(values) / len(values), 9)

    return Range(end([one.low for one in ranges]), end([one.high for one in ranges]))


def _shown(value: Range) -> str:
    return f"{value.low:.4g}" if value.known is not None else f"{value.low:.4g} to {value.high:.4g}"

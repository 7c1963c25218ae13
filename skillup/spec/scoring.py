"""What users write to score a conversation part by part: each turn, and the whole of it, by graders with weights.

A score here is not a requirement: what is missed costs its weight, and the whole must reach the judge's threshold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt, model_validator

from skillup.spec.command_rule import CommandHolds
from skillup.spec.criteria import CriterionId, Weight
from skillup.spec.problems import fault_at
from skillup.spec.programs import Program
from skillup.spec.rule_items import RuleItem
from skillup.spec.rules import Rule
from skillup.spec.values import Flag, Spec, Threshold, Words

DEFAULT_SCORING_THRESHOLD = 0.8
"""What parts and the whole must reach when nothing says otherwise; the default of the format that scores so."""


class Gated(Spec):
    """What graders and their criteria share: a score below `min_score` counts 0, a missed `required` ends all else.

    `required: true` asks for `min_score`, else for the threshold (a criterion answered by yes or no: for yes); a number
    asks for that score.
    """

    required: Flag | Threshold = False
    min_score: Threshold | None = None

    def floor(self, threshold: float) -> float | None:
        """The score without which everything beside it counts nothing; None when it is not required."""
        if self.required is False:
            return None
        return (self.min_score or threshold) if self.required is True else self.required


class GradedCriterion(Gated):
    """One of the judge's criteria, by id; its weight is the criterion's own. A text alone is the id."""

    id: CriterionId

    @model_validator(mode="before")
    @classmethod
    def _bare_id(cls, value: object) -> object:
        return {"id": value} if isinstance(value, str) else value


class Grader(Gated):
    """One score: the weighted share of its `criteria` that are met, or of its `rules` that hold, or that of `graders`.

    Or what a `program` says.

    Of its members the score is, by `aggregation`, their weighted `mean`, or the share of those that are `passing`,
    whatever they weigh.
    `pass_threshold` is what it must reach itself, where that is not the judge's threshold. `negate` turns the score and
    every answer round. `type` is a word for reports.
    """

    name: Words
    type: Words | None = None
    weight: Weight = 1.0
    negate: Flag = False
    criteria: tuple[GradedCriterion, ...] = ()
    rules: tuple[RuleItem, ...] = ()
    graders: tuple[Grader, ...] = ()
    program: Program | None = None
    aggregation: Literal["mean", "passing"] = "mean"
    pass_threshold: Threshold | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if [bool(one) for one in (self.criteria, self.rules, self.graders, self.program)].count(True) != 1:
            raise fault_at(
                "a grader has `criteria`, `rules`, `graders` or a `program`", hint="give exactly one of them"
            )
        if "aggregation" in self.model_fields_set and not self.graders:
            raise fault_at("`aggregation` says how `graders` make one score", "aggregation", hint="remove it")
        _check_members(self.graders, self.name, weighed=self.aggregation == "mean")
        return self

    @property
    def kind(self) -> str:
        """Its type, or what it is made of."""
        made_of = {"rubrics": self.criteria, "rules": self.rules, "composite": self.graders}
        return self.type or next((word for word, members in made_of.items() if members), "program")

    def floor(self, threshold: float) -> float | None:
        """The score without which everything beside it counts nothing; None when it is not required."""
        return super().floor(self.pass_threshold or threshold)


def _check_members(graders: tuple[Grader, ...], name: str, *, weighed: bool = True) -> None:
    """Raises a fault unless graders side by side have names of their own and, where `weighed`, one of them a weight."""
    names = [grader.name for grader in graders]
    for index, own in enumerate(names):
        if own in names[:index]:
            raise fault_at(f"another grader of {name} has the name {own}", "graders", index, "name")
    if weighed and graders and not sum(grader.weight for grader in graders):
        raise fault_at("the weights sum to 0, so nothing could change the score", "graders", hint="weigh one")


@dataclass(frozen=True)
class Leaf:
    """A grader that scores by itself; `name` begins with those it is a member of, `at` is its place below the part."""

    grader: Grader
    name: str
    at: tuple[str | int, ...]


def _leaves(graders: tuple[Grader, ...], prefix: str, at: tuple[str | int, ...]) -> Iterator[Leaf]:
    for index, grader in enumerate(graders):
        leaf = Leaf(grader, f"{prefix}{grader.name}", (*at, "graders", index))
        if grader.graders:
            yield from _leaves(grader.graders, f"{leaf.name}.", leaf.at)
        else:
            yield leaf


class Part(Spec):
    """One score of the conversation: of one `turn`, or without it of the whole. Without graders it is 1.0."""

    name: Words
    turn: Annotated[StrictInt, Field(ge=1)] | None = None
    graders: tuple[Grader, ...] = ()

    def rules_of(self, grader: Grader) -> tuple[Rule, ...]:
        """The rules of one of its graders; in the part of a turn they are about that turn."""
        rules = (item.rule for item in grader.rules)
        return tuple(
            rule if self.turn is None or rule.turn is not None else rule.model_copy(update={"turn": self.turn})
            for rule in rules
        )

    @model_validator(mode="after")
    def _can_be_scored(self) -> Self:
        _check_members(self.graders, self.name)
        return self

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The graders that score by themselves, those inside others included."""
        return tuple(_leaves(self.graders, "", ()))


class Scoring(Spec):
    """How the parts make one score. With `on_turn_failure: stop` the turns after a failed one do not take place."""

    parts: tuple[Part, ...] = Field(min_length=1)
    aggregation: Literal["mean", "min", "max"] = "mean"
    on_turn_failure: Literal["continue", "stop"] = "continue"

    @model_validator(mode="after")
    def _checks_something(self) -> Self:
        if not any(part.graders for part in self.parts):
            raise fault_at(
                "no part has a grader, so every score would be 1", "parts", hint="give one of them `graders`"
            )
        seen: set[str] = set()
        for index, part in enumerate(self.parts):
            if not part.graders and self.aggregation == "max" and not self._can_be_stopped(part):
                raise fault_at(
                    f"{part.name} has no grader, so it scores 1, and `aggregation: max` could only pass",
                    *("parts", index),
                    hint="let something judge it, or use `mean` or `min`",
                )
            if part.name in seen:
                raise fault_at(f"another part has the name {part.name}", "parts", index, "name")
            seen.add(part.name)
            for leaf in part.leaves if self.on_turn_failure == "stop" and part.turn else ():
                if leaf.grader.program or any(isinstance(item.rule, CommandHolds) for item in leaf.grader.rules):
                    problem = (
                        "commands and programs run at the end, and the score of this turn is needed before the next one"
                    )
                    raise fault_at(problem, "parts", index, *leaf.at, hint="use `on_turn_failure: continue`")
            turns = [other.turn for other in self.parts[:index]]
            if part.turn is not None and part.turn in turns:
                raise fault_at(f"turn {part.turn} is scored twice", "parts", index, "turn")
        return self

    def _can_be_stopped(self, part: Part) -> bool:
        """Whether an earlier turn that fails takes the part's turn away, which then scores 0."""
        turns = [other.turn for other in self.parts if other.graders and other.turn]
        return self.on_turn_failure == "stop" and part.turn is not None and any(turn < part.turn for turn in turns)

    @property
    def leaves(self) -> tuple[tuple[Part, Leaf], ...]:
        """Every grader that scores by itself, with the part that it belongs to."""
        return tuple((part, leaf) for part in self.parts for leaf in part.leaves)

    @property
    def negated(self) -> frozenset[str]:
        """The ids of the criteria whose answers are turned round."""
        leaves = (leaf.grader for _, leaf in self.leaves)
        return frozenset(one.id for grader in leaves if grader.negate for one in grader.criteria)

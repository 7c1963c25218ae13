"""AgentV's assertions as graders, rules and criteria of ours: nothing below loading knows that they were others."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillup.loading.agentv_rules import UntranslatableError, fields_rule, rules_of
from skillup.loading.references import References
from skillup.loading.spelling import closest
from skillup.spec.agentv_graders import CodeGrader, Composite, LlmGrader, Rubric, Rubrics
from skillup.spec.agentv_rules import AgentVGrader, FieldAccuracy
from skillup.spec.criteria import Criterion
from skillup.spec.problems import quoted
from skillup.spec.programs import Program
from skillup.spec.rule_items import RuleItem
from skillup.spec.scoring import GradedCriterion, Grader
from skillup.spec.template import TEMPLATE, placeholders

_LONGEST_OWN_ID = 48
"""Characters of an id of the file's: ours has the part's name in front and, where it is taken, a number behind."""


@dataclass(frozen=True)
class Place:
    """Where a file's own paths begin: in `folder`, below the root of `suite`."""

    suite: References
    folder: str


@dataclass
class Translation:
    """The assertions of one part of a test, while they are translated; `places` are their places in the list.

    `turn` is None for the whole conversation; with `early` its score decides whether the next one takes place. `goal`
    is the test's `criteria`, `reference` the turn's `expected_output`; both are empty where there is none.
    """

    at: Place
    part: str
    turn: int | None
    window: int | None
    early: bool
    goal: str
    reference: str
    graders: list[Grader] = field(default_factory=list)
    criteria: list[Criterion] = field(default_factory=list)
    places: list[int | None] = field(default_factory=list)
    criteria_places: list[int | None] = field(default_factory=list)
    uses_reference: bool = False

    def statements(self, texts: Sequence[str], place: int) -> None:
        """Plain texts: one grader in which each counts as much as any other assertion does."""
        self.grader(_together(texts), place)

    def grader(self, written: AgentVGrader, place: int | None) -> None:
        """A structured assertion.

        Raises:
            UntranslatableError: it has nothing to judge by, or names a variable that there is not.
        """
        self.graders.append(self._grader(written, place, self.graders))
        self.places.append(place)

    def _grader(self, written: AgentVGrader, place: int | None, beside: Sequence[Grader]) -> Grader:
        match written:
            case Rubrics():
                own = self._asked(_questions(written.criteria), place)
            case LlmGrader(rubrics=rubrics) if rubrics:
                own = self._asked(_questions(rubrics), place)
            case LlmGrader():
                text = self._prompt(written)
                own = self._asked([(Rubric(outcome=text), text, True)], place)
            case Composite():
                own = self._members(written, place)
            case CodeGrader():
                own = {"program": self._program(written)}
            case FieldAccuracy():
                self.uses_reference = True
                own = _ruled([fields_rule(written, self.reference)])
            case _:
                own = _ruled(rules_of(written))
        return Grader(
            name=_free(written.name or str(getattr(written, "type", "grader")), {grader.name for grader in beside}),
            type=getattr(written, "type", None),
            weight=written.weight,
            required=written.required,
            min_score=written.min_score,
            negate=written.negate,
            **own,
        )

    def _program(self, written: CodeGrader) -> Program:
        """The program, in the folder of the file that names it unless it says another."""
        if self.early:
            hint = "use `on_turn_failure: continue`, or put it into the test's `assertions`"
            raise UntranslatableError("programs run at the end, and the score is needed before the next turn", hint)
        self.uses_reference = True
        folder = self._path(written.cwd or ".")
        return Program.model_validate(
            {
                "command": written.command if isinstance(written.command, str) else list(written.command),
                "cwd": None if folder == "." else folder,
                "config": written.config,
                "criteria": self.goal,
                "expected_output": self.reference,
                "timeout_seconds": written.timeout_seconds,
            }
        )

    def _path(self, written: str) -> str:
        """A path as the suite has it; in the file it is relative to the file's folder."""
        return os.path.normpath(Path(self.at.folder, written))

    def _members(self, written: Composite, place: int | None) -> dict[str, Any]:
        """The members of a composite; those with a weight of the aggregator's have it instead of their own."""
        how, members = written.aggregator, list[Grader]()
        texts = [one for one in written.assertions if isinstance(one, str)]
        for index, one in enumerate(written.assertions):
            if isinstance(one, str) and one is not texts[0]:
                continue
            try:
                member = self._grader(_together(texts) if isinstance(one, str) else one, place, members)
            except UntranslatableError as error:
                message, hint, *at = error.args
                raise UntranslatableError(message, hint, "assertions", index, *at) from None
            members.append(member.model_copy(update={"weight": how.weights.get(member.name, member.weight)}))
        known = [member.name for member in members]
        for name in how.weights:
            if name not in known:
                meant = closest(name, known)
                hint = f"did you mean {quoted(meant)}?" if meant else f"its members are {', '.join(known)}"
                message = f"no member has the name {quoted(name)}"
                raise UntranslatableError(message, hint, "aggregator", "weights", name)
        if how.type == "threshold":
            return {"graders": tuple(members), "aggregation": "passing", "pass_threshold": how.threshold}
        return {"graders": tuple(members)}

    def compare(self) -> None:
        """The implicit grader: how well the reply agrees with the reference answer, which the judge is given."""
        text = f"What the agent says in turn {self.turn} agrees with that turn's reference answer in all that matters."
        self.grader(LlmGrader(type="llm-grader", name="expected_output", prompt=text), None)

    def fallback(self) -> None:
        """The implicit grader of a test that has `criteria` and no assertion at all."""
        self.grader(LlmGrader(type="llm-grader", name="criteria"), None)

    def _prompt(self, written: LlmGrader) -> str:
        if written.prompt_file is not None:
            found = self.at.suite.text_of(self._path(written.prompt_file))
            if isinstance(found, tuple):
                raise UntranslatableError(*found, "prompt")
            return self._rendered(found)
        if written.prompt is not None:
            return self._rendered(written.prompt)
        if not self.goal and not self.reference:
            hint = "give `prompt` or `rubrics`, or the test `criteria`"
            raise UntranslatableError("the grader has nothing to judge by", hint)
        reference = f"What the agent says in turn {self.turn} agrees with the reference answer of that turn."
        return "\n".join(text for text in (self.goal, reference if self.reference else "") if text)

    def _rendered(self, prompt: str) -> str:
        """A prompt with its variables, all of which have a value: a question with a hole in it asks something else."""
        values = self._variables()
        for name in placeholders(prompt):
            if not values.get(name, name).strip():
                where = "the turn" if self.turn else "a turn, and put the grader there"
                hint = "give the test `criteria`" if name == "criteria" else f"give `expected_output` to {where}"
                raise UntranslatableError(f"{{{{ {name} }}}} has no value here", hint, "prompt")
        try:
            return rendered(prompt, values)
        except UntranslatableError as error:
            raise UntranslatableError(*error.args, "prompt") from None

    def _variables(self) -> dict[str, str]:
        """The template variables. What the agent wrote is never put into a question: it stands in the record alone."""
        if self.turn is None:
            said, answer = "the whole conversation in the record", "the last answer of the agent in the record"
        else:
            said = f"the conversation in the record up to the user's message of turn {self.turn}"
            answer = f"the answer of the agent in turn {self.turn} of the record"
        return {
            "input": f"({said})",
            "output": f"({answer})",
            "criteria": self.goal,
            "expected_output": self.reference,
        }

    def _asked(self, questions: Iterable[tuple[Rubric, str, bool]], place: int | None) -> dict[str, Any]:
        """What a model is asked: each with its text, and whether it is scored; kept, and graded."""
        graded = []
        for rubric, text, is_scored in questions:
            identity = self._id(rubric.id)
            self.criteria.append(
                Criterion(
                    id=identity,
                    text=text,
                    weight=rubric.weight,
                    scored=is_scored,
                    turn=self.turn,
                    window=None if self.turn is None else self.window,
                )
            )
            self.criteria_places.append(place)
            floor = 1.0 if rubric.required is True and is_scored and rubric.min_score is None else rubric.required
            graded.append(GradedCriterion(id=identity, required=floor, min_score=rubric.min_score))
        return {"criteria": tuple(graded)}

    def _id(self, own: str | None) -> str:
        taken = {criterion.id for criterion in self.criteria}
        name = f"{self.part}.{(own or f'criterion-{len(self.criteria) + 1}')[:_LONGEST_OWN_ID]}"
        return _free(name, taken)


def _together(texts: Sequence[str]) -> Rubrics:
    """Plain texts as one grader, which weighs as much as there are."""
    rubrics = tuple(Rubric(outcome=text) for text in texts)
    return Rubrics(type="rubrics", criteria=rubrics, weight=float(len(texts)))


def _questions(rubrics: Sequence[Rubric]) -> list[tuple[Rubric, str, bool]]:
    return [(rubric, _question(rubric), bool(rubric.score_ranges)) for rubric in rubrics]


def _ruled(rules: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {"rules": tuple(RuleItem.model_validate(rule) for rule in rules)}


def rendered(text: str, values: Mapping[str, str]) -> str:
    """A text of the file's with its variables, in one pass: values are never expanded again.

    Raises:
        UntranslatableError: it names another one.
    """

    def replaced(match: re.Match[str]) -> str:
        literal, inner, name = match.groups()
        if literal:
            return f"{{{{{inner}}}}}"
        if name not in values:
            known = ", ".join(f"{{{{ {one} }}}}" for one in values) or "none"
            hint = f"known: {known}; {{{{!{name}}}}} writes the braces out"
            raise UntranslatableError(f"there is no variable {quoted(name)} here", hint)
        return values[name]

    return TEMPLATE.sub(replaced, text)


def _free(name: str, taken: set[str]) -> str:
    number = 2
    candidate = name
    while candidate in taken:
        candidate = f"{name}-{number}"
        number += 1
    return candidate


def _question(rubric: Rubric) -> str:
    """What the model is asked about one criterion."""
    text = rubric.outcome or "How good is it?"
    if rubric.operator == "contradiction":
        text = f"Nothing that the agent says contradicts this: {text}"
    ranges = [
        f"{max(low, 1)} to {max(high, 1)}: {one.outcome}"
        for one in rubric.score_ranges
        for low, high in [one.score_range]
    ]
    return "\n".join([text, "What the scores mean:", *ranges]) if ranges else text

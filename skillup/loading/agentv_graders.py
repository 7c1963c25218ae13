"""AgentV's assertions as graders, rules and criteria of ours: nothing below loading knows that they were others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skillup.spec.agentv_graders import (
    AgentVGrader,
    Cost,
    ExecutionMetrics,
    IsJson,
    Latency,
    LlmGrader,
    OneText,
    Regex,
    Rubric,
    Rubrics,
    SeveralTexts,
    SkillTrigger,
    TokenUsage,
    ToolTrajectory,
    WholeText,
)
from skillup.spec.criteria import Criterion
from skillup.spec.problems import quoted
from skillup.spec.rule_items import RuleItem
from skillup.spec.scoring import GradedCriterion, Grader
from skillup.spec.template import TEMPLATE

_LONGEST_OWN_ID = 48
"""Characters of an id of the file's: ours has the part's name in front and, where it is taken, a number behind."""


_JSON_TYPES = ["object", "array", "string", "number", "boolean", "null"]


class UntranslatableError(Exception):
    """(message, hint): an assertion that means nothing where it stands."""


@dataclass
class Translation:
    """The assertions of one part of a test, while they are translated; `places` are their places in the list.

    `turn` is None for the whole conversation. `goal` is the test's `criteria`, `reference` the turn's
    `expected_output`; both are empty where there is none.
    """

    part: str
    turn: int | None
    window: int | None
    goal: str
    reference: str
    graders: list[Grader] = field(default_factory=list)
    criteria: list[Criterion] = field(default_factory=list)
    places: list[int | None] = field(default_factory=list)
    criteria_places: list[int | None] = field(default_factory=list)

    def statements(self, texts: Sequence[str], place: int) -> None:
        """Plain texts: one grader in which each counts as much as any other assertion does."""
        rubrics = [Rubric(outcome=text) for text in texts]
        self._add(Rubrics(type="rubrics", criteria=tuple(rubrics), weight=float(len(texts))), place, rubrics=rubrics)

    def grader(self, written: AgentVGrader, place: int) -> None:
        """A structured assertion.

        Raises:
            UntranslatableError: it has nothing to judge by, or names a variable that there is not.
        """
        match written:
            case Rubrics():
                self._add(written, place, rubrics=written.criteria)
            case LlmGrader(rubrics=rubrics) if rubrics:
                self._add(written, place, rubrics=rubrics)
            case LlmGrader():
                self._scored(written, self._prompt(written.prompt), place)
            case _:
                self._add(written, place, rules=list(_rules(written)))

    def compare(self) -> None:
        """The implicit grader: how well the reply agrees with the reference answer, which the judge is given."""
        text = f"What the agent says in turn {self.turn} agrees with that turn's reference answer in all that matters."
        self._scored(LlmGrader(type="llm-grader", name="expected_output"), text, None)

    def fallback(self) -> None:
        """The implicit grader of a test that has `criteria` and no assertion at all."""
        self._scored(LlmGrader(type="llm-grader", name="criteria"), self.goal, None)

    def _prompt(self, prompt: str | None) -> str:
        if prompt is not None:
            return rendered(prompt, self._variables())
        if not self.goal and not self.reference:
            hint = "give `prompt` or `rubrics`, or the test `criteria`"
            raise UntranslatableError("the grader has nothing to judge by", hint)
        reference = f"What the agent says in turn {self.turn} agrees with the reference answer of that turn."
        return "\n".join(text for text in (self.goal, reference if self.reference else "") if text)

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

    def _scored(self, written: LlmGrader, text: str, place: int | None) -> None:
        self._add(written, place, criteria=[(Rubric(outcome=text), text, True)])

    def _add(
        self,
        written: AgentVGrader,
        place: int | None,
        *,
        rubrics: Sequence[Rubric] = (),
        criteria: Sequence[tuple[Rubric, str, bool]] = (),
        rules: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        asked = [*criteria, *((rubric, _question(rubric), bool(rubric.score_ranges)) for rubric in rubrics)]
        graded = []
        for rubric, text, is_scored in asked:
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
        self.graders.append(
            Grader(
                name=self._name(written),
                type=getattr(written, "type", None),
                weight=written.weight,
                required=written.required,
                min_score=written.min_score,
                negate=written.negate,
                criteria=tuple(graded),
                rules=tuple(RuleItem.model_validate(rule) for rule in rules),
            )
        )
        self.places.append(place)

    def _id(self, own: str | None) -> str:
        taken = {criterion.id for criterion in self.criteria}
        name = f"{self.part}.{(own or f'criterion-{len(self.criteria) + 1}')[:_LONGEST_OWN_ID]}"
        return _free(name, taken)

    def _name(self, written: AgentVGrader) -> str:
        taken = {grader.name for grader in self.graders}
        return _free(written.name or str(getattr(written, "type", "grader")), taken)


def rendered(text: str, values: Mapping[str, str]) -> str:
    """A prompt with its template variables.

    Raises:
        UntranslatableError: it names another one.
    """

    def replaced(match: re.Match[str]) -> str:
        literal, inner, name = match.groups()
        if literal:
            return f"{{{{{inner}}}}}"
        if name not in values:
            known = ", ".join(f"{{{{ {one} }}}}" for one in values)
            raise UntranslatableError(f"there is no variable {quoted(name)} here", f"known: {known}")
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


def _rules(written: AgentVGrader) -> Iterator[dict[str, Any]]:
    """The rules that a deterministic grader amounts to; with several its score is the share that holds."""
    match written:
        case OneText():
            yield _contains(written.type, "all", [written.value])
        case SeveralTexts():
            yield _contains(written.type, written.type.rpartition("-")[2], list(written.value))
        case WholeText(type="equals"):
            yield {"output_equals": {"text": written.value}}
        case WholeText():
            text = re.escape(written.value.strip())
            pattern = rf"\A\s*{text}" if written.type == "starts-with" else rf"{text}\s*\z"
            yield {"output_matches": {"all": [pattern], "ignore_case": False}}
        case Regex():
            yield {"output_matches": {"all": [written.pattern], "ignore_case": False}}
        case IsJson():
            yield {"json_schema": {"schema": {"type": _JSON_TYPES}}}
        case ToolTrajectory():
            yield from _trajectory(written)
        case SkillTrigger():
            yield {"skill_used": {"name": written.skill, "used": written.should_trigger}}
        case _:
            yield from _limits(written)


def _contains(kind: str, how: str, texts: list[str]) -> dict[str, Any]:
    return {"output_contains": {how: texts, "ignore_case": kind.startswith("icontains")}}


def _trajectory(written: ToolTrajectory) -> Iterator[dict[str, Any]]:
    for tool, count in written.minimums.items():
        yield {"tool_called": {"name": tool, "count": {"min": count}}}
    if not written.expected:
        return
    if written.mode == "subset":
        yield {"tools_only": list(dict.fromkeys(call.tool for call in written.expected))}
        return
    mode = "any_order" if written.mode == "superset" else written.mode
    steps = []
    for call in written.expected:
        named = call.args == "any" or (call.args_match or written.args_match) == "ignore"
        steps.append({"name": call.tool} if named else {"name": call.tool, "args": call.args})
    yield {"tool_order": {"order": steps, "mode": mode}}


def _limits(written: AgentVGrader) -> Iterator[dict[str, Any]]:
    match written:
        case Latency():
            yield {"max_seconds": written.threshold / 1000}
        case Cost():
            yield {"max_cost_usd": written.budget}
        case TokenUsage():
            for of in ("total", "input", "output"):
                most = getattr(written, f"max_{of}")
                if most is not None:
                    yield {"max_tokens": {"max": most, "of": of}}
        case ExecutionMetrics():
            seconds = None if written.max_duration_ms is None else written.max_duration_ms / 1000
            limits = {
                "max_tool_calls": written.max_tool_calls,
                "max_tokens": written.max_tokens,
                "max_cost_usd": written.max_cost_usd,
                "max_seconds": seconds,
            }
            yield from ({name: most} for name, most in limits.items() if most is not None)

"""AgentV's evaluation files: `tests:` with `mode: conversation`, read into cases like any others.

What AgentV's design says is what happens here, also where its implementation differs; docs/agentv.md has every key.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from skillup.errors import Fault, InputError
from skillup.loading.agentv_document import Translated, misplaced
from skillup.loading.agentv_graders import Place, Translation, rendered
from skillup.loading.agentv_input import opening
from skillup.loading.agentv_rules import UntranslatableError
from skillup.loading.document import Document, KeyPath
from skillup.loading.faults import faults_from_validation
from skillup.loading.references import References
from skillup.spec.agentv import AgentVFile, AgentVTurn, text_of
from skillup.spec.agentv_graders import Assertion
from skillup.spec.agentv_rules import AgentVGrader
from skillup.spec.case import Case
from skillup.spec.criteria import Attachment, JudgeContext
from skillup.spec.judge import Judge
from skillup.spec.scoring import Part, Scoring
from skillup.spec.turn import Input, Turn


def tests_of(document: Document, folder: str, suite: References) -> tuple[list[tuple[Case, Document]], list[str]]:
    """The tests of a file as cases, each with a document that leads its faults back to the file; and warnings.

    `folder` is the file's, relative to the root of `suite`, which holds the files that it names.

    Raises:
        InputError: with all faults of the file.
    """
    faults = list(misplaced(document))
    written = None
    try:
        written = AgentVFile.model_validate(document.data)
    except ValidationError as error:
        faults += faults_from_validation(error, document, AgentVFile)
    tests = [
        _Test(written, index, document, Place(suite, folder), faults)
        for index in range(len(written.tests) if written else 0)
        if written
    ]
    cases = [made for test in tests if (made := test.case())]
    if faults:
        raise InputError(sorted(set(faults)))
    return cases, [warning for test in tests for warning in test.warnings]


class _Test:
    """One test, while it is translated; faults are added to the list, warnings kept."""

    def __init__(self, file: AgentVFile, index: int, document: Document, place: Place, faults: list[Fault]) -> None:
        self.warnings: list[str] = []
        self._file = file
        self._place = place
        self._test = file.tests[index]
        self._at: KeyPath = ("tests", index)
        self._document = document
        self._faults = faults
        self._places: dict[KeyPath, KeyPath] = {(): self._at}
        self._parts: list[Part] = []
        self._criteria: list[Any] = []
        self._attachments: list[Attachment] = []
        self._goal = self._filled(self._test.criteria or "", (*self._at, "criteria"))

    def case(self) -> tuple[Case, Document] | None:
        """The case, and the document for its faults; None when there is something wrong with it."""
        test, before = self._test, len(self._faults)
        if test.mode is None or not test.turns or test.expected_output is not None:
            return None  # that is told already
        for number, turn in enumerate(test.turns, start=1):
            self._turn(number, turn)
        self._conversation()
        if len(self._faults) == before and not any(part.graders for part in self._parts):
            message = "the test judges nothing, so it could only pass"
            hint = "add `assertions` to a turn or to the test, or `criteria`"
            self._faults.append(self._document.fault(self._at, message, hint=hint))
        scoring = self._scoring() if len(self._faults) == before else None
        begun, wrong = opening(self._file, test, self._at, self._filled)
        self._faults += [self._document.fault(place, message, hint=hint) for place, message, hint in wrong]
        if len(self._faults) > before:
            return None
        turns = [Turn(content=text_of(turn.input)) for turn in test.turns]
        if begun.context:
            turns[0] = Turn(content=f"{begun.context}\n\n{turns[0].content}")
        for index in range(len(turns)):
            self._places["input", "turns", index] = (*self._at, "turns", index)
            self._places["input", "turns", index, "content"] = (*self._at, "turns", index, "input")
        for key in ("id", "vars", "script", "depends_on"):
            self._places[key,] = (*self._at, key)
        self._places["input",] = (*self._at, "input")
        case = Case(
            id=test.id,
            title=test.description,
            tags=test.tags,
            vars=test.vars,
            input=Input(system=begun.system, messages=begun.history, turns=tuple(turns)),
            judge=self._judge(scoring),
            script=test.script,
            trials=self._trials(),
            **self._waits(),
        )
        data = {"id": test.id, "judge": True}
        return case, Translated(data, self._document.marks, self._document.display, self._places)

    def _trials(self) -> int | None:
        """How often the test is run; what it says itself outranks the file."""
        trials = self._test.execution.trials or self._file.execution.trials
        return trials.count if trials else None

    def _waits(self) -> dict[str, Any]:
        """What the test depends on, and what is done when that did not pass, where it says so."""
        test = self._test
        how = {"on_dependency_failure": test.on_dependency_failure} if test.on_dependency_failure else {}
        return {"depends_on": test.depends_on, **how} if test.depends_on else {}

    def _scoring(self) -> Scoring | None:
        """How the parts make one score; None when they cannot, which is added to the faults."""
        test = self._test
        try:
            return Scoring(parts=tuple(self._parts), aggregation=test.aggregation, on_turn_failure=test.on_turn_failure)
        except ValidationError as error:
            context = error.errors(include_url=False)[0]["ctx"]
            places = Translated({}, self._document.marks, self._document.display, self._places)
            at = ("judge", "scoring", *context["at"])
            self._faults.append(places.fault(at, context["problem"], hint=context["hint"]))
            return None

    def _judge(self, scoring: Scoring | None) -> Judge:
        asks: dict[str, Any] = {}
        if self._criteria:
            asks = {
                "criteria": tuple(self._criteria),
                "context": JudgeContext(attachments=tuple(self._attachments)),
            }
        threshold = self._test.execution.threshold or self._file.execution.threshold
        return Judge(
            type="agent_judge" if self._criteria else "rule_based",
            pass_threshold=threshold,
            scoring=scoring,
            **asks,
        )

    def _turn(self, number: int, turn: AgentVTurn) -> None:
        at = (*self._at, "turns", number - 1)
        answer = turn.expected_output
        reference = self._filled(text_of(answer), (*at, "expected_output")) if answer is not None else ""
        made = self._translation(f"turn-{number}", number, reference)
        self._translate(made, turn.assertions, (*at, "assertions"))
        if reference:
            label = f"the reference answer of turn {number}, one good answer among others"
            self._attachments.append(Attachment(label=label, turn=number, text=reference))
            if not made.criteria and not made.uses_reference:
                made.compare()
        self._take(made, (*at, "assertions"), fallback=(*at, "expected_output"))

    def _conversation(self) -> None:
        """The part about the whole conversation: assertions of file and test, else the test's `criteria`."""
        test = self._test
        inherited = () if test.execution.skip_defaults else self._file.assertions
        made = self._translation("assertions", None, "")
        self._translate(made, inherited, ("assertions",))
        count = len(made.graders), len(made.criteria)
        self._translate(made, test.assertions, (*self._at, "assertions"))
        judged_elsewhere = any(turn.assertions for turn in test.turns)
        if test.criteria and not made.graders and not judged_elsewhere:
            made.fallback()
        elif test.criteria and (made.criteria or self._criteria):
            self._attachments.insert(0, Attachment(label="what the whole test is about", text=self._goal))
        if made.graders:
            self._take(made, (*self._at, "assertions"), fallback=(*self._at, "criteria"), inherited=count)
        programs = (leaf.grader.program for part in self._parts for leaf in part.leaves)
        if test.criteria and not self._criteria and not any(programs):
            message = "nobody judges this: no assertion asks a model"
            self.warnings.append(self._document.note((*self._at, "criteria"), message))

    def _translation(self, name: str, turn: int | None, reference: str) -> Translation:
        early = turn is not None and self._test.on_turn_failure == "stop"
        return Translation(self._place, name, turn, self._test.window_size, early, self._goal, reference)

    def _translate(self, made: Translation, assertions: tuple[Assertion, ...], at: KeyPath) -> None:
        texts = [one for one in assertions if isinstance(one, str)]
        for index, one in enumerate(assertions):
            if isinstance(one, AgentVGrader):
                try:
                    made.grader(one, index)
                except UntranslatableError as error:
                    message, hint, *below = error.args
                    self._faults.append(self._document.fault((*at, index, *below), message, hint=hint))
                except ValidationError as error:  # what a rule of ours refuses, and the format does not
                    context = error.errors(include_url=False)[0].get("ctx") or {"problem": str(error)}
                    message, hint = str(context.get("problem")), str(context.get("hint", ""))
                    self._faults.append(self._document.fault((*at, index), message, hint=hint))
            elif one is texts[0]:
                made.statements(texts, index)
                texts = [""]

    def _take(self, made: Translation, at: KeyPath, *, fallback: KeyPath, inherited: tuple[int, int] = (0, 0)) -> None:
        """Adds the part, unless it cannot be scored, and remembers where everything in it was written."""

        def source(index: int, place: int | None, from_file: int) -> KeyPath:
            if place is None:
                return fallback
            return ("assertions", place) if index < from_file else (*at, place)

        number = len(self._parts)
        self._places["judge", "scoring", "parts", number] = at[:-1]
        for index, place in enumerate(made.places):
            key: KeyPath = ("judge", "scoring", "parts", number, "graders", index)
            self._places[key] = source(index, place, inherited[0])
        for index, place in enumerate(made.criteria_places):
            key = ("judge", "criteria", len(self._criteria) + index)
            self._places[key] = source(index, place, inherited[1])
        self._criteria += made.criteria
        if made.graders and not sum(grader.weight for grader in made.graders):
            message = "the weights sum to 0, so nothing could change the score"
            self._faults.append(self._document.fault(at, message, hint="weigh one of them"))
        else:
            self._parts.append(Part(name=made.part, turn=made.turn, graders=tuple(made.graders)))

    def _filled(self, text: str, at: KeyPath) -> str:
        """A text with the test's `vars` in it; a name that is none of them is added to the faults."""
        try:
            return rendered(text, self._test.vars)
        except UntranslatableError as error:
            message, hint = error.args
            self._faults.append(self._document.fault(at, message, hint=hint))
            return text

"""What one file cannot know alone: templates and captures, turns that rules name, fixtures, cases without a check."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from skillup.errors import Fault
from skillup.loading.document import Document, KeyPath
from skillup.loading.paths import Ground
from skillup.loading.repositories import repository_elsewhere
from skillup.loading.spelling import closest
from skillup.spec.agent import is_secret
from skillup.spec.case import Case
from skillup.spec.judge import Judge
from skillup.spec.problems import quoted
from skillup.spec.rules import FileContains, OutputContains, Rule
from skillup.spec.skill_rules import SkillUsed
from skillup.spec.suite import SuiteFile
from skillup.spec.template import TEMPLATE, placeholders

_ROOT_OF_PATH = re.compile(r"\$\.([A-Za-z_]\w*)")
_RECORD_PARTS = ("response", "transcript", "usage", "workspace")
_MENTION = re.compile(r"\$\{?[A-Za-z_]\w*")


def case_faults(case: Case, document: Document) -> Iterator[Fault]:
    """Faults of a case that are visible once it is merged with its suite's defaults."""
    yield from _templates(case, document)
    limit = case.constraints.max_turns
    if limit is not None and len(case.turns) > limit:
        yield document.fault(
            ("input", "turns"),
            f"{len(case.turns)} turns, but max_turns is {limit}",
            hint="raise constraints.max_turns of the case, or cases.defaults.max_turns of the suite",
        )
    for required, forbidden in (("must_contain", "must_not_contain"), ("files_exist", "files_not_exist")):
        for text in sorted({*getattr(case.expect, required)} & {*getattr(case.expect, forbidden)}):
            message = f"with cases.defaults, {text!r} is in {required} and in {forbidden}: this can never hold"
            yield document.fault(("expect",), message)
    if not case.all_judges and case.checks_nothing:
        yield document.fault(
            (),
            "the case checks nothing, so it could only pass",
            hint="add `judge`, `expect` or a `post_condition`; or say so with judge: {type: none}",
        )


def case_warnings(case: Case, document: Document) -> Iterator[str]:
    """What is allowed and seldom meant."""
    last = len(case.turns) - 1
    gate = case.turns[last].post_condition
    if gate is not None and gate.on_fail == "skip_remaining":
        gate_place = ("input", "turns", last, "post_condition", "on_fail")
        yield document.note(gate_place, "skip_remaining on the last turn makes the case SKIP, as nothing remains")
    for index, turn in enumerate(case.turns):
        for number, capture in enumerate(turn.capture):
            root = _ROOT_OF_PATH.match(capture.jsonpath or "")
            meant = closest(root[1], _RECORD_PARTS) if root and root[1] not in _RECORD_PARTS else ""
            if meant:
                message = f"this path reads the reply as JSON; the turn's record begins with $.{meant}"
                yield document.note(("input", "turns", index, "capture", number, "jsonpath"), message)
    names = {*case.vars, *(capture.variable for turn in case.turns for capture in turn.capture)}
    for place, text in _checked_texts(case):
        used = [match[3] for match in TEMPLATE.finditer(text) if match[3] in names]
        if used:
            message = f"{{{{{used[0]}}}}} is replaced in messages only: the check looks for these very characters"
            yield document.note(place, message)


def suite_warnings(suite: SuiteFile, document: Document) -> Iterator[str]:
    """What the format accepts and nobody honours, and what is passed as it is written."""
    engine = suite.engine
    if engine is not None and engine.entry is not None:
        yield document.note(("engine", "entry"), "this key has no effect")
    if engine is not None and engine.model is not None and engine.model.params is not None:
        yield document.note(("engine", "model", "params"), "this key has no effect")
    for name, value in suite.environment.env.items():
        mention = _MENTION.search(value)
        if mention:
            message = f"{mention[0]} is passed as it is written: variables are not expanded here"
            yield document.note(("environment", "env", name), message)
        elif is_secret(name, value):
            message = "this looks like a secret; pass it by `env` of an agent profile, where it is masked in results"
            yield document.note(("environment", "env", name), message)


def placed_judges(case: Case) -> Iterator[tuple[KeyPath, Judge]]:
    """Everyone who judges a case, each with its place in the file that holds them."""
    if case.judge is not None:
        yield ("judge",), case.judge
    for index, member in enumerate(case.judges):
        yield ("judges", index), member


def placed_rules(case: Case) -> Iterator[tuple[KeyPath, Rule]]:
    """The rules of all judges, each with its place in the file that holds them."""
    for at, judge in placed_judges(case):
        for key, items in (("success", judge.success), ("failure", judge.failure)):
            for index, item in enumerate(items):
                yield (*at, key, index, item.name), item.rule
        for number, part in enumerate(judge.scoring.parts if judge.scoring else ()):
            for leaf in part.leaves:
                for index, item in enumerate(leaf.grader.rules):
                    yield (*at, "scoring", "parts", number, *leaf.at, "rules", index, item.name), item.rule


def judge_faults(case: Case, document: Document, *, case_id: str = "") -> Iterator[Fault]:
    """Rules and criteria that name a turn which the case does not have; `case_id` when the judge is the suite's."""
    turns = len(case.turns)
    named: list[tuple[KeyPath, object]] = [
        ((*at, "criteria", index, "turn"), criterion.turn)
        for at, judge in placed_judges(case)
        for index, criterion in enumerate(judge.criteria)
    ]
    named += [((*place, "turn"), rule.turn) for place, rule in placed_rules(case)]
    for at, judge in placed_judges(case):
        for index, part in enumerate(judge.scoring.parts if judge.scoring else ()):
            named.append(((*at, "scoring", "parts", index, "turn"), part.turn))
    for place, number in named:
        if isinstance(number, int) and number > turns:
            whose = f"the case {case_id}" if case_id else "the case"
            count = f"{turns} turn{'' if turns == 1 else 's'}"
            message = f"turn {number} does not exist: {whose} has {count}"
            yield document.fault(place, message, hint="turns count from 1")


def skill_faults(case: Case, installed: Collection[str], document: Document, *, case_id: str = "") -> Iterator[Fault]:
    """Rules on skills that the suite does not install; `case_id` when the judge is the suite's."""
    for place, rule in placed_rules(case):
        if isinstance(rule, SkillUsed) and rule.name not in installed:
            meant = closest(rule.name, installed)
            known = ", ".join(sorted(installed))
            hint = f"did you mean {quoted(meant)}?" if meant else f"it installs {known}" if known else ""
            whose = f"; the case {case_id} is judged by it" if case_id else ""
            message = f"the suite installs no skill {quoted(rule.name)}{whose}"
            yield document.fault(place, message, hint=hint or "name it in `skills` of eval.yaml")


class Fixtures:
    """Looks at each fixture folder of a suite once, however many cases use it.

    `sources` are the files that say what is checked: none of them may come into a workspace.
    """

    def __init__(self, ground: Ground, sources: Iterable[Path]) -> None:
        self._ground = ground
        self._sources = [os.path.realpath(path) for path in sources]
        self._known: dict[str, tuple[str, str] | None] = {}

    def faults(self, case: Case, document: Document) -> Iterator[Fault]:
        """What is wrong with the fixture of a case."""
        written = case.context.repo_fixture
        if written is None:
            return
        if written not in self._known:
            self._known[written] = self._complaint(written)
        complaint = self._known[written]
        if complaint:
            yield document.fault(("context", "repo_fixture"), complaint[0], hint=complaint[1])

    def answer_faults(self, case: Case, answers: Iterable[Path], document: Document) -> Iterator[Fault]:
        """Files that the case is held against and its own fixture holds."""
        if case.context.repo_fixture is None:
            return
        prefix = os.path.realpath(self._ground.root / case.context.repo_fixture) + "/"
        for path in map(str, answers):
            if path.startswith(prefix):
                message = f"the fixture holds {path.removeprefix(prefix)}, so the agent would see what is checked"
                hint = "move it out; for a file that must stay as it is, use workspace_changed: {unchanged: [PATH]}"
                yield document.fault(("context", "repo_fixture"), message, hint=hint)

    def _complaint(self, written: str) -> tuple[str, str] | None:
        complaint = self._ground.complaint(written)
        if complaint:
            return complaint
        folder = self._ground.root / written
        if not folder.is_dir():
            message = f"{written} is no folder" if folder.exists() else f"there is no folder {written}"
            return message, f"paths are relative to {self._ground.root}"
        prefix = os.path.realpath(folder) + "/"
        inside = next((path for path in self._sources if path.startswith(prefix)), None)
        if inside is not None:
            name = inside.removeprefix(prefix)
            return f"the fixture holds {name}, so the agent would see what is checked", "move it, or use a subfolder"
        out = self._ground.link_out(folder)
        if out:
            return f"the fixture {written} cannot be used: {out}", ""
        elsewhere = repository_elsewhere(folder)
        return (f"the fixture {written} cannot be used: {elsewhere[0]}", elsewhere[1]) if elsewhere else None


def _templates(case: Case, document: Document) -> Iterator[Fault]:
    known = list(case.vars)
    later: dict[str, int] = {}
    for number, turn in enumerate(case.turns, start=1):
        for capture in turn.capture:
            later.setdefault(capture.variable, number)
    for index, turn in enumerate(case.turns):
        place: KeyPath = ("input", "turns", index, "content")
        if not case.input.turns:
            place = (
                ("input", "prompt") if case.input.prompt else ("input", "messages", len(case.input.history), "content")
            )
        for name in placeholders(turn.content):
            if name in known:
                continue
            if name in later:
                when = "only after its answer" if later[name] == index + 1 else "later"
                message = f"{{{{{name}}}}} is used before it exists: turn {later[name]} captures it {when}"
            else:
                message = f"{{{{{name}}}}} is neither in `vars` nor captured by an earlier turn"
            meant = closest(name, known)
            names = f"did you mean {{{{{meant}}}}}?" if meant else f"known here: {', '.join(known) or 'none'}"
            yield document.fault(place, message, hint=f"{names}; {{{{!{name}}}}} writes the braces out")
        known += [capture.variable for capture in turn.capture if capture.variable not in known]


def _checked_texts(case: Case) -> Iterator[tuple[KeyPath, str]]:
    for index, turn in enumerate(case.turns):
        gate = turn.post_condition
        for text in (*gate.must_contain_all, *gate.must_contain_any, *gate.must_not_contain) if gate else ():
            yield ("input", "turns", index, "post_condition"), text
    for key, rule in case.expect.rules():
        yield from ((("expect", key.partition("[")[0]), text) for text in _texts_of(rule))
    for place, rule in placed_rules(case):
        yield from ((place, text) for text in _texts_of(rule))
    for at, judge in placed_judges(case):
        for index, criterion in enumerate(judge.criteria):
            yield (*at, "criteria", index), criterion.text


def _texts_of(rule: Rule) -> tuple[str, ...]:
    if isinstance(rule, (OutputContains, FileContains)):
        return tuple(text for part in rule.parts for text in part)
    return ()

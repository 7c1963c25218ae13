"""Every rule × every way to name a turn × what became of that turn. The tables are the specification.

A story has two turns. Something happens in one of them; the second is completed, cut by a limit, or skipped by a
gate. A letter says how the rule ends: `m` met, `n` not met, `c` unknown as the turn was cut, `s` unknown as it was
skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.judging.evidence import Evidence
from skillup.judging.outcome import Outcome
from skillup.judging.rules import EVALUATORS, evaluate
from skillup.transcript import Usage
from tests.judging.story import Story, call, rule

LETTERS = {
    "m": ("met", None),
    "n": ("not_met", None),
    "c": ("unknown", "incomplete"),
    "s": ("unknown", "skip_gate"),
}

TEXT = "output_contains: {all: [word]}"
PATTERN = "output_matches: {any: ['w.rd']}"
NO_TEXT = "output_contains: {not: [word]}"
NO_PATTERN = "output_matches: {not: ['w.rd']}"
CALLED = "tool_called: {name: bash}"
NOT_CALLED = "tool_not_called: bash"
SKILL = "skill_used: heron"
NO_SKILL = "skill_used: {name: heron, used: false}"
ORDER = "tool_order: {order: [bash]}"
ANY_ORDER = "tool_order: {order: [bash, bash], mode: any_order}"
EXACT = "tool_order: {order: [bash, bash, skill], mode: exact}"
TOOLS_ONLY = "tools_only: {names: [read]}"
MAX_CALLS = "max_tool_calls: {max: 1}"
NO_LOOP = "no_repeated_calls: {max: 1}"
CALLS_AFTER = "max_calls_after: {rule: bash, n: 0}"
TRIED_ON = "no_premature_stop: {must_attempt: [write]}"
ASKED = "asked_user: {by: answer}"
TOKENS = "max_tokens: {max: 50}"
COST = "max_cost_usd: {max: 0.5}"
SECONDS_ = "max_seconds: {max: 5}"
EXISTS = "files_exist: {paths: [there.txt]}"
NOT_EXISTS = "files_not_exist: {paths: [there.txt]}"
CONTAINS = "file_contains: {path: there.txt, content: word}"
CONTAINS_NOT = "file_contains: {path: kept.txt, not: [word]}"
FILE_MATCHES = "file_matches: {path: there.txt, pattern: 'w.rd'}"
FILE_EQUALS = "file_equals: {path: there.txt, content: a word}"
ANSWER_EQUALS = "output_equals: {text: 'a word?'}"
RECORD = "json_path: {path: $.response, equals: 'a word?'}"
NO_CREATED = "json_path: {path: '$.workspace.created[0]', exists: false}"
FILE_DATA = "json_path: {source: {file: made.json}, path: $.a, min: 1}"
SHAPE = "json_schema: {source: {file: made.json}, schema: {required: [a]}}"
FIELDS = "json_fields: {source: {file: made.json}, fields: [{path: $.a, equals: 1}]}"
CREATED = "workspace_changed: {created: [made.txt]}"
ONLY = "workspace_changed: {only: [kept.txt, there.txt, made.json]}"

# The second turn is: completed, cut, skipped.
IN_TURN_1: dict[str, dict[str, str]] = {
    # rule:       {reference: what comes out}
    TEXT:         {"-": "ncm", "1": "mmm", "2": "ncs", "any": "mmm", "last": "ncs"},
    PATTERN:      {"-": "ncm", "1": "mmm", "2": "ncs", "any": "mmm", "last": "ncs"},
    NO_TEXT:      {"-": "mcn", "1": "nnn", "2": "mcs", "any": "nnn", "last": "mcs"},
    NO_PATTERN:   {"-": "mcn", "1": "nnn", "2": "mcs", "any": "nnn", "last": "mcs"},
    CALLED:       {"-": "mmm", "1": "mmm", "2": "ncs", "any": "mmm", "last": "ncs"},
    NOT_CALLED:   {"-": "nnn", "1": "nnn", "2": "mcs", "any": "nnn", "last": "mcs"},
    SKILL:        {"-": "mmm", "1": "mmm", "2": "ncs", "any": "mmm", "last": "ncs"},
    NO_SKILL:     {"-": "nnn", "1": "nnn", "2": "mcs", "any": "nnn", "last": "mcs"},
    EXISTS:       {"-": "ncm", "1": "mmm", "2": "ncs", "any": "mmm", "last": "ncs"},
    NOT_EXISTS:   {"-": "mcn", "1": "nnn", "2": "mcs", "any": "nnn", "last": "mcs"},
    CONTAINS:     {"-": "ncm", "1": "mmm", "2": "ncs", "any": "mmm", "last": "ncs"},
    CONTAINS_NOT: {"-": "mcn", "1": "nnn", "2": "mcs", "any": "nnn", "last": "mcs"},
    CREATED:      {"-": "mmm", "1": "mmm", "2": "ncs", "any": "mmm", "last": "ncs"},
    ONLY:         {"-": "nnn", "1": "nnn", "2": "mcs", "any": "nnn", "last": "mcs"},
    ORDER:        {"-": "mmm", "1": "mmm", "2": "ncs", "any": "mmm", "last": "ncs"},
    ANY_ORDER:    {"-": "mmm", "1": "mmm", "2": "ncs", "any": "mmm", "last": "ncs"},
    ASKED:        {"-": "mmm", "1": "mmm", "2": "ncs", "any": "mmm", "last": "ncs"},
    EXACT:        {"-": "mcm", "1": "mmm", "2": "ncs", "any": "mmm", "last": "ncs"},
    TRIED_ON:     {"-": "ncn", "1": "nnn", "2": "mcs", "any": "nnn", "last": "mcs"},
    TOOLS_ONLY:   {"-": "nnn", "1": "nnn", "2": "mcs", "any": "nnn", "last": "mcs"},
    MAX_CALLS:    {"-": "nnn", "1": "nnn", "2": "mcs", "any": "nnn", "last": "mcs"},
    NO_LOOP:      {"-": "nnn", "1": "nnn", "2": "mcs", "any": "nnn", "last": "mcs"},
    CALLS_AFTER:  {"-": "nnn", "1": "nnn", "2": "mcs", "any": "nnn", "last": "mcs"},
    TOKENS:       {"-": "nnn", "1": "nnn", "2": "mcs", "any": "nnn", "last": "mcs"},
    COST:         {"-": "nnn", "1": "nnn", "2": "mcs", "any": "nnn", "last": "mcs"},
    SECONDS_:     {"-": "nnn", "1": "nnn", "2": "mcs", "any": "nnn", "last": "mcs"},
    FILE_MATCHES: {"-": "ncm", "1": "mmm", "2": "ncs", "any": "mmm", "last": "ncs"},
    FILE_EQUALS:  {"-": "ncm", "1": "mmm", "2": "ncs", "any": "mmm", "last": "ncs"},
    ANSWER_EQUALS: {"-": "ncm", "1": "mmm", "2": "ncs", "any": "mmm", "last": "ncs"},
    RECORD:       {"-": "ncm", "1": "mmm", "2": "ncs", "any": "mmm", "last": "ncs"},
    FILE_DATA:    {"-": "ncm", "1": "mmm", "2": "ncs", "any": "mmm", "last": "ncs"},
    SHAPE:        {"-": "ncm", "1": "mmm", "2": "ncs", "any": "mmm", "last": "ncs"},
    FIELDS:        {"-": "ncm", "1": "mmm", "2": "ncs", "any": "mmm", "last": "ncs"},
    NO_CREATED:   {"-": "mcn", "1": "nnn", "2": "mcs", "any": "nnn", "last": "mcs"},
}  # fmt: skip

IN_TURN_2: dict[str, dict[str, str]] = {
    TEXT:         {"-": "mmn", "1": "nnn", "2": "mms", "any": "mmn", "last": "mms"},
    PATTERN:      {"-": "mmn", "1": "nnn", "2": "mms", "any": "mmn", "last": "mms"},
    NO_TEXT:      {"-": "nnm", "1": "mmm", "2": "nns", "any": "nnm", "last": "nns"},
    NO_PATTERN:   {"-": "nnm", "1": "mmm", "2": "nns", "any": "nnm", "last": "nns"},
    CALLED:       {"-": "mmn", "1": "nnn", "2": "mms", "any": "mmn", "last": "mms"},
    NOT_CALLED:   {"-": "nnm", "1": "mmm", "2": "nns", "any": "nnm", "last": "nns"},
    SKILL:        {"-": "mmn", "1": "nnn", "2": "mms", "any": "mmn", "last": "mms"},
    NO_SKILL:     {"-": "nnm", "1": "mmm", "2": "nns", "any": "nnm", "last": "nns"},
    EXISTS:       {"-": "mmn", "1": "nnn", "2": "mms", "any": "mmn", "last": "mms"},
    NOT_EXISTS:   {"-": "nnm", "1": "mmm", "2": "nns", "any": "nnm", "last": "nns"},
    CONTAINS:     {"-": "mmn", "1": "nnn", "2": "mms", "any": "mmn", "last": "mms"},
    CONTAINS_NOT: {"-": "nnm", "1": "mmm", "2": "nns", "any": "nnm", "last": "nns"},
    CREATED:      {"-": "mmn", "1": "nnn", "2": "mms", "any": "mmn", "last": "mms"},
    ONLY:         {"-": "nnm", "1": "mmm", "2": "nns", "any": "nnm", "last": "nns"},
    ORDER:        {"-": "mmn", "1": "nnn", "2": "mms", "any": "mmn", "last": "mms"},
    ANY_ORDER:    {"-": "mmn", "1": "nnn", "2": "mms", "any": "mmn", "last": "mms"},
    ASKED:        {"-": "mmn", "1": "nnn", "2": "mms", "any": "mmn", "last": "mms"},
    EXACT:        {"-": "mcn", "1": "nnn", "2": "mcs", "any": "mcn", "last": "mcs"},
    TRIED_ON:     {"-": "ncm", "1": "mmm", "2": "ncs", "any": "ncm", "last": "ncs"},
    TOOLS_ONLY:   {"-": "nnm", "1": "mmm", "2": "nns", "any": "nnm", "last": "nns"},
    MAX_CALLS:    {"-": "nnm", "1": "mmm", "2": "nns", "any": "nnm", "last": "nns"},
    NO_LOOP:      {"-": "nnm", "1": "mmm", "2": "nns", "any": "nnm", "last": "nns"},
    CALLS_AFTER:  {"-": "nnm", "1": "mmm", "2": "nns", "any": "nnm", "last": "nns"},
    TOKENS:       {"-": "nnm", "1": "mmm", "2": "nns", "any": "nnm", "last": "nns"},
    COST:         {"-": "nnm", "1": "mmm", "2": "nns", "any": "nnm", "last": "nns"},
    SECONDS_:     {"-": "nnm", "1": "mmm", "2": "nns", "any": "nnm", "last": "nns"},
    FILE_MATCHES: {"-": "mmn", "1": "nnn", "2": "mms", "any": "mmn", "last": "mms"},
    FILE_EQUALS:  {"-": "mmn", "1": "nnn", "2": "mms", "any": "mmn", "last": "mms"},
    ANSWER_EQUALS: {"-": "mmn", "1": "nnn", "2": "mms", "any": "mmn", "last": "mms"},
    RECORD:       {"-": "mmn", "1": "nnn", "2": "mms", "any": "mmn", "last": "mms"},
    FILE_DATA:    {"-": "mmn", "1": "nnn", "2": "mms", "any": "mmn", "last": "mms"},
    SHAPE:        {"-": "mmn", "1": "nnn", "2": "mms", "any": "mmn", "last": "mms"},
    FIELDS:        {"-": "mmn", "1": "nnn", "2": "mms", "any": "mmn", "last": "mms"},
    NO_CREATED:   {"-": "nnm", "1": "mmm", "2": "nns", "any": "nnm", "last": "nns"},
}  # fmt: skip

SECOND = ("completed", "cut", "skipped")


def told(folder: Path, happens_in: int, second: str) -> Evidence:
    """A story in which it happens in one turn; the other turn undoes what can be undone."""
    before = {"kept.txt": "kept"}
    doing = {"there.txt": "a word", "made.txt": "", "made.json": '{"a": 1}', "kept.txt": "kept a word"}
    undoing = {"there.txt": None, "made.json": None, "kept.txt": "kept"} if happens_in == 1 else {}
    story = Story(folder, before, wanted=["kept.txt"]).having(heron="/trial/home/skills/heron/SKILL.md")
    calls = [
        call("bash", command="ls"),
        call("bash", command="ls", status="error"),
        call("skill", identity="call-3", more={"name": "heron"}),
    ]
    much, little = (
        Usage(input_tokens=90, output_tokens=10, cost_usd=1),
        Usage(input_tokens=1, output_tokens=1, cost_usd=0.01),
    )
    if happens_in == 1:
        story.turn("a word?", calls=calls, files=doing, usage=much, seconds=10)
    else:
        story.turn("nothing", usage=little, seconds=1)
    if second == "skipped":
        return story.skipped().evidence()
    tell = story.cut if second == "cut" else story.turn
    if happens_in == 2:
        return tell("a word?", calls=calls, files=doing, usage=much, seconds=10).evidence()
    return tell("nothing", files=undoing, usage=little, seconds=1).evidence()


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, str], Evidence]:
    return {
        (turn, second): told(tmp_path_factory.mktemp("story"), turn, second) for turn in (1, 2) for second in SECOND
    }


def outcome(written: str, reference: str, evidence: Evidence) -> Outcome:
    if reference == "-":
        return evaluate(rule(written), evidence)
    name, _, body = written.partition(": ")
    body = body if body.startswith("{") else f"{{name: {body}}}"
    return evaluate(rule(f"{name}: {body.removesuffix('}')}, turn: {reference}}}"), evidence)


ROWS = [
    (written, reference, (turn, second), letters[index])
    for turn, table in ((1, IN_TURN_1), (2, IN_TURN_2))
    for written, row in table.items()
    for reference, letters in row.items()
    for index, second in enumerate(SECOND)
]


@pytest.mark.parametrize(("written", "reference", "happens", "letter"), ROWS)
def test_rule(
    stories: dict[tuple[int, str], Evidence], written: str, reference: str, happens: tuple[int, str], letter: str
) -> None:
    found = outcome(written, reference, stories[happens])
    assert (found.state, found.cause) == LETTERS[letter], found.evidence
    assert found.evidence


def test_the_tables_hold_every_rule() -> None:
    """But for those that are about no turn."""
    assert {rule(written).kind for written in IN_TURN_1} == set(EVALUATORS) - {"nothing_to_check", "command"}
    assert IN_TURN_1.keys() == IN_TURN_2.keys()


@pytest.mark.parametrize("written", IN_TURN_1)
def test_a_turn_that_was_not_reached_is_unknown(tmp_path: Path, written: str) -> None:
    evidence = Story(tmp_path).turn().cut().not_reached().evidence()
    for reference in ("3", "last"):
        found = outcome(written, reference, evidence)
        assert (found.state, found.cause) == ("unknown", "not_reached")
        assert found.evidence == "turn 3 did not take place: the turn reached turn_seconds"


@pytest.mark.parametrize("written", IN_TURN_1)
def test_nothing_is_known_of_a_trial_without_turns(tmp_path: Path, written: str) -> None:
    evidence = Story(tmp_path).broken(began=False, kind="engine_missing").evidence()
    for reference in ("-", "1", "any", "last"):
        found = outcome(written, reference, evidence)
        assert (found.state, found.cause) == ("unknown", "not_reached")
        assert found.evidence == "turn 1 did not take place: it broke"


@pytest.mark.parametrize(("seen", "positive", "negative"), [("", "unknown", "unknown"), ("read", "met", "not_met")])
def test_what_an_engine_hides_is_unknown_and_what_it_shows_counts(
    tmp_path: Path, seen: str, positive: str, negative: str
) -> None:
    calls = [call(seen, path="a.txt")] if seen else []
    evidence = Story(tmp_path).turn(calls=calls).hiding("read").evidence()
    for reference in ("-", "1", "any", "last"):
        found = outcome("tool_called: {name: [bash, read]}", reference, evidence)
        assert (found.state, found.cause) == (positive, None if seen else "unobservable")
        found = outcome("tool_not_called: {name: [bash, read]}", reference, evidence)
        assert (found.state, found.cause) == (negative, None if seen else "unobservable")


def test_a_hidden_call_more_could_exceed_a_maximum(tmp_path: Path) -> None:
    evidence = Story(tmp_path).turn(calls=[call("read", path="a")]).hiding("read").evidence()
    assert outcome("tool_called: {name: read, count: 1}", "-", evidence).cause == "unobservable"
    assert outcome("tool_called: {name: read}", "-", evidence).state == "met"


def test_the_unknown_names_the_engine_and_the_tool(tmp_path: Path) -> None:
    evidence = Story(tmp_path).turn().hiding("skill").evidence()
    assert outcome("tool_not_called: skill", "-", evidence).evidence == "builtin cannot show calls of skill"


class TestATurnThatAFaultBrokeOff:
    """It took place, and it is not complete: what it did counts, what it did not do says nothing."""

    def test_what_it_did_is_judged(self, tmp_path: Path) -> None:
        story = Story(tmp_path).broken("a word", snapshot=True)
        assert story.judged("output_contains: {not: [word]}").state == "not_met"

    def test_what_it_did_not_do_is_unknown(self, tmp_path: Path) -> None:
        """Some text was said before the fault, and that alone does not make the answer whole."""
        evidence = Story(tmp_path).broken("half an ans").evidence()
        for written in ("output_contains: {not: [word]}", "tool_not_called: bash", "files_not_exist: [a.txt]"):
            assert evaluate(rule(written), evidence).cause == "incomplete", written

    def test_one_whose_capture_found_nothing_is_complete(self, tmp_path: Path) -> None:
        evidence = Story(tmp_path).broken("the whole answer", kind="capture").evidence()
        for written in ("output_contains: {not: [word]}", "tool_not_called: bash", "files_not_exist: [a.txt]"):
            assert evaluate(rule(written), evidence).state == "met", written

    def test_one_that_never_began_leaves_the_turn_before_as_the_last(self, tmp_path: Path) -> None:
        story = Story(tmp_path).turn("a word").broken(began=False, kind="template")
        assert story.judged("output_contains: {not: [word]}").state == "not_met"

    def test_what_the_turn_before_left_may_be_gone(self, tmp_path: Path) -> None:
        """No snapshot could be taken after the fault, so nothing is said about what is missing."""
        story = Story(tmp_path).turn(files={"a.txt": "a"}).broken(snapshot=False)
        evidence = story.evidence()
        assert evaluate(rule("files_not_exist: [b.txt]"), evidence).state == "unknown"
        assert evaluate(rule("files_not_exist: [a.txt]"), evidence).state == "not_met"
        assert evaluate(rule("workspace_changed: {only: [a.txt]}"), evidence).state == "unknown"


def test_a_turn_counts_as_complete_whatever_became_of_a_later_one(tmp_path: Path) -> None:
    evidence = Story(tmp_path).turn(files={"a.txt": "a"}).cut().evidence()
    assert evaluate(rule("workspace_changed: {only: [a.txt], turn: 1}"), evidence).state == "met"
    assert evaluate(rule("workspace_changed: {created: [b.txt], turn: 1}"), evidence).state == "not_met"


def test_a_secret_that_was_masked_in_an_answer_is_unknown(tmp_path: Path) -> None:
    story = Story(tmp_path, mask="hunter2hunter2").turn("the key is hunter2hunter2")
    assert story.judged("output_contains: {not: [sk-ant-]}").cause == "unobservable"
    assert story.judged("output_contains: {not: ['[masked]']}").state == "not_met"


@pytest.mark.parametrize(
    "written",
    [
        "output_contains: {all: [first], turn: 2}",
        "output_contains: {all: [first]}",
        "tool_called: {name: bash, turn: 2}",
    ],
)
def test_what_happened_in_another_turn_is_named(tmp_path: Path, written: str) -> None:
    found = Story(tmp_path).turn("first", calls=[call("bash", command="ls")]).turn("second").judged(written)
    assert found.state == "not_met"
    assert "turn 1" in found.evidence

"""Order, only these tools, loops, an end in time and not too early, questions: what each finds, and near misses."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.transcript import ToolCall
from tests.judging.story import Story, call

READ = call("read", path="config.json")
READ_B = call("read", path="b.json")
WRITE = call("write", path="config.json", content="{}")
LS = call("bash", command="ls")
FAILED = call("bash", command="make", status="error")
DENIED = call("write", path="/etc/x", status="denied")
UNCLEAR = call("bash", command="sleep 9", status="unknown")
QUERY = call("mcp:db/query", name="mcp__db__query", sql="select 1")


@pytest.mark.parametrize(
    ("written", "calls", "state"),
    [
        ("tool_order: [read, write]", [READ, WRITE], "met"),
        ("tool_order: [read, write]", [LS, READ, LS, WRITE, LS], "met"),
        ("tool_order: [read, write]", [WRITE, READ], "not_met"),
        ("tool_order: [read, write]", [READ], "not_met"),
        ("tool_order: [read, write]", [], "not_met"),
        ("tool_order: [read, read]", [READ], "not_met"),
        ("tool_order: [read, read]", [READ, READ], "met"),
        ("tool_order: [read, [edit, write]]", [READ, WRITE], "met"),
        ("tool_order: ['db::query', Bash]", [QUERY, LS], "met"),
        ("tool_order: [{name: read, args: {path: b.json}}, write]", [READ, WRITE, READ_B], "not_met"),
        ("tool_order: [{name: read, args: {path: {matches: '^b'}}}, write]", [READ, READ_B, WRITE], "met"),
        ("tool_order: [{name: bash, status: error}, read]", [LS, READ], "not_met"),
        ("tool_order: {order: [write, read], mode: any_order}", [READ, LS, WRITE], "met"),
        ("tool_order: {order: [write, read], mode: any_order}", [READ, READ], "not_met"),
        ("tool_order: {order: [read, read], mode: any_order}", [READ], "not_met"),
        # The first step could take either call; the second only the first of them.
        (
            "tool_order: {order: [read, {name: read, args: {path: config.json}}], mode: any_order}",
            [READ, READ_B],
            "met",
        ),
        ("tool_order: {order: [read, write], mode: exact}", [READ, WRITE], "met"),
        ("tool_order: {order: [read, write], mode: exact}", [READ, LS, WRITE], "not_met"),
        ("tool_order: {order: [read, write], mode: exact}", [READ, WRITE, LS], "not_met"),
        ("tool_order: {order: [read, write], mode: exact}", [READ], "not_met"),
        ("tool_order: {order: [read], mode: exact}", [READ_B], "met"),
        ("tools_only: [read, write]", [READ, WRITE, READ], "met"),
        ("tools_only: [read, write]", [READ, LS], "not_met"),
        ("tools_only: ['db::query']", [QUERY], "met"),
        ("tools_only: read", [], "met"),
        ("tools_only: []", [], "met"),
        ("tools_only: []", [READ], "not_met"),
        ("max_tool_calls: 2", [READ, LS], "met"),
        ("max_tool_calls: 2", [READ, LS, WRITE], "not_met"),
        ("max_tool_calls: {max: 1, name: read}", [READ, LS, WRITE], "met"),
        ("max_tool_calls: {max: 0, name: [write, edit]}", [READ, WRITE], "not_met"),
        ("no_repeated_calls: {}", [READ, READ_B, LS], "met"),
        ("no_repeated_calls: true", [READ, LS, READ], "not_met"),
        ("no_repeated_calls: 2", [READ, LS, READ], "met"),
        ("no_repeated_calls: {consecutive: true}", [READ, LS, READ], "met"),
        ("no_repeated_calls: {consecutive: true, max: 2}", [LS, READ, READ, READ], "not_met"),
        ("no_repeated_calls: {ignore: [bash]}", [LS, LS, READ], "met"),
        ("no_repeated_calls: {}", [LS, call("bash", command="ls", parent="sub-1")], "met"),  # two agents, one call each
        ("no_premature_stop: [write]", [READ, LS], "met"),
        ("no_premature_stop: [write]", [FAILED], "not_met"),
        ("no_premature_stop: [write]", [WRITE, FAILED], "not_met"),
        ("no_premature_stop: [write]", [FAILED, READ, WRITE], "met"),
        ("no_premature_stop: [write]", [FAILED, WRITE, DENIED], "not_met"),
        ("no_premature_stop: [[edit, bash]]", [FAILED, LS], "met"),
        ("no_premature_stop: [{name: bash, args: {command: {matches: '^make'}}}]", [FAILED, LS], "not_met"),
        ("max_calls_after: {rule: write, n: 0}", [READ, LS, WRITE], "met"),
        ("max_calls_after: {rule: write, n: 0}", [WRITE, LS], "not_met"),
        ("max_calls_after: {rule: write, n: 1}", [WRITE, LS], "met"),
        ("max_calls_after: {rule: write, n: 0}", [READ, LS], "met"),  # it never came so far
        ("max_calls_after: {rule: {tool_called: {name: write, count: 2}}, n: 0}", [WRITE, LS, WRITE], "met"),
        ("max_calls_after: {rule: {tool_called: {name: bash, status: ok}}, n: 0}", [FAILED, LS, FAILED], "not_met"),
    ],
)
def test_rule(tmp_path: Path, written: str, calls: list[ToolCall], state: str) -> None:
    found = Story(tmp_path).turn(calls=calls).judged(written)
    assert found.state == state, found.evidence


@pytest.mark.parametrize(
    ("written", "calls", "said"),
    [
        (
            "tool_order: [read, write]",
            [WRITE, READ],
            (
                "1 of 2 calls was made in this order: no write after read "
                "(but before: turn 1: write(path='config.json', content='{}') [ok]); calls: write, read"
            ),
        ),
        (
            "tool_order: [{name: read, args: {path: c.json}}]",
            [READ_B],
            (
                "0 of 1 call were made in this order: no read with its arguments "
                "(near miss: turn 1: read(path='b.json') [ok]: path: expected 'c.json', got 'b.json'); calls: read"
            ),
        ),
        (
            "tool_order: {order: [read, bash, write], mode: any_order}",
            [WRITE],
            "1 of 3 calls was made at all: no read; calls: write",
        ),
        (
            "tool_order: {order: [read, write], mode: exact}",
            [READ, LS, WRITE],
            "call 2 had to be write, but it was turn 1: bash(command='ls') [ok]; calls: read, bash, write",
        ),
        (
            "tool_order: {order: [read], mode: exact}",
            [READ, LS],
            "1 call expected, then there came turn 1: bash(command='ls') [ok]",
        ),
        (
            "tool_order: {order: [read, write], mode: exact}",
            [READ],
            "1 of 2 expected calls made: read; no write",
        ),
        ("tools_only: [read]", [LS], "only read allowed; called: turn 1: bash(command='ls') [ok]"),
        ("tools_only: []", [LS], "no call allowed; called: turn 1: bash(command='ls') [ok]"),
        ("max_tool_calls: 0", [LS], "1 call, at most 0 allowed; the first too many: turn 1: bash(command='ls') [ok]"),
        (
            "no_repeated_calls: {}",
            [LS, READ, LS],
            "the same call 2 times, at most 1 allowed: turn 1: bash(command='ls') [ok]",
        ),
        (
            "no_repeated_calls: {consecutive: true}",
            [READ, LS, LS],
            "the same call 2 in a row, at most 1 allowed: turn 1: bash(command='ls') [ok]",
        ),
        (
            "no_premature_stop: [write]",
            [FAILED, LS],
            (
                "no attempt (write) after the last failure, turn 1: bash(command='make') [error]; "
                "called after it: turn 1: bash(command='ls') [ok]"
            ),
        ),
        ("no_premature_stop: [write]", [READ], "nothing to check: no call failed"),
        (
            "max_calls_after: {rule: write, n: 0}",
            [WRITE, LS],
            (
                "1 call after turn 1: write(path='config.json', content='{}') [ok], at most 0 allowed; "
                "the first too many: turn 1: bash(command='ls') [ok]"
            ),
        ),
        (
            "max_calls_after: {rule: write, n: 0}",
            [LS],
            "nothing to check: it never came so far that the agent had to stop",
        ),
    ],
)
def test_evidence(tmp_path: Path, written: str, calls: list[ToolCall], said: str) -> None:
    assert Story(tmp_path).turn(calls=calls).judged(written).evidence == said


def test_order_is_that_of_the_conversation_or_of_one_turn(tmp_path: Path) -> None:
    story = Story(tmp_path).turn(calls=[READ]).turn(calls=[WRITE])
    assert story.judged("tool_order: [read, write]").state == "met"
    for turn in ("1", "2", "any"):
        assert story.judged(f"tool_order: {{order: [read, write], turn: {turn}}}").state == "not_met"


def test_what_happened_is_no_matter_of_what_is_missing(tmp_path: Path) -> None:
    """A later fault of ours excuses a call that is missing, not one that was made."""
    story = Story(tmp_path).turn(calls=[READ, LS, LS])
    for written in (
        "tools_only: [read]",
        "max_tool_calls: 1",
        "no_repeated_calls: {}",
        "max_calls_after: {rule: read, n: 0}",
        "tool_order: {order: [write], mode: exact}",
    ):
        assert story.judged(written).forbidden, written
    for written in ("tool_order: [read, write]", "tool_order: {order: [read, bash, bash, write], mode: exact}"):
        assert not story.judged(written).forbidden, written


def test_an_order_of_calls_that_cannot_be_shown_is_unknown(tmp_path: Path) -> None:
    story = Story(tmp_path).turn(calls=[LS]).hiding("read")
    for written in ("tool_order: [bash, read]", "tool_order: {order: [[read, grep]], mode: any_order}"):
        assert story.judged(written).cause == "unobservable", written
    assert story.judged("tool_order: [bash, write]").state == "not_met"
    assert story.judged("tool_order: [bash]").state == "met"


@pytest.mark.parametrize(
    "written",
    [
        "tools_only: [bash]",
        "max_tool_calls: 5",
        "no_repeated_calls: {}",
        "max_calls_after: {rule: bash, n: 5}",
        "tool_order: {order: [bash], mode: exact}",
    ],
)
def test_no_more_than_is_never_met_where_calls_are_hidden(tmp_path: Path, written: str) -> None:
    story = Story(tmp_path).turn(calls=[LS]).hiding("read", "skill")
    found = story.judged(written)
    assert (found.state, found.cause, found.evidence) == (
        "unknown",
        "unobservable",
        "builtin cannot show calls of read",
    )


def test_what_is_allowed_anyway_may_be_hidden(tmp_path: Path) -> None:
    """And a skill that is loaded without an event is loaded by a call that is seen."""
    story = Story(tmp_path).turn(calls=[LS]).hiding("read", "skill")
    assert story.judged("tools_only: [bash, read]").state == "met"
    assert story.judged("max_tool_calls: {max: 1, name: bash}").state == "met"
    assert story.judged("no_repeated_calls: {ignore: [read]}").state == "met"


def test_a_call_of_which_nothing_is_known_may_have_failed(tmp_path: Path) -> None:
    found = Story(tmp_path / "a").turn(calls=[FAILED, WRITE, UNCLEAR]).judged("no_premature_stop: [write]")
    assert (found.state, found.cause) == ("unknown", "unobservable")
    story = Story(tmp_path / "b").turn(calls=[FAILED, UNCLEAR, WRITE])
    assert story.judged("no_premature_stop: [write]").state == "met"


def test_a_milestone_of_the_workspace_is_reached_after_the_turn_that_made_it(tmp_path: Path) -> None:
    story = Story(tmp_path).turn(calls=[LS], files={"out.txt": "x"}).turn(calls=[READ, WRITE])
    done = "max_calls_after: {rule: {files_exist: [out.txt]}, n: %d}"
    assert story.judged(done % 2).state == "met"
    found = story.judged(done % 1)
    assert found.state == "not_met"
    assert found.evidence.startswith(
        "2 calls after turn 1: after turn 1 the workspace holds out.txt, at most 1 allowed"
    )
    assert story.judged("max_calls_after: {rule: {file_contains: {path: out.txt, content: y}}, n: 0}").state == "met"


def test_a_milestone_of_an_answer_is_reached_after_that_turn(tmp_path: Path) -> None:
    story = Story(tmp_path).turn("all done", calls=[LS]).turn("again", calls=[READ])
    assert story.judged("max_calls_after: {rule: {output_contains: {all: [done]}}, n: 0}").state == "not_met"
    assert story.judged("max_calls_after: {rule: {output_matches: {any: ['^again']}}, n: 0}").state == "met"


QUESTIONS = [
    ("Which rows?", True),
    ("I can do that. Which rows do you mean? Tell me.", True),
    ("Is it `a.txt`?", True),
    ('He said "really?"', True),
    ("是哪一行？请告诉我。", True),
    ("Done.", False),
    ("", False),
    ("See https://example.com/?a=b and a?b:c.", False),
    ("```\nreally?\n```\nDone.", False),
    ("It holds `what?` now.", False),
    ("???", False),
]


@pytest.mark.parametrize(("answer", "asks"), QUESTIONS)
def test_a_question_is_a_sentence_with_a_question_mark_outside_code(tmp_path: Path, answer: str, *, asks: bool) -> None:
    assert Story(tmp_path).turn(answer).judged("asked_user: {}").state == ("met" if asks else "not_met")


ASK = call("ask_user", name="AskUserQuestion", questions=[{"question": "Which database?", "options": ["a", "b"]}])


@pytest.mark.parametrize(
    ("written", "state", "said"),
    [
        ("asked_user: true", "met", "turn 1 asked 'Which database? a b'"),
        ("asked_user: {by: tool, matches: '(?i)DATABASE'}", "met", "turn 1 asked 'Which database? a b'"),
        ("asked_user: {by: answer}", "not_met", "turn 1 asked by its tool alone: 'Which database? a b'"),
        (
            "asked_user: {matches: table}",
            "not_met",
            "turn 1 asked only 'Which database? a b', which does not match 'table'",
        ),
    ],
)
def test_questions_by_the_tool_for_it_count(tmp_path: Path, written: str, state: str, said: str) -> None:
    found = Story(tmp_path).turn("I asked.", calls=[ASK]).judged(written)
    assert (found.state, found.evidence) == (state, said)


def test_where_asking_is_hidden_only_an_answer_can_show_it(tmp_path: Path) -> None:
    story = Story(tmp_path).turn("done").turn("Which one?").hiding("ask_user")
    assert story.judged("asked_user: {}").state == "met"
    assert story.judged("asked_user: {turn: 1}").cause == "unobservable"
    assert story.judged("asked_user: {turn: 1, by: answer}").state == "not_met"


def test_megabytes_of_question_marks_take_no_time(tmp_path: Path) -> None:
    story = Story(tmp_path).turn("a" * 1_000_000 + "?x" * 200_000 + "`" * 10_001)
    assert story.judged("asked_user: {matches: zzz}").state == "not_met"

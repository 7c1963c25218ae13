"""`tool_called` and `tool_not_called`: names, arguments, counts, statuses, and the near misses."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.transcript import ToolCall
from tests.judging.story import Story, call

LS = call("bash", command="ls -la", timeout=5)
RM = call("bash", command="rm a.txt", status="error")
WRITE = call("write", path="a.txt", content="x")
DENIED = call("edit", path="a.txt", old="x", new="y", status="denied")
QUERY = call("mcp:db/query", name="mcp__db__query", sql="select 1")
CHILD = call("bash", command="sleep 1", parent="call-0")
OWN = call("bash", name="Bash", raw={"command": "/bin/sh -c 'ls'"}, command="ls")


@pytest.mark.parametrize(
    ("written", "calls", "state"),
    [
        ("tool_called: bash", [LS], "met"),
        ("tool_called: Bash", [LS], "met"),  # the engine's own name
        ("tool_called: BASH", [LS], "not_met"),
        ("tool_called: read", [LS], "not_met"),
        ("tool_called: {name: [write, edit]}", [DENIED], "met"),
        ("tool_called: 'db::query'", [QUERY], "met"),
        ("tool_called: 'mcp:db/query'", [QUERY], "met"),
        ("tool_called: mcp__db__query", [QUERY], "met"),
        ("tool_called: 'db::drop'", [QUERY], "not_met"),
        ("tool_called: query", [QUERY], "not_met"),
        ("tool_called: bash", [CHILD], "met"),  # a subagent's call is a call
        ("tool_called: {name: bash, args: {command: ls -la}}", [LS], "met"),
        ("tool_called: {name: bash, args: {command: ls}}", [LS], "not_met"),
        ("tool_called: {name: bash, args: {command: {matches: ^ls}}}", [LS], "met"),
        ("tool_called: {name: bash, args: {timeout: 5}}", [LS], "met"),
        ("tool_called: {name: bash, args: {timeout: '5'}}", [LS], "not_met"),
        ("tool_called: {name: bash, raw_args: {command: {matches: bin/sh}}}", [OWN], "met"),
        ("tool_called: {name: bash, args: {command: {matches: bin/sh}}}", [OWN], "not_met"),
        ("tool_called: {name: bash, status: ok}", [RM], "not_met"),
        ("tool_called: {name: bash, status: error}", [RM], "met"),
        ("tool_called: {name: edit, status: denied}", [DENIED], "met"),
        ("tool_called: {name: bash, count: 2}", [LS, RM], "met"),
        ("tool_called: {name: bash, count: 1}", [LS, RM], "not_met"),
        ("tool_called: {name: bash, count: 3}", [LS, RM], "not_met"),
        ("tool_called: {name: bash, count: {min: 2}}", [LS, RM, LS], "met"),
        ("tool_called: {name: bash, count: {max: 2}}", [LS, RM, LS], "not_met"),
        ("tool_called: {name: bash, count: {min: 1, max: 2}, args: {command: {matches: ls}}}", [LS, RM, LS], "met"),
        ("tool_not_called: bash", [WRITE], "met"),
        ("tool_not_called: bash", [LS], "not_met"),
        ("tool_not_called: {name: bash, args: {command: {matches: rm}}}", [LS], "met"),
        ("tool_not_called: {name: bash, args: {command: {matches: rm}}}", [LS, RM], "not_met"),
        ("tool_not_called: {name: bash, status: ok}", [RM], "met"),
        ("tool_not_called: {name: [write, edit]}", [LS, DENIED], "not_met"),
        ("tool_not_called: bash", [], "met"),
    ],
)
def test_rule(tmp_path: Path, written: str, calls: list[ToolCall], state: str) -> None:
    found = Story(tmp_path).turn(calls=calls).judged(written)
    assert found.state == state, found.evidence


@pytest.mark.parametrize(
    ("written", "calls", "said"),
    [
        ("tool_called: read", [LS, WRITE], "no such call; tools called: bash, write"),
        ("tool_called: read", [], "no such call; tools called: none"),
        ("tool_called: bash", [LS], "1 such call: turn 1: bash(command='ls -la', timeout='5') [ok]"),
        ("tool_called: bash", [CHILD], "1 such call: turn 1 by a subagent: bash(command='sleep 1') [ok]"),
        (
            "tool_called: BASH",
            [call("bash", command="ls")],
            "no such call; near miss: turn 1: bash(command='ls') [ok]: the name differs by the case of letters alone",
        ),
        (
            "tool_called: 'DB::Query'",
            [QUERY],
            (
                "no such call; near miss: turn 1: mcp:db/query(sql='select 1') [ok]: "
                "the name differs by the case of letters alone"
            ),
        ),
        (
            "tool_called: {name: write, args: {path: b.txt}}",
            [WRITE],
            (
                "no such call; near miss: turn 1: write(path='a.txt', content='x') [ok]: "
                "path: expected 'b.txt', got 'a.txt'"
            ),
        ),
        (
            "tool_called: {name: bash, args: {timeout: '5'}}",
            [LS],
            (
                "no such call; near miss: turn 1: bash(command='ls -la', timeout='5') [ok]: "
                "timeout: expected the text '5', got the number 5"
            ),
        ),
        (
            "tool_called: {name: bash, status: ok}",
            [RM],
            "no such call; near miss: turn 1: bash(command='rm a.txt') [error]: its status is error, not ok",
        ),
        (
            "tool_called: {name: write, count: 2}",
            [WRITE],
            "1 such call: turn 1: write(path='a.txt', content='x') [ok]; exactly 2 wanted; tools called: write",
        ),
        (
            "tool_called: {name: write, count: {max: 1}}",
            [WRITE, WRITE],
            (
                "exactly 1 wanted; 2 such calls: turn 1: write(path='a.txt', content='x') [ok]; "
                "turn 1: write(path='a.txt', content='x') [ok]"
            ),
        ),
        ("tool_called: {name: bash, count: {min: 2, max: 3}}", [], "no such call; 2 to 3 wanted; tools called: none"),
        ("tool_not_called: write", [WRITE], "called: turn 1: write(path='a.txt', content='x') [ok]"),
        ("tool_not_called: read", [WRITE], "no such call; tools called: write"),
    ],
)
def test_evidence(tmp_path: Path, written: str, calls: list[ToolCall], said: str) -> None:
    assert Story(tmp_path).turn(calls=calls).judged(written).evidence == said


def test_a_call_in_another_turn_is_named(tmp_path: Path) -> None:
    found = Story(tmp_path).turn(calls=[WRITE]).turn().judged("tool_called: {name: write, turn: 2}")
    assert found.evidence == ("no such call; but in another turn: turn 1: write(path='a.txt', content='x') [ok]")


def test_counts_are_those_of_the_whole_conversation_or_of_one_turn(tmp_path: Path) -> None:
    evidence = Story(tmp_path).turn(calls=[LS]).turn(calls=[LS, RM])
    assert evidence.judged("tool_called: {name: bash, count: 3}").state == "met"
    assert evidence.judged("tool_called: {name: bash, count: 2, turn: 2}").state == "met"
    assert evidence.judged("tool_called: {name: bash, count: 2, turn: any}").state == "met"
    assert evidence.judged("tool_called: {name: bash, count: 3, turn: any}").state == "not_met"


def test_too_many_calls_are_something_that_happened(tmp_path: Path) -> None:
    """A later fault of ours does not excuse them; too few calls could still have become enough."""
    story = Story(tmp_path).turn(calls=[LS, LS])
    assert story.judged("tool_called: {name: bash, count: 1}").forbidden
    assert story.judged("tool_not_called: bash").forbidden
    assert not story.judged("tool_called: {name: bash, count: 3}").forbidden


def test_a_thousand_calls_with_enormous_arguments_make_short_evidence(tmp_path: Path) -> None:
    big = [call("bash", more={f"key{n}": "x" * 10_000 for n in range(20)}) for _ in range(100)]
    story = Story(tmp_path).turn(calls=big)
    for written in ("tool_called: bash", "tool_not_called: bash", "tool_called: {name: bash, args: {key1: y}}"):
        assert len(story.judged(written).evidence) < 1100


def test_hostile_arguments_are_quoted_harmlessly(tmp_path: Path) -> None:
    hostile = call("bash", command="\x1b]0;owned\x07 \u202e \ud800", more={"a\x1bb": 1})
    story = Story(tmp_path).turn(calls=[hostile])
    for written in ("tool_called: bash", "tool_called: {name: bash, args: {command: x}}", "tool_not_called: bash"):
        assert story.judged(written).evidence.isprintable()
    assert story.judged(r"tool_called: {name: bash, args: {command: {matches: 'owned\x07'}}}").state == "met"

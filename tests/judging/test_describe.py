"""Checks in one line, as users write them; what is shown reads back as what was meant."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.judging.describe import MAX_TEXT, describe, describe_expected, describe_gate, flow
from skillup.spec.judge import Expect
from skillup.spec.turn import Gate
from tests.judging.story import read, rule


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("tool_called: bash", "tool_called: bash"),
        ("tool_called: {turn: 1, name: bash}", "tool_called: {name: bash, turn: 1}"),
        ("tool_called: {name: [write, edit], count: 2}", "tool_called: {name: [write, edit], count: 2}"),
        ("tool_called: {name: bash, count: {min: 2}}", "tool_called: {name: bash, count: {min: 2}}"),
        (
            "tool_called: {name: bash, args: {command: {matches: 'rm .*\\.csv'}}}",
            "tool_called: {name: bash, args: {command: {matches: 'rm .*\\.csv'}}}",
        ),
        ("tool_called: {name: bash, args: {n: 1, b: true, s: '1', t: 'true', x: null}}", None),
        ("tool_not_called: {name: [bash, write]}", "tool_not_called: {name: [bash, write]}"),
        ("output_contains: {all: [closed], not: ['it''s open']}", None),
        ("output_contains: {any: ['3', three]}", "output_contains: {any: ['3', three]}"),
        ("output_matches: {any: ['(?i)keep|stays']}", "output_matches: {any: ['(?i)keep|stays']}"),
        ("files_exist: [a.txt, 'b/*.md']", "files_exist: [a.txt, b/*.md]"),
        ("workspace_changed: {only: []}", "workspace_changed: {only: []}"),
        ("turn_response_contains: {turn: 2, contains_all: [x]}", "output_contains: {all: [x], turn: 2}"),
    ],
)
def test_rule(written: str, shown: str | None) -> None:
    found = describe(rule(written))
    assert found == (written if shown is None else shown)
    assert rule(found) == rule(written)


def test_expectations_have_their_own_names() -> None:
    expect = Expect.model_validate(
        {
            "must_contain": ["closed", "a: b"],
            "must_not_contain": ["open"],
            "files_exist": ["a.txt"],
            "files_not_exist": ["*.log"],
            "file_contains": [{"path": "a.txt", "content": "x"}],
        }
    )
    assert [describe_expected(key, one) for key, one in expect.rules()] == [
        "must_contain: closed",
        "must_contain: 'a: b'",
        "must_not_contain: open",
        "files_exist: a.txt",
        "files_not_exist: '*.log'",
        "file_contains: {path: a.txt, content: x}",
    ]


def test_gates() -> None:
    gate = Gate.model_validate({"must_match": "[?]", "on_fail": "skip_remaining"})
    assert describe_gate(2, gate) == "gate of turn 2: {must_match: ['[?]'], on_fail: skip_remaining}"


@pytest.mark.parametrize(
    "value",
    [
        *("", " ", "a", "a b", " a", "a ", "a:", "a: b", "a #b", "#a", "- a", "-", "--- a", "...", "~", "null", "Null"),
        *("true", "False", "yes", "1", "1.5", "-1", "0x1f", "1e3", ".inf", ".nan", "1:30", "2024-01-01", "*a", "&a"),
        *("!a", "%a", "@a", "`a", "|", ">", "{a}", "[a]", "a,b", "a}", "it's", '"', "'", "\\", "a\nb", "\t", "\0", "é"),
        *("漢字", "🧪", "\u202e", "?a", "? a", "a?", "=", "<<", "\x1b[0m", "$HOME", "(a)", "a|b", "path/to.txt"),
        *(1, 1.5, True, None, [], {}, [1, "1"], {"a": {"b": ["c", {"d": None}]}}, {"1": 2, "a b": "c: d"}),
    ],
)
def test_what_is_shown_reads_back_as_the_same_value(value: Any) -> None:
    shown = flow(value)
    assert read(f"- [{shown}]") == [[value]]
    assert shown.isprintable()


def test_long_rules_are_cut() -> None:
    texts = ", ".join(f"word{n}" for n in range(1000))
    assert len(describe(rule(f"output_contains: {{all: [{texts}]}}"))) < MAX_TEXT + 50

"""Arguments of tool calls: deep, partial, typed; and the words for the first difference."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.judging.arguments import difference
from skillup.judging.calls import mismatch
from skillup.spec.rules import CallPattern
from tests.judging.story import call

SAME: list[tuple[Any, Any]] = [
    ({}, {}),
    ({}, {"anything": "else"}),
    ({"a": 1}, {"a": 1, "b": 2}),
    ({"a": 1}, {"a": 1.0}),
    ({"a": 1.5}, {"a": 1.5}),
    ({"a": True}, {"a": True}),
    ({"a": None}, {"a": None}),
    ({"a": "text"}, {"a": "text"}),
    ({"a": {"b": {"c": [1]}}}, {"a": {"b": {"c": [1], "d": 2}, "e": 3}}),
    ({"a": []}, {"a": []}),
    ({"a": [{"x": 1}, "y"]}, {"a": [{"x": 1, "z": 2}, "y"]}),
    ({"a": {"matches": r"^rm\s"}}, {"a": "rm -rf x"}),
    ({"a": [{"matches": "b"}, {"c": {"matches": "d"}}]}, {"a": ["abc", {"c": "cde"}]}),
    ({"matches": "x"}, "xyz"),
    ({"a": {"matches": "x", "other": 1}}, {"a": {"matches": "x", "other": 1}}),
    ({"a": "e\N{COMBINING ACUTE ACCENT}"}, {"a": "e\N{COMBINING ACUTE ACCENT}"}),
]

DIFFERENT: list[tuple[Any, Any, str]] = [
    ({"a": 1}, {"a": "1"}, "a: expected the number 1, got the text '1'"),
    ({"a": "1"}, {"a": 1}, "a: expected the text '1', got the number 1"),
    ({"a": 1}, {"a": True}, "a: expected the number 1, got the true/false true"),
    ({"a": True}, {"a": 1}, "a: expected the true/false true, got the number 1"),
    ({"a": True}, {"a": "true"}, "a: expected the true/false true, got the text 'true'"),
    ({"a": None}, {"a": ""}, "a: expected null, got the text ''"),
    ({"a": 0}, {"a": None}, "a: expected the number 0, got null"),
    ({"a": 1}, {"a": 2}, "a: expected 1, got 2"),
    ({"a": 1}, {"a": 1.5}, "a: expected 1, got 1.5"),
    ({"a": "x"}, {"a": "y"}, "a: expected 'x', got 'y'"),
    ({"a": "Yes"}, {"a": "yes"}, "a: expected 'Yes', got 'yes' (they differ by the case of letters alone)"),
    ({"a": 1}, {"b": 1, "c": 2}, "'a' is missing (it has b, c)"),
    ({"a": 1}, {}, "'a' is missing (there is nothing)"),
    ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, "a.b.c: expected 1, got 2"),
    ({"a": {"b": 1}}, {"a": {"x": 1}}, "'a.b' is missing (it has x)"),
    ({"a": {"b": 1}}, {"a": "text"}, "a: expected a mapping, got the text 'text'"),
    ({"a": [1, 2]}, {"a": [1]}, "a: expected 2 items, got 1"),
    ({"a": [1, 2]}, {"a": [2, 1]}, "a[0]: expected 1, got 2"),
    ({"a": [[1], [2]]}, {"a": [[1], ["2"]]}, "a[1][0]: expected the number 2, got the text '2'"),
    ({"a": ["b"]}, {"a": "b"}, "a: expected a list, got the text 'b'"),
    ({"a": "['b']"}, {"a": ["b"]}, "a: expected the text '['b']', got the list [\"b\"]"),
    ({"a": {}}, {"a": []}, "a: expected a mapping, got the list []"),
    ({"a": {"matches": "^x"}}, {"a": "ax"}, "a: 'ax' does not match '^x'"),
    ({"a": {"matches": "RM"}}, {"a": "rm"}, "a: 'rm' does not match 'RM' (it would without regard to case: `(?i)`)"),
    ({"a": {"matches": "1"}}, {"a": 1}, "a: expected text that matches '1', got the number 1"),
    ({"a": {"matches": "x"}}, {"a": {}}, "a: expected text that matches 'x', got the mapping {}"),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "actual"), SAME)
def test_the_same(expected: Any, actual: Any) -> None:
    assert difference(expected, actual) is None


@pytest.mark.parametrize(("expected", "actual", "said"), DIFFERENT)
def test_different(expected: Any, actual: Any, said: str) -> None:
    assert difference(expected, actual) == said


def test_long_values_are_cut() -> None:
    said = difference({"a": "x" * 10_000}, {"a": ["y" * 10_000] * 1000})
    assert said is not None
    assert len(said) < 300


def test_values_of_agents_are_made_harmless() -> None:
    said = difference({"a": "x"}, {"a": "\x1b[2J\u202e"})
    assert said == "a: expected 'x', got '\\x1b[2J\\u202e'"


def test_an_argument_that_nests_as_deep_as_may_be() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    assert difference({"a": 1}, {"a": deep})
    assert difference(deep, deep) is None


@pytest.mark.parametrize(
    ("how", "expected", "why"),
    [
        ("part", {"a": 1}, None),
        ("exact", {"a": 1, "b": {"c": 2}}, None),
        ("exact", {"a": 1}, "'b' is there, and nothing but the others may be"),
        ("exact", {"a": 1, "b": {}}, "'b.c' is there, and nothing but the others may be"),
        ("exact", {"a": 1, "b": {"c": 2}, "d": 3}, "'d' is missing (it has a, b)"),
        ("within", {"a": 1, "b": {"c": 2}, "d": 3}, None),
        ("within", {"a": 1, "d": 3}, "'b' is there, and nothing but the others may be"),
        ("within", {"a": 2, "b": {"c": 2}}, "a: expected 2, got 1"),
    ],
)
def test_a_call_may_have_more_arguments_or_fewer_as_the_rule_says(how: str, expected: Any, why: str | None) -> None:
    wanted = CallPattern.model_validate({"name": "bash", "args": expected, "args_match": how})
    assert mismatch(wanted, call("bash", more={"a": 1, "b": {"c": 2}})) == why

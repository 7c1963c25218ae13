"""Captures: what a turn gives to later turns, and what a missing value means."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillup.errors import TrialError
from skillup.execution.variables import captured, message_of, take
from skillup.judging.records import RECORD_ROOTS, Nothing, reads_record, turn_record
from skillup.results import CaptureRecord, Changes
from skillup.spec.turn import Capture, Turn
from skillup.transcript import Message, ToolCall, ToolResult, Usage

CALL = ToolCall(
    id="c1", name="Bash", tool="bash", arguments={"command": "ls"}, raw_arguments={"command": "ls"}, status="ok"
)
MESSAGES = (
    Message(role="tool_call", turn=1, source="agent", tool_call=CALL),
    Message(
        role="tool_result", turn=1, source="agent", tool_result=ToolResult(call_id="c1", status="ok", content="T-7")
    ),
)
CHANGES = Changes(created=("a.txt", "b.txt"), deleted=("c.txt",))


def record(response: str) -> dict[str, Any]:
    return turn_record(response, MESSAGES, Usage(input_tokens=5, output_tokens=3), CHANGES)


def value(response: str, **capture: Any) -> str | None:
    taken = take(Capture(variable="x", **capture), record(response))
    return taken.value if isinstance(taken, CaptureRecord) else None


def why(response: str, **capture: Any) -> str:
    taken = take(Capture(variable="x", **capture), record(response))
    assert isinstance(taken, Nothing)
    return taken.why


@pytest.mark.parametrize(
    ("pattern", "response", "expected"),
    [
        (r"(T-\d+)", "made T-42 and T-43", "T-42"),  # the first match
        (r"T-(\d+)", "made T-42", "42"),  # the only group
        (r"(?P<value>T)-(\d+)", "made T-42", "T"),  # the named group, whatever other groups there are
        (r"(?P<other>T)-(?P<value>\d+)", "made T-42", "42"),
        (r"(?s)id:\s+(\S+)", "id:\n\n x1", "x1"),
        (r"(?i)ID (\w+)", "the id é", None),
        (r"(漢.)", "a 漢字", "漢字"),
        (r"a(.*)b", "a\x00\x1b[0mb", "\x00\x1b[0m"),
        (r"(.*)", "", None),  # an empty match is no value
        (r"a(x?)b", "ab", None),
        (r"(?:a(x)|b)", "b", None),  # a group that took no part
        (r"(T-\d+)", "nothing", None),
    ],
)
def test_pattern(pattern: str, response: str, expected: str | None) -> None:
    assert value(response, pattern=pattern) == expected


@pytest.mark.parametrize(
    ("path", "response", "expected"),
    [
        ("$.id", '{"id": "T-42"}', "T-42"),
        ("$.id", '{"id": 42}', "42"),
        ("$.id", '{"id": 1.5}', "1.5"),
        ("$.id", '{"id": true}', "true"),
        ("$.id", '{"id": "é"}', "é"),
        ("$.a.b[1].c", '{"a": {"b": [1, {"c": "deep"}]}}', "deep"),
        ("$['a b']", '{"a b": "x"}', "x"),
        ("$[0]", '["x", "y"]', "x"),
        ("$", "[1, 2]", "[1, 2]"),
        ("$.a", '{"a": {"b": "é"}}', '{"b": "é"}'),  # what is no text is JSON
        ("$.ids[*]", '{"ids": ["a", "b"]}', "a"),  # the first
        ("$.items[?(@.ok == true)].id", '{"items": [{"ok": false, "id": 1}, {"ok": true, "id": 2}]}', "2"),
        ("$.id", '{"id": null}', None),
        ("$.id", '{"id": ""}', None),
        ("$.id", '{"other": 1}', None),
        ("$.id", "[]", None),
        ("$.id", "no JSON", None),
        ("$.id", "", None),
    ],
)
def test_path_into_an_answer(path: str, response: str, expected: str | None) -> None:
    assert value(response, jsonpath=path) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.response", "the answer"),
        ("$.transcript.tool_calls[0].arguments.command", "ls"),
        ("$.transcript.tool_calls[?(@.tool == 'bash')].status", "ok"),
        ("$.transcript.tool_results[0].content", "T-7"),
        ("$.transcript.tool_results[0].call_id", "c1"),
        ("$.usage.input_tokens", "5"),
        ("$.usage.cost_usd", None),  # unknown
        ("$.workspace.created[1]", "b.txt"),
        ("$.workspace.changed[0]", None),
        ("$.workspace.deleted", '["c.txt"]'),
    ],
)
def test_path_into_the_record(path: str, expected: str | None) -> None:
    assert value("the answer", jsonpath=path) == expected


@pytest.mark.parametrize("root", RECORD_ROOTS)
def test_the_root_is_decided_by_the_path_alone(root: str) -> None:
    """An answer that has a key of that name is not looked at; and a path that is only similar reads the answer."""
    assert reads_record(root)
    assert reads_record(f"{root}.x")
    assert reads_record(f"{root}[0]")
    for other in (f"{root}s", f"{root}_id", f"$.x{root[1:]}", f"$['{root[2:]}']", f"{root[2:]}", "$"):
        assert not reads_record(other), other


def test_a_key_of_the_answer_that_is_called_like_a_root_needs_brackets() -> None:
    answer = '{"response": "inner", "responses": "many"}'
    assert value(answer, jsonpath="$.response") == answer
    assert value(answer, jsonpath="$['response']") == "inner"
    assert value(answer, jsonpath="$.responses") == "many"


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ('```json\n{"id": 7}\n```', "7"),
        ('```\n{"id": 7}\n```', "7"),
        ('  \n```json\n{"id": 7}\n```  \n', "7"),
        ('Here it is:\n\n```json\n{"id": 7}\n```\n\nAnything else?', "7"),
        ('```json\n{"id": 7}\n```\n```json\n{"id": 8}\n```', None),  # which one is meant is not clear
        ('```json\n{"id": 7\n```', None),
        ('Here it is: {"id": 7}', None),
        ('`{"id": 7}`', None),
    ],
)
def test_json_in_a_fence(response: str, expected: str | None) -> None:
    assert value(response, jsonpath="$.id") == expected


def test_the_reason_says_what_is_missing() -> None:
    assert why("none", pattern=r"(T-\d+)") == r"the answer does not match '(T-\d+)'"
    assert why("ab", pattern="a(x?)b") == "the group of 'a(x?)b' is empty"
    assert why("none", jsonpath="$.id") == "the answer is not JSON, so $.id cannot be looked up"
    assert why("```\n1\n```\n```\n2\n```", jsonpath="$.id").startswith("the answer is not JSON and has 2 fenced blocks")
    assert why("{}", jsonpath="$.id") == "there is no $.id"
    assert why('{"id": null}', jsonpath="$.id") == "$.id is null"
    assert why('{"id": ""}', jsonpath="$.id") == "$.id is an empty text"


@pytest.mark.parametrize(
    ("path", "response"),
    [
        ("$.a[?(@.n > 3)].n", '{"a": [{"n": "text"}, {"n": null}, 1, "x", [1]]}'),
        ("$.a + 1", '{"a": "text"}'),
        ("$.a * $.b", '{"a": "text", "b": [1]}'),
        ("$.a.`len`", '{"a": 1}'),
        ("$..id", "[" * 500 + "]" * 500),
    ],
)
def test_a_path_that_the_data_does_not_fit_finds_nothing_and_never_fails_otherwise(path: str, response: str) -> None:
    taken = take(Capture(variable="x", jsonpath=path), record(response))
    assert isinstance(taken, (Nothing, CaptureRecord))


def test_an_answer_that_nests_without_end_is_no_json() -> None:
    assert "not JSON" in why("[" * 200_000, jsonpath="$.id")


def test_a_default_is_used_and_marked() -> None:
    taken = take(Capture(variable="x", pattern="(y)", default="none"), record("z"))
    assert taken == CaptureRecord(variable="x", value="none", defaulted=True)
    taken = take(Capture(variable="x", pattern="(z)", default="none"), record("z"))
    assert taken == CaptureRecord(variable="x", value="z")
    taken = take(Capture(variable="x", pattern="(y)", default=""), record("z"))
    assert taken == CaptureRecord(variable="x", value="", defaulted=True)


class TestOnMissing:
    FOUND = Capture(variable="a", pattern="(a)")

    def missing(self, on_missing: str | None) -> Capture:
        return Capture.model_validate({"variable": "b", "pattern": "(b)", "on_missing": on_missing})

    @pytest.mark.parametrize("on_missing", [None, "error"])
    def test_by_default_it_is_an_error_with_its_turn_and_what_to_do(self, on_missing: str | None) -> None:
        taken = captured([self.FOUND, self.missing(on_missing)], record("a"), 3)
        assert taken.error is not None
        assert (taken.error.kind, taken.error.turn) == ("capture", 3)
        assert taken.error.message == "turn 3: the capture of 'b' found nothing: the answer does not match '(b)'"
        assert "default" in taken.error.hint
        assert [one.variable for one in taken.values] == ["a"]  # what was found before it is kept

    @pytest.mark.parametrize(("on_missing", "how"), [("fail", "capture_failed"), ("skip_remaining", "capture_skipped")])
    def test_or_it_ends_the_conversation(self, on_missing: str, how: str) -> None:
        taken = captured([self.missing(on_missing), self.FOUND], record("a"), 1)
        assert taken.error is None
        assert taken.ending is not None
        assert (taken.ending.how, taken.ending.turn) == (how, 1)
        assert taken.values == ()


def test_captures_are_taken_in_order() -> None:
    captures = [Capture(variable="a", pattern=r"(\d)"), Capture(variable="b", jsonpath="$.response")]
    taken = captured(captures, record("7"), 1)
    assert [(one.variable, one.value) for one in taken.values] == [("a", "7"), ("b", "7")]


def test_a_message_that_is_blank_once_filled_in_is_refused() -> None:
    with pytest.raises(TrialError, match="blank") as caught:
        message_of(Turn(content="{{x}}"), {"x": " \n"})
    assert caught.value.kind == "template"
    assert message_of(Turn(content="close {{x}}"), {"x": "{{y}}"}) == "close {{y}}"


def test_the_record_is_plain_data() -> None:
    assert json.loads(json.dumps(record("x"))) == record("x")

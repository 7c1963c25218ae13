"""`json_fields`: what is right, what is nearly right, and how much of it counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.judging.rules import evaluate
from tests.judging.story import Story, read, rule

REPLY = """```json
{"id": "A-7", "total": 99.5, "paid": "12.50", "day": "03-Apr-2025", "rows": [{"n": 1}, {"n": 2}], "none": null}
```"""

ROWS: dict[str, tuple[str, str]] = {
    "equal": ("{path: $.id, equals: A-7}", "met"),
    "another text": ("{path: $.id, equals: a-7}", "not_met"),
    "another type": ("{path: $.total, equals: '99.5'}", "not_met"),
    "an item": ("{path: '$.rows[1].n', equals: 2}", "met"),
    "a whole list": ("{path: $.rows, equals: [{n: 1}, {n: 2}]}", "met"),
    "null": ("{path: $.none, equals: null}", "met"),
    "not there": ("{path: $.nothing, equals: 1}", "not_met"),
    "a number": ("{path: $.total, equals: 99, match: number, tolerance: 0.5}", "met"),
    "too far off": ("{path: $.total, equals: 99, match: number, tolerance: 0.4}", "not_met"),
    "a share of it": ("{path: $.total, equals: 100, match: number, tolerance: 0.01, relative: true}", "met"),
    "too large a share": ("{path: $.total, equals: 100, match: number, tolerance: 0.001, relative: true}", "not_met"),
    "at the very end of the tolerance": ("{path: $.paid, equals: 12.4, match: number, tolerance: 0.1}", "met"),
    "a text that is no number": ("{path: $.id, equals: 7, match: number, tolerance: 100}", "not_met"),
    "a day": ("{path: $.day, equals: 2025-04-03, match: date}", "met"),
    "another day": ("{path: $.day, equals: 2025-04-04, match: date}", "not_met"),
    "a day that is no text": ("{path: $.total, equals: 2025-04-04, match: date}", "not_met"),
    "in a format that is not given": (
        "{path: $.day, equals: 03.04.2025, match: date, formats: [DD.MM.YYYY]}",
        "not_met",
    ),
}


@pytest.mark.parametrize(("field", "state"), ROWS.values(), ids=ROWS.keys())
def test_a_field(tmp_path: Path, field: str, state: str) -> None:
    found = evaluate(rule(f"json_fields: [{field}]"), Story(tmp_path).turn(REPLY).evidence())
    assert found.state == state, found.evidence


def outcome(tmp_path: Path, written: str, reply: str = REPLY) -> Any:
    return evaluate(rule(written), Story(tmp_path).turn(reply).evidence())


TWO = "{path: $.id, equals: A-7, weight: 3}, {path: $.total, equals: 1}"


def test_the_share_is_that_of_the_weights_and_the_evidence_names_what_is_wrong(tmp_path: Path) -> None:
    found = outcome(tmp_path, f"json_fields: [{TWO}]")
    assert (found.state, found.share) == ("not_met", 0.75)
    assert found.evidence == "1 of 2 fields of the answer of turn 1 right: $.total is 99.5, expected 1"


def test_without_partial_it_counts_only_whole(tmp_path: Path) -> None:
    assert outcome(tmp_path, f"json_fields: {{fields: [{TWO}], partial: false}}").share == 0


def test_an_optional_field_that_is_not_there_counts_nothing_and_one_that_is_wrong_does(tmp_path: Path) -> None:
    missing = outcome(tmp_path, f"json_fields: [{TWO}, {{path: $.x, equals: 1, optional: true, weight: 4}}]")
    assert missing.share == 0.75
    (tmp_path / "b").mkdir()
    wrong = outcome(tmp_path / "b", f"json_fields: [{TWO}, {{path: $.paid, equals: 1, optional: true, weight: 4}}]")
    assert wrong.share == 0.375


def test_a_reply_that_is_no_json_has_no_field(tmp_path: Path) -> None:
    found = outcome(tmp_path, f"json_fields: [{TWO}]", "I would rather not.")
    assert (found.state, found.share) == ("not_met", 0)
    assert "cannot be read as JSON" in found.evidence


def test_a_cut_turn_could_still_have_brought_it(tmp_path: Path) -> None:
    evidence = Story(tmp_path).turn(REPLY, status="timed_out").evidence()
    assert evaluate(rule(f"json_fields: [{TWO}]"), evidence).cause == "incomplete"


def test_a_masked_value_may_be_right(tmp_path: Path) -> None:
    story = Story(tmp_path, mask="hidden-secret").turn('{"id": "hidden-secret"}')
    found = evaluate(rule("json_fields: [{path: $.id, equals: hidden-secret}]"), story.evidence())
    assert (found.state, found.cause) == ("unknown", "unobservable")


def test_a_masked_value_is_not_known_to_be_right(tmp_path: Path) -> None:
    """What was expected is masked as well where it is a secret: any two look the same."""
    written = rule('json_fields: [{path: "$.ids[*]", equals: "[masked]"}]')
    story = Story(tmp_path / "a", mask="hidden-secret").turn('{"ids": ["hidden-secret"]}')
    found = evaluate(written, story.evidence())
    assert (found.state, found.cause) == ("unknown", "unobservable")
    story = Story(tmp_path / "b", mask="hidden-secret").turn('{"ids": ["hidden-secret", "plain"]}')
    assert evaluate(rule('json_fields: [{path: "$.ids[*]", equals: plain}]'), story.evidence()).state == "met"


def test_a_file_can_be_read(tmp_path: Path) -> None:
    story = Story(tmp_path, wanted=["r.json"]).turn("done", files={"r.json": '{"n": 1}'})
    written = "json_fields: {source: {file: r.json}, fields: [{path: $.n, equals: 1}]}"
    assert evaluate(rule(written), story.evidence()).state == "met"


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("{path: $.a, equals: 1, tolerance: 1}", "`tolerance` says nothing to `match: exact`"),
        ("{path: $.a, equals: x, match: number}", "what is expected is no number"),
        ("{path: $.a, equals: x, match: date}", "what is expected is no date in any of the formats"),
        ("{path: $.a, equals: x, match: date, formats: [DD.MM]}", "a date has one day, one month and one year"),
        ("{path: $.a, equals: x, match: date, formats: [DD.MM.YYYY.HH]}", "'H' is no part of a date"),
        ("{path: $.a, equals: 1, optional: true}", "an object without any of the fields would hold"),
    ],
)
def test_what_means_nothing_is_a_fault(field: str, message: str) -> None:
    with pytest.raises(ValueError, match="validation error") as caught:
        rule(f"json_fields: [{field}]")
    assert message in str(caught.value)


def test_days_in_all_formats_are_the_same() -> None:
    assert read("{a: 2025-04-03}") == {"a": "2025-04-03"}, "dates in YAML stay texts"

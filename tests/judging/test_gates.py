"""Gates: what an answer must and must not hold before the conversation goes on."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.judging.gates import ask
from skillup.judging.outcome import Outcome
from skillup.spec.turn import Gate


def asked(answer: str, *, default: bool = False, **gate: Any) -> Outcome:
    return ask(Gate.model_validate(gate), answer, turn=2, ignore_case=default)


@pytest.mark.parametrize(
    ("gate", "answer", "state"),
    [
        ({"must_contain_all": ["a", "b"]}, "a b", "met"),
        ({"must_contain_all": ["a", "b"]}, "a", "not_met"),
        ({"must_contain_any": ["a", "b"]}, "b", "met"),
        ({"must_contain_any": ["a", "b"]}, "c", "not_met"),
        ({"must_not_contain": ["a"]}, "b", "met"),
        ({"must_not_contain": ["a"]}, "a", "not_met"),
        ({"must_match": r"T-\d+"}, "T-42", "met"),
        ({"must_match": [r"T-\d+", r"\?$"]}, "T-42", "not_met"),
        ({"must_not_match": r"T-\d+"}, "T-42", "not_met"),
        ({"must_contain_any": ["a"], "must_not_match": "b"}, "a b", "not_met"),
        ({"must_contain_any": ["a"], "must_match": "b"}, "a b", "met"),
        ({"must_contain_any": ["A"]}, "a", "not_met"),
        ({"must_contain_any": ["A"], "ignore_case": True}, "a", "met"),
        ({"must_contain_any": ["[masked]"]}, "[masked]", "met"),
        ({"must_not_contain": ["sk-ant-"]}, "[masked]", "met"),  # a live answer is not masked
        ({"must_contain_any": ["a"]}, "", "not_met"),
        ({"must_not_contain": ["a"]}, "", "met"),
    ],
)
def test_gate(gate: dict[str, Any], answer: str, state: str) -> None:
    assert asked(answer, **gate).state == state


def test_the_case_decides_about_case_where_the_gate_does_not() -> None:
    assert asked("a", default=True, must_contain_any=["A"]).state == "met"
    assert asked("a", default=True, must_contain_any=["A"], ignore_case=False).state == "not_met"


def test_the_evidence_names_all_that_failed_and_nothing_else() -> None:
    found = asked("b", must_contain_all=["a"], must_match="^b$", must_not_match="b")
    assert found.evidence == (
        "the answer of turn 2 does not hold 'a'; it reads: 'b'; "
        "the answer of turn 2 matches 'b', which is forbidden: 'b'"
    )


def test_evidence_of_a_hostile_answer_is_harmless_and_short() -> None:
    found = asked("\x1b[2J\u202e" * 100_000, must_contain_all=["a" * 5000, "b" * 5000], must_match="c" * 900)
    assert found.evidence.isprintable()
    assert len(found.evidence) < 1100

"""Looking for texts and patterns, and the sentence that says what was found."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from skillup.judging.outcome import MAX_EVIDENCE
from skillup.judging.texts import Wanted, look, quoted, shortened


def said(wanted: Wanted, text: str, *, complete: bool = True, masked: bool = False) -> tuple[str, str]:
    found = look(wanted, text, what="the answer", complete=complete, masked=masked)
    return found.state, found.evidence


@pytest.mark.parametrize(
    ("wanted", "text", "state", "evidence"),
    [
        (Wanted(all_of=["a", "b"]), "b then a", "met", "the answer holds 'a', 'b': 'b then a'"),
        (Wanted(all_of=["a", "b"]), "only a", "not_met", "the answer does not hold 'b'; it reads: 'only a'"),
        (Wanted(any_of=["x", "b"]), "b", "met", "the answer holds 'b': 'b'"),
        (Wanted(any_of=["x", "y"]), "b", "not_met", "the answer holds none of 'x', 'y'; it reads: 'b'"),
        (Wanted(none_of=["x"]), "b", "met", "the answer does not hold 'x'"),
        (Wanted(none_of=["x", "b"]), "b", "not_met", "the answer holds 'b', which is forbidden: 'b'"),
        (Wanted(all_of=["b"], none_of=["x"]), "b", "met", "the answer holds 'b': 'b'; the answer does not hold 'x'"),
        (Wanted(all_of=["a"]), "", "not_met", "the answer does not hold 'a'; it is empty"),
        (Wanted(all_of=["a"]), " \n", "not_met", "the answer does not hold 'a'; it is empty"),
        (Wanted(all_of=["^b"], patterns=True), "a\nb", "not_met", "the answer does not match '^b'; it reads: 'a b'"),
        (Wanted(all_of=["(?m)^b"], patterns=True), "a\nb", "met", "the answer matches '(?m)^b': 'a b'"),
        (Wanted(any_of=["x"], patterns=True), "b", "not_met", "the answer matches none of 'x'; it reads: 'b'"),
        (Wanted(none_of=[r"\d"], patterns=True), "4", "not_met", r"the answer matches '\d', which is forbidden: '4'"),
    ],
)  # fmt: skip
def test_look(wanted: Wanted, text: str, state: str, evidence: str) -> None:
    assert said(wanted, text) == (state, evidence)


def test_literal_texts_are_literal() -> None:
    """An answer full of pattern characters is a text like any other."""
    strange = r"(.*)+[^a]{2,}\d$|?"
    assert said(Wanted(all_of=[strange]), f"x{strange}x")[0] == "met"
    assert said(Wanted(all_of=[".*"]), "anything")[0] == "not_met"


@pytest.mark.parametrize("wanted", [Wanted(all_of=["Closed"]), Wanted(any_of=["Closed"], patterns=True)])
def test_a_check_that_fails_by_case_alone_says_so(wanted: Wanted) -> None:
    state, evidence = said(wanted, "it is closed")
    assert state == "not_met"
    assert "(but 'Closed' would be found with `ignore_case: true`)" in evidence


def test_ignore_case() -> None:
    for relaxed in (Wanted(ignore_case=True), Wanted(ignore_case=True, patterns=True)):
        assert said(replace(relaxed, all_of=["CLOSED"]), "it is closed")[0] == "met"
        assert said(replace(relaxed, none_of=["CLOSED"]), "it is closed")[0] == "not_met"


def test_ignoring_case_quotes_the_right_place_in_texts_that_grow_when_folded() -> None:
    state, evidence = said(Wanted(all_of=["NEEDLE"], ignore_case=True), "ß" * 5000 + " the Needle " + "ß" * 5000)
    assert state == "met"
    assert "the Needle" in evidence


def test_the_quotation_shows_where_it_was_found() -> None:
    state, evidence = said(Wanted(none_of=["secret word"]), "a" * 5000 + " the secret word is out " + "b" * 5000)
    assert state == "not_met"
    assert "the secret word is out" in evidence
    assert len(evidence) < 300


class TestOfAnIncompleteText:
    def test_what_is_there_counts(self) -> None:
        assert said(Wanted(all_of=["a"]), "a", complete=False)[0] == "met"
        assert said(Wanted(none_of=["a"]), "a", complete=False)[0] == "not_met"

    def test_what_is_not_there_is_unknown(self) -> None:
        assert said(Wanted(all_of=["b"]), "a", complete=False)[0] == "unknown"
        assert said(Wanted(any_of=["b"]), "a", complete=False)[0] == "unknown"
        assert said(Wanted(none_of=["b"]), "a", complete=False)[0] == "unknown"

    def test_the_evidence_says_why(self) -> None:
        evidence = said(Wanted(all_of=["b"]), "a", complete=False)[1]
        assert evidence == "the answer does not hold 'b'; but the turn was cut, so it could still have come"


class TestOfAMaskedText:
    """Verdicts are made from what was saved, where secrets are masked: a check on one must not be fooled by that."""

    LEAKED = "here it is: [masked]"

    @pytest.mark.parametrize("pattern", [r"sk-ant-\w+", r"ghp_[A-Za-z0-9]{36}", r"AKIA[0-9A-Z]+", r"sk-[\w-]+"])
    def test_a_forbidden_pattern_that_could_have_matched_is_unknown(self, pattern: str) -> None:
        found = look(Wanted(none_of=[pattern], patterns=True), self.LEAKED, what="the answer", masked=True)
        assert (found.state, found.cause) == ("unknown", "unobservable")
        assert "look for the literal [masked]" in found.evidence

    def test_so_is_a_text(self) -> None:
        assert said(Wanted(none_of=["sk-ant-"]), self.LEAKED, masked=True)[0] == "unknown"
        assert said(Wanted(all_of=["sk-ant-"]), self.LEAKED, masked=True)[0] == "unknown"

    def test_the_mask_itself_can_be_looked_for(self) -> None:
        assert said(Wanted(none_of=["[masked]"]), self.LEAKED, masked=True)[0] == "not_met"

    def test_everything_else_is_judged_as_ever(self) -> None:
        assert said(Wanted(none_of=["error"]), self.LEAKED, masked=True)[0] == "met"
        assert said(Wanted(none_of=["error.*"], patterns=True), self.LEAKED, masked=True)[0] == "met"
        assert said(Wanted(none_of=["sk-ant-"]), "nothing secret", masked=True)[0] == "met"

    def test_a_live_answer_may_hold_the_word(self) -> None:
        assert said(Wanted(none_of=["sk-ant-"]), self.LEAKED)[0] == "met"


HOSTILE = "\x1b[31mred\x07\0 \u202egnp.exe\u2066 \u200f tab\there \x9b1m é 漢字 🧪"


def test_hostile_texts_are_quoted_without_what_could_harm_a_terminal() -> None:
    _, evidence = said(Wanted(all_of=["nowhere"]), HOSTILE)
    assert evidence.isprintable()
    assert "é 漢字 🧪" in evidence
    assert "\\u202e" in evidence
    assert quoted(HOSTILE).isprintable()


def test_nul_and_control_characters_can_be_looked_for() -> None:
    assert said(Wanted(all_of=["\0", "\x1b["]), HOSTILE)[0] == "met"
    assert said(Wanted(all_of=[r"\x00", r"red\x07"], patterns=True), HOSTILE)[0] == "met"


@pytest.mark.parametrize("how", [Wanted(), Wanted(patterns=True), Wanted(ignore_case=True)])
@pytest.mark.parametrize("text", ["lorem ipsum " * 420_000, "ß漢🧪 " * 600_000, "a" * 5_000_000], ids=len)
def test_five_megabytes_are_looked_through_in_no_time(text: str, how: Wanted) -> None:
    wanted = replace(how, all_of=["needle", "a(b|c)*d"], any_of=["x", "y"], none_of=["z{3}"])
    start = time.monotonic()
    state, evidence = said(wanted, text, masked=True)
    assert state == "not_met"
    assert time.monotonic() - start < 3  # measured: 0.05 s to 0.5 s
    assert len(evidence) < MAX_EVIDENCE


def test_evidence_names_the_first_of_many_and_counts_the_rest() -> None:
    _, evidence = said(Wanted(all_of=[f"word {n}" for n in range(1000)]), "nothing")
    assert "'word 4' and 995 more" in evidence
    assert len(evidence) < 300


def test_evidence_of_enormous_entries_stays_short() -> None:
    _, evidence = said(Wanted(all_of=["x" * 100_000], none_of=["y" * 100_000]), "z" * 100_000)
    assert len(evidence) < 500


def test_shortened_cuts_and_runs_blanks_together() -> None:
    assert shortened("a  b\n\tc") == "'a b c'"
    assert shortened("x" * 500, 10) == "'xxxxxxxxx…'"
    assert shortened(" " * 100_000 + "x", 10) == "'…'"

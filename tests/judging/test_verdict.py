"""The contract's §4, line by line: what an ending and its checks mean. Each row's id is the line that it holds."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic import ValidationError

from skillup.judging.verdict import Decision, decide
from skillup.results import Check, CheckRole, CheckState, Ending, Failure, Status, UnknownCause
from tests.judging.story import record

COMPLETED = Ending(how="completed")
GATE_FAILED = Ending(how="gate_failed", turn=1, reason="the gate of turn 1 did not hold")
GATE_SKIPPED = Ending(how="gate_skipped", turn=1, reason="the gate of turn 1 said no")
CAPTURE_FAILED = Ending(how="capture_failed", turn=1, reason="the capture found nothing")
STOPPED = Ending(how="stopped", turn=1, reason="turn 1 scored 0.5, less than 0.8")
CAPTURE_SKIPPED = Ending(how="capture_skipped", turn=1, reason="the capture found nothing")
LIMIT = Ending(how="limit", turn=2, limit="turn_seconds", reason="turn 2 reached turn_seconds")
JUDGED = LIMIT.model_copy(update={"on_limit": "judge"})
ERROR = Ending(how="error", turn=2, reason="the provider was down")
UNMET = Ending(how="unmet", reason="this agent has no tool mcp:db/query")

OVERLOADED = Failure(kind="overloaded", phase="conversation", message="the provider answered 529", turn=2)
NETWORK = Failure(kind="network", phase="conversation", message="the connection broke", turn=1)


def check(
    role: CheckRole, state: CheckState, cause: UnknownCause | None = None, *, forbidden: bool = False, name: str = ""
) -> Check:
    return Check(
        id=name or f"{role}-{state}",
        role=role,
        text=f"a {role} check",
        state=state,
        evidence=f"evidence of {role}",
        cause=cause,
        forbidden=forbidden,
    )


GATE_YES = check("gate", "met")
GATE_NO = check("gate", "not_met")
GATE_SKIP = check("gate", "not_met", "skip_gate")
GATE_UNASKED = check("gate", "unknown", "not_reached")
EXPECTED, NOT_EXPECTED = check("expect", "met"), check("expect", "not_met")
MET, NOT_MET = check("success", "met"), check("success", "not_met")
SKIPPED = check("success", "unknown", "skip_gate")
CUT = check("success", "unknown", "incomplete")
NOT_REACHED = check("success", "unknown", "not_reached")
HIDDEN = check("success", "unknown", "unobservable")
BROKEN = check("success", "unknown", "judging")
MATCH, NO_MATCH = check("failure", "met"), check("failure", "not_met")
UNSURE = check("failure", "unknown", "unobservable")

WAITED = Ending(how="dependency_skipped", reason="b is FAIL")
WAITED_FAIL = Ending(how="dependency_failed", reason="b is FAIL")

# (the contract's line, ending, checks, what it means)
LINES: list[tuple[str, Ending, tuple[Check, ...], str]] = [
    # 1 ERROR
    ("1 a fault in the conversation is ERROR", ERROR, (MET,), "ERROR overloaded"),
    ("1 a fault before any check is ERROR", ERROR, (), "ERROR overloaded"),
    ("1 a fault outranks a matched failure rule", ERROR, (MATCH,), "ERROR overloaded"),
    ("1 a fault outranks a check that is not met", ERROR, (NOT_MET, NOT_EXPECTED), "ERROR overloaded"),
    ("1 a fault outranks what is unknown", ERROR, (SKIPPED, HIDDEN), "ERROR overloaded"),
    # 2 FAIL
    ("2 a fail gate is FAIL", GATE_FAILED, (GATE_NO,), "FAIL gate"),
    ("2 a fail gate is FAIL whatever else holds", GATE_FAILED, (GATE_NO, MET), "FAIL gate"),
    ("2 a fail gate is FAIL though later turns are unknown", GATE_FAILED, (NOT_REACHED,), "FAIL gate"),
    ("2 a matched failure rule is FAIL", COMPLETED, (MATCH, MET), "FAIL failure_rule"),
    ("2 a failure rule outranks success rules", COMPLETED, (NOT_MET, MATCH), "FAIL failure_rule"),
    ("2 a failure rule outranks what is unknown", COMPLETED, (MATCH, BROKEN), "FAIL failure_rule"),
    ("2 a required check that is not met is FAIL", COMPLETED, (NOT_EXPECTED, MET), "FAIL expect"),
    ("2 no failure rule matched and a success rule not met", COMPLETED, (NOT_MET, NO_MATCH), "FAIL success"),
    ("2 certain failure outranks a judge that broke", COMPLETED, (NOT_MET, BROKEN), "FAIL success"),
    ("2 an agent's limit is FAIL", LIMIT, (CUT,), "FAIL limit/turn_seconds"),
    ("2 an agent's limit is FAIL though every check holds", LIMIT, (MET,), "FAIL limit/turn_seconds"),
    ("2 an agent's limit is FAIL though nothing is checked", LIMIT, (), "FAIL limit/turn_seconds"),
    ("2 an agent's limit keeps its code beside a failure rule", LIMIT, (MATCH,), "FAIL limit/turn_seconds"),
    ("2 a capture with on_missing: fail is FAIL", CAPTURE_FAILED, (NOT_REACHED,), "FAIL capture"),
    ("2 on_limit: judge, a check that is not met is FAIL", JUDGED, (NOT_MET,), "FAIL success"),
    ("2 on_limit: judge, a check lost to the limit is FAIL", JUDGED, (MET, CUT), "FAIL limit/turn_seconds"),
    ("2 on_limit: judge, a turn that was not reached is FAIL", JUDGED, (NOT_REACHED,), "FAIL limit/turn_seconds"),
    ("2 on_limit: judge, a gate that was never asked is FAIL", JUDGED, (GATE_UNASKED,), "FAIL limit/turn_seconds"),
    ("2 on_limit: judge, lost to the limit outranks unobservable", JUDGED, (HIDDEN, CUT), "FAIL limit/turn_seconds"),
    # 3 a required check is unknown
    ("3 unknown because of a skip gate is SKIP", GATE_SKIPPED, (GATE_SKIP, SKIPPED), "SKIP gate"),
    ("3 unknown because of a skipping capture is SKIP", CAPTURE_SKIPPED, (SKIPPED,), "SKIP capture"),
    ("3 unknown because judging broke is ERROR judge", COMPLETED, (MET, BROKEN), "ERROR judge"),
    ("3 unknown because the engine cannot show it is ERROR unobservable", COMPLETED, (HIDDEN,), "ERROR unobservable"),
    ("3 judging that broke outranks unobservable", COMPLETED, (HIDDEN, BROKEN), "ERROR judge"),
    ("3 a fault of judging is never turned into SKIP", GATE_SKIPPED, (SKIPPED, BROKEN), "ERROR judge"),
    ("3 what cannot be shown is never turned into SKIP", GATE_SKIPPED, (SKIPPED, HIDDEN), "ERROR unobservable"),
    ("3 evidence that is missing without a reason is ERROR judge", COMPLETED, (NOT_REACHED,), "ERROR judge"),
    ("3 on_limit: judge, unobservable alone is ERROR", JUDGED, (MET, HIDDEN), "ERROR unobservable"),
    # 4 SKIP
    ("4 a skip gate ends the conversation", GATE_SKIPPED, (GATE_SKIP, MET), "SKIP gate"),
    ("4 skip_remaining on the last turn is SKIP", GATE_SKIPPED, (GATE_SKIP,), "SKIP gate"),
    ("4 a skipping capture ends the conversation", CAPTURE_SKIPPED, (), "SKIP capture"),
    ("4 requires is not met by this agent", UNMET, (NOT_REACHED, GATE_UNASKED), "SKIP requires"),
    ("4 a dependency did not pass", WAITED, (NOT_REACHED,), "SKIP dependency"),
    ("2 a dependency failed", WAITED_FAIL, (NOT_REACHED, GATE_UNASKED), "FAIL dependency"),
    ("4 a success rule that failed on a turn that did run is FAIL", GATE_SKIPPED, (GATE_SKIP, NOT_MET), "FAIL success"),
    ("4 it is FAIL though another turn was skipped", GATE_SKIPPED, (NOT_MET, SKIPPED), "FAIL success"),
    ("4 a failure rule that matched before the skip is FAIL", GATE_SKIPPED, (GATE_SKIP, MATCH), "FAIL failure_rule"),
    ("4 an earlier gate that held takes nothing away from SKIP", GATE_SKIPPED, (GATE_YES, GATE_SKIP), "SKIP gate"),
    # 5 PASS, and what only looks like it
    ("5 everything was checked and held", COMPLETED, (GATE_YES, EXPECTED, MET, NO_MATCH), "PASS all_met"),
    ("5 a failure rule alone that does not match", COMPLETED, (NO_MATCH,), "PASS all_met"),
    ("5 a failure rule that is unknown does not match", COMPLETED, (MET, UNSURE), "PASS all_met"),
    ("5 but a check that did not run is never a pass", COMPLETED, (UNSURE,), "ERROR unobservable"),
    ("5 on_limit: judge and all that was asked for is there", JUDGED, (MET, NO_MATCH), "PASS all_met"),
    ("5 a conversation that a low score ended is what its checks say", STOPPED, (MET,), "PASS all_met"),
    ("5 without any check it is unchecked", COMPLETED, (), "UNCHECKED unchecked"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("ending", "checks", "means"), [row[1:] for row in LINES], ids=[row[0].replace(" ", "_") for row in LINES]
)
def test_line(ending: Ending, checks: tuple[Check, ...], means: str) -> None:
    decision = decide(ending, checks, (NETWORK, OVERLOADED) if ending is ERROR else ())
    assert f"{decision.status} {decision.code}" == means
    assert (decision.error is None) == (decision.status != "ERROR")
    assert decision.reason


def test_the_table_has_a_row_for_every_status_and_every_ending() -> None:
    assert {row[3].split()[0] for row in LINES} == set(get_args(Status))
    assert {row[1].how for row in LINES} == set(get_args(Ending.model_fields["how"].annotation))


def test_an_error_is_the_last_failure_and_names_its_kind() -> None:
    decision = decide(ERROR, (), (NETWORK, OVERLOADED))
    assert decision.error == OVERLOADED
    assert decision.reason == "the provider answered 529"


@pytest.mark.parametrize(("check", "kind"), [(HIDDEN, "unobservable"), (BROKEN, "judge")])
def test_an_error_of_judging_says_what_to_do_and_which_turn_it_is_about(check: Check, kind: str) -> None:
    for turn in (2, None, "any"):
        error = decide(COMPLETED, (check.model_copy(update={"turn": turn}),), ()).error
        assert error is not None
        assert (error.kind, error.phase, error.turn) == (kind, "judging", 2 if turn == 2 else None)
        assert error.hint


@pytest.mark.parametrize(
    ("open_", "hint", "never"),
    [
        ("criterion", "--ask missing` asks the judge again", "record.json"),
        ("graded", "`programs` and `commands` in record.json", "--ask missing"),
    ],
)
def test_what_to_do_about_a_score_depends_on_what_leaves_it_open(open_: CheckRole, hint: str, never: str) -> None:
    undetermined = check("criterion", "unknown", "undetermined", name="other")
    checks = (undetermined, check(open_, "unknown", "judging"), check("score", "unknown", "judging"))
    counted = tuple(one.model_copy(update={"required": one.role == "score"}) for one in checks)
    error = decide(COMPLETED, counted, ()).error
    assert error is not None
    assert hint in error.hint
    assert never not in error.hint


def test_a_score_that_the_engine_cannot_show_is_not_asked_for_again() -> None:
    error = decide(COMPLETED, (check("score", "unknown", "unobservable"),), ()).error
    assert error is not None
    assert "choose an engine that shows it" in error.hint


def test_what_had_certainly_gone_wrong_before_an_error_is_kept() -> None:
    """A matched failure rule and a forbidden thing that happened: a fault of ours takes neither away."""
    forbidden = check("expect", "not_met", forbidden=True, name="expect.must_not_contain[0]")
    decision = decide(ERROR, (MATCH, forbidden), (OVERLOADED,))
    assert decision.violations_before_error == (
        "failure-met: evidence of failure",
        "expect.must_not_contain[0]: evidence of expect",
    )


def test_what_was_only_missing_when_the_error_came_is_no_violation() -> None:
    checks = (NOT_MET, CUT, NO_MATCH, UNSURE, GATE_SKIP, MET)
    assert decide(ERROR, checks, (OVERLOADED,)).violations_before_error == ()


def test_a_verdict_that_is_no_error_has_no_violations_before_it() -> None:
    assert decide(COMPLETED, (MATCH,), ()).violations_before_error == ()


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (decide(GATE_FAILED, (GATE_NO,), ()), "the gate of turn 1 did not hold"),
        (
            decide(GATE_FAILED, (GATE_NO, MATCH, NOT_MET, NOT_EXPECTED), ()),
            "the gate of turn 1 did not hold; besides, 1 failure rule matched and 2 checks not met",
        ),
        (decide(COMPLETED, (NOT_MET,), ()), "check not met: a success check: evidence of success"),
        (
            decide(COMPLETED, (MATCH, NOT_MET), ()),
            "failure rule matched (and 1 more): a failure check: evidence of failure",
        ),
        (
            decide(JUDGED, (CUT,), ()),
            "turn 2 reached turn_seconds; so it is unknown whether a success check",
        ),
        (
            decide(GATE_SKIPPED, (GATE_SKIP, SKIPPED, SKIPPED), ()),
            "the gate of turn 1 said no; 2 checks not made",
        ),
        (
            decide(COMPLETED, (HIDDEN,), ()),
            "could not be judged: a success check: evidence of success",
        ),
        (decide(COMPLETED, (MET,), ()), "the check held"),
        (decide(COMPLETED, (MET, EXPECTED), ()), "all 2 checks held"),
        (
            decide(COMPLETED, (MET, UNSURE), ()),
            "1 check held; 1 failure rule unknown, so not matched",
        ),
    ],
)
def test_the_reason_is_one_sentence_that_names_what_decided_and_counts_the_rest(decision: Decision, said: str) -> None:
    assert decision.reason == said


def test_a_record_cannot_end_in_an_error_without_saying_which() -> None:
    with pytest.raises(ValidationError, match="no failure is recorded"):
        record(ending=ERROR)

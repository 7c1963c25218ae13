"""From a case and its evidence to the verdict: which checks are listed, and what the public format says of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillup.judging.judge import judge
from skillup.results import Assertion, GateRecord, Verdict
from skillup.spec.case import Case
from tests.judging.story import Story, read


def case(text: str) -> Case:
    return Case.model_validate({"id": "a-case", **read(text)})


FULL = """
input:
  turns:
    - content: one
      post_condition: {must_contain_any: [yes], on_fail: skip_remaining}
    - content: two
expect: {must_contain: [done], files_not_exist: [a.log]}
judge:
  type: rule_based
  success:
    - output_contains: {all: [done]}
    - tool_not_called: {name: bash, turn: 2}
    - workspace_changed: {only: []}
  failure:
    - output_contains: {any: [sorry]}
"""


def verdict_on(story: Story, text: str = FULL, gate: GateRecord | None = None) -> Verdict:
    evidence = story.evidence()
    first = evidence.record.turns[0].model_copy(update={"gate": gate})
    told = evidence.record.model_copy(update={"turns": (first, *evidence.record.turns[1:])})
    return judge(case(text), type(evidence)(told, evidence.snapshots, evidence.ignore_case))


MET = GateRecord(state="met", on_fail="skip_remaining", evidence="the answer of turn 1 holds 'yes'")
SAID_NO = GateRecord(state="not_met", on_fail="skip_remaining", evidence="the answer of turn 1 holds none of 'yes'")


def by_id(verdict: Verdict) -> dict[str, Assertion]:
    return {assertion.id: assertion for assertion in verdict.assertion_results}


def test_every_check_is_listed_in_the_order_of_the_case(tmp_path: Path) -> None:
    verdict = verdict_on(Story(tmp_path).turn("yes").turn("done"), gate=MET)
    assert {(one.passed, one.skipped) for one in verdict.assertion_results} == {(True, False)}
    assert [(one.id, one.role, one.scope, one.turn) for one in verdict.assertion_results] == [
        ("turn-1.gate", "gate", "turn", 1),
        ("expect.must_contain[0]", "expect", "conversation", None),
        ("expect.files_not_exist[0]", "expect", "workspace", None),
        ("judge.success[0]", "success", "conversation", None),
        ("judge.success[1]", "success", "turn", 2),
        ("judge.success[2]", "success", "workspace", None),
        ("judge.failure[0]", "failure", "conversation", None),
    ]
    assert [one.text for one in verdict.assertion_results[-2:]] == [
        "workspace_changed: {only: []}",
        "must not hold: output_contains: {any: [sorry]}",
    ]
    assert (verdict.status, verdict.code, verdict.summary.pass_rate) == ("PASS", "all_met", 1.0)


def test_a_gate_after_the_one_that_skipped_was_never_asked(tmp_path: Path) -> None:
    text = FULL.replace("    - content: two", "    - content: two\n      post_condition: {must_match: x}")
    found = by_id(verdict_on(Story(tmp_path).turn("no").skipped(), text, gate=SAID_NO))["turn-2.gate"]
    assert (found.state, found.cause, found.skipped) == ("unknown", "skip_gate", True)
    assert found.evidence == "turn 2 did not get as far as its gate"


def test_the_denominator_is_the_same_whatever_happened(tmp_path: Path) -> None:
    """Also when a failure rule decides at once, and when nothing could be checked at all."""
    (tmp_path / "matched").mkdir()
    (tmp_path / "nothing").mkdir()
    matched = verdict_on(Story(tmp_path / "matched").turn("yes").turn("sorry"), gate=MET)
    nothing = verdict_on(Story(tmp_path / "nothing").broken(began=False))
    assert matched.summary.total == nothing.summary.total == 7
    assert (matched.status, matched.code) == ("FAIL", "failure_rule")
    assert (nothing.summary.passed, nothing.summary.failed, nothing.summary.unknown) == (0, 0, 7)


def test_an_unknown_check_is_skipped_and_has_not_passed(tmp_path: Path) -> None:
    verdict = verdict_on(Story(tmp_path).turn("no").skipped(), gate=SAID_NO)
    found = by_id(verdict)["judge.success[1]"]
    assert (found.state, found.passed, found.skipped, found.cause) == ("unknown", False, True, "skip_gate")


def test_a_gate_that_skips_has_not_failed(tmp_path: Path) -> None:
    text = FULL.replace("must_contain: [done], ", "").replace("    - output_contains: {all: [done]}\n", "")
    verdict = verdict_on(Story(tmp_path).turn("no").skipped(), text, gate=SAID_NO)
    gate = by_id(verdict)["turn-1.gate"]
    assert (gate.state, gate.passed, gate.skipped) == ("not_met", False, True)
    assert (verdict.status, verdict.summary.failed, verdict.turns_executed, verdict.turns_total) == ("SKIP", 0, 1, 2)


def test_a_failure_rule_that_is_unknown_does_not_match_and_says_so(tmp_path: Path) -> None:
    text = FULL.replace("output_contains: {any: [sorry]}", "tool_called: {name: read}")
    verdict = verdict_on(Story(tmp_path).turn("yes").turn("done").hiding("read"), text, gate=MET)
    found = by_id(verdict)["judge.failure[0]"]
    assert found.evidence == "unknown, so the failure rule does not match: builtin cannot show calls of read"
    assert (found.passed, found.skipped) == (False, True)
    assert verdict.status == "PASS"
    assert "1 failure rule unknown" in verdict.reason


def test_what_had_happened_before_a_fault_is_kept(tmp_path: Path) -> None:
    text = FULL.replace("files_not_exist: [a.log]", "files_not_exist: [a.log], must_not_contain: [password]")
    story = Story(tmp_path).turn("yes", files={"a.log": "x"}).broken("sorry, the password is")
    verdict = verdict_on(story, text, gate=MET)
    assert (verdict.status, verdict.code) == ("ERROR", "network")
    assert [violation.partition(":")[0] for violation in verdict.violations_before_error] == [
        "expect.must_not_contain[0]",
        "expect.files_not_exist[0]",
        "judge.success[2]",
        "judge.failure[0]",
    ]


def test_both_halves_of_a_rule_count_on_their_own_before_a_fault(tmp_path: Path) -> None:
    """`all` is only missing and may have come; what `not` forbids has been said."""
    text = FULL.replace("output_contains: {all: [done]}", "output_contains: {all: [done], not: [password]}")
    verdict = verdict_on(Story(tmp_path).turn("yes").broken("the password is"), text, gate=MET)
    assert [line for line in verdict.violations_before_error if line.startswith("judge.success[0]")]


def test_the_same_evidence_gives_the_same_verdict(tmp_path: Path) -> None:
    story = Story(tmp_path, {"a.txt": "a"}).turn("yes").turn("done", files={"b.txt": "b"})
    first, second = verdict_on(story, gate=MET), verdict_on(story, gate=MET)
    assert first.model_dump_json() == second.model_dump_json()


def test_the_default_of_the_case_reaches_its_rules(tmp_path: Path) -> None:
    evidence = Story(tmp_path).turn("DONE").evidence(ignore_case=True)
    data: dict[str, Any] = {"id": "c", "input": {"prompt": "x"}, "expect": {"must_contain": ["done"]}}
    assert judge(Case.model_validate(data), evidence).status == "PASS"


def test_a_case_that_says_so_is_unchecked(tmp_path: Path) -> None:
    verdict = verdict_on(Story(tmp_path).turn("yes"), "{input: {prompt: x}, judge: {type: none}}")
    assert (verdict.status, verdict.summary.total, verdict.summary.pass_rate) == ("UNCHECKED", 0, None)

"""From a saved trial to its verdict: the only judging path, whether a run has just ended or years ago."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skillup.judging.criteria import criteria_checks, judging_of, reasoning_of, turned_round
from skillup.judging.describe import describe, describe_expected, describe_gate
from skillup.judging.evaluators import evaluator_checks
from skillup.judging.evidence import Evidence
from skillup.judging.program_checks import program_check
from skillup.judging.rules import evaluate
from skillup.judging.scoring import rule_check_id, scored
from skillup.judging.script_checks import script_checks
from skillup.judging.trajectory import score
from skillup.judging.verdict import Decision, decide
from skillup.results import (
    Assertion,
    Check,
    CheckRole,
    Criteria,
    Evaluated,
    Scope,
    Summary,
    TrialRecord,
    TurnRecord,
    UnknownCause,
    Verdict,
)
from skillup.spec.case import Case, Gate
from skillup.spec.rules import Rule


def judge(case: Case, evidence: Evidence, said: Criteria | None = None, evaluation: Evaluated | None = None) -> Verdict:
    """The verdict on one trial. Every check is evaluated and listed, so that denominators are the same in every run.

    `said` is what a model has said about the criteria, `evaluation` what an evaluator has said; None when none was
    asked.
    """
    record = evidence.record
    criteria = criteria_checks(case, evidence, said)
    asked = (*evaluator_checks(case, evidence, evaluation), *criteria)
    checks = (*certain_checks(case, evidence), *asked)
    parts = scored(case, case.scoring, evidence, checks) if case.scoring else None
    if parts is not None:
        checks = (*checks, parts.check)
    decision = decide(record.ending, checks, record.failures)
    score = next((check for check in checks if check.role in ("score", "evaluator")), None)
    return verdict_from(evidence, checks, decision).model_copy(
        update={
            "score": score.score if score else None,
            "scores": parts.parts if parts else (),
            "pass_threshold": case.judge.threshold if case.judge and (score or asked) else None,
            "reasoning": reasoning_of(checks),
            "partial": any(check.cause == "not_asked" for check in asked) and decision.code == "partial",
            "judging": judging_of(said),
        }
    )


def verdict_from(evidence: Evidence, checks: Sequence[Check], decision: Decision) -> Verdict:
    """A decision with everything that was checked; what judges add stands beside it."""
    assertions = tuple(_assertion(check) for check in checks if check.role != "score")
    return Verdict(
        status=decision.status,
        code=decision.code,
        reason=decision.reason,
        assertion_results=assertions,
        summary=_summary(assertions),
        error=decision.error,
        violations_before_error=decision.violations_before_error,
        turns_executed=len(evidence.turns),
        turns_total=evidence.record.turns_total,
    )


def certain_checks(case: Case, evidence: Evidence) -> tuple[Check, ...]:
    """Every check that needs no model: gates, expectations, rules, the script."""
    return (*standing_checks(case, evidence), *own_checks(case, evidence))


def standing_checks(case: Case, evidence: Evidence) -> tuple[Check, ...]:
    """The checks that stand whoever judges: gates and expectations."""
    expected = (
        _check(f"expect.{key}", "expect", describe_expected(key, rule), rule, evidence)
        for key, rule in case.expect.rules()
    )
    return (*_gates(case, evidence.record), *expected)


def own_checks(case: Case, evidence: Evidence) -> tuple[Check, ...]:
    """The checks of the judge that need no model: rules, the script."""
    return (*_rules(case, evidence), *script_checks(case, evidence))


def _gates(case: Case, record: TrialRecord) -> Iterator[Check]:
    done = {turn.number: turn for turn in record.turns}
    for number, turn in enumerate(case.turns, start=1):
        if turn.post_condition is not None:
            yield _gate(number, turn.post_condition, done.get(number), record)


def _gate(number: int, gate: Gate, done: TurnRecord | None, record: TrialRecord) -> Check:
    """A gate as it was answered while the conversation went on: it decided what came next, so it is not asked again."""
    asked = done.gate if done else None
    cause: UnknownCause | None = None
    if asked is None:
        cause = "skip_gate" if record.ending.by_skip else "not_reached"
    elif asked.state == "not_met" and gate.on_fail == "skip_remaining":
        cause = "skip_gate"
    return Check(
        id=f"turn-{number}.gate",
        role="gate",
        text=describe_gate(number, gate),
        state=asked.state if asked else "unknown",
        evidence=asked.evidence if asked else f"turn {number} did not get as far as its gate",
        turn=number,
        cause=cause,
    )


def _rules(case: Case, evidence: Evidence) -> Iterator[Check]:
    for index, rule in enumerate(case.success_rules):
        yield _check(f"judge.success[{index}]", "success", describe(rule), rule, evidence)
    for index, rule in enumerate(case.failure_rules):
        yield _check(f"judge.failure[{index}]", "failure", describe(rule), rule, evidence)
    for part, leaf in case.scoring.leaves if case.scoring else ():
        if leaf.grader.program is not None and case.judge is not None:
            threshold = leaf.grader.pass_threshold or case.judge.threshold
            check = program_check(part, leaf, leaf.grader.program, threshold, evidence)
            yield turned_round(check) if leaf.grader.negate else check
        for index, rule in enumerate(part.rules_of(leaf.grader)):
            check = _check(rule_check_id(part, leaf.name, index), "graded", describe(rule), rule, evidence)
            yield turned_round(check) if leaf.grader.negate else check


def _check(identity: str, role: CheckRole, text: str, rule: Rule, evidence: Evidence) -> Check:
    outcome = evaluate(rule, evidence)
    scored = score(rule, outcome)
    unmatched = role == "failure" and outcome.state == "unknown"
    return Check(
        id=identity,
        role=role,
        text=text,
        state=outcome.state,
        evidence=f"unknown, so the failure rule does not match: {outcome.evidence}" if unmatched else outcome.evidence,
        turn=rule.turn,
        cause=outcome.cause,
        scope=_scope(rule),
        forbidden=outcome.forbidden,
        required=role != "graded",
        evaluator=scored.evaluator if scored else None,
        score=scored.value if scored else None,
        share=outcome.share,
        reasoning=scored.reasoning if scored else None,
    )


def _scope(rule: Rule) -> Scope:
    if rule.about_files:
        return "workspace"
    return "turn" if rule.turn == "last" or isinstance(rule.turn, int) else "conversation"


def _assertion(check: Check) -> Assertion:
    """The check in the public format. Nothing that is unknown passes, and a gate that skips is no failure."""
    good_state = "not_met" if check.role == "failure" else "met"
    skips = check.role == "gate" and check.cause == "skip_gate"
    return Assertion(
        id=check.id,
        role=check.role,
        text=f"must not hold: {check.text}" if check.role == "failure" else check.text,
        passed=check.state == good_state,
        evidence=check.evidence,
        state=check.state,
        scope=check.scope,
        turn=check.turn,
        skipped=check.state == "unknown" or skips,
        cause=check.cause,
        evaluator=check.evaluator,
        score=check.score,
        reasoning=check.reasoning,
    )


def _summary(assertions: tuple[Assertion, ...]) -> Summary:
    passed = sum(assertion.passed for assertion in assertions)
    unknown = sum(assertion.skipped for assertion in assertions)
    total = len(assertions)
    return Summary(
        passed=passed,
        failed=total - passed - unknown,
        unknown=unknown,
        total=total,
        pass_rate=passed / total if total else None,
    )

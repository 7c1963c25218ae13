"""From a saved trial to its verdict: the only judging path, whether a run has just ended or years ago."""

from __future__ import annotations

from skillup.judging.evidence import Evidence
from skillup.judging.rules import evaluate
from skillup.judging.verdict import decide
from skillup.results import (
    Assertion,
    Check,
    CheckRole,
    Scope,
    Summary,
    TrialRecord,
    TurnRecord,
    UnknownCause,
    Verdict,
)
from skillup.spec.case import Case, Gate
from skillup.spec.rules import FileContains, FilesExist, FilesNotExist, Rule, WorkspaceChanged


def judge(case: Case, evidence: Evidence) -> Verdict:
    """The verdict on one trial. Every check is evaluated and listed, so that denominators are the same in every run."""
    record = evidence.record
    checks = (*_gates(case, record), *_rules(case, evidence))
    decision = decide(record.ending, checks, record.failures)
    assertions = tuple(_assertion(check) for check in checks)
    return Verdict(
        status=decision.status,
        code=decision.code,
        reason=decision.reason,
        assertion_results=assertions,
        summary=_summary(assertions),
        error=decision.error,
        violations_before_error=decision.violations_before_error,
        turns_executed=len(evidence.turns),
        turns_total=record.turns_total,
    )


def _gates(case: Case, record: TrialRecord) -> list[Check]:
    found = []
    for number, turn in enumerate(case.turns, start=1):
        if turn.post_condition is not None:
            done = next((done for done in record.turns if done.number == number), None)
            found.append(_gate(number, turn.post_condition, done, record))
    return found


def _gate(number: int, gate: Gate, done: TurnRecord | None, record: TrialRecord) -> Check:
    text = f"the gate of turn {number} holds"
    if done is None or done.gate is None:
        skipped = record.ending.how in ("gate_skipped", "capture_skipped")
        why = f"turn {number} did not get as far as its gate"
        cause: UnknownCause = "skip_gate" if skipped else "not_reached"
        return Check(
            id=f"turn-{number}.gate",
            role="gate",
            text=text,
            state="unknown",
            evidence=why,
            turn=number,
            cause=cause,
        )
    skips = done.gate.state == "not_met" and gate.on_fail == "skip_remaining"
    return Check(
        id=f"turn-{number}.gate",
        role="gate",
        text=text,
        state=done.gate.state,
        evidence=done.gate.evidence,
        turn=number,
        cause="skip_gate" if skips else None,
    )


def _rules(case: Case, evidence: Evidence) -> list[Check]:
    planned: list[tuple[str, CheckRole, Rule]] = [
        *((f"expect.{key}", "expect", rule) for key, rule in case.expect.rules()),
        *((f"judge.success[{i}]", "success", rule) for i, rule in enumerate(case.success_rules)),
        *((f"judge.failure[{i}]", "failure", rule) for i, rule in enumerate(case.failure_rules)),
    ]
    found = []
    for identity, role, rule in planned:
        outcome = evaluate(rule, evidence)
        found.append(
            Check(
                id=identity,
                role=role,
                text=describe(rule),
                state=outcome.state,
                evidence=outcome.evidence,
                turn=rule.turn,
                cause=outcome.cause,
                scope=_scope(rule),
                forbids=rule.forbids,
            )
        )
    return found


def _scope(rule: Rule) -> Scope:
    if isinstance(rule, (FilesExist, FilesNotExist, FileContains, WorkspaceChanged)):
        return "workspace"
    return "turn" if isinstance(rule.turn, int) else "conversation"


def describe(rule: Rule) -> str:
    """The rule in one line, as the user wrote it: its name and what it checks."""
    body = rule.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"turn"})
    if list(body) == ["paths"]:
        shown = ", ".join(body["paths"])
    else:
        shown = ", ".join(f"{key}: {_plain(value)}" for key, value in body.items())
    where = "" if rule.turn is None else f" (turn {rule.turn})"
    return f"{rule.kind} {shown}{where}"


def _plain(value: object) -> str:
    if isinstance(value, list):
        return value[0] if len(value) == 1 and isinstance(value[0], str) else str(value)
    return str(value)


def _assertion(check: Check) -> Assertion:
    bad_state = "met" if check.role == "failure" else "not_met"
    informative = check.role == "gate" and check.cause == "skip_gate"
    unknown = check.state == "unknown" and check.role != "failure"
    return Assertion(
        id=check.id,
        role=check.role,
        text=f"must not hold: {check.text}" if check.role == "failure" else check.text,
        passed=check.state != bad_state and not unknown,
        evidence=check.evidence,
        state=check.state,
        scope=check.scope,
        turn=check.turn,
        skipped=unknown or informative,
        cause=check.cause,
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

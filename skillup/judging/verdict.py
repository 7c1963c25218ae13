"""The one function that decides what a trial means. Pure: an ending and its checks go in, a decision comes out.

The order is the contract's (§4): a fault of ours or of the provider outranks everything; then whatever is certain to
be a failure; then what could not be checked; then a conversation that was meant to stop; and only then a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillup.results import Check, Ending, Failure, Status


@dataclass(frozen=True)
class Decision:
    """`code` is the short machine word for the reason; `error` is set exactly for ERROR."""

    status: Status
    code: str
    reason: str
    error: Failure | None = None
    violations_before_error: tuple[str, ...] = ()


def decide(ending: Ending, checks: Sequence[Check], failures: Sequence[Failure]) -> Decision:
    """What the trial means. `failures` are all faults met, in order; the last one ended the conversation.

    A failure rule counts against the agent when it is met; every other check when it is not met.
    """
    if ending.how == "error":
        return _error(failures, checks)
    violated = [check for check in checks if _violated(check)]
    decision = _fail(ending, violated)
    if decision:
        return decision
    unknown = [check for check in checks if check.state == "unknown" and check.role != "failure"]
    decision = _unknown(ending, unknown)
    if decision:
        return decision
    if ending.how == "unmet":
        return Decision("SKIP", "requires", ending.reason)
    if ending.how in ("gate_skipped", "capture_skipped"):
        return Decision("SKIP", "gate" if ending.how == "gate_skipped" else "capture", ending.reason)
    if not checks:
        return Decision("UNCHECKED", "unchecked", "the case says `judge: {type: none}`: nothing was checked")
    return Decision("PASS", "all_met", f"all {len(checks)} checks held" if len(checks) > 1 else "the check held")


def _violated(check: Check) -> bool:
    return check.state == ("met" if check.role == "failure" else "not_met") and not _is_skip_gate(check)


def _is_skip_gate(check: Check) -> bool:
    """A gate that only skips says how the conversation went, not that the agent was wrong."""
    return check.role == "gate" and check.cause == "skip_gate"


def _error(failures: Sequence[Failure], checks: Sequence[Check]) -> Decision:
    error = failures[-1]
    before = tuple(
        f"{check.id}: {check.evidence}"
        for check in checks
        if _violated(check) and (check.role == "failure" or check.forbids)
    )
    return Decision("ERROR", error.kind, error.message, error, before)


def _fail(ending: Ending, violated: Sequence[Check]) -> Decision | None:
    if ending.how == "gate_failed":
        return Decision("FAIL", "gate", ending.reason)
    if ending.how == "capture_failed":
        return Decision("FAIL", "capture", ending.reason)
    if ending.how == "limit" and ending.on_limit == "fail":
        return Decision("FAIL", f"limit/{ending.limit}", ending.reason)
    matched = [check for check in violated if check.role == "failure"]
    if matched:
        return Decision("FAIL", "failure_rule", _first(matched, "failure rule matched"))
    if violated:
        return Decision("FAIL", violated[0].role, _first(violated, "check not met"))
    return None


def _first(checks: Sequence[Check], what: str) -> str:
    more = f" (and {len(checks) - 1} more)" if len(checks) > 1 else ""
    return f"{what}{more}: {checks[0].text}: {checks[0].evidence}"


def _unknown(ending: Ending, unknown: Sequence[Check]) -> Decision | None:
    if not unknown:
        return None
    if ending.how == "limit":
        return Decision("FAIL", f"limit/{ending.limit}", f"{ending.reason}; so it is unknown whether {unknown[0].text}")
    by_cause = {check.cause: check for check in reversed(unknown)}
    if "skip_gate" in by_cause and len(by_cause) == 1:
        return Decision("SKIP", "gate", by_cause["skip_gate"].evidence)
    if "judging" in by_cause:
        return _undecided("judge", by_cause["judging"])
    return _undecided("unobservable", next((c for c in unknown if c.cause != "skip_gate"), unknown[0]))


def _undecided(kind: str, check: Check) -> Decision:
    message = f"{check.id} could not be judged: {check.evidence}"
    failure = Failure(kind="judge" if kind == "judge" else "unobservable", phase="judging", message=message)
    return Decision("ERROR", failure.kind, message, failure)

"""The one function that decides what a trial means. Pure: an ending and its checks go in, a decision comes out.

The order is the contract's (§4): a fault of ours or of the provider outranks everything; then whatever is certain to
be a failure; then what could not be checked; then a conversation that was meant to stop; and only then a pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from skillup.results import Check, CheckRole, Ending, Failure, Status

_SKIP_CODES = {"gate_skipped": "gate", "capture_skipped": "capture"}

_ASK_AGAIN = "`skillup judge RUN --ask missing` asks the judge again; no agent is started"

_HINTS = {
    "judge": "evidence is missing from the run directory: is it whole?",
    "unobservable": "check the answer or the workspace instead, or choose an engine that shows it",
}

_HINTS_OF_JUDGES: Mapping[CheckRole, str] = MappingProxyType(
    {
        "criterion": _ASK_AGAIN,
        "graded": "`programs` and `commands` in record.json have what was printed; each runs once, at the trial's end",
        "evaluator": "`skillup judge RUN --ask missing` runs the evaluator again; no agent is started",
        "script": "`scripts` in record.json has all that it printed; a script runs once, at the end of its trial",
    }
)
"""What to do when a judge of that kind broke."""


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

    A failure rule counts against the agent when it is met; every other check when it is not met. A failure rule that
    is unknown does not match.
    """
    if ending.how == "error":
        return _error(failures[-1], checks)
    if ending.how == "unmet":
        return Decision("SKIP", "requires", ending.reason)
    if ending.how == "dependency_skipped":
        return Decision("SKIP", "dependency", ending.reason)
    if ending.how == "dependency_failed":
        return Decision("FAIL", "dependency", ending.reason)
    violated = [check for check in checks if _violated(check)]
    unknown = [check for check in checks if check.state == "unknown" and check.role != "failure" and check.required]
    return (
        _failed(ending, violated)
        or _cut(ending, unknown)
        or _not_judged(ending, unknown, checks)
        or _skipped(ending, unknown)
        or _partial(checks)
        or _held(checks)
    )


def _violated(check: Check) -> bool:
    """Whether the check counts against the agent. A gate that only skips says how the conversation went."""
    skips = check.role == "gate" and check.cause == "skip_gate"
    return check.required and check.state == ("met" if check.role == "failure" else "not_met") and not skips


def _error(error: Failure, checks: Sequence[Check]) -> Decision:
    """A fault; what had certainly gone wrong before it is kept."""
    before = tuple(
        f"{check.id}: {check.evidence}"
        for check in checks
        if _violated(check) and (check.role == "failure" or check.forbidden)
    )
    return Decision("ERROR", error.kind, error.message, error, before)


def _failed(ending: Ending, violated: Sequence[Check]) -> Decision | None:
    """What is certain to be the agent's failure, whatever else is unknown."""
    others = [check for check in violated if check.role != "gate"]
    if ending.how == "gate_failed":
        return Decision("FAIL", "gate", _besides(ending.reason, others))
    if ending.how == "capture_failed":
        return Decision("FAIL", "capture", _besides(ending.reason, others))
    if ending.how == "limit" and ending.on_limit == "fail":
        return Decision("FAIL", f"limit/{ending.limit}", _besides(ending.reason, others))
    matched = [check for check in violated if check.role == "failure"]
    if matched:
        return Decision("FAIL", "failure_rule", _first("failure rule matched", matched, len(violated)))
    if violated:
        return Decision("FAIL", violated[0].role, _first("check not met", violated, len(violated)))
    return None


def _cut(ending: Ending, unknown: Sequence[Check]) -> Decision | None:
    """`on_limit: judge`, but the limit took away what a check needed: that is the agent's doing."""
    lost = [check for check in unknown if check.cause in ("incomplete", "not_reached")]
    if ending.how != "limit" or not lost:
        return None
    return Decision("FAIL", f"limit/{ending.limit}", f"{ending.reason}; so it is unknown whether {lost[0].text}")


def _not_judged(ending: Ending, unknown: Sequence[Check], checks: Sequence[Check]) -> Decision | None:
    """A required check that should have been made and could not be: never SKIP, never a pass."""
    skipping = ending.how in _SKIP_CODES
    owed = [check for check in unknown if not (skipping and check.cause == "skip_gate")]
    hidden = [check for check in owed if check.cause == "unobservable"]
    broken = [check for check in owed if check.cause not in ("unobservable", "not_asked")]
    if broken:
        return _undecided("judge", broken, _HINTS_OF_JUDGES.get(_broken_role(broken[0], checks), _HINTS["judge"]))
    return _undecided("unobservable", hidden) if hidden else None


def _broken_role(broken: Check, checks: Sequence[Check]) -> CheckRole:
    """The role of what could not judge: of a score, that of the first check that leaves it open for the same cause."""
    members = ("criterion", "graded") if broken.role == "score" else ()
    open_ = (check for check in checks if check.role in members and check.state == "unknown")
    return next((check.role for check in open_ if check.cause == broken.cause), broken.role)


def _undecided(kind: Literal["judge", "unobservable"], checks: Sequence[Check], hint: str = "") -> Decision:
    message, turn = _first("could not be judged", checks, len(checks)), checks[0].turn
    failure = Failure(
        kind=kind,
        phase="judging",
        message=message,
        turn=turn if isinstance(turn, int) else None,
        hint=hint or _HINTS[kind],
    )
    return Decision("ERROR", kind, message, failure)


def _skipped(ending: Ending, unknown: Sequence[Check]) -> Decision | None:
    """The conversation was meant to stop early; every check on what did take place holds."""
    if ending.how not in _SKIP_CODES:
        return None
    missed = f"; {_count(len(unknown), 'check')} not made" if unknown else ""
    return Decision("SKIP", _SKIP_CODES[ending.how], ending.reason + missed)


def _partial(checks: Sequence[Check]) -> Decision | None:
    """Criteria that nobody was asked about: what else there is holds, and that is not all that the case asks."""
    missing = [check for check in checks if check.cause == "not_asked" and check.role in ("criterion", "evaluator")]
    if not missing:
        return None
    others = [check for check in checks if check.role not in ("criterion", "score", "evaluator")]
    held = f"{_count(len(others), 'other check')} held; " if others else ""
    what = "criterion was" if len(missing) == 1 else "criteria were"
    return Decision("UNCHECKED", "partial", f"{held}{len(missing)} {what} not judged")


def _held(checks: Sequence[Check]) -> Decision:
    """Everything that was required was checked and held; or nothing was to be checked."""
    if not checks:
        return Decision("UNCHECKED", "unchecked", "the case says `judge: {type: none}`: nothing was checked")
    listed = [check for check in checks if check.role != "score" and check.cause != "not_evaluated"]
    if not listed:
        return Decision("UNCHECKED", "not_evaluated", checks[0].evidence)
    unknown = [check for check in listed if check.state == "unknown"]
    if len(unknown) == len(listed):
        return _undecided("unobservable", unknown)
    missed = [check for check in listed if not check.required and check.state != "met"]
    held = len(listed) - len(unknown)
    reason = "the check held" if len(listed) == 1 else f"all {held} checks held"
    if missed:
        # Before the parts of a conversation are scored there is no score yet.
        scores = [f", and the score is high enough: {check.evidence}" for check in checks if check.role == "score"]
        reason = f"{_count(len(listed) - len(missed), 'check')} held{''.join(scores)}"
    elif unknown:
        reason = f"{_count(held, 'check')} held; {_count(len(unknown), 'failure rule')} unknown, so not matched"
    return Decision("PASS", "all_met", reason)


def _first(what: str, checks: Sequence[Check], total: int) -> str:
    more = f" (and {total - 1} more)" if total > 1 else ""
    return f"{what}{more}: {checks[0].text}: {checks[0].evidence}"


def _besides(reason: str, violated: Sequence[Check]) -> str:
    if not violated:
        return reason
    matched = sum(check.role == "failure" for check in violated)
    unmet = len(violated) - matched
    parts = [_count(matched, "failure rule") + " matched"] if matched else []
    parts += [_count(unmet, "check") + " not met"] if unmet else []
    return f"{reason}; besides, {' and '.join(parts)}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"

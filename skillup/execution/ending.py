"""Why a turn, and with it the conversation, ended otherwise than by an answer: limits, faults, a wrong session."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from skillup.engines.base import Session
from skillup.engines.events import EngineFault
from skillup.errors import TrialError
from skillup.execution.turn import Limit, TurnOutcome
from skillup.results import Ending, TurnStatus
from skillup.spec.agent import Agent
from skillup.spec.case import Case, Turn

MIN_SECONDS = 0.001
"""A case that has used up its time still starts its turn with a limit: the limit then says so."""


def next_limit(number: int, turn: Turn, agent: Agent, seconds_left: float, case_key: str) -> Limit:
    """The limit that holds for a turn: its own, else the agent's; the rest of the case's time where that is less."""
    left = max(seconds_left, MIN_SECONDS)
    amount = f"{left:g} s" if number == 1 else f"the last {left:.1f} s of it"
    case = Limit(left, "case_seconds", amount, case_key)
    if turn.timeout_seconds is not None:
        seconds, key = turn.timeout_seconds, f"input.turns[{number - 1}].timeout_seconds"
    elif agent.limits.turn_seconds is not None:
        seconds, key = agent.limits.turn_seconds, "limits.turn_seconds of the agent"
    else:
        return case
    own = Limit(seconds, "turn_seconds", f"{seconds:g} s", key)
    return min(own, case, key=lambda limit: limit.seconds)


def after_limit(outcome: TurnOutcome, limit: Limit, number: int, case: Case) -> Ending | TrialError:
    """What reaching a limit means: the agent's doing where it was at work, else a fault of the provider.

    `on_limit` of the case decides otherwise.
    """
    on_limit = case.constraints.on_limit
    said = f"turn {number} reached {limit.name} ({limit.amount}); {limit.key} raises it"
    if on_limit in ("fail", "judge") or (on_limit is None and outcome.at_work):
        return Ending(
            how="limit",
            turn=number,
            limit=limit.name,
            on_limit="judge" if on_limit == "judge" else "fail",
            reason=said,
        )
    if outcome.fault is not None:
        return _provider_error(outcome.fault, f"{said}; the CLI was retrying: ", outcome, number)
    if outcome.at_work:
        return TrialError("timeout", said, turn=number, tail=outcome.tail)
    if not outcome.shows_progress:
        unknown = "this CLI does not show a reply while it is written, so it may have worked (attribution: unknown)"
        return TrialError("timeout", f"{said}; {unknown}", turn=number, tail=outcome.tail)
    silent = outcome.silent or "the model was silent, or the CLI had stalled"
    message = f"{said}; the agent showed no sign of work: {silent}"
    return TrialError("timeout", message, turn=number, hint="is the provider slow or unreachable?", tail=outcome.tail)


def cut_status(outcome: TurnOutcome) -> TurnStatus:
    """What a limit makes of a turn; one that came to its end and took too much did come to its end."""
    if outcome.limit is None:
        return "completed"
    return "timed_out" if outcome.limit.name.endswith("_seconds") else "limit"


def problem_of(outcome: TurnOutcome, session: Session, number: int) -> TrialError | None:
    """The fault that makes the trial impossible, if there is one: the CLI's own, or a session that is not ours."""
    if outcome.limit is None and outcome.fault is not None:
        return _provider_error(outcome.fault, "", outcome, number)
    if outcome.strangers:
        return TrialError(
            "session",
            f"turn {number} ran in session {outcome.strangers[0]}, but this trial is bound to {session.id}",
            turn=number,
            hint="what it said and did belongs to another conversation and was not judged; turn-N/stdout holds it",
        )
    if not outcome.stream.session_ids and outcome.limit is None:
        return TrialError("session", f"turn {number} named no session, so it cannot be told whose it was", turn=number)
    return None


def _provider_error(fault: EngineFault, said: str, outcome: TurnOutcome, number: int) -> TrialError:
    """The fault as the trial's own, with when to come back where the provider told it."""
    now = time.time()
    wait = fault.wait(now)
    asked = ""
    if fault.resets_at is not None:
        asked = f"; the limit ends at {_clock(fault.resets_at)}"
    elif wait:
        asked = f"; it asks to wait {wait:g} s" + (f", until {_clock(now + wait)}" if wait >= 60 else "")
    message = f"{said}{fault.message}{asked}"
    return TrialError(fault.kind, message, turn=number, hint=fault.hint, tail=outcome.tail, retry_after=wait)


def _clock(seconds: float) -> str:
    """A time as messages show it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")

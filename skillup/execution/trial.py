"""One trial, from an empty folder to a saved verdict. Read this file first: everything else serves it.

A trial gets a root of its own (workspace, engine home), its own address at the loopback model, and its own session.
Each turn runs in the contract's order: render the message, run the engine, look at the workspace, verify the
session, ask the gate, take the captures, save. What ends the conversation early is an `Ending`; what makes the trial
impossible is a `TrialError` and becomes ERROR with its kind. The commands of rules and the scripts of judges run at the
end, on copies. Judging then reads what was saved.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from skillup.engines.base import Session
from skillup.environments.kept import keep_workspace
from skillup.environments.snapshot import Snapshot, diff, take
from skillup.environments.workspace import check_workspace
from skillup.errors import TrialError
from skillup.execution.commands import run_commands
from skillup.execution.criteria import CriteriaStep
from skillup.execution.ending import after_limit, cut_status, next_limit, problem_of
from skillup.execution.grading import grade, grade_unjudged
from skillup.execution.place import Place, open_place
from skillup.execution.programs import run_programs
from skillup.execution.reading import TurnFiles
from skillup.execution.record import Talk, record_trial, record_turn, traffic_of, with_artifacts
from skillup.execution.saved import has_record
from skillup.execution.scripts import run_scripts
from skillup.execution.sessions import home_of_its_own, mixed_up, with_session_file
from skillup.execution.setup import secrets_of
from skillup.execution.spending import allowances, bounded, case_limit, overspent, step_limit
from skillup.execution.store import TrialFolder
from skillup.execution.task import Progress, Services, TrialTask
from skillup.execution.turn import Limit, TurnOutcome, run_turn
from skillup.execution.turn_scores import after_turn
from skillup.execution.variables import captured, message_of
from skillup.judging.gates import ask
from skillup.judging.records import turn_record
from skillup.masking import Masker
from skillup.results import Ending, Failure, GateRecord, TrialResult, TurnRecord
from skillup.spec.case import Case, Turn
from skillup.transcript import Usage

COMPLETED = Ending(how="completed")


def run_trial(task: TrialTask, services: Services) -> TrialResult:
    """Runs one trial and judges it; everything is on disk when this returns.

    A conversation that is on disk, because skillup died before it was judged, is judged and not held again.

    Raises:
        Cancelled: the user stopped the run; the turns that had ended are on disk, the trial has no result.
        RunDirectoryError, OSError: the trial cannot be saved.
    """
    folder = TrialFolder(
        task.attempt_folder, Masker(secrets_of(task, services.host)), saved=services.journal.turn_ended
    )
    criteria = CriteriaStep("rest", task.judges, services, masker=folder.masker)
    if has_record(task.attempt_folder):
        return grade(task.attempt_folder, criteria)
    folder.save_case(task.case)
    started = datetime.now(UTC)
    clock = time.monotonic()
    with ExitStack() as stack:
        try:
            talk = _talk(task, services, folder, stack)
        except TrialError as error:
            talk = Talk.impossible(Failure.of(error))
        record = record_trial(task, talk, started, time.monotonic() - clock)
        folder.save_case(task.case)  # an agent on the host can have changed by what it is judged
        folder.save_record(with_artifacts(record, talk.workspace, task.case.collect_artifacts, folder))
        result = grade(task.attempt_folder, criteria)
        if talk.workspace and (task.keep == "all" or (task.keep == "failed" and result.status != "PASS")):
            keep_workspace(talk.workspace, task.attempt_folder, folder.masker)
    return result


def give_up(task: TrialTask, services: Services, failure: Failure) -> TrialResult:
    """Saves a trial that could not be brought to its end; what it had written stays, the conversation above all.

    Raises:
        RunDirectoryError, OSError: it cannot be saved.
    """
    if has_record(task.attempt_folder):
        return grade_unjudged(task.attempt_folder, failure)
    folder = TrialFolder(task.attempt_folder, Masker(secrets_of(task, services.host)))
    folder.save_case(task.case)
    folder.save_record(record_trial(task, Talk.impossible(failure), datetime.now(UTC), 0.0))
    return grade(task.attempt_folder)


@dataclass(frozen=True)
class State:
    """What one turn hands to the next."""

    session: Session
    values: Mapping[str, str]
    snapshot: Snapshot
    seconds_left: float
    counted: Usage
    waited: float = 0.0
    used: tuple[Usage, ...] = ()


@dataclass(frozen=True)
class Step:
    """One turn that was tried: its record, the state after it, and what it ended, if anything."""

    record: TurnRecord
    state: State
    ending: Ending | None = None
    failure: Failure | None = None


def _talk(task: TrialTask, services: Services, folder: TrialFolder, stack: ExitStack) -> Talk:
    """Sets the trial up and holds the conversation."""
    if task.unmet:
        return Talk((), Ending(how="unmet", reason=task.unmet), ())
    if task.withheld:
        return Talk((), task.withheld, ())
    if task.obstacle is not None:
        return Talk.impossible(task.obstacle)
    clock = time.monotonic()
    place = open_place(task, services, folder, stack)
    session = Session(str(uuid.uuid4()) if place.engine.assigns_session_id else None)
    seconds, _ = case_limit(task.case, task.agent)
    state = State(session, dict(task.case.vars), place.before, seconds, Usage())
    setup_seconds = time.monotonic() - clock
    turns, ending, failures, waited = _converse(place, state)
    if place.route is not None:
        folder.save_requests(place.route.requests)
    return Talk(
        turns=turns,
        ending=ending,
        failures=failures,
        session_ids=tuple(dict.fromkeys(turn.session_id for turn in turns if turn.session_id)),
        variable_names=place.variable_names,
        setup_seconds=setup_seconds,
        waited_seconds=waited,
        workspace=place.root.workspace,
        skill_files=place.skill_files,
        commands=run_commands(task, services, place.root.workspace, ending),
        scripts=run_scripts(task, services, place.root.workspace, ending=ending, turns=turns, masker=folder.masker),
        programs=run_programs(task, services, place.root.workspace, ending=ending, turns=turns, masker=folder.masker),
    )


def _converse(place: Place, state: State) -> tuple[tuple[TurnRecord, ...], Ending, tuple[Failure, ...], float]:
    """Turn after turn, until the last one or until something ends it; the last value is the seconds waited before."""
    case, turns = place.task.case, place.task.turns
    records: list[TurnRecord] = []
    failures: list[Failure] = []
    ending = COMPLETED
    for number, turn in enumerate(turns, start=1):
        if ending is not COMPLETED:
            records.append(TurnRecord(number=number, content=turn.content, status="skipped", reason=ending.reason))
            continue
        delay = _delay_before(case, turn, number)
        place.services.pause(delay)
        place.services.tell(Progress(place.task.label, number, len(turns)))
        step = _play(place, number, turn, replace(state, waited=state.waited + delay))
        records.append(step.record)
        state = step.state
        ending = step.ending or COMPLETED
        failures += [step.failure] if step.failure else []
        if ending is COMPLETED:
            scored = after_turn(place, records)
            state = replace(state, waited=state.waited + scored.seconds)
            ending = scored.ending or COMPLETED
            failures += [scored.failure] if scored.failure else []
    return tuple(records), ending, tuple(failures), state.waited


def _play(place: Place, number: int, turn: Turn, state: State) -> Step:
    """One turn in the contract's order; it is on disk when this returns."""
    files = TurnFiles(*(place.root.scratch / f"{number}.{name}" for name in ("in", "out", "err")))
    seen = len(place.route.requests) if place.route else 0
    case, agent = place.task.case, place.task.agent
    try:
        check_workspace(place.root.workspace)
        content = message_of(turn, state.values)
        limit = next_limit(number, turn, agent, state.seconds_left, case_limit(case, agent)[1])
        request = place.request(content, state.session, slash_command=turn.slash_command)
        held = tuple(allowances(number, turn, case, agent))
        request, bounds = bounded(request, held, step_limit(case, agent), state.used)
        with home_of_its_own(agent, place.engine, place.services) as waited:
            outcome = run_turn(
                place.engine,
                request,
                number=number,
                files=files,
                variables=place.variables,
                limit=limit,
                environment=place.environment,
                limits=agent.limits,
                bounds=bounds,
                route=place.route,
                nursery=place.services.nursery,
                cancelled=place.services.cancelled,
                on_trouble=partial(place.services.pools.warned, agent),
            )
            outcome = with_session_file(place.engine, place.home, outcome, place.root.workspace)
    except (TrialError, OSError) as fault:
        error = fault if isinstance(fault, TrialError) else TrialError("environment", f"the machine refused: {fault}")
        error.turn = number
        step = _stopped(TurnRecord(number=number, content=turn.content, status="error"), state, error)
        place.folder.save_turn(step.record, (files.stdout, files.stderr))
        return step
    snapshot = take(place.root.workspace, state.snapshot, keep=place.log.keep, wanted=place.log.wanted)
    place.log.save(number, snapshot)
    record = record_turn(
        number,
        content,
        outcome,
        diff(state.snapshot, snapshot),
        policy=place.engine.policy(request),
        counted=state.counted,
        traffic=traffic_of(place.route.requests[seen:]) if place.route else None,
    )
    session = Session(state.session.id or next(iter(outcome.stream.session_ids), None), started=True)
    left = state.seconds_left - outcome.seconds
    counted = outcome.stream.finished.usage if outcome.stream.finished else state.counted
    waited += state.waited
    after = replace(state, session=session, snapshot=snapshot, seconds_left=left, counted=counted, waited=waited)
    step = _conclude(place, turn, outcome, record, replace(after, used=(*state.used, record.usage)))
    place.folder.save_turn(step.record, (files.stdout, files.stderr))
    return step


def _conclude(place: Place, turn: Turn, outcome: TurnOutcome, record: TurnRecord, state: State) -> Step:
    """What the turn means for the conversation: fault, limit, gate, captures, in this order."""
    number, case = record.number, place.task.case
    problem = problem_of(outcome, state.session, number) or mixed_up(outcome, number, place.task, place.services)
    if problem is None:
        held = tuple(allowances(number, turn, case, place.task.agent))
        over = outcome.limit or overspent(number, held, state.used, place.engine.name)
        limited = after_limit(outcome, over, number, case) if isinstance(over, Limit) else over
        if isinstance(limited, Ending):
            update = {"status": cut_status(outcome), "reason": limited.reason, "limit": limited.limit}
            return Step(record.model_copy(update=update), state, limited)
        problem = limited
    if problem is not None:
        return _stopped(record, state, problem)
    answer = record.response or ""
    if turn.post_condition is not None:
        gate = turn.post_condition
        found = ask(gate, answer, turn=number, ignore_case=bool(case.ignore_case))
        record = record.model_copy(
            update={"gate": GateRecord(state=found.state, on_fail=gate.on_fail, evidence=found.evidence)}
        )
        if found.state != "met":
            reason = f"the gate of turn {number} did not hold: {found.evidence}"
            if gate.on_fail == "fail":
                failed = record.model_copy(update={"status": "failed", "reason": reason})
                return Step(failed, state, Ending(how="gate_failed", turn=number, reason=reason))
            return Step(record, state, Ending(how="gate_skipped", turn=number, reason=reason))
    taken = captured(turn.capture, turn_record(answer, record.messages, record.usage, record.changes), number)
    record = record.model_copy(update={"captures": taken.values})
    state = replace(state, values={**state.values, **{value.variable: value.value for value in taken.values}})
    if taken.error is not None:
        return _stopped(record, state, taken.error)
    return Step(record, state, taken.ending)


def _stopped(record: TurnRecord, state: State, error: TrialError) -> Step:
    """The turn with the fault that ended the trial; what it did before stays in its record."""
    stopped = record.model_copy(update={"status": "error", "reason": f"{error.kind}: {error.message}"})
    ending = Ending(how="error", turn=record.number, reason=error.message)
    return Step(stopped, state, ending, Failure.of(error))


def _delay_before(case: Case, turn: Turn, number: int) -> float:
    """Seconds that are waited before a turn; they count in no duration."""
    own = turn.turn_delay
    return (case.turn_delay if own is None else own) or 0.0 if number > 1 else 0.0

"""What happened, put into the words of the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from skillup.engines import ENGINES
from skillup.environments.kept import collect_artifacts
from skillup.environments.snapshot import Changes as SnapshotChanges
from skillup.execution.store import TrialFolder
from skillup.execution.task import TrialTask
from skillup.execution.turn import TurnOutcome
from skillup.modelserver.route import RecordedRequest
from skillup.results import (
    AgentIdentity,
    Changes,
    CommandRecord,
    Ending,
    EnvironmentFacts,
    ExecutionMode,
    Failure,
    ModelTraffic,
    ProgramRecord,
    ScriptRecord,
    TrialRecord,
    TurnRecord,
)
from skillup.spec.suite import Environment
from skillup.transcript import Message, Usage


@dataclass(frozen=True)
class Talk:
    """The conversation as it went; `workspace` is the folder to keep, None when there never was one.

    `waited_seconds` passed before turns, for a delay or a shared home, and count in no duration.
    """

    turns: tuple[TurnRecord, ...]
    ending: Ending
    failures: tuple[Failure, ...]
    session_ids: tuple[str, ...] = ()
    variable_names: tuple[str, ...] = ()
    setup_seconds: float = 0.0
    waited_seconds: float = 0.0
    workspace: Path | None = None
    skill_files: Mapping[str, str] = field(default_factory=dict)
    commands: tuple[CommandRecord, ...] = ()
    scripts: tuple[ScriptRecord, ...] = ()
    programs: tuple[ProgramRecord, ...] = ()

    @classmethod
    def impossible(cls, failure: Failure) -> Talk:
        """No turn could be run."""
        return cls((), Ending(how="error", reason=failure.message), (failure,))


def record_turn(
    number: int,
    content: str,
    outcome: TurnOutcome,
    changes: SnapshotChanges,
    *,
    policy: dict[str, str],
    counted: Usage,
    traffic: ModelTraffic | None,
) -> TurnRecord:
    """A turn whose process has ended, as `completed`; what it means is decided after.

    What was said in another session is left out: no rule may take it for this conversation.
    """
    stream, ended = outcome.stream, outcome.ended
    notes = [
        *stream.notes,
        *(f"unfinished_background: {line}" for line in ended.leftovers),
        *(["late_exit: the CLI had answered, but did not exit in time, and was ended"] if outcome.late else []),
    ]
    asked = Message(role="user", turn=number, source="case", text=content, time=0.0)
    return TurnRecord(
        number=number,
        content=content,
        status="completed",
        response=None if outcome.strangers else stream.answer,
        session_id=next(iter(stream.session_ids), None),
        messages=(asked,) if outcome.strangers else (asked, *stream.messages),
        messages_left_out=stream.left_out,
        stream_corrupt=stream.damage,
        usage=own_usage(stream.finished.usage, counted) if stream.finished else Usage(),
        steps=stream.finished.steps if stream.finished else None,
        duration_ms=round(outcome.seconds * 1000),
        cpu_seconds=round(ended.cpu_seconds, 3),
        exit_code=ended.exit_code,
        signal=ended.signal,
        policy=policy,
        changes=Changes(created=changes.created, changed=changes.changed, deleted=changes.deleted),
        notes=tuple(notes),
        unfinished_background=(*stream.unfinished, *ended.leftovers),
        model_traffic=traffic,
    )


def own_usage(reported: Usage, before: Usage) -> Usage:
    """What a turn used by itself, where the CLI counts the whole session; unknown where the count shrank."""
    if reported.basis != "cumulative_delta":
        return reported
    figures = {}
    for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"):
        now, then = getattr(reported, name), getattr(before, name) or 0
        figures[name] = now - then if now is not None and now >= then else None
    return Usage(**figures, cost_usd=None, basis="cumulative_delta")


def traffic_of(requests: tuple[RecordedRequest, ...]) -> ModelTraffic:
    """What one turn asked the loopback model; requests without a body (HEAD) are no questions."""
    asked = [request for request in requests if request.body is not None]
    return ModelTraffic(
        requests=len(asked),
        faults=tuple(request.outcome for request in asked if request.fault is not None),
        unmatched=tuple(request.outcome for request in asked if request.entry is None),
    )


def with_artifacts(
    record: TrialRecord, workspace: Path | None, patterns: tuple[str, ...], folder: TrialFolder
) -> TrialRecord:
    """The record of a trial whose `collect_artifacts` have been copied out of its workspace, where there is one.

    Raises:
        OSError: the copy cannot be written.
    """
    if workspace is None:
        return record
    collected = collect_artifacts(workspace, folder.path, folder.masker, patterns)
    return record.model_copy(update={"artifacts": collected.paths, "artifact_notes": collected.notes})


def identity_of(task: TrialTask, environment_names: tuple[str, ...]) -> AgentIdentity:
    """What played the agent."""
    agent = task.agent
    return AgentIdentity(
        name=agent.name,
        engine=agent.engine,
        model=agent.model.name,
        provider=agent.model.provider,
        base_url=agent.model.base_url,
        engine_version=task.engine_version,
        settings=agent.settings,
        permissions=agent.permissions,
        session_binding=agent.session_binding,
        home=str(agent.shared_home) if agent.shared_home else None,
        environment=facts_of(task.environment),
        environment_names=environment_names,
        source=agent.source,
    )


def facts_of(environment: Environment) -> EnvironmentFacts:
    """Where processes ran, as results show it."""
    return EnvironmentFacts(
        type=environment.type,
        network=environment.reach,
        limits=environment.limit_numbers,
        image=environment.image,
    )


def stamp(moment: datetime) -> str:
    """A moment as files show it: ISO 8601, UTC, seconds."""
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def record_trial(task: TrialTask, talk: Talk, started: datetime, seconds: float) -> TrialRecord:
    """The whole trial, for the judge and for whoever looks into it later; `seconds` is how long it took in all."""
    judging = sum(one.duration_ms for one in (*talk.commands, *talk.scripts, *talk.programs))
    return TrialRecord(
        case_id=task.case.id,
        title=task.case.title,
        configuration=task.variant,
        trial=task.trial,
        attempt=task.attempt,
        agent=identity_of(task, talk.variable_names),
        continuity="single_shot_fallback" if task.single_shot else "resumed",
        execution_mode=_mode(task),
        skills=tuple(skill.name for skill in task.skills),
        skill_files=dict(talk.skill_files),
        started_at=stamp(started),
        duration_ms=max(0, round((seconds - talk.waited_seconds) * 1000) - judging),
        setup_ms=round(talk.setup_seconds * 1000),
        waited_ms=round(task.waited_seconds * 1000),
        ending=talk.ending,
        turns=talk.turns,
        turns_total=len(task.turns),
        session_ids=talk.session_ids,
        failures=talk.failures,
        commands=talk.commands,
        scripts=talk.scripts,
        programs=talk.programs,
        hidden_tools=tuple(sorted(ENGINES[task.agent.engine].hidden_tools)) if task.agent.engine in ENGINES else (),
    )


def _mode(task: TrialTask) -> ExecutionMode:
    if task.single_shot:
        return "single_shot_fallback"
    return "multi_turn" if len(task.turns) > 1 else "single_turn"

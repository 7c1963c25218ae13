"""One turn on the real CLI: start the process, read its stream as it grows, end it, say how it ended.

The same for every engine. What comes out is data; only what makes the trial impossible is raised.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from skillup.engines.base import Engine, EngineFault, TurnRequest
from skillup.environments.base import TrialEnvironment
from skillup.environments.process import (
    Command,
    Ended,
    ExecutableNotFoundError,
    Nursery,
    ProcessError,
    Running,
)
from skillup.environments.untrusted import open_regular
from skillup.errors import Cancelled, TrialError
from skillup.execution.reading import StreamReader
from skillup.execution.stream import MAX_DAMAGED, TurnStream
from skillup.results import StreamDamage

POLL_SECONDS = 0.05
"""How often the growing output is looked at; the end of the process wakes us at once."""

STALL_SECONDS = 60.0
"""An agent that shows no sign of work for so long (or for half of a shorter limit) is waiting, not working."""

_TAIL_BYTES = 4000


@dataclass(frozen=True)
class Limit:
    """The limit that holds for a turn: seconds, its name in results, how much it is, and the key that raises it."""

    seconds: float
    name: str
    amount: str
    key: str


@dataclass(frozen=True)
class TurnFiles:
    """Where a turn's standard streams go."""

    stdin: Path
    stdout: Path
    stderr: Path


@dataclass(frozen=True)
class TurnOutcome:
    """How a turn ended. `limit` is set when one was reached; `at_work` says whether the agent was seen to work then.

    `shows_progress` is the engine's: without it an agent that was not seen to work may have worked all the same.
    `strangers` are ids that the CLI reported and that are not the session of the trial; `session_turns` is how many
    messages the CLI's own file of the session holds, 0 where it is not read; `session_damage` is why it cannot be.
    """

    stream: TurnStream
    ended: Ended
    fault: EngineFault | None
    limit: Limit | None
    at_work: bool
    tail: str
    strangers: tuple[str, ...] = ()
    shows_progress: bool = True
    session_turns: int = 0
    session_damage: str = ""


def run_turn(
    engine: Engine,
    request: TurnRequest,
    *,
    number: int,
    files: TurnFiles,
    variables: Mapping[str, str],
    limit: Limit,
    environment: TrialEnvironment,
    nursery: Nursery,
    cancelled: threading.Event,
) -> TurnOutcome:
    """Runs one turn to its end; afterwards nothing that it started is alive.

    Raises:
        TrialError: `engine_missing`, `environment`: the CLI cannot be started.
        Cancelled: the user stopped the run; the turn was ended.
    """
    invocation = engine.invocation(request)
    files.stdin.write_text(invocation.stdin, encoding="utf-8", newline="")
    command = Command(invocation.argv, {**variables, **invocation.env}, request.workspace, files.stdin)
    started = time.monotonic()
    try:
        command = environment.command(command)
        running = nursery.start(command, stdout=files.stdout, stderr=files.stderr, deadline_seconds=limit.seconds)
    except ExecutableNotFoundError as error:
        raise TrialError(
            "engine_missing",
            str(error),
            turn=number,
            hint="install the CLI, or name it in `settings: {binary: …}`",
        ) from error
    except ProcessError as error:
        raise TrialError("environment", f"the CLI cannot be started: {error}", turn=number) from error
    reader = StreamReader(engine, request.workspace, TurnStream(number), files.stdout, started)
    try:
        patience = engine.patience(request.settings)
        ended, before = _follow(running, reader, limit, patience, cancelled)
    except ProcessError as error:
        raise TrialError("environment", f"the CLI's supervisor was lost: {error}", turn=number) from error
    if ended.how == "cancelled" and not before.lost_patience:
        raise Cancelled
    bound = request.session.id
    strangers = tuple(reported for reported in reader.stream.session_ids if bound is not None and reported != bound)
    outcome = _outcome(engine, request, reader.stream, ended, before, files=files, limit=limit)
    return replace(outcome, strangers=strangers)


@dataclass(frozen=True)
class _Doing:
    """What the agent was doing the last time we looked before its time was up."""

    at_work: bool = False
    trouble: EngineFault | None = None
    lost_patience: bool = False


def _follow(
    running: Running, reader: StreamReader, limit: Limit, patience: float | None, cancelled: threading.Event
) -> tuple[Ended, _Doing]:
    """Reads along until the process and all that it started are gone."""
    doing = _Doing()
    window = min(STALL_SECONDS, limit.seconds / 2)
    asked = behind = False
    try:
        while True:
            ended = running.wait(0 if behind else POLL_SECONDS)
            reader.stream.closing = reader.elapsed >= limit.seconds
            behind = reader.read()
            if ended is not None and (not behind or reader.stream.no_stream):
                reader.finish()
                return ended, doing
            if ended is not None and cancelled.is_set():
                raise Cancelled  # what it has printed in seconds may take minutes to be read
            if reader.elapsed < limit.seconds and not asked:
                # What comes later is the CLI's answer to being interrupted, not the agent's work.
                doing = _Doing(reader.stream.at_work(reader.elapsed, window), reader.stream.trouble)
            tired = patience is not None and reader.stream.in_trouble_for(reader.elapsed) > patience
            if (tired or reader.stream.no_stream) and not asked and not cancelled.is_set():
                # Some CLIs reconnect for ever; what they say of the reason is all that will ever come.
                doing = _Doing(trouble=reader.stream.trouble, lost_patience=True)
            if (doing.lost_patience or cancelled.is_set()) and not asked:
                running.end()
                asked = True
    finally:
        reader.close()


def _outcome(
    engine: Engine,
    request: TurnRequest,
    stream: TurnStream,
    ended: Ended,
    before: _Doing,
    *,
    files: TurnFiles,
    limit: Limit,
) -> TurnOutcome:
    tail = _end_of(files.stderr) or _end_of(files.stdout)
    finished = stream.finished
    if stream.no_stream:
        fault = EngineFault(
            "output", f"{engine.name} printed more than {MAX_DAMAGED:,} lines that are none of its format"
        )
        return TurnOutcome(stream, ended, fault, None, at_work=False, tail=tail)
    if ended.how == "deadline" and (finished is None or finished.fault is not None):
        stream.cut_at = limit.seconds
        seen = engine.shows_progress
        return TurnOutcome(stream, ended, before.trouble, limit, before.at_work, tail, shows_progress=seen)
    if before.lost_patience:
        return TurnOutcome(stream, ended, before.trouble, None, at_work=False, tail=tail)
    if finished is None:
        fault = engine.explain(ended.exit_code, ended.signal, _end_of(files.stdout), _end_of(files.stderr))
        if stream.damage is not None and stream.damage.lost and fault.kind == "output":
            fault = replace(fault, message=f"{fault.message}; {_damage(stream.damage)}")
        return TurnOutcome(stream, ended, fault, None, at_work=True, tail=tail)
    if finished.limit:
        by_case = finished.limit == "steps" and request.around.max_steps is not None
        key = "constraints.max_steps" if by_case else f"settings.max_{finished.limit} of the agent"
        own = Limit(ended.duration_seconds, finished.limit, "the CLI's own limit", key)
        return TurnOutcome(stream, ended, None, own, at_work=True, tail=tail)
    return TurnOutcome(stream, ended, stream.fault, None, at_work=True, tail=tail)


def _damage(damage: StreamDamage) -> str:
    """What is wrong with the output that an answer may be lost in."""
    places = "1 place" if damage.count == 1 else f"{damage.count:,} places"
    return f"its output is damaged in {places}, first at byte {damage.first_position:,}"


def _end_of(path: Path) -> str:
    """The last whole lines of a file, or the end of its last one where that is longer than we keep.

    Nothing when the agent has put something else in the file's place.
    """
    try:
        file = open_regular(path)
    except OSError:
        return ""
    with file:
        before = max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES)
        file.seek(before)
        end = file.read().decode("utf-8", errors="replace").strip()
    whole = end.partition("\n")[2] if before else end
    return whole or end

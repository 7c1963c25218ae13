"""One turn on the real CLI: start the process, read its stream as it grows, end it, say how it ended.

The same for every engine. What comes out is data; only what makes the trial impossible is raised.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from skillup.engines.base import Engine, TurnRequest
from skillup.engines.events import EngineFault
from skillup.environments.base import TrialEnvironment
from skillup.environments.process import Command, Ended, ExecutableNotFoundError, Nursery, ProcessError, Running
from skillup.environments.untrusted import open_regular
from skillup.errors import TrialError
from skillup.execution.reading import StreamReader, TurnFiles
from skillup.execution.stream import TurnStream
from skillup.execution.watching import Doing, Patience, Signs, follow
from skillup.modelserver.route import Route
from skillup.results import StreamDamage
from skillup.spec.agent import Limits

_TAIL_BYTES = 4000

_KILL_SECONDS = 5.0
"""How long the end of a tree that was killed is waited for: its folders are removed next."""


@dataclass(frozen=True)
class Limit:
    """The limit that holds for a turn: seconds, its name in results, how much it is, and the key that raises it."""

    seconds: float
    name: str
    amount: str
    key: str


@dataclass(frozen=True)
class TurnOutcome:
    """How a turn ended. `limit` is set when one was reached; `at_work` says whether the agent was seen to work then.

    `shows_progress`: without it an agent that was not seen to work may have worked all the same; `silent` says who kept
    silent, where that was seen. `late` is a CLI that had answered and did not exit.
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
    silent: str = ""
    late: bool = False
    session_turns: int = 0
    session_damage: str = ""

    @property
    def seconds(self) -> float:
        """How long the agent took: to its answer, where the CLI did not exit after it."""
        return self.stream.finished_at if self.late else self.ended.duration_seconds


def run_turn(
    engine: Engine,
    request: TurnRequest,
    *,
    number: int,
    files: TurnFiles,
    variables: Mapping[str, str],
    limit: Limit,
    environment: TrialEnvironment,
    limits: Limits,
    route: Route | None,
    nursery: Nursery,
    cancelled: threading.Event,
    bounds: Mapping[str, Limit] = MappingProxyType({}),
    on_trouble: Callable[[EngineFault], None] = lambda _: None,
) -> TurnOutcome:
    """Runs one turn to its end; afterwards nothing that it started is alive.

    `limit` is the time limit that holds for it, `limits` are the agent's own, `bounds` those that the CLI was told, by
    the names that it ends with. `route` is where it reaches the loopback model, None with a real one. `on_trouble` is
    told each fault that the CLI meets on its way to the provider.

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
    try:
        with owned(running):
            reader = StreamReader(engine, request.workspace, TurnStream(number, on_trouble), files, started)
            patience = Patience(
                limit.seconds, limits.idle_seconds, limits.exit_seconds, engine.patience(request.settings)
            )
            signs = Signs(started, request.home, lambda: _session_file(engine, request, reader.stream), route)
            ended, before = follow(running, reader, patience, signs, cancelled)
    except ProcessError as error:
        raise TrialError("environment", f"the CLI's supervisor was lost: {error}", turn=number) from error
    if before.cut == "idle":
        limit = Limit(
            limits.idle_seconds, "idle_seconds", f"{limits.idle_seconds:g} s", "limits.idle_seconds of the agent"
        )
    if before.cut == "waits":
        limit = replace(limit, amount=f"{limit.amount}: the CLI had said that it waits longer")
    bound = request.session.id
    strangers = tuple(reported for reported in reader.stream.session_ids if bound is not None and reported != bound)
    outcome = _outcome(engine, reader.stream, ended, before, files=files, limit=limit, bounds=bounds)
    seen = engine.shows_progress or route is not None
    return replace(outcome, strangers=strangers, shows_progress=seen, silent=before.silent)


@contextmanager
def owned(running: Running) -> Iterator[None]:
    """Whatever goes wrong on our side, the process does not outlive the turn."""
    try:
        yield
    except BaseException:
        running.kill()
        with suppress(ProcessError):
            running.wait(_KILL_SECONDS)
        raise


def _outcome(
    engine: Engine,
    stream: TurnStream,
    ended: Ended,
    before: Doing,
    *,
    files: TurnFiles,
    limit: Limit,
    bounds: Mapping[str, Limit],
) -> TurnOutcome:
    tail = _end_of(files.stderr) or _end_of(files.stdout)
    finished = stream.finished
    if stream.hopeless:
        fault = EngineFault("output", f"{engine.name} {stream.hopeless}")
        return TurnOutcome(stream, ended, fault, None, at_work=False, tail=tail)
    if ended.how == "deadline" and (finished is None or finished.fault is not None):
        stream.cut_at = before.cut_at or limit.seconds
        return TurnOutcome(stream, ended, before.trouble, limit, before.at_work, tail)
    if before.cut == "patience":
        return TurnOutcome(stream, ended, before.trouble, None, at_work=False, tail=tail)
    if finished is None:
        fault = engine.explain(ended.exit_code, ended.signal, _end_of(files.stdout), _end_of(files.stderr))
        if stream.failing is not None and ended.signal is None:
            fault = stream.failing  # it said why, and left out its last word
        if stream.damage is not None and stream.damage.lost and fault.kind == "output":
            fault = replace(fault, message=f"{fault.message}; {_damage(stream.damage)}")
        return TurnOutcome(stream, ended, fault, None, at_work=True, tail=tail)
    if finished.limit:
        key = f"settings.max_{finished.limit} of the agent"
        own = Limit(ended.duration_seconds, finished.limit, "the CLI's own limit", key)
        return TurnOutcome(stream, ended, None, bounds.get(finished.limit, own), at_work=True, tail=tail)
    late = ended.how != "exited"
    return TurnOutcome(stream, ended, stream.fault, None, at_work=True, tail=tail, late=late)


def _session_file(engine: Engine, request: TurnRequest, stream: TurnStream) -> str:
    """A glob below the home for the CLI's own file of the session; empty where it is not known yet, or not needed."""
    session = request.session.id or next(iter(stream.session_ids), None)
    return (engine.session_file(session) or "") if session else ""


def _damage(damage: StreamDamage) -> str:
    """What is wrong with the output that an answer may be lost in."""
    places = "1 place" if damage.count == 1 else f"{damage.count:,} places"
    return f"its output is damaged in {places}, first at byte {damage.first_position:,}"


def _end_of(path: Path) -> str:
    """The last whole lines of a file, or the last words of a line that is longer than we keep.

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
    # In the middle of a word it may be a secret, of which nobody could tell that it is one.
    return end.partition("\n")[2] or end.partition(" ")[2] if before else end

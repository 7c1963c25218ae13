"""Whose session it is: the home that its CLI keeps it in, the file it is kept in, and the trial that it belongs to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from skillup.engines.base import Engine
from skillup.environments.locks import FolderBusyError, hold_folder
from skillup.environments.untrusted import open_regular
from skillup.errors import TrialError
from skillup.execution.task import Services, TrialTask
from skillup.execution.turn import TurnOutcome
from skillup.spec.agent import Agent

MAX_SESSION_BYTES = 128 << 20
"""Many times what a long conversation with images takes; the file lies within the agent's reach."""


@contextmanager
def home_of_its_own(agent: Agent, engine: Engine, services: Services) -> Iterator[float]:
    """Makes sure that no other turn runs on a shared home meanwhile, and gives the seconds that were waited for it.

    Raises:
        TrialError: `environment`, somebody else kept it for too long, or it cannot be locked.
        Cancelled: the user stopped the run meanwhile.
    """
    home = agent.shared_home
    if home is None or not engine.home_needs_lock:
        yield 0.0
        return
    with ExitStack() as stack:
        try:
            waited = stack.enter_context(
                hold_folder(home, "skillup run", agent.limits.home_wait_seconds, services.cancelled)
            )
        except FolderBusyError as error:
            raise TrialError(
                "environment",
                f"{error}; waited {agent.limits.home_wait_seconds:g} s for it",
                hint="wait for it or end it, raise limits.home_wait_seconds, or give trials homes of their own "
                "(`session_binding: isolated`)",
            ) from error
        except OSError as error:
            raise TrialError("environment", f"the shared home {home} cannot be locked: {error}") from error
        yield waited


def with_session_file(engine: Engine, home: Path, outcome: TurnOutcome, workspace: Path) -> TurnOutcome:
    """Adds what the CLI's own file of this session shows and its stream does not: hidden calls, and how many turns."""
    turns, damage = 0, ""
    for session_id in outcome.stream.session_ids[:1]:
        pattern = engine.session_file(session_id)
        for path in sorted(home.glob(pattern)) if pattern else ():
            try:
                lines = _lines_of(path)
            except OSError as error:
                damage = error.strerror or str(error)
                continue
            turns += engine.session_turns(lines)
            for event in engine.session_events(lines, workspace):
                outcome.stream.add(event, outcome.ended.duration_seconds)
    return replace(outcome, session_turns=turns, session_damage=damage)


def _lines_of(path: Path) -> list[bytes]:
    """The lines of a file that the agent may have put there: neither through a link nor waiting at a pipe.

    Raises:
        OSError: it cannot be read, is no regular file, or is too large.
    """
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > MAX_SESSION_BYTES:
            raise OSError(f"it is larger than {MAX_SESSION_BYTES >> 20} MiB")
        return file.read(MAX_SESSION_BYTES).splitlines()


def mixed_up(outcome: TurnOutcome, number: int, task: TrialTask, services: Services) -> TrialError | None:
    """The fault that somebody else is in this trial's session: another trial, or a process that is not ours."""
    for session_id in outcome.stream.session_ids[:1]:
        owner = services.sessions.owner(session_id, task.attempt_folder)
        if owner != task.attempt_folder:
            return TrialError(
                "session",
                f"turn {number} ran in session {session_id}, which belongs to another trial: {owner}",
                turn=number,
                hint="the CLI gave one id to two conversations, so neither was judged any further",
            )
        if outcome.session_damage:
            return TrialError(
                "session",
                f"the CLI's own file of session {session_id} cannot be read: {outcome.session_damage}",
                turn=number,
                hint="so nobody can tell whose messages it holds; the agent can reach that file: see its tool calls",
            )
        if outcome.session_turns > number:
            return TrialError(
                "session",
                f"session {session_id} holds {outcome.session_turns} messages of a user, but this trial has sent "
                f"{number}: another process has written into it",
                turn=number,
                hint="what was answered may belong to the other conversation and was not judged; is the session "
                "resumed elsewhere, or by the agent itself?",
            )
    return None

"""The programs of graders: run when the conversation has ended, each beside a copy of the workspace of its own.

A program runs in the suite's folder, as its author runs it, and only when its files are still what they were when the
case was loaded. What happened comes to it on stdin, masked, and what it prints is saved with the trial.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from skillup.environments.host import TrialRoot, child_variables
from skillup.environments.process import Command
from skillup.execution.copies import run_on_copy
from skillup.execution.masked import masked
from skillup.execution.store import write_json
from skillup.execution.task import Services, TrialTask
from skillup.judging.evidence import calls_of, took_place
from skillup.masking import Masker
from skillup.results import Ending, ProgramRecord, TurnRecord
from skillup.spec.case import Case
from skillup.spec.programs import Program
from skillup.transcript import Message


def run_programs(
    task: TrialTask,
    services: Services,
    workspace: Path,
    *,
    ending: Ending,
    turns: Sequence[TurnRecord],
    masker: Masker,
) -> tuple[ProgramRecord, ...]:
    """Runs every program of the case's graders once; none on half a conversation, none about a turn that was not.

    Raises:
        Cancelled: the user stopped the run.
    """
    ran = [turn for turn in turns if took_place(turn)]
    if not ending.whole or not ran:
        return ()
    records = []
    for name, turn, program in task.case.programs:
        about = ran if turn is None else [one for one in ran if one.number <= turn]
        if turn is None or any(one.number == turn for one in about):
            given = masked(_given(task.case, program, about, turn), masker)
            # The workspace is as it is at the end, so only what judges the end is shown it.
            command = partial(_command, program, given, task, services, shown=turn in (None, len(task.case.turns)))
            record = ProgramRecord(
                grader=name,
                command=program.command,
                files={file.path: file.sha256 for file in program.files},
                cwd=program.cwd,
                config=program.config,
                criteria=program.criteria,
                expected_output=program.expected_output,
                timeout_seconds=program.seconds,
            )
            records.append(_run(record, command, task, services, workspace))
    return tuple(records)


def _run(
    record: ProgramRecord,
    command: Callable[[TrialRoot], Command],
    task: TrialTask,
    services: Services,
    workspace: Path,
) -> ProgramRecord:
    changed = _changed(record, task.suite_root)
    if changed:
        return record.model_copy(update={"problem": f"{changed} has changed since the case was loaded"})
    record = run_on_copy(record, command, task, services, workspace)
    changed = _changed(record, task.suite_root)
    if changed and not record.problem:
        return record.model_copy(update={"problem": f"{changed} was changed while it ran"})
    return record


def _changed(record: ProgramRecord, root: Path) -> str | None:
    """The first file of a program that is not what it was."""
    return next((path for path, sha256 in record.files.items() if _hash(root / path) != sha256), None)


def _hash(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _command(
    program: Program, given: dict[str, Any], task: TrialTask, services: Services, root: TrialRoot, *, shown: bool
) -> Command:
    told = root.scratch / "stdin.json"
    write_json(told, {**given, "workspace_path": str(root.workspace) if shown else None})
    own = {"PYTHONDONTWRITEBYTECODE": "1"}  # Python would write its caches into the suite
    variables = child_variables(services.host, root, task.environment.env, own)
    return Command(
        program.command, variables, task.suite_root / (program.cwd or "."), stdin=told, reads=(task.suite_root,)
    )


def _given(case: Case, program: Program, turns: Sequence[TurnRecord], turn: int | None) -> dict[str, Any]:
    """What the program is told, by AgentV's names, of one turn or of all.

    Of a turn, `input` is the conversation up to its message and `messages` what came of it; of the whole, `messages` is
    all of it.
    """
    begun = [{"role": "system", "content": case.input.system}] if case.input.system else []
    begun += [{"role": one.role, "content": one.content} for one in case.input.history if one.content]
    own = turns[-1:] if turn is not None else turns
    before = turns[:-1] if turn is not None else ()
    told = [*begun, *(message for one in before for message in (_user(one), *_replies(one)))]
    spent = [one.usage for one in own]
    return {
        "criteria": program.criteria,
        "input": [*told, *(_user(one) for one in own)] if turn is not None else [*told, _user(own[0])],
        "expected_output": _expected(program),
        "output": own[-1].response or "",
        "messages": [message for one in own for message in ([] if turn else [_user(one)]) + _replies(one)],
        "config": program.config,
        "metadata": {
            "test_id": case.id,
            "turn": turn,
            "messages_left_out": sum(one.messages_left_out for one in turns),
            "events_lost": sum(one.stream_corrupt.lost for one in turns if one.stream_corrupt),
        },
        "trace_summary": {
            "event_count": sum(len(one.messages) for one in own),
            "tool_calls": dict(Counter(call.tool for one in own for call in calls_of(one))),
            "error_count": sum(call.status == "error" for one in own for call in calls_of(one)),
        },
        "token_usage": {
            "input": _sum([one.input_tokens for one in spent]),
            "output": _sum([one.output_tokens for one in spent]),
        },
        "cost_usd": _sum([one.cost_usd for one in spent]),
        "duration_ms": sum(one.duration_ms for one in own),
    }


def _expected(program: Program) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": program.expected_output}] if program.expected_output else []


def _user(turn: TurnRecord) -> dict[str, Any]:
    return {"role": "user", "content": turn.content}


def _replies(turn: TurnRecord) -> list[dict[str, Any]]:
    """What the agent said and did in a turn; what a call gave back stands with the call."""
    results = {one.tool_result.call_id: one.tool_result.content for one in turn.messages if one.tool_result}
    return [_reply(one, results) for one in turn.messages if one.role in ("assistant", "tool_call")]


def _reply(message: Message, results: dict[str, str]) -> dict[str, Any]:
    call = message.tool_call
    if call is None:
        return {"role": "assistant", "content": message.text}
    made = {"id": call.id, "tool": call.tool, "input": call.arguments, "output": results.get(call.id)}
    return {"role": "assistant", "content": "", "tool_calls": [made]}


def _sum(values: Sequence[float | None]) -> float | None:
    """The sum, None when one of them is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None

"""The scripts of judges: run when the conversation has ended, each on a copy of the workspace of its own.

A script is copied out of the suite only now, and only when it is still what it was when the case was loaded. What
happened comes to it by files, masked, and what it says is saved with the trial.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from skillup.environments.host import TrialRoot, child_variables
from skillup.environments.process import Command
from skillup.execution.copies import run_on_copy
from skillup.execution.masked import masked
from skillup.execution.store import write_atomically, write_json
from skillup.execution.task import Services, TrialTask
from skillup.judging.evidence import took_place
from skillup.masking import Masker
from skillup.results import SCHEMA_VERSION, Ending, ScriptRecord, TurnRecord
from skillup.spec.script_judge import ScriptFile, starter


@dataclass(frozen=True)
class _Trial:
    """What every script of a trial gets; `answer` is the last one, `exit_code` that of the turn that gave it."""

    task: TrialTask
    services: Services
    workspace: Path
    conversation: Mapping[str, Any]
    answer: str
    exit_code: int | None


def run_scripts(
    task: TrialTask,
    services: Services,
    workspace: Path,
    *,
    ending: Ending,
    turns: Sequence[TurnRecord],
    masker: Masker,
) -> tuple[ScriptRecord, ...]:
    """Runs every script of the case's judges once; none after a fault, and none on half a conversation.

    Raises:
        Cancelled: the user stopped the run.
    """
    wanted = dict.fromkeys(task.case.judge_scripts)
    if not wanted or not ending.whole:
        return ()
    ran = [turn for turn in turns if took_place(turn)]
    conversation = {
        "schema_version": SCHEMA_VERSION,
        "case_id": task.case.id,
        "ending": masked(ending, masker),
        "turns": [masked(turn, masker) for turn in turns],
    }
    answer = masker.text((ran[-1].response if ran else None) or "")
    trial = _Trial(task, services, workspace, conversation, answer, ran[-1].exit_code if ran else None)
    return tuple(_run(script, seconds, trial) for script, seconds in wanted)


def _run(script: ScriptFile, seconds: float, trial: _Trial) -> ScriptRecord:
    source = trial.task.suite_root / script.path
    record = ScriptRecord(path=script.path, sha256=script.sha256, timeout_seconds=seconds)
    data = _unchanged(source, script.sha256)
    if data is None:
        return record.model_copy(update={"problem": f"{script.path} has changed since the case was loaded"})
    command = partial(_command, data, source.name, trial)
    record = run_on_copy(record, command, trial.task, trial.services, trial.workspace)
    if _unchanged(source, script.sha256) is None and not record.problem:
        record = record.model_copy(update={"problem": f"{script.path} was changed while it ran"})
    return record


def _unchanged(source: Path, sha256: str | None) -> bytes | None:
    """What the script's file holds; None when that is not what the case was loaded with."""
    try:
        data = source.read_bytes()
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == sha256 else None


def _command(data: bytes, name: str, trial: _Trial, root: TrialRoot) -> Command:
    """How the script is started, its files written: by arguments and by small variables, never by long ones."""
    folder = root.scratch / "judge"  # of its own, so that no name of a script meets one of ours
    folder.mkdir()
    program, talk, last = folder / name, root.scratch / "conversation.json", root.scratch / "final-message.txt"
    program.write_bytes(data)
    program.chmod(0o700)
    write_json(talk, dict(trial.conversation))
    write_atomically(last, trial.answer.encode("utf-8", errors="replace"))
    own = {"EVAL_TRANSCRIPT_PATH": str(talk), "EVAL_FINAL_MESSAGE_PATH": str(last)}
    own |= {} if trial.exit_code is None else {"EVAL_EXIT_CODE": str(trial.exit_code)}
    variables = child_variables(trial.services.host, root, trial.task.environment.env, own)
    return Command((*(starter(data, name) or ()), str(program), str(talk), str(last)), variables, root.workspace)

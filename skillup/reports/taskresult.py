"""Trials as `TaskResult` records of the Agent Framework's lab, a line of JSON each.

The lab's own types nest; its runner writes the same flat, and its viewer reads that. Here are both.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from skillup.reports.scores import is_trajectory, scores_of
from skillup.results import (
    RunResult,
    TaskDetails,
    TaskEvaluation,
    TaskFacts,
    TaskPrediction,
    TaskResult,
    TrialRecord,
    TrialResult,
)
from skillup.spec.judge import TRAJECTORY_THRESHOLD

RecordOf = Callable[[TrialResult], TrialRecord]
"""The saved record of a trial."""


def taskresult(run: RunResult, record_of: RecordOf) -> bytes:
    """`results.jsonl`: one nested record a line."""
    return b"".join(_line(_task(result, record_of).model_dump(mode="json")) for result in run.case_results)


def taskresult_flat(run: RunResult, record_of: RecordOf) -> bytes:
    """`results-flat.jsonl`: the same as the lab's runner writes it."""
    return b"".join(_line(_flat(_task(result, record_of), record_of(result))) for result in run.case_results)


def _line(data: dict[str, Any]) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode() + b"\n"


def _task(result: TrialResult, record_of: RecordOf) -> TaskResult:
    failure = result.error
    return TaskResult(
        task_id=result.case_id,
        task=TaskFacts(task_id=result.case_id, question=result.title or result.prompt),
        prediction=TaskPrediction(prediction=result.response, messages=tuple(_messages(record_of(result)))),
        evaluation=_evaluation(result),
        runtime_seconds=result.duration_ms / 1000,
        error=f"{failure.kind}: {failure.message}" if failure else None,
    )


def _evaluation(result: TrialResult) -> TaskEvaluation:
    """The verdict. A trial without one is neither right nor wrong, and has no score."""
    found = {name: one for name, one in scores_of(result).items() if one.value is not None}
    values = [one.value for one in found.values() if one.value is not None]
    valid = result.status in ("PASS", "FAIL")
    mean = sum(values) / len(values) if values else result.grading.summary.pass_rate
    ran = [turn for turn in result.turn_results if turn.status != "skipped"]
    steps = [turn.steps for turn in ran if turn.steps is not None]
    calls = tuple(call for turn in ran for call in turn.tool_calls)
    details = TaskDetails(
        scores={name: one.value for name, one in found.items() if one.value is not None},
        reasons={name: one.reasoning for name, one in found.items()},
        threshold=TRAJECTORY_THRESHOLD if is_trajectory(result) else None,
        tools_used=tuple(dict.fromkeys(calls)),
        tool_call_order=calls,
        steps=sum(steps) if ran and len(steps) == len(ran) else None,
        status=result.status,
        code=result.grading.code,
        reason=result.grading.reason,
        agent=result.agent.name,
        model=result.agent.model,
        trial=result.trial,
    )
    return TaskEvaluation(
        is_correct=result.status == "PASS" if valid else None,
        score=round(mean, 9) if valid and mean is not None else None,
        details=details,
    )


def _messages(record: TrialRecord) -> list[dict[str, Any]]:
    """What was said and done in the trial, as OpenAI's chat messages; a subagent's own talk is left out."""
    made: list[dict[str, Any]] = []
    for message in (message for turn in record.turns for message in turn.messages if message.parent is None):
        if message.role in ("user", "system"):
            made.append({"role": message.role, "content": message.text})
        elif message.role == "assistant":
            made.append({"role": "assistant", "content": message.text})
        elif message.tool_call is not None:
            call = message.tool_call
            if not made or made[-1]["role"] != "assistant":
                made.append({"role": "assistant", "content": None})
            function = {"name": call.name, "arguments": json.dumps(call.raw_arguments, ensure_ascii=False)}
            made[-1].setdefault("tool_calls", []).append({"id": call.id, "type": "function", "function": function})
        elif message.tool_result is not None:
            answer = message.tool_result
            made.append({"role": "tool", "tool_call_id": answer.call_id, "content": answer.content})
    return made


def _flat(task: TaskResult, record: TrialRecord) -> dict[str, Any]:
    return {
        "schema_version": task.schema_version,
        "task_id": task.task_id,
        "level": None,
        "question": task.task.question,
        "answer": None,
        "prediction": task.prediction.prediction,
        "is_correct": task.evaluation.is_correct,
        "score": task.evaluation.score,
        "runtime_seconds": task.runtime_seconds,
        "error": task.error,
        "timestamp": record.started_at,
        "task_metadata": {},
        "file_name": None,
        "messages": list(task.prediction.messages),
        "prediction_metadata": {},
        "evaluation_details": task.evaluation.details.model_dump(mode="json"),
    }

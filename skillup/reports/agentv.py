"""Scored conversations in the shape of AgentV's proposal: one line of JSON a trial, with every part's score."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from skillup.results import PartScore, RunResult, Status, TrialResult, Variant
from skillup.transcript import Value

_STATUS: dict[Status, Literal["ok", "quality_failure", "execution_error", "skipped", "unchecked"]] = {
    "PASS": "ok",
    "FAIL": "quality_failure",
    "ERROR": "execution_error",
    "SKIP": "skipped",
    "UNCHECKED": "unchecked",
}


class OutputMessage(Value):
    """One message of the conversation as it went."""

    role: Literal["user", "assistant"]
    content: str


class EvaluationResult(Value):
    """One trial; `score` is in [0, 1], None when it is not known. The keys after `output` are ours."""

    test_id: str
    score: float | None
    execution_status: Literal["ok", "quality_failure", "execution_error", "skipped", "unchecked"]
    scores: tuple[PartScore, ...]
    output: tuple[OutputMessage, ...]
    agent: str
    configuration: Variant
    trial: int
    threshold: float | None
    reason: str


def evaluations(run: RunResult) -> bytes:
    """A line for every trial whose conversation was scored."""
    lines = [evaluation(trial).model_dump_json() for trial in run.case_results if trial.grading.scores]
    return "".join(f"{line}\n" for line in lines).encode()


def evaluation(trial: TrialResult) -> EvaluationResult:
    """One trial in that shape."""
    grading = trial.grading
    return EvaluationResult(
        test_id=trial.case_id,
        score=grading.score,
        execution_status=_STATUS[trial.status],
        scores=grading.scores,
        output=tuple(_output(trial)),
        agent=trial.agent.name,
        configuration=trial.configuration,
        trial=trial.trial,
        threshold=grading.pass_threshold,
        reason=grading.reason,
    )


def _output(trial: TrialResult) -> Iterator[OutputMessage]:
    for turn in trial.turn_results:
        if turn.status != "skipped":
            yield OutputMessage(role="user", content=turn.content)
        if turn.response is not None:
            yield OutputMessage(role="assistant", content=turn.response)

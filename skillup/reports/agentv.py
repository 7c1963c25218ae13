"""Scored conversations in the shape of AgentV's proposal: one line of JSON a trial, with every part's score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from skillup.judging.totals import is_fallback
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


class TrialsTogether(Value):
    """What several trials of a case by one agent in one way come to over the `valid` ones; None: not known.

    `pass_at_k`: one of them passed. `pass_all`: each did, and none was left out.
    """

    count: int
    valid: int
    passed: int
    pass_at_k: bool | None
    pass_all: bool | None
    best: float | None
    mean: float | None
    worst: float | None


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
    trials: TrialsTogether | None = None


def evaluations(run: RunResult) -> bytes:
    """A line for every trial whose conversation was scored; of a case with several each line says what all come to."""
    groups: dict[tuple[str, str, Variant, bool], list[TrialResult]] = {}
    for trial in run.case_results:  # one without scores has no row, but it counts in those of its group
        groups.setdefault(_group(trial), []).append(trial)
    rows = [(trial, groups[_group(trial)]) for trial in run.case_results if trial.grading.scores]
    lines = [evaluation(trial, group if len(group) > 1 else ()).model_dump_json() for trial, group in rows]
    return "".join(f"{line}\n" for line in lines).encode()


def _group(trial: TrialResult) -> tuple[str, str, Variant, bool]:
    """What the trials that are counted together have in common: they measure the same."""
    return trial.case_id, trial.agent.name, trial.configuration, is_fallback(trial)


def evaluation(trial: TrialResult, group: Sequence[TrialResult] = ()) -> EvaluationResult:
    """One trial in that shape; `group` are all trials of its case that measure the same, where there are several."""
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
        trials=_together(group) if group else None,
    )


def _together(group: Sequence[TrialResult]) -> TrialsTogether:
    valid = [trial for trial in group if trial.status in ("PASS", "FAIL")]
    scores = [trial.grading.score for trial in valid if trial.grading.score is not None]
    passed = sum(trial.status == "PASS" for trial in valid)
    known = len(scores) == len(valid) and bool(valid)
    return TrialsTogether(
        count=len(group),
        valid=len(valid),
        passed=passed,
        pass_at_k=passed > 0 if valid else None,
        pass_all=passed == len(group) if valid else None,
        best=max(scores) if known else None,
        mean=round(sum(scores) / len(scores), 9) if known else None,
        worst=min(scores) if known else None,
    )


def _output(trial: TrialResult) -> Iterator[OutputMessage]:
    for turn in trial.turn_results:
        if turn.status != "skipped":
            yield OutputMessage(role="user", content=turn.content)
        if turn.response is not None:
            yield OutputMessage(role="assistant", content=turn.response)

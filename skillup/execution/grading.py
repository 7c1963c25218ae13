"""From a saved trial to its saved verdict. `run` and `skillup judge` come through here, and there is no other way."""

from __future__ import annotations

from pathlib import Path

from skillup.execution.criteria import SAVED, CriteriaStep, forget_answers
from skillup.execution.evaluators import evaluate_all
from skillup.execution.masked import masked
from skillup.execution.revisions import Revision, spent_on_judging
from skillup.execution.store import load_trial, write_json
from skillup.judging.evidence import Evidence, calls_of
from skillup.judging.several import judge_all
from skillup.results import (
    Expectation,
    Failure,
    Grading,
    Summary,
    Timing,
    TrialResult,
    TurnRecord,
    TurnResult,
    Verdict,
)
from skillup.spec.case import Case
from skillup.transcript import add_usage

FOLDER_PARTS = 5
"""`<case>/<agent>/<variant>/trial-K/attempt-N`: what names a trial's folder within the run directory."""


def grade(folder: Path, criteria: CriteriaStep = SAVED, other: Case | None = None) -> TrialResult:
    """Judges a saved trial and writes `grading.json`, `timing.json` and, last of all, `result.json` beside it.

    `criteria` says whether a model is asked about the case's criteria, or what it said before is taken. `other` is the
    case with another judge, and is saved instead. What was judged before and is replaced stays in `revisions/N/`.

    Raises:
        Cancelled: the user stopped the run while a model was asked.
        RunDirectoryError: the folder is not a saved trial.
    """
    case, evidence = load_trial(folder)
    before = Revision(folder)
    if other is not None:
        write_json(folder / "case.json", masked(other, criteria.masker, only_set=True), replacing=before.keep)
        asked = case
        case, evidence = load_trial(folder)
        forget_answers(folder, asked, case, before)
    said = criteria.take_all(folder, case, evidence, before)
    evaluations = evaluate_all(folder, case, evidence, criteria, before)
    return _save(folder, evidence, judge_all(case, evidence, said, evaluations), before)


def grade_unjudged(folder: Path, failure: Failure) -> TrialResult:
    """Saves ERROR for a trial that a bug of ours kept from being judged: what happened stays, to be judged again.

    Raises:
        RunDirectoryError: the folder is not a saved trial.
    """
    _, evidence = load_trial(folder)
    verdict = Verdict(
        status="ERROR",
        code=failure.kind,
        reason=failure.message,
        assertion_results=(),
        summary=Summary(passed=0, failed=0, unknown=0, total=0, pass_rate=None),
        error=failure,
        turns_executed=len(evidence.turns),
        turns_total=evidence.record.turns_total,
    )
    return _save(folder, evidence, verdict, Revision(folder))


def _save(folder: Path, evidence: Evidence, verdict: Verdict, before: Revision) -> TrialResult:
    result = _result(evidence, verdict, folder)
    write_json(folder / "grading.json", _grading(verdict), replacing=before.keep)
    write_json(folder / "timing.json", Timing(total_tokens=result.usage.total_tokens, duration_ms=result.duration_ms))
    write_json(folder / "result.json", result)
    return result


def _grading(verdict: Verdict) -> Grading:
    expectations = tuple(
        Expectation(text=one.text, passed=one.passed, evidence=one.evidence) for one in verdict.assertion_results
    )
    return Grading(**dict(verdict), expectations=expectations)


def _result(evidence: Evidence, verdict: Verdict, folder: Path) -> TrialResult:
    record, ran = evidence.record, evidence.turns
    usage = add_usage([turn.usage for turn in ran])
    return TrialResult(
        case_id=record.case_id,
        title=record.title,
        status=verdict.status,
        configuration=record.configuration,
        agent=record.agent,
        trial=record.trial,
        attempts=record.attempt,
        duration_ms=record.duration_ms,
        waited_ms=record.waited_ms,
        turns=len(ran),
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        usage=usage,
        cost_usd=usage.cost_usd,
        judging=spent_on_judging(folder),
        continuity=record.continuity,
        execution_mode=record.execution_mode,
        session_ids=record.session_ids,
        prompt=record.turns[0].content if record.turns else "",
        response=ran[-1].response if ran else None,
        turn_results=tuple(_turn(turn) for turn in record.turns),
        grading=verdict,
        error=verdict.error,
        failures=record.failures,
        artifacts=record.artifacts,
        artifact_notes=record.artifact_notes,
        folder="/".join(folder.parts[-FOLDER_PARTS:]),
    )


def _turn(turn: TurnRecord) -> TurnResult:
    return TurnResult(
        turn_number=turn.number,
        content=turn.content,
        response=turn.response,
        status=turn.status,
        reason=turn.reason,
        session_id=turn.session_id,
        gate=turn.gate,
        captures=turn.captures,
        duration_ms=turn.duration_ms,
        usage=turn.usage,
        steps=turn.steps,
        tool_calls=tuple(call.label for call in calls_of(turn)),
        workspace=turn.changes,
        notes=turn.notes,
        stream_corrupt=turn.stream_corrupt,
        messages_left_out=turn.messages_left_out,
        unfinished_background=turn.unfinished_background,
        unmatched=turn.model_traffic.unmatched if turn.model_traffic else (),
    )

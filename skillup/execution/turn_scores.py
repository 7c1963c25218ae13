"""Whether a conversation goes on after a turn, where its score decides that: it is judged as it will be at the end.

What a model says then is saved and taken at the end; nothing is asked twice.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from skillup.environments.snapshot_log import SavedSnapshots
from skillup.errors import TrialError
from skillup.execution.criteria import CriteriaStep
from skillup.execution.masked import masked
from skillup.execution.place import Place
from skillup.execution.record import Talk, record_trial
from skillup.execution.revisions import Revision
from skillup.execution.store import read_model
from skillup.judging.criteria import criteria_checks
from skillup.judging.evidence import Evidence
from skillup.judging.judge import certain_checks
from skillup.judging.scoring import part_range
from skillup.results import Ending, Failure, TrialRecord, TurnRecord
from skillup.spec.case import Case
from skillup.spec.scoring import Part


@dataclass(frozen=True)
class TurnScore:
    """What the score of a turn means for those after it; `seconds` is how long it took to find out."""

    ending: Ending | None = None
    failure: Failure | None = None
    seconds: float = 0.0


GO_ON = TurnScore()


def after_turn(place: Place, turns: Sequence[TurnRecord]) -> TurnScore:
    """Judges the last of `turns`, where a turn that fails stops the conversation and another one would follow.

    Raises:
        Cancelled: the user stopped the run.
        RunDirectoryError, OSError: what was judged cannot be saved or read.
    """
    case, number = place.task.case, len(turns)
    scoring = case.scoring
    if scoring is None or scoring.on_turn_failure == "continue" or number == len(place.task.turns):
        return GO_ON
    part = next((part for part in scoring.parts if part.turn == number and part.graders), None)
    if part is None:
        return GO_ON
    clock = time.monotonic()
    found = _judged(place, part, number, turns)
    return TurnScore(found.ending, found.failure, time.monotonic() - clock)


def _judged(place: Place, part: Part, number: int, turns: Sequence[TurnRecord]) -> TurnScore:
    folder = place.folder
    case = _about(read_model(folder.path / "case.json", Case), number)
    record = record_trial(place.task, Talk(tuple(turns), Ending(how="completed"), ()), datetime.now(UTC), 0.0)
    saved = TrialRecord.model_validate(masked(record, folder.masker))
    evidence = Evidence(saved, SavedSnapshots.load(folder.path), ignore_case=bool(case.ignore_case))
    step = CriteriaStep("rest", place.task.judges, place.services, masker=folder.masker)
    said = step.take_all(folder.path, case, evidence, Revision(folder.path))[""]
    checks = (*certain_checks(case, evidence), *criteria_checks(case, evidence, said))
    score = part_range(case, part, evidence, checks)
    threshold = case.judge.threshold if case.judge else 1.0
    if score.low >= threshold:
        return GO_ON
    if score.high < threshold:
        reason = f"turn {number} scored {score.high:.4g}, less than {threshold:g}"
        return TurnScore(Ending(how="stopped", turn=number, reason=reason))
    unknown = [check for check in checks if check.state == "unknown" and not check.required]
    if not unknown or any(check.cause == "not_asked" for check in unknown):
        return GO_ON  # without a model nobody knows, and the trial is partial
    message = f"whether the conversation goes on after turn {number} could not be judged: {unknown[0].evidence}"
    error = TrialError("judge", message, turn=number, hint="on_turn_failure: continue judges at the end alone")
    return TurnScore(Ending(how="error", turn=number, reason=message), Failure.of(error))


def _about(case: Case, number: int) -> Case:
    """The case with what concerns one turn alone."""
    judge, scoring = case.judge, case.scoring
    if judge is None or scoring is None:
        return case
    criteria = tuple(one for one in judge.criteria if one.turn == number)
    parts = tuple(part for part in scoring.parts if part.turn == number)
    narrowed = scoring.model_copy(update={"parts": parts})
    return case.model_copy(update={"judge": judge.model_copy(update={"criteria": criteria, "scoring": narrowed})})

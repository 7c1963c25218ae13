"""The process in which one evaluator judges one saved trial: `python -m … TRIAL JUDGE-ID ANSWER`.

The answer is a file, as what an evaluator prints is its own. Without one the process has not come to its end.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from pydantic import ValidationError

from skillup.execution.evaluators import PRINTED, found_evaluator
from skillup.execution.store import load_trial, write_json
from skillup.judging.evaluators import Evaluation, complaint
from skillup.judging.evidence import Evidence
from skillup.results import Evaluated
from skillup.spec.case import Case
from skillup.spec.judge import Judge


def answer_of(judge: Judge, case: Case, evidence: Evidence) -> Evaluated:
    """What the judge's evaluator says, or why it says nothing; the traceback of one that raises goes to stderr."""
    blank = Evaluated(evaluator=judge.evaluator or "", config=judge.config)
    found = found_evaluator(blank.evaluator)
    if isinstance(found, tuple):
        return blank.model_copy(update={"error": found[0]})
    try:
        if isinstance(found, type):
            said = found(**judge.config)(evidence, case)
        else:
            said = found(evidence, case, **judge.config)
    except Exception as error:  # noqa: BLE001 - foreign code on a foreign trial: what it raises is its own fault
        traceback.print_exc()
        message = f"it raised {type(error).__name__}: {error}; {PRINTED} has the traceback"
        return blank.model_copy(update={"error": message})
    try:
        evaluation = Evaluation.model_validate(said.model_dump() if isinstance(said, Evaluation) else said)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or type(said).__name__
        return blank.model_copy(update={"error": f"it returned no evaluation: {where}: {first['msg']}"})
    wrong = complaint(evaluation, evidence)
    if wrong:
        return blank.model_copy(update={"error": wrong})
    turns = tuple(one.model_dump() for one in evaluation.turns)
    return blank.model_copy(update={**dict(evaluation), "turns": turns})


def main(trial: Path, judge_id: str, answer: Path) -> None:
    """Asks the evaluator of one of the case's judges, "" being the only one, and writes its answer.

    Raises:
        RunDirectoryError: the trial is damaged.
        OSError: the answer cannot be written.
    """
    case, evidence = load_trial(trial)
    own = next((case.judged_by(member) for member in case.judges if member.id == judge_id), case)
    if own.judge is not None:
        write_json(answer, answer_of(own.judge, own, evidence))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))

"""How steady a judge's model is: every criterion asked several times, and nothing saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from skillup.execution.again import SavedTrial
from skillup.execution.criteria import SAVED
from skillup.execution.evaluators import evaluate_all
from skillup.execution.judge_agent import opener
from skillup.execution.revisions import Revision
from skillup.execution.store import load_trial
from skillup.execution.task import Services
from skillup.judging.asking import ask, open_sets
from skillup.judging.evidence import Evidence
from skillup.judging.several import judge_all
from skillup.results import Agreement, Criteria, CriterionAgreement, TrialAgreement
from skillup.spec.case import Case
from skillup.transcript import Usage, add_usage


def measure(trials: Sequence[SavedTrial], repeats: int) -> Agreement:
    """Asks the criteria of every trial that often, and says how far the answers agree; nothing is saved.

    Raises:
        Cancelled: the user stopped it.
        RunDirectoryError: a trial is damaged.
    """
    found = [one for trial in trials for one in _attempts(trial, repeats)]
    shares = [one.agreement for trial in found for one in trial.criteria if one.agreement is not None]
    return Agreement(
        repeats=repeats,
        trials=tuple(found),
        agreement=sum(shares) / len(shares) if shares else None,
        calls=sum(trial.calls for trial in found),
        usage=add_usage([trial.usage for trial in found]),
    )


def _attempts(trial: SavedTrial, repeats: int) -> Iterator[TrialAgreement]:
    """The last attempt of a trial, where there is anything to ask."""
    records = sorted(trial.folder.glob("attempt-*/record.json"), key=lambda path: int(path.parent.name[8:]))
    if not records or not trial.step.models or trial.step.services is None:
        return
    case, evidence = load_trial(records[-1].parent)
    rounds = [_round(case, evidence, trial, trial.step.services) for _ in range(repeats)]
    asked = [said for one in rounds for said in one.values()]
    if not asked:
        return
    folder = records[-1].parent
    evaluations = evaluate_all(folder, case, evidence, SAVED, Revision(folder))
    statuses = Counter(judge_all(case, evidence, one, evaluations).status for one in rounds)
    yield TrialAgreement(
        case_id=evidence.record.case_id,
        agent=evidence.record.agent.name,
        folder="/".join(Path(records[-1]).parts[-6:-1]),
        statuses=dict(statuses),
        criteria=tuple(_criteria(rounds)),
        calls=sum(said.calls for said in asked),
        usage=add_usage([said.usage for said in asked]) if asked else Usage(),
    )


def _round(case: Case, evidence: Evidence, trial: SavedTrial, services: Services) -> dict[str, Criteria]:
    """What the judges' models say, asked once; none of a trial whose FAIL is certain without them."""
    said: dict[str, Criteria] = {}
    alone = {member.id: case.judged_by(member) for member in case.judges} or {"": case}
    for name, judged in alone.items():
        ref = trial.step.models.get(name)
        if ref is not None and judged.judge is not None and open_sets(judged, evidence, {}):
            opened = opener(ref, judged.judge, services, None, trial.step.masker)
            asked = ask(judged, evidence, ref, opened, known={}, revision=1, now="")
            said[name] = asked.criteria
    return said


def _criteria(rounds: Sequence[dict[str, Criteria]]) -> Iterator[CriterionAgreement]:
    for judge in rounds[0]:
        for place, first in enumerate(rounds[0][judge].results):
            results = [one[judge].results[place] for one in rounds]
            answers = Counter(result.verdict or ("error" if result.error else "not_asked") for result in results)
            scores = [result.score for result in results if result.score is not None]
            counted = [count for answer, count in answers.items() if answer not in ("error", "not_asked")]
            yield CriterionAgreement(
                judge=judge,
                id=first.id,
                answers=dict(answers),
                agreement=max(counted) / sum(counted) if counted else None,
                score_min=min(scores, default=None),
                score_max=max(scores, default=None),
            )

"""Judging a run again: which of its trials, by which judge, and what a model is asked. No agent is started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillup.errors import Fault, InputError
from skillup.execution import rundir
from skillup.execution.criteria import Ask, CriteriaStep
from skillup.execution.evaluators import evaluator_faults
from skillup.execution.judges import JudgeChoice, models_of
from skillup.execution.store import read_model
from skillup.execution.task import Services
from skillup.loading.judgefile import OtherJudge
from skillup.loading.paths import shown
from skillup.loading.spelling import closest
from skillup.masking import Masker
from skillup.results import TrialRecord
from skillup.spec.agent import proxy_passwords
from skillup.spec.case import Case
from skillup.spec.problems import quoted
from skillup.spec.values import path_matches

ONLY = "--only"


@dataclass(frozen=True)
class Again:
    """What the command line says: `only` is `CASE-GLOB` or `CASE-GLOB/JUDGE-ID`, `judge` a file with another judge."""

    how: Ask = "saved"
    model: str | None = None
    judge: Path | None = None
    only: str | None = None


@dataclass(frozen=True)
class SavedTrial:
    """A trial to be judged again; `case` replaces the saved one where it is another."""

    folder: Path
    step: CriteriaStep
    case: Case | None = None


def trials_again(run: Path, again: Again, services: Services) -> tuple[SavedTrial, ...]:
    """The trials of a run that are judged again, everything checked before the first of them is.

    Raises:
        InputError: `--only` names nothing, the judge cannot judge a case, or a model cannot be had; all faults.
        RunDirectoryError: it is not a run directory, or damaged.
    """
    chosen = list(_chosen(rundir.trial_folders(run), again.only))
    if again.how == "saved" and again.judge is None:
        return tuple(SavedTrial(folder, CriteriaStep()) for folder, _ in chosen)
    other = OtherJudge(again.judge) if again.judge else None
    choice, judge = JudgeChoice(again.model), _judge_id(again.only)
    trials: list[SavedTrial] = []
    faults: list[Fault] = []
    for folder, saved in chosen:
        if saved is None:
            continue
        try:
            case = read_model(saved, Case)
            new = (
                other.on(case, read_model(saved.with_name("record.json"), TrialRecord).skills, judge) if other else None
            )
            models = models_of(new or case, choice, services.host, shown(saved)) if again.how != "saved" else {}
        except InputError as error:
            faults += error.faults
            continue
        if again.how != "saved":
            faults += evaluator_faults(new or case, shown(again.judge or saved))
        models = models if judge is None else {name: ref for name, ref in models.items() if name == judge}
        keys = (ref.api_key for ref in models.values() if ref.api_key)
        masker = Masker((*keys, *proxy_passwords(services.host)))
        trials.append(SavedTrial(folder, CriteriaStep(again.how, models, services, judge, masker), new))
    if faults:
        raise InputError(list(dict.fromkeys(faults)))
    return tuple(trials)


def _judge_id(only: str | None) -> str | None:
    return (only or "").partition("/")[2] or None


def _chosen(folders: Sequence[Path], only: str | None) -> Iterator[tuple[Path, Path | None]]:
    """The folders that are meant, each with the saved case of one of its attempts; None for one that has not begun.

    Raises:
        InputError: nothing is meant.
    """
    glob, _, judge = (only or "*").partition("/")
    ids = list(dict.fromkeys(folder.parents[2].name for folder in folders))
    meant = [folder for folder in folders if path_matches(folder.parents[2].name, glob)]
    found = [(folder, next(iter(sorted(folder.glob("attempt-*/case.json"))), None)) for folder in meant]
    if not meant:
        raise InputError([_nothing(f"no case matches {quoted(glob)}", glob, ids)])
    if judge:
        judges = {member.id for _, saved in found if saved for member in read_model(saved, Case).judges}
        if judge not in judges:
            raise InputError([_nothing(f"no judge of these cases has the id {quoted(judge)}", judge, sorted(judges))])
    yield from found


def _nothing(message: str, written: str, known: Sequence[str]) -> Fault:
    meant = closest(written, known)
    hint = f"did you mean {quoted(meant)}?" if meant else f"there are: {', '.join(known) or 'none'}"
    return Fault(ONLY, 0, 0, "", message, hint)

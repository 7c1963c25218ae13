"""Evaluators written in Python: found before anything runs, run on the saved trial, and what they say saved beside it.

evaluation.json     what the evaluator said: the verdict is made from this, today and later
evaluation.txt      the traceback of one that raised
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from skillup.errors import Fault, InputError
from skillup.execution.criteria import SAVED, CriteriaStep
from skillup.execution.masked import masked
from skillup.execution.revisions import Revision
from skillup.execution.store import read_model, write_atomically, write_json
from skillup.judging.evaluators import Evaluation, complaint
from skillup.judging.evidence import Evidence
from skillup.loading.paths import shown
from skillup.loading.spelling import closest
from skillup.results import Evaluated
from skillup.spec.case import Case
from skillup.spec.judge import Judge
from skillup.spec.problems import quoted
from skillup.spec.suite import Suite

GROUP: Final = "skillup.evaluators"
"""The group of entry points by which a package makes evaluators known."""

FILE = "evaluation.json"
TRACEBACK = "evaluation.txt"


def evaluator_faults(case: Case, where: str) -> Iterator[Fault]:
    """A fault for each evaluator of a case that cannot be found."""
    for index, judge in enumerate(case.all_judges):
        if judge.evaluator is not None:
            found = _found(judge.evaluator)
            if isinstance(found, tuple):
                key = f"judges[{index}].evaluator" if case.judges else "judge.evaluator"
                yield Fault(where, 0, 0, key, f"{case.id}: {found[0]}", found[1])


def check_evaluators(suites: Sequence[Suite]) -> None:
    """Looks for the evaluators of all cases; their modules are imported.

    Raises:
        InputError: with a fault for each that cannot be found.
    """
    faults = [
        fault for suite in suites for case in suite.cases for fault in evaluator_faults(case, shown(suite.source))
    ]
    if faults:
        raise InputError(faults)


def _found(name: str) -> Callable[..., Any] | tuple[str, str]:
    """The evaluator of that name; message and hint when there is none."""
    module, colon, attribute = name.partition(":")
    try:
        if colon:
            found = importlib.import_module(module)
            if not hasattr(found, attribute):
                meant = closest(attribute, [one for one in vars(found) if not one.startswith("_")])
                return (
                    f"{module} has no evaluator {quoted(attribute)}",
                    f"did you mean {quoted(meant)}?" if meant else "",
                )
            made = getattr(found, attribute)
        else:
            known = {point.name: point for point in entry_points(group=GROUP)}
            if name not in known:
                meant = closest(name, known)
                hint = f"did you mean {quoted(meant)}?" if meant else f"installed: {', '.join(sorted(known)) or 'none'}"
                return f"there is no evaluator {quoted(name)}", f"{hint} (or write MODULE:NAME)"
            made = known[name].load()
    except Exception as error:  # noqa: BLE001 - foreign code: its import raises whatever it likes
        return f"the evaluator {name} cannot be imported: {type(error).__name__}: {error}", "is it on PYTHONPATH?"
    return made if callable(made) else (f"the evaluator {name} cannot be called", "name a function or a class")


def evaluate_all(
    folder: Path, case: Case, evidence: Evidence, step: CriteriaStep, before: Revision
) -> dict[str, Evaluated | None]:
    """What the evaluators of a trial say, by the id of the judge; "" is the only one's. Saved before it is returned.

    Raises:
        OSError: it cannot be saved.
        RunDirectoryError: what was saved is damaged.
    """
    if not case.judges:
        return {"": _evaluated(folder, case, evidence, step, before)}
    found = {}
    for member in case.judges:
        own = step if step.only in (None, member.id) else SAVED
        place = folder / "judges" / member.id
        found[member.id] = _evaluated(place, case.judged_by(member), evidence, own, before)
    return found


def _evaluated(folder: Path, case: Case, evidence: Evidence, step: CriteriaStep, before: Revision) -> Evaluated | None:
    """What the judge's evaluator says; None where there is none, or it was never run."""
    judge, how, masker = case.judge, step.how, step.masker
    if judge is None or judge.evaluator is None:
        return None
    saved = read_model(folder / FILE, Evaluated) if (folder / FILE).exists() else None
    if saved is not None and (saved.evaluator, saved.config) != (judge.evaluator, masked(judge.config, masker)):
        saved = None
    wanted = how in ("all", "rest") or (how == "missing" and (saved is None or bool(saved.error)))
    if not wanted or evidence.missing() is not None:
        return saved
    said, trace = _run(judge, case, evidence)
    before.keep()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TRACEBACK).unlink(missing_ok=True)
    if trace:
        write_atomically(folder / TRACEBACK, masker.text(trace).encode("utf-8", errors="replace"))
    write_json(folder / FILE, masked(said, masker))
    return read_model(folder / FILE, Evaluated)


def _run(judge: Judge, case: Case, evidence: Evidence) -> tuple[Evaluated, str]:
    """What the evaluator says, or why it says nothing, with the traceback."""
    name = judge.evaluator or ""
    blank = Evaluated(evaluator=name, config=judge.config)
    found = _found(name)
    if isinstance(found, tuple):
        return blank.model_copy(update={"error": found[0]}), ""
    try:
        if isinstance(found, type):
            said = found(**judge.config)(evidence, case)
        else:
            said = found(evidence, case, **judge.config)
        evaluation = Evaluation.model_validate(said.model_dump() if isinstance(said, Evaluation) else said)
    except Exception as error:  # noqa: BLE001 - foreign code on a foreign trial: what it raises is its own fault
        message = f"it raised {type(error).__name__}: {error}; {TRACEBACK} has the traceback"
        return blank.model_copy(update={"error": message}), traceback.format_exc()
    wrong = complaint(evaluation, evidence)
    if wrong:
        return blank.model_copy(update={"error": wrong}), ""
    return blank.model_copy(
        update={
            "status": evaluation.status,
            "score": evaluation.score,
            "reasoning": evaluation.reasoning,
            "turns": tuple(one.model_dump() for one in evaluation.turns),
        }
    ), ""

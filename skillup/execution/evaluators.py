"""Evaluators written in Python: found before anything runs, run on the saved trial, and what they say saved beside it.

Each runs in a process of its own (`skillup.execution.evaluator_process`): what hangs there is ended, and what crashes
takes nothing with it.

evaluation.json     what the evaluator said: the verdict is made from this, today and later
evaluation.txt      what it printed, and the traceback of one that raised
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from skillup.environments.process import Command, Ended, ProcessError
from skillup.errors import Fault, InputError
from skillup.execution.copies import both_ends
from skillup.execution.criteria import SAVED, CriteriaStep
from skillup.execution.masked import masked
from skillup.execution.processes import Processes
from skillup.execution.revisions import Revision
from skillup.execution.store import read_model, write_atomically, write_json
from skillup.judging.asking import is_open
from skillup.judging.evidence import Evidence
from skillup.loading.checks import placed_judges
from skillup.loading.spelling import closest
from skillup.masking import Masker
from skillup.results import Evaluated
from skillup.spec.agent import credentials_in
from skillup.spec.case import Case
from skillup.spec.judge import Judge
from skillup.spec.problems import key_text, quoted
from skillup.spec.suite import Suite

GROUP: Final = "skillup.evaluators"
"""The group of entry points by which a package makes evaluators known."""

PROCESS: Final = "skillup.execution.evaluator_process"
FILE: Final = "evaluation.json"
PRINTED: Final = "evaluation.txt"


def evaluator_faults(case: Case, where: str) -> Iterator[Fault]:
    """A fault for each evaluator of a saved case that cannot be found; `where` is the file that names it."""
    for at, judge in placed_judges(case):
        if judge.evaluator is not None:
            yield from _faults(judge.evaluator, Fault(where, 0, 0, key_text((*at, "evaluator")), ""))


def check_evaluators(suites: Sequence[Suite]) -> None:
    """Looks for the evaluators of all suites; their modules are imported.

    Raises:
        InputError: with a fault for each that cannot be found.
    """
    named = dict.fromkeys(one for suite in suites for one in suite.evaluators)
    faults = [fault for name, at in named for fault in _faults(name, at)]
    if faults:
        raise InputError(faults)


def _faults(name: str, at: Fault) -> Iterator[Fault]:
    found = found_evaluator(name)
    if isinstance(found, tuple):
        yield replace(at, message=found[0], hint=found[1])


def found_evaluator(name: str) -> Callable[..., Any] | tuple[str, str]:
    """The evaluator of that name; message and hint when there is none.

    What its module prints while it is imported goes to stderr: stdout is for results.
    """
    module, colon, attribute = name.partition(":")
    try:
        with redirect_stdout(sys.stderr):
            if colon:
                found = importlib.import_module(module)
                if not hasattr(found, attribute):
                    meant = closest(attribute, [one for one in vars(found) if not one.startswith("_")])
                    hint = f"did you mean {quoted(meant)}?" if meant else ""
                    return f"{module} has no evaluator {quoted(attribute)}", hint
                made = getattr(found, attribute)
            else:
                known = {point.name: point for point in entry_points(group=GROUP)}
                if name not in known:
                    meant = closest(name, known)
                    hint = f"did you mean {quoted(meant)}?" if meant else f"installed: {', '.join(known) or 'none'}"
                    return f"there is no evaluator {quoted(name)}", f"{hint}; or write MODULE:NAME"
                made = known[name].load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code: its import raises whatever it likes
        return _unimportable(name, error)
    return made if callable(made) else (f"the evaluator {name} cannot be called", "name a function or a class")


def _unimportable(name: str, error: BaseException) -> tuple[str, str]:
    """Message and hint for an evaluator whose import raised: where it did, unless the module was not found at all."""
    module = (name.partition(":")[0]).partition(".")[0]
    said = f"the evaluator {name} cannot be imported: {type(error).__name__}: {error}"
    if isinstance(error, ModuleNotFoundError) and error.name == module:
        return said, "is its folder on PYTHONPATH?"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    last = frames[-1] if frames else None
    if last is None or last.filename in (__file__, importlib.__file__):
        return said, ""
    return f"{said}, in line {last.lineno} of {last.filename}", "importing it must raise nothing"


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
    judge, how = case.judge, step.how
    if judge is None or judge.evaluator is None:
        return None
    saved = read_model(folder / FILE, Evaluated) if (folder / FILE).exists() else None
    if saved is not None and (saved.evaluator, saved.config) != (judge.evaluator, judge.config):
        saved = None
    wanted = how in ("all", "rest") or (how == "missing" and (saved is None or bool(saved.error)))
    if step.services is None or not wanted or evidence.missing() is not None or not is_open(case, evidence, {}):
        return saved
    said, printed = _ask(evidence.snapshots.folder, judge, step.services)
    before.keep()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PRINTED).unlink(missing_ok=True)
    all_keys = Masker(credentials_in(step.services.host))  # an evaluator sees all variables of whoever started it
    if printed:
        printed = all_keys.text(step.masker.text(printed))
        write_atomically(folder / PRINTED, printed.encode("utf-8", errors="replace"))
    said = Evaluated.model_validate(masked(said, step.masker))
    # The configuration is the saved case's, masked long since, and has to be found again by it.
    write_json(folder / FILE, {**masked(said, all_keys), "config": judge.config})
    return read_model(folder / FILE, Evaluated)


def _ask(trial: Path, judge: Judge, processes: Processes) -> tuple[Evaluated, str]:
    """What the evaluator says of a saved trial, or why it says nothing; and what it printed.

    Raises:
        Cancelled: the user stopped it.
    """
    blank = Evaluated(evaluator=judge.evaluator or "", config=judge.config)
    with TemporaryDirectory(prefix="skillup-evaluator-") as name:
        log, answer = Path(name) / "printed", Path(name) / "answer.json"
        # What we can import it can, too, wherever it is started; `-P` so that it can import nothing else.
        path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
        member = getattr(judge, "id", "")
        argv = (sys.executable, "-P", "-X", "faulthandler", "-m", PROCESS, str(trial.absolute()), member, str(answer))
        command = Command(argv, {**processes.host, "PYTHONPATH": path}, Path.cwd())
        try:
            ended = processes.run(command, stdout=log, stderr=log, seconds=judge.evaluator_seconds)
        except ProcessError as error:
            return blank.model_copy(update={"error": f"its process could not be started: {error}"}), ""
        printed = both_ends(log)[0]
        if answer.exists():
            return read_model(answer, Evaluated), printed
        return blank.model_copy(update={"error": _silence(ended, judge, printed)}), printed


def _silence(ended: Ended, judge: Judge, printed: str) -> str:
    """Why a process has given no answer."""
    if ended.how == "deadline":
        said = f"it did not end within {judge.evaluator_seconds:g} s (`timeout_seconds` raises it)"
    elif ended.signal is not None:
        said = f"its process was ended by signal {ended.signal}"
    else:
        said = f"its process ended with {ended.exit_code} before it had said anything"
    return f"{said}; {PRINTED} has what it printed" if printed else said

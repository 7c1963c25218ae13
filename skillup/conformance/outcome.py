"""What came of each scenario, held against what must come of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from skillup.conformance.rows import ROWS
from skillup.conformance.scenario import Scenario
from skillup.conformance.suites import case_ids, memory_of
from skillup.results import SCHEMA_VERSION, SchemaVersion, TrialResult
from skillup.transcript import Value


class ScenarioResult(Value):
    """A scenario and what came of it: `verdict` and `notes` as expected and as they were.

    `problems` says what is not as it must be, a sentence each. Of several trials at once the worst is shown.
    """

    name: str
    row: str
    failure: str
    does: str
    seen: str
    engine: str
    expected: str
    got: str
    expected_notes: tuple[str, ...]
    notes: tuple[str, ...]
    ok: bool
    problems: tuple[str, ...]
    seconds: float


class ConformanceResult(Value):
    """All scenarios that were run. `directory` is the run's, None when it was not kept."""

    schema_version: SchemaVersion = SCHEMA_VERSION
    skillup_version: str
    directory: str | None
    seconds: float
    passed: int
    scenarios: tuple[ScenarioResult, ...]


def outcome_of(scenario: Scenario, results: Sequence[TrialResult], folder: Path) -> ScenarioResult:
    """What the trials of a run say of a scenario; `folder` is where its suite was written."""
    trials = [result for result in results if result.case_id in case_ids(scenario)]
    told = [(trial, tuple(_problems(scenario, trial))) for trial in trials]
    shown, _ = max(told, key=lambda one: len(one[1]), default=(None, ()))
    problems = [problem for _, found in told for problem in found]
    if len(trials) < scenario.together:
        problems.append(f"{scenario.together - len(trials)} of {scenario.together} trials did not end")
    problems += [f"process {pid} is still alive" for pid in _alive(memory_of(scenario, folder))]
    return ScenarioResult(
        name=scenario.name,
        row=scenario.row,
        failure=ROWS[scenario.row],
        does=scenario.does,
        seen=scenario.seen,
        engine=scenario.engine,
        expected=scenario.expected.verdict,
        got=_verdict(shown) if shown else "nothing",
        expected_notes=tuple(sorted(scenario.expected.notes)),
        notes=_notes(shown) if shown else (),
        ok=not problems,
        problems=tuple(dict.fromkeys(problems)),
        seconds=max((trial.duration_ms / 1000 for trial in trials), default=0.0),
    )


def _problems(scenario: Scenario, trial: TrialResult) -> Iterator[str]:
    expected, got = scenario.expected, _verdict(trial)
    if expected.verdict not in (trial.status, got):
        yield f"expected {expected.verdict}, got {got}: {trial.grading.reason}"
    missing = sorted(set(expected.notes) - set(_notes(trial)))
    if missing:
        yield f"there is no note {' and '.join(missing)}"
    unasked = sorted(set(_notes(trial)) - set(expected.notes))
    if unasked:
        yield f"there should be no note {' and '.join(unasked)}"
    if trial.attempts != expected.attempts:
        yield f"expected {expected.attempts} attempts, got {trial.attempts}"
    if expected.seconds is not None and trial.duration_ms > expected.seconds * 1000:
        yield f"took {trial.duration_ms / 1000:.1f} s, and may take {expected.seconds:g} s"


def _verdict(trial: TrialResult) -> str:
    code = trial.grading.code if trial.status in ("ERROR", "FAIL", "SKIP") else ""
    return f"{trial.status} {code}".rstrip()


def _notes(trial: TrialResult) -> tuple[str, ...]:
    """The names of its notes, each once."""
    return tuple(sorted({note.partition(":")[0] for turn in trial.turn_results for note in turn.notes}))


def _alive(memory: Path) -> tuple[int, ...]:
    """Processes that the fake CLI has started and that nobody has ended."""
    try:
        pids = [int(line) for line in (memory / "pids").read_text(encoding="ascii").split()]
    except FileNotFoundError:
        return ()
    return tuple(pid for pid in pids if _lives(pid))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # the number went to somebody else's process: ours are our own user's
    return True

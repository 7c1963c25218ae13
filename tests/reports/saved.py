"""Trials that were saved and judged, for tests of the reports, and what the console prints of them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from skillup.execution.grading import grade
from skillup.execution.store import TrialFolder
from skillup.judging.totals import count
from skillup.masking import Masker
from skillup.reports.console import print_run
from skillup.results import Ending, Failure, GateRecord, RunResult, TrialResult, TurnRecord
from skillup.spec.case import Case
from tests.judging.story import record

ERROR = Ending(how="error", turn=1, reason="no answer")
OVERLOADED = Failure(
    kind="overloaded",
    phase="conversation",
    message="the provider answered 529",
    turn=1,
    hint="run it later",
    tail="529",
)


class Trials:
    """Trials that were saved and judged, one after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results: list[TrialResult] = []

    def add(self, name: str, *turns: dict[str, Any], case: dict[str, Any] | None = None, **fields: Any) -> TrialResult:
        place = TrialFolder(self.folder / f"{len(self.results)}/a/with_skill/trial-1/attempt-1", Masker())
        turns = turns or ({},)
        content = [{"content": turn.get("content", "go")} for turn in turns]
        given = {"id": "a-case", "input": {"turns": content}, "expect": {"must_contain": ["done"]}, **(case or {})}
        place.save_case(Case.model_validate(given))
        told = tuple(
            TurnRecord.model_validate(
                {"number": n, "content": "go", "status": "completed", "response": "done", "duration_ms": 400, **turn}
            )
            for n, turn in enumerate(turns, start=1)
        )
        place.save_record(record(**{"case_id": name, "turns": told, "turns_total": len(turns), **fields}))
        self.results.append(grade(place.path))
        return self.results[-1]

    def run(self, **fields: Any) -> RunResult:
        whole: dict[str, Any] = {
            "run_id": "r",
            "status": "finished",
            "suite": "demo",
            "skillup_version": "0",
            "engine_name": "builtin",
            "model_name": "m",
            "start_time": "2026-11-22T10:00:00Z",
            "end_time": None,
            "total_tokens": None,
            "trials_planned": len(self.results),
            "totals": count(self.results),
            "case_results": tuple(self.results),
            **fields,
        }
        return RunResult(**whole)


def every_status(trials: Trials) -> RunResult:
    trials.add("holds")
    trials.add("lacks", {"response": "not yet"})
    trials.add("broken", {"status": "error", "response": None}, ending=ERROR, failures=(OVERLOADED,))
    gate = GateRecord(state="not_met", on_fail="skip_remaining", evidence="it holds none of 'yes'")
    ending = Ending(how="gate_skipped", turn=1, reason="the gate of turn 1 did not hold")
    trials.add("stops", {"gate": gate}, {"status": "skipped"}, ending=ending)
    trials.add("unchecked", case={"expect": {}, "judge": {"type": "none"}})
    return trials.run()


def printed(run: RunResult, *, width: int = 80, verbosity: int = 0, terminal: bool = False, **console: Any) -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=console.pop("encoding", "utf-8"), newline="")
    print_run(run, Console(file=file, width=width, force_terminal=terminal, **console), verbosity=verbosity)
    file.seek(0)
    return file.read()


def lines(run: RunResult, **how: Any) -> list[str]:
    return printed(run, **how).splitlines()

"""What a trial was judged to be before: kept in `revisions/N/` when another judging replaces it."""

from __future__ import annotations

from pathlib import Path

from skillup.execution.store import read_model, write_atomically
from skillup.judging.totals import add_judging
from skillup.results import Criteria, JudgingTotals

_FILES = ("case.json", "criteria.json", "judge-calls.jsonl", "evaluation.json", "grading.json", "result.json")
_OF_JUDGES = ("judges/*/criteria.json", "judges/*/judge-calls.jsonl", "judges/*/evaluation.json")


class Revision:
    """The judging of a trial as one pass found it; `keep` may be called as often as something is replaced."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept = False

    def keep(self) -> None:
        """Copies all that the verdict was made from, once; nothing where there is none yet.

        A pass that was killed had copied it already: then the newest revision holds the verdict that is there.

        Raises:
            OSError: it cannot be copied.
        """
        verdict = self._folder / "grading.json"
        if self._kept or not verdict.exists():
            return
        self._kept = True
        numbers = [int(path.name) for path in self._folder.glob("revisions/*") if path.name.isdecimal()]
        newest = self._folder / "revisions" / str(max(numbers, default=0)) / "grading.json"
        if newest.exists() and newest.read_bytes() == verdict.read_bytes():
            return
        kept = self._folder / "revisions" / str(max(numbers, default=0) + 1)
        found = [self._folder / name for name in _FILES]
        found += [path for pattern in _OF_JUDGES for path in sorted(self._folder.glob(pattern))]
        for path in sorted(found, key=lambda path: path.name == "grading.json"):  # last, as the sign that all is there
            target = kept / path.relative_to(self._folder)
            if path.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(target, path.read_bytes())


def spent_on_judging(folder: Path) -> JudgingTotals | None:
    """What was asked about a trial took, whether the answers still count or not; None where nobody was asked.

    A revision holds copies of what was not replaced, and each asking counts once.

    Raises:
        RunDirectoryError: what was said is damaged.
    """
    own = [(path.parent, path) for path in (folder / "criteria.json", *folder.glob("judges/*/criteria.json"))]
    for revision in folder.glob("revisions/*"):
        found = (revision / "criteria.json", *revision.glob("judges/*/criteria.json"))
        own += [(folder / path.parent.relative_to(revision), path) for path in found]
    asked = {(judge, path.read_bytes()): path for judge, path in own if path.exists()}
    said = [read_model(path, Criteria) for path in asked.values()]
    return add_judging([_totals(one) for one in said if one.calls])


def _totals(said: Criteria) -> JudgingTotals:
    return JudgingTotals(
        calls=said.calls,
        total_tokens=said.usage.total_tokens,
        known_tokens=said.known_tokens,
        cost_usd=said.usage.cost_usd,
        known_cost_usd=said.known_cost_usd,
    )

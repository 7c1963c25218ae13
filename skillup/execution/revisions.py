"""What a trial was judged to be before: kept in `revisions/N/` when another judging replaces it."""

from __future__ import annotations

from pathlib import Path

from skillup.execution.store import write_atomically

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

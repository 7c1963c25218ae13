"""What cases depend on: that there is such a case, that no circle is closed, and that no filter takes it away."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from skillup.errors import Fault
from skillup.loading.document import Document
from skillup.loading.spelling import closest
from skillup.spec.case import Case
from skillup.spec.problems import quoted

_LISTED = 10
"""Ids in a hint: as many as a line can show."""


def dependency_faults(placed: Sequence[tuple[Case, Document]]) -> Iterator[Fault]:
    """Dependencies of a suite's cases that can never be met, each at its place."""
    cases = {case.id: case for case, _ in placed}
    told: set[str] = set()
    for case, document in placed:
        for index, name in enumerate(case.depends_on):
            if name not in cases:
                meant = closest(name, cases)
                hint = f"did you mean {quoted(meant)}?" if meant else f"there are: {', '.join(list(cases)[:_LISTED])}"
                yield document.fault(("depends_on", index), f"the suite has no case {quoted(name)}", hint=hint)
        circle = _circle(case.id, cases)
        if circle and not told & set(circle):
            told |= set(circle)
            message = f"these cases wait for each other: {' → '.join((*circle, circle[0]))}"
            yield document.fault(("depends_on",), message, hint="none of them could ever run; remove one dependency")


def needed(chosen: Iterable[str], cases: Iterable[Case]) -> set[str]:
    """The ids of the chosen cases and of all that they depend on."""
    by_id = {case.id: case for case in cases}
    found: set[str] = set()
    todo = list(chosen)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += by_id[name].depends_on if name in by_id else ()
    return found


def dependants(name: str, cases: Iterable[Case], among: Collection[str]) -> list[str]:
    """Who of some cases depends on this one directly."""
    return [case.id for case in cases if case.id in among and name in case.depends_on]


def _circle(start: str, cases: Mapping[str, Case]) -> list[str]:
    """The cases from one back to itself, each depending on the next; nothing when there is no way back."""
    paths = [[start]]
    seen: set[str] = set()
    while paths:
        path = paths.pop()
        for name in cases[path[-1]].depends_on if path[-1] in cases else ():
            if name == start:
                return path
            if name not in seen:
                seen.add(name)
                paths.append([*path, name])
    return []

"""Which of the loaded cases are meant: globs on their ids, from the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from skillup.errors import Fault, InputError
from skillup.loading.dependencies import dependants, needed
from skillup.loading.spelling import closest
from skillup.spec.problems import quoted
from skillup.spec.suite import Suite
from skillup.spec.values import path_matches

INCLUDE = "--include-case-name"
EXCLUDE = "--exclude-case-name"

_LISTED = 140
"""Characters of ids in a hint: about as many as a line shows beside the rest."""


def select(suites: Sequence[Suite], include: Sequence[str], exclude: Sequence[str]) -> tuple[Suite, ...]:
    """The suites with those of their cases that an `include` glob matches (all without one) and no `exclude` glob.

    What a chosen case depends on is chosen, too. A suite without such a case is left out.

    Raises:
        InputError: a glob matches no case, nothing is left, or an `exclude` takes away what a chosen case depends on.
    """
    ids = [case.id for suite in suites for case in suite.cases]
    faults = [*_useless(INCLUDE, include, ids), *_useless(EXCLUDE, exclude, ids)]
    chosen = {name for name in ids if (not include or _matches(name, include)) and not _matches(name, exclude)}
    if not faults and not chosen:
        faults.append(Fault(EXCLUDE, 0, 0, "", "no case is left", f"there are: {_listed(ids)}"))
    cases = [case for suite in suites for case in suite.cases]
    whole = needed(chosen, cases)
    for name in (case.id for case in cases if case.id in whole and _matches(case.id, exclude)):
        waiting = dependants(name, cases, whole)
        message = f"{name} is left out, and {waiting[0]} depends on it"
        faults.append(Fault(EXCLUDE, 0, 0, "", message, f"leave {waiting[0]} out as well, or run both"))
    if faults:
        raise InputError(faults)
    kept = (_with(suite, whole, whole - chosen) for suite in suites)
    return tuple(suite for suite in kept if suite.cases)


def _with(suite: Suite, chosen: set[str], besides: set[str]) -> Suite:
    """The suite with the chosen cases, and a warning that names those that are run because others need them."""
    cases = tuple(case for case in suite.cases if case.id in chosen)
    added = [case.id for case in cases if case.id in besides]
    warning = (f"{', '.join(added)}: run as well, because chosen cases depend on it",) if added else ()
    return replace(suite, cases=cases, warnings=(*suite.warnings, *warning))


def _matches(name: str, globs: Sequence[str]) -> bool:
    return any(path_matches(name, glob) for glob in globs)


def _useless(option: str, globs: Sequence[str], ids: Sequence[str]) -> Iterator[Fault]:
    """A fault for each glob that matches nothing: it is misspelt, or meant for other cases."""
    for glob in globs:
        if not any(path_matches(name, glob) for name in ids):
            meant = closest(glob, ids)
            hint = f"did you mean {quoted(meant)}? " if meant else ""
            yield Fault(option, 0, 0, "", f"no case matches {quoted(glob)}", f"{hint}there are: {_listed(ids)}")


def _listed(ids: Sequence[str]) -> str:
    shown = ", ".join(ids)
    if len(shown) <= _LISTED:
        return shown
    whole = shown[:_LISTED].rpartition(", ")[0]
    return f"{whole} and {len(ids) - whole.count(', ') - 1} more"

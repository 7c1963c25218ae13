"""Validation errors of pydantic turned into faults: a place in the file, plain words, what to do next.

pydantic says where in terms of its own schema, names of union members included; the file knows only keys and
indexes. So each error is first located in the data, then put into words with what the models know there.

Conventions that models may use: `later` and `later_values`, keys and values of the format that are recognised and not
yet supported, and `skillup.spec.problems.fault_at` for errors about a place below the validated value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ValidationError

from skillup.errors import Fault
from skillup.loading.document import Document, KeyPath
from skillup.loading.known_keys import KnownKeys
from skillup.loading.problem import Problem, listed, located_problem, words
from skillup.loading.spelling import closest
from skillup.spec.problems import quoted

_MAX_ERRORS = 200
"""Of one file: a hostile one can hold a misspelt key in every line, and each takes a search."""


def faults_from_validation(
    error: ValidationError, document: Document, model: type[BaseModel], *, at: KeyPath = ()
) -> tuple[Fault, ...]:
    """The faults behind `error`, sorted by place and without duplicates.

    `model` is what the part `at` of the document (default: all of it) was validated as.
    """
    known = KnownKeys(model, document, at)
    errors = error.errors(include_url=False)[:_MAX_ERRORS]
    located = [known.only_branches(located_problem(details, document, at)) for details in errors]
    problems = [problem for problem in _without_other_branches(located) if not problem.is_echo]
    missing = {(problem.path, problem.name) for problem in problems if problem.kind == "missing"}
    # What comes with a form that is not supported is not worth a line each.
    unsupported = {problem.path[:-1] for problem in problems if known.is_later_value(problem)}
    faults = []
    for problem in problems:
        if problem.kind == "extra_forbidden":
            parent = problem.path[:-1] if problem.path[-1:] == (problem.name,) else problem.path
            if parent in unsupported and known.is_later_key(parent, problem.name):
                continue
            # A required key that is written with a mistake is one fault, not an unknown and a missing key.
            if meant := closest(problem.name, [name for place, name in missing if place == parent]):
                missing.discard((parent, meant))
            message, hint = known.about(parent, problem.name, meant)
            faults.append(document.fault(problem.path, message, hint=hint, on_key=True))
        elif known.is_later_value(problem):
            message = f"{quoted(str(problem.value))} is part of the format but not supported yet"
            hint = f"supported: {', '.join(listed(problem.context['expected']))}"
            faults.append(document.fault(problem.path, message, hint=hint))
        elif problem.kind != "missing":
            message, hint = words(problem)
            faults.append(document.fault(problem.path, message, hint=hint, on_key=problem.on_key))
    faults += [document.fault(path, f"{quoted(name)} is required", on_key=True) for path, name in missing]
    return tuple(sorted(set(faults)))


def _without_other_branches(problems: list[Problem], level: int = 0) -> list[Problem]:
    """For each union keep the errors of the member that fits best: those of the others are noise."""
    kept = [problem for problem in problems if len(problem.branches) <= level]
    unions: dict[Any, dict[str, list[Problem]]] = {}
    for problem in problems:
        if len(problem.branches) > level:
            place, label = problem.branches[level]
            unions.setdefault((problem.branches[:level], place), {}).setdefault(label, []).append(problem)
    for (_, place), members in unions.items():
        kept += _without_other_branches(_best_member(place, list(members.values())), level + 1)
    return kept


def _best_member(place: KeyPath, members: list[list[Problem]]) -> list[Problem]:
    """The member that came deepest with the fewest errors; if none fits at all, one error for all types."""
    best = max(
        members,
        key=lambda problems: (max(p.depth for p in problems), not problems[0].expected, -len(problems)),
    )
    if len(members) == 1 or not best[0].expected or best[0].depth > len(place):
        return best
    expected = dict.fromkeys(problem.expected for problems in members for problem in problems if problem.expected)
    return [replace(best[0], expected=" or ".join(expected))]

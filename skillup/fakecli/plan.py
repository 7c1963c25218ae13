"""What the fake CLI is told to do: one plan, as JSON in a variable, or in a file that the variable names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

PLAN_VARIABLE = "SKILLUP_FAKE_PLAN"

Step = dict[str, Any]
"""One thing to do: a mapping of one key, the step's name, to its argument."""


class PlanError(Exception):
    """The plan cannot be followed: a fault of whoever wrote it, told on stderr with exit code 2."""


class Plan(NamedTuple):
    """What each turn does; turns after the last do what the last does.

    `memory` is a folder that outlives homes and workspaces: `pids` in it lists every process that was started, and
    steps that are done only so many times are counted there. `version` is what `--version` prints.
    """

    turns: tuple[tuple[Step, ...], ...]
    memory: Path | None
    version: str | None

    def steps(self, turn: int) -> tuple[Step, ...]:
        """The steps of a turn, counted from 1."""
        return self.turns[min(turn, len(self.turns)) - 1]


def read_plan(environ: Mapping[str, str], known: frozenset[str]) -> Plan:
    """The plan, checked as far as the names of its steps (`known`); without one every turn answers with its prompt.

    Raises:
        PlanError: it cannot be read, or says something that is unknown.
    """
    named = environ.get(PLAN_VARIABLE)
    if named is None:
        return Plan((({"answer": "You said: {prompt}"},),), None, None)
    try:
        text = named if named.lstrip().startswith("{") else Path(named).read_text(encoding="utf-8")
        data = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise PlanError(f"${PLAN_VARIABLE} holds no plan: {error}") from error
    if not isinstance(data, dict):
        raise PlanError("a plan is a mapping with `turns`")
    unknown = sorted(data.keys() - {"turns", "memory", "version"})
    if unknown:
        raise PlanError(f"a plan has `turns`, `memory` and `version`, and no {', '.join(unknown)}")
    turns = data.get("turns")
    if not isinstance(turns, list) or not turns:
        raise PlanError("`turns` is a list with the steps of each turn, and not empty")
    memory, version = data.get("memory"), data.get("version")
    return Plan(
        tuple(steps_of(turn, known) for turn in turns),
        None if memory is None else Path(str(memory)),
        None if version is None else str(version),
    )


def steps_of(value: object, known: frozenset[str]) -> tuple[Step, ...]:
    """A list of steps in their only form: a word alone (`hang`) is a step without an argument.

    Raises:
        PlanError: it is no list of steps that there are.
    """
    if not isinstance(value, list):
        raise PlanError(f"steps are a list, not {value!r}")
    steps = [{one: None} if isinstance(one, str) else one for one in value]
    for step in steps:
        if not isinstance(step, dict) or len(step) != 1:
            raise PlanError(f"a step is a word, or a mapping of one key: {step!r}")
        if next(iter(step)) not in known:
            raise PlanError(f"there is no step {next(iter(step))!r}; there are: {', '.join(sorted(known))}")
        _check_inner(next(iter(step.values())), known)
    return tuple(steps)


def _check_inner(argument: object, known: frozenset[str]) -> None:
    """Steps inside of steps: a list as the argument, or below `do`, `outer` and `inner`."""
    if isinstance(argument, list) and any(not isinstance(one, str) for one in argument):
        steps_of(argument, known)
    elif isinstance(argument, dict):
        for key in ("do", "outer", "inner"):
            if key in argument:
                steps_of(argument[key], known)

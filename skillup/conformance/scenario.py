"""A scenario: what the fake CLI does, and what must come of it. Declared in `scenarios/*.yaml`, read strictly."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator

from skillup.conformance.rows import ROWS
from skillup.errors import Fault, InputError
from skillup.loading.faults import faults_from_validation
from skillup.loading.spelling import closest
from skillup.loading.yamlfile import read_yaml
from skillup.spec.case import CaseId
from skillup.spec.problems import quoted
from skillup.spec.values import Spec, Words

SCENARIOS = Path(__file__).with_name("scenarios")
"""The files that ship, one a theme."""

DEFAULT_TURN_SECONDS = 30.0
"""Long enough on any machine: no scenario needs it unless it hangs, and those have a limit of their own."""

Plan = tuple[tuple[Any, ...], ...]


class Expected(Spec):
    """What must come of it.

    `verdict` is `STATUS` or `STATUS code`, as in a file for `--expected`. `notes` are the names of all notes that the
    turns may and must have. `seconds` is the longest that the trial may take, `attempts` how many it must take.
    """

    verdict: Words
    notes: tuple[Words, ...] = ()
    attempts: int = 1
    seconds: float | None = Field(None, gt=0)


class Scenario(Spec):
    """One scenario.

    Attributes:
        name: the id of its case, and the name of its agent.
        row: the failure that it is an example of, a name of `ROWS`.
        does: what the CLI does, in a sentence.
        seen: the CLI on which it was seen, and where that is written down.
        engine: whose stream the fake CLI speaks.
        turns: the plan of the fake CLI, a list of steps a turn; the case has as many turns.
        turn_seconds: the limit of each turn.
        success: the rules of the case, on top of those that hold for every one.
        settings, limits: of the agent's profile.
        retries: how often a fault is tried again.
        together: how many trials of it run at once.
    """

    name: CaseId
    row: Words
    does: Words
    seen: Words
    engine: Literal["claude_code", "codex"] = "claude_code"
    turns: Plan = Field(min_length=1)
    turn_seconds: float = Field(DEFAULT_TURN_SECONDS, gt=0)
    success: tuple[Any, ...] = ()
    settings: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    retries: int = Field(0, ge=0)
    together: int = Field(1, ge=1, le=16)
    expected: Expected

    @field_validator("row")
    @classmethod
    def _row_is_known(cls, row: str) -> str:
        if row not in ROWS:
            raise ValueError(f"there is no failure {quoted(row)}")
        return row


class ScenarioFile(Spec):
    """A file of scenarios."""

    scenarios: tuple[Scenario, ...] = Field(min_length=1)


def load_scenarios(folder: Path = SCENARIOS) -> tuple[Scenario, ...]:
    """The scenarios of a folder, in the order of `ROWS`.

    Raises:
        InputError: a file is faulty, or two scenarios have one name.
    """
    found: dict[str, Scenario] = {}
    faults: list[Fault] = []
    for path in sorted(folder.glob("*.yaml")):
        document = read_yaml(path, path.name)
        try:
            scenarios = ScenarioFile.model_validate(document.data).scenarios
        except ValidationError as error:
            faults += faults_from_validation(error, document, ScenarioFile)
            continue
        for index, scenario in enumerate(scenarios):
            if scenario.name in found:
                faults.append(document.fault(("scenarios", index, "name"), f"{scenario.name} is there twice"))
            found[scenario.name] = scenario
    if faults:
        raise InputError(faults)
    rows = list(ROWS)
    return tuple(sorted(found.values(), key=lambda scenario: rows.index(scenario.row)))


def choose(scenarios: Sequence[Scenario], names: Sequence[str]) -> tuple[Scenario, ...]:
    """Those whose name, or whose row, matches one of the globs; all of them when there is none.

    Raises:
        InputError: a glob matches nothing.
    """
    idle = [
        name for name in names if not any(fnmatchcase(word, name) for one in scenarios for word in (one.name, one.row))
    ]
    if idle:
        raise InputError([_unknown(name, scenarios) for name in idle])
    return tuple(
        one
        for one in scenarios
        if not names or any(fnmatchcase(word, name) for name in names for word in (one.name, one.row))
    )


def _unknown(name: str, scenarios: Sequence[Scenario]) -> Fault:
    meant = closest(name, [*(one.name for one in scenarios), *ROWS])
    hint = f"did you mean {quoted(meant)}?" if meant else f"failures are: {', '.join(ROWS)}"
    return Fault("--only", 0, 0, "", f"no scenario or failure is named {quoted(name)}", hint)

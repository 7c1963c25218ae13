"""Scenarios as ordinary suites on disk: a case, an agent's profile, and the fake CLI's plan, a folder each."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from skillup.conformance.scenario import Scenario

PARENT_AGENT: Mapping[str, str] = MappingProxyType(
    {
        "CLAUDECODE": "1",
        "CLAUDE_CODE_ENTRYPOINT": "cli",
        "CLAUDE_CODE_SSE_PORT": "1",
        "CODEX_THREAD_ID": "parent",
        "CODEX_SANDBOX": "seatbelt",
    }
)
"""Variables that agents give to what they start. The kit runs as if one had started it: none may reach the CLI."""

_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])

_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); import skillup.fakecli.__main__ as m; sys.exit(m.main())"

_CREDENTIALS = {"claude_code": "ANTHROPIC_API_KEY", "codex": "CODEX_API_KEY"}


def write_suites(scenarios: Sequence[Scenario], folder: Path) -> tuple[Path, ...]:
    """Writes a suite for each scenario below the folder, and gives the suites' folders.

    Raises:
        OSError: they cannot be written.
    """
    program = folder / "fake-agent"
    command = (sys.executable, "-I", "-S", "-c", _START, _PACKAGE_ROOT)
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return tuple(_write_suite(scenario, folder / scenario.name, program) for scenario in scenarios)


def memory_of(scenario: Scenario, folder: Path) -> Path:
    """Where the fake CLI of a scenario writes down which processes it has started."""
    return folder / scenario.name / "memory"


def case_ids(scenario: Scenario) -> tuple[str, ...]:
    """The ids of its cases: its name, with a number each when several of it run at once."""
    if scenario.together == 1:
        return (scenario.name,)
    return tuple(f"{scenario.name}-{number}" for number in range(1, scenario.together + 1))


def _write_suite(scenario: Scenario, place: Path, program: Path) -> Path:
    plan = place / "plan.json"
    _write(plan, {"turns": scenario.turns, "memory": str(memory_of(scenario, place.parent))})
    _write(
        place / "agents" / f"{scenario.name}.yaml",
        {
            "engine": scenario.engine,
            # Nobody is asked there. Each has an address of its own, because a limit pauses all trials at an address.
            "model": {"base_url": f"http://127.0.0.1:9/{scenario.name}"},
            "env": {_CREDENTIALS[scenario.engine]: "none", "SKILLUP_FAKE_PLAN": str(plan)},
            "settings": {"binary": str(program), **scenario.settings},
            "limits": scenario.limits,
        },
    )
    retry = {"max_retries": scenario.retries, "retry_on": ["error"]} if scenario.retries else {}
    _write(
        place / "eval.yaml",
        {
            "schema_version": "v1alpha1",
            "name": "conformance",
            "agents": [f"agents/{scenario.name}.yaml"],
            "cases": {"files": ["cases/*.yaml"], "retry_policy": retry},
        },
    )
    for case_id in case_ids(scenario):
        _write(place / "cases" / f"{case_id}.yaml", _case(scenario))
    return place


def _case(scenario: Scenario) -> dict[str, Any]:
    """A case that passes when the last answer is the planned one, and the scenario's own rules hold."""
    turns = [
        {"role": "user", "content": f"message {number}", "timeout_seconds": scenario.turn_seconds}
        for number in range(1, len(scenario.turns) + 1)
    ]
    rules = [{"output_contains": {"all": ["done"]}}, *scenario.success]
    return {"title": scenario.does, "input": {"turns": turns}, "judge": {"type": "rule_based", "success": rules}}


def _write(path: Path, value: object) -> None:
    """JSON is YAML, too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False), encoding="utf-8")

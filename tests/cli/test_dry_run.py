"""`--dry-run`: everything is planned, nothing is run and nothing is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from skillup.schemas import schemas
from tests.support import Project

CASE = "input: {prompt: hi}\nexpect: {must_contain: [hello]}\n"
SCRIPT = "script: [{say: hello}]\n"


@pytest.fixture
def mixed(project: Project) -> Project:
    """Two agents that can run and one that cannot, a case for one of them, and one that has no script."""
    project.write("cases/any.yaml", CASE + SCRIPT)
    project.write("cases/mine.yaml", CASE + SCRIPT + "requires: {engines: [builtin]}\n")
    project.write("cases/real.yaml", CASE)
    return project


def files(project: Project) -> list[Path]:
    return sorted(path for path in project.root.rglob("*") if path.is_file())


AGENTS = ("--agent", "demo", "--agent", "codex", "--model", "scripted")


def test_it_prints_what_would_run_and_why_the_rest_would_not(mixed: Project) -> None:
    before = files(mixed)
    done = mixed.call("run", "cases", *AGENTS, "--dry-run", "--parallelism", "3", "--iteration", "2")
    assert done.code == 0, done.stderr
    missing = [
        "    there is no command `codex`",
        "    → install it, or name it in the profile's `settings: {binary: …}`; `skillup doctor` shows what is here",
    ]
    shown = done.stdout.splitlines()
    assert shown[:5] == [
        "case  agent  would",
        "any   demo   run",
        "mine  demo   run",
        "real  demo   ERROR setup",
        "    the model is scripted, but the case real has no `script`",
    ]
    assert shown[6] == "any   codex  ERROR engine_missing"
    assert shown[8] == missing[1]
    assert shown[9:11] == ["mine  codex  SKIP requires", "    `requires` is not met: the engine is codex, not builtin"]
    assert shown[-2:] == ["2 of 6 trials would run, 2 times, 3 at once", "nothing was run and nothing was written"]
    assert files(mixed) == before
    assert not mixed.trials.exists()


def test_json_is_for_machines(mixed: Project) -> None:
    done = mixed.call("run", "cases", *AGENTS, "--dry-run", "--json")
    plan = json.loads(done.stdout)
    Draft202012Validator(json.loads(schemas()["plan.schema.json"])).validate(plan)
    assert [(one["case_id"], one["agent"], one["would"], one["code"]) for one in plan["trials"]] == [
        ("any", "demo", "run", ""),
        ("mine", "demo", "run", ""),
        ("real", "demo", "ERROR", "setup"),
        ("any", "codex", "ERROR", "engine_missing"),
        ("mine", "codex", "SKIP", "requires"),
        ("real", "codex", "ERROR", "engine_missing"),
    ]
    assert plan["trials"][0]["engine_version"].startswith("skillup-builtin-agent ")
    assert plan["trials"][4]["engine_version"] is None
    assert (plan["parallelism"], plan["iterations"], plan["suite"]) == (1, 1, "cases")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--agent", "demmo"], '--agent: there is no agent "demmo" (did you mean "demo"?)'),
        (["--agent", "demo", "--include-case-name", "x"], '--include-case-name: no case matches "x"'),
        (["--agent", "demo", "--output-dir", "cases"], "cases is not empty"),
        (["--agent", "demo", "--output-dir", "cases/any.yaml"], "no run directory can be made: cases/any.yaml"),
        ([], "cases: nothing says which agent is to run"),
    ],
)
def test_bad_input_is_exit_code_2(mixed: Project, options: list[str], said: str) -> None:
    done = mixed.call("run", "cases", "--dry-run", *options)
    assert (done.code, done.stdout) == (2, "")
    assert said in done.stderr


def test_names_cannot_write_to_the_terminal(project: Project) -> None:
    project.write("a.yaml", CASE + SCRIPT + 'requires: {commands: ["\\e[2Jx"]}\n')
    done = project.call("run", "a.yaml", "--agent", "demo", "--dry-run")
    assert done.code == 0
    assert "\x1b" not in done.stdout
    assert "[2Jx is not on the PATH" in done.stdout

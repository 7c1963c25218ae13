"""`skillup judge RUN`: the same verdicts, byte for byte, from what was saved, and no agent anywhere."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from tests.support import Finished, Project

CASES = {
    "passes": "{input: {prompt: go}, expect: {must_contain: [done]}, script: [{say: done}]}",
    "fails": """
        input: {prompt: go}
        judge:
          type: rule_based
          success: [{output_contains: {all: [finished]}}, {workspace_changed: {created: [a.txt], only: [a.txt]}}]
          failure: [{tool_called: {name: bash, args: {command: {matches: rm}}}}]
        script: [{replies: [{calls: [{tool: write, args: {path: a.txt, content: x}}]}, {say: done}]}]
        """,
    "skips": """
        input:
          turns:
            - {role: user, content: first, post_condition: {must_contain_any: [yes], on_fail: skip_remaining}}
            - {role: user, content: second}
        judge: {type: rule_based, success: [{tool_called: {name: bash, turn: 2}}]}
        script: [{say: no}]
        """,
    "breaks": """
        input: {prompt: go}
        expect: {must_contain: [done]}
        script: [{faults: [{status: 401}]}]
        """,
}


@pytest.fixture
def ran(project: Project) -> Finished:
    for name, text in CASES.items():
        project.write(f"cases/{name}.yaml", text)
    return project.run("cases", "--agent", "demo", "--parallelism", "4")


def sums(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_verdicts_repeat_byte_for_byte_without_any_agent(project: Project, ran: Finished) -> None:
    """With an empty PATH, no trial root, and the suite gone: nothing but the run directory is read."""
    before = sums(ran.directory)
    assert len([name for name in before if name.endswith("grading.json")]) == 4
    shutil.rmtree(project.root / "cases")
    shutil.rmtree(project.trials)
    for _ in range(2):
        again = project.call("judge", ran.directory, env={"PATH": ""})
        assert again.code == ran.code == 3
        assert sums(ran.directory) == before
        assert again.stdout.splitlines() == ran.stdout.splitlines()[:-1]  # the run also names its report
    assert not project.trials.exists()


def test_no_cli_is_started_not_even_for_its_version(project: Project) -> None:
    cli = project.write("fake-cli", "#!/bin/sh\necho started >> $(dirname $0)/started\necho 9.9.9\n")
    cli.chmod(0o755)
    project.write("agents/fake.yaml", "{engine: claude_code, model: scripted, settings: {binary: ../fake-cli}}")
    project.write("cases/a.yaml", CASES["passes"])
    ran = project.run("cases", "--agent", "fake")
    assert (ran.code, ran.trial().status) == (3, "ERROR")
    started = project.root / "started"
    assert started.exists()
    started.unlink()
    assert project.call("judge", ran.directory).code == 3
    assert not started.exists()


def test_lost_verdicts_are_made_again(project: Project, ran: Finished) -> None:
    before = sums(ran.directory)
    for name in ("grading.json", "timing.json"):
        for path in ran.directory.rglob(name):
            path.unlink()
    project.call("judge", ran.directory)
    assert sums(ran.directory) == before


def test_the_checks_are_those_that_the_run_was_made_with(project: Project, ran: Finished) -> None:
    project.write("cases/passes.yaml", "{input: {prompt: go}, expect: {must_contain: [other]}, script: [{say: done}]}")
    project.call("judge", ran.directory)
    assert ran.trial("passes").status == "PASS"


def test_a_copied_run_is_judged_where_it_lies(project: Project, ran: Finished) -> None:
    copy = project.root / "elsewhere" / "renamed"
    shutil.copytree(ran.directory, copy)
    before = sums(copy)
    project.call("judge", "elsewhere/renamed")
    assert sums(copy) == before


def test_the_result_is_json_on_demand(project: Project, ran: Finished) -> None:
    said = project.call("judge", ran.directory, "--json")
    assert json.loads(said.stdout) == json.loads((ran.directory / "result.json").read_bytes())


def test_a_run_that_is_not_whole_is_no_measurement(project: Project, ran: Finished) -> None:
    """All that ended passed, and it is exit code 3 all the same."""
    for name in ("fails", "skips", "breaks"):
        shutil.rmtree(ran.directory / name)
    (ran.directory / "result.json").unlink()
    said = project.call("judge", ran.directory)
    assert said.code == 3
    assert "1 passed; 1 of 1 valid trials passed (100%)" in said.stdout
    assert "only 1 of 4 planned trials ended" in said.stdout


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("passes/demo/with_skill/trial-1/attempt-1/record.json", "record.json is damaged"),
        ("fails/demo/with_skill/trial-1/attempt-1/case.json", "case.json is damaged"),
        ("fails/demo/with_skill/trial-1/attempt-1/snapshots.jsonl", "are damaged"),
        ("run.json", "run.json is damaged"),
        ("result.json", "result.json is damaged"),
    ],
)
def test_a_damaged_run_is_refused_with_the_file(project: Project, ran: Finished, damage: str, said: str) -> None:
    (ran.directory / damage).write_text('{"turn": 1}\n')
    judged = project.call("judge", ran.directory)
    assert (judged.code, judged.stdout) == (2, "")
    assert said in judged.stderr
    assert "Traceback" not in judged.stderr


@pytest.mark.parametrize("command", ["judge", "report"])
@pytest.mark.parametrize("what", ["nothing-there", "empty", "file.txt", "cases"])
def test_what_is_no_run_is_refused(project: Project, command: str, what: str) -> None:
    (project.root / "empty").mkdir()
    project.write("file.txt", "text")
    project.write("cases/a.yaml", CASES["passes"])
    said = project.call(command, what)
    assert (said.code, said.stdout) == (2, "")
    assert said.stderr.splitlines() == [
        f"{what} is not a run directory",
        "name the folder that `skillup run` reported: the one that holds run.json",
    ]

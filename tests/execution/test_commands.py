"""Commands of rules: on copies of the last workspace, owned, with a deadline, and saved with the trial."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path

import pytest

from skillup.environments.copying import copy_workspace
from skillup.results import TrialRecord
from tests.support import Finished, Project, processes_mentioning

CASE = """
input: {{prompt: go}}
context: {{files: {{a.txt: first, run.sh: "echo from the workspace"}}}}
judge:
  type: rule_based
  success:
    - {rule}
script:
  - replies: [{{calls: [{{tool: bash, args: {{command: "echo second >> a.txt; chmod +x run.sh"}}}}]}}, {{say: done}}]
"""


def run(project: Project, *rules: str) -> Finished:
    project.write("a.yaml", CASE.format(rule="\n    - ".join(rules)))
    return project.run("a.yaml", "--agent", "demo", "--keep", "all")


def record(done: Finished) -> TrialRecord:
    return TrialRecord.model_validate_json((done.folder() / "record.json").read_bytes())


def test_a_command_sees_what_the_agent_left_and_changes_nothing_of_it(project: Project) -> None:
    done = run(
        project,
        "command: {run: 'cat a.txt; rm -r ./*', output_matches: {all: ['^firstsecond']}}",
        "command: {run: 'ls; ./run.sh', output: {all: [a.txt, from the workspace]}}",
        "file_contains: {path: a.txt, content: second}",
    )
    assert done.trial().status == "PASS", done.stdout
    assert (done.folder() / "workspace" / "a.txt").exists()
    assert [(one.exit_code, one.problem) for one in record(done).commands] == [(0, ""), (0, "")]


def test_judging_again_starts_no_command_and_says_the_same(project: Project) -> None:
    done = run(project, f"command: 'echo x >> {project.root}/times; test $(wc -l < {project.root}/times) = 1'")
    before = (done.folder() / "grading.json").read_bytes()
    assert project.call("judge", done.directory).code == 0
    assert (done.folder() / "grading.json").read_bytes() == before
    assert (project.root / "times").read_text() == "x\n"


def test_a_command_without_an_end_is_ended_with_all_that_it_started(project: Project) -> None:
    started = time.monotonic()
    done = run(project, "command: {run: 'setsid sleep 4711 & echo here; sleep 4711', timeout_seconds: 1}")
    assert time.monotonic() - started < 60
    assert (done.trial().status, done.trial().grading.code) == ("FAIL", "success")
    assert "did not end within 1 s" in done.trial().grading.reason
    assert processes_mentioning("sleep\x004711") == []


def test_its_time_counts_in_no_duration_of_the_agent(project: Project) -> None:
    done = run(project, "command: sleep 2")
    assert record(done).commands[0].duration_ms >= 2000
    assert record(done).duration_ms < record(done).commands[0].duration_ms  # the scripted agent takes some 0.1 s
    assert "commands" in json.loads((done.folder() / "record.json").read_bytes())


def test_its_output_is_bounded_and_masked(project: Project) -> None:
    key = "sk-ant-api03-" + "Ab1" * 12
    done = run(
        project, f"command: {{run: 'echo {key}; yes | head -c 1000000; echo the end', output: {{all: [the end]}}}}"
    )
    assert done.trial().status == "PASS", done.stdout
    (made,) = record(done).commands
    assert made.cut
    assert len(made.output) < 70_000
    assert made.output.startswith("[masked]\ny\n")
    assert key not in (done.folder() / "record.json").read_text()


def test_it_gets_no_credential_and_no_home_of_the_user(project: Project) -> None:
    project.write("agents/keyed.yaml", "{engine: builtin, model: scripted, env: {MY_TOKEN: '${MY_TOKEN}'}}")
    project.write("a.yaml", CASE.format(rule='command: {run: "env; pwd", output: {not: [MY_TOKEN, user-home]}}'))
    done = project.run("a.yaml", "--agent", "keyed", env={"MY_TOKEN": "not-for-commands"})
    assert done.trial().status == "PASS", done.stdout + done.stderr


def test_after_a_fault_no_command_is_run(project: Project) -> None:
    project.write(
        "a.yaml",
        """
        input: {prompt: x}
        judge: {type: rule_based, success: [{command: 'true'}]}
        script: [{faults: [{status: 401}]}]
        """,
    )
    done = project.run("a.yaml", "--agent", "demo")
    assert done.trial().status == "ERROR"
    assert record(done).commands == ()


def test_a_copy_is_what_was_there_with_links_into_it(tmp_path: Path) -> None:
    source, target = tmp_path / "workspace", tmp_path / "copy"
    (source / "deep").mkdir(parents=True)
    (source / "tool").write_text("#!/bin/sh\n")
    (source / "tool").chmod(0o755)
    (source / "bytes").write_bytes(b"\0\xff sk-ant-api03-Ab1Ab1Ab1Ab1Ab1Ab1")
    (source / "deep" / "inner").symlink_to(source / "tool")
    (source / "outer").symlink_to("/etc/hostname")
    (source / "deep").chmod(0o500)
    os.mkfifo(source / "pipe")
    try:
        assert copy_workspace(source, target) == ()
    finally:
        (source / "deep").chmod(0o700)
    assert (target / "bytes").read_bytes() == (source / "bytes").read_bytes()
    assert stat.S_IMODE((target / "tool").stat().st_mode) == 0o755
    assert (target / "deep" / "inner").readlink() == target / "tool"
    assert (target / "outer").readlink() == Path("/etc/hostname")
    assert not (target / "pipe").exists()


def test_what_is_too_large_to_be_copied_is_named(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    with (tmp_path / "workspace" / "huge").open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    assert copy_workspace(tmp_path / "workspace", tmp_path / "copy") == ("huge (68157440 bytes)",)


def test_a_workspace_that_is_gone_cannot_be_copied(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        copy_workspace(tmp_path / "workspace", tmp_path / "copy")

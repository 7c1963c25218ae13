"""What is on disk when: a turn before the next one starts, the record before the verdict, both after a kill."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time

from skillup.execution.store import read_model
from skillup.results import SavedTurn
from tests.support import Project, processes_mentioning

FOLDER = "two-turns/demo/with_skill/trial-1/attempt-1"


def test_a_turn_is_on_disk_before_the_next_one_starts(project: Project) -> None:
    """The second turn looks at the run directory itself."""
    run = project.root / "run-1"
    look = f"cd {run / FOLDER} && find . -type f && grep -c 'answer to the first' turn-1/turn.json"
    project.write(
        "two-turns.yaml",
        f"""
        input: {{turns: [{{role: user, content: first}}, {{role: user, content: second}}]}}
        judge: {{type: rule_based, success: [{{output_contains: {{all: [turn-1/turn.json]}}}}]}}
        script:
          - {{user: first, say: the answer to the first}}
          - user: second
            replies:
              - calls: [{{tool: bash, args: {{command: "{look}"}}}}]
              - say: "{{{{result}}}}"
        """,
    )
    done = project.run("two-turns.yaml", "--agent", "demo")
    assert done.code == 0, done.stderr
    seen = (done.trial().response or "").split()
    assert "./turn-1/turn.json" in seen
    assert "./turn-1/stdout" in seen
    assert seen[-1] != "0"
    assert not {"./record.json", "./grading.json", "./result.json"} & set(seen)


def test_the_record_is_written_before_the_verdict_and_the_result_last(project: Project) -> None:
    project.write("two-turns.yaml", "{input: {prompt: go}, expect: {must_contain: [x]}, script: [{say: x}]}")
    folder = project.run("two-turns.yaml", "--agent", "demo").folder()
    written = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    assert [path.name for path in written] == [
        "case.json",
        "record.json",
        "grading.json",
        "timing.json",
        "result.json",
    ]


def test_a_finished_turn_survives_a_kill(project: Project) -> None:
    """Even `kill -9`: turn 1 can be read, and nothing of the agent lives on."""
    run = project.root / "run-1"
    project.write(
        "two-turns.yaml",
        """
        input: {turns: [{role: user, content: first}, {role: user, content: second}]}
        judge: {type: rule_based, success: [{output_contains: {all: [x]}}]}
        script:
          - {user: first, say: the answer to the first}
          - user: second
            replies: [{calls: [{tool: bash, args: {command: "touch here; sleep 600"}}]}, {say: never}]
        """,
    )
    process = project.start("run", "two-turns.yaml", "--agent", "demo", "--output-dir", run)
    while not list(project.trials.glob("*/workspace/here")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    saved = read_model(run / FOLDER / "turn-1/turn.json", SavedTurn)
    assert (saved.status, saved.response) == ("completed", "the answer to the first")
    report = project.call("report", run)
    assert report.code == 2
    assert "holds no trial that ended" in report.stderr
    deadline = time.monotonic() + 20
    while processes_mentioning(str(project.trials)) and time.monotonic() < deadline:
        time.sleep(0.05)
    shutil.rmtree(project.trials)  # nobody could after `kill -9`; the next run would


def test_what_is_saved_of_a_run_is_valid_json_to_everyone(project: Project) -> None:
    """A scripted model may say anything: NUL, control characters, half characters, right-to-left marks."""
    hostile = r'"\0\e[2J\u202Egpj.exe\u2066 \uFEFF end"'
    project.write(
        "two-turns.yaml", f"{{input: {{prompt: go}}, expect: {{must_contain: [end]}}, script: [{{say: {hostile}}}]}}"
    )
    done = project.run("two-turns.yaml", "--agent", "demo", "-vv")
    assert done.code == 0, done.stderr
    assert all(character.isprintable() or character == "\n" for character in done.stdout + done.stderr)
    for path in done.directory.rglob("*.json"):
        json.loads(path.read_bytes())

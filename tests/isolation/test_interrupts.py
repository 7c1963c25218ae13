"""^C and SIGTERM, wherever they come: what had ended stays, what runs is ended, and nothing else is left."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from subprocess import Popen

import pytest

from skillup.results import RunResult
from tests.support import Finished, Project, processes_mentioning

SIGNALS = [pytest.param(number, id=number.name) for number in (signal.SIGINT, signal.SIGTERM)]
ENGINES = ["builtin", pytest.param("claude_code", marks=pytest.mark.claude)]
ENDINGS = [
    pytest.param("builtin", signal.SIGINT, id="builtin-SIGINT"),
    pytest.param("builtin", signal.SIGTERM, id="builtin-SIGTERM"),
    pytest.param("claude_code", signal.SIGINT, id="claude_code-SIGINT", marks=pytest.mark.claude),
]

DONE = """
    input: {prompt: hello}
    judge: {type: rule_based, success: [{output_contains: {all: [hi]}}]}
    script: [{say: hi}]
"""

ONE_TURN = """
    input: {prompt: work}
    judge: {type: rule_based, success: [{output_contains: {all: [done]}}]}
    script:
      - user: work
        replies:
          - calls: [{tool: bash, args: {command: "%s"}}]
          - say: done
"""

STALLED = """
    input: {prompt: work}
    judge: {type: rule_based, success: [{output_contains: {all: [done]}}]}
    script: [{user: work, say: done, faults: [{stall: true}]}]
"""

TWO_TURNS = """
    turn_delay: 3600
    input: {turns: [{role: user, content: work}, {role: user, content: go on}]}
    judge: {type: rule_based, success: [{output_contains: {all: [done]}}]}
    script: [{say: done}]
"""

SUITE = """
    schema_version: v1alpha1
    environment: {setup_steps: [%s]}
    cases: {files: [a-done.yaml, b-cut.yaml]}
"""

_numbers = count()


def unique_sleep() -> str:
    """A command that lasts for a day, and that no other process on this machine has."""
    return f"sleep 86400.{os.getpid()}{next(_numbers):03}"


def until(seen: Callable[[], object], process: Popen[str], seconds: float = 60) -> None:
    """Waits for something to be seen while a call of the command line goes on."""
    end = time.monotonic() + seconds
    while not seen():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it was never seen"
        time.sleep(0.02)


def start(project: Project, case: str, agent: str, step: str = "") -> tuple[Popen[str], Path]:
    """A run of two trials, one after the other: the first ends at once, the second is the one to be cut."""
    project.write("a-done.yaml", DONE)
    project.write("b-cut.yaml", case)
    project.write("eval.yaml", SUITE % step)
    directory = project.root / "run"
    arguments = ("run", "eval.yaml", "--agent", agent, "--model", "scripted", "--output-dir", directory)
    return project.start(*arguments), directory


def stopped(project: Project, process: Popen[str], directory: Path, number: int) -> Finished:
    """Sends the signal, and checks all that holds wherever the second trial was."""
    os.kill(process.pid, number)
    done = project.wait(process, directory, 30)
    assert done.code == 130, done.stderr
    assert "interrupted: 1 of 2 trials ended and are on disk" in done.stderr
    assert done.run.status == "interrupted"
    assert [(result.case_id, result.status) for result in done.run.case_results] == [("a-done", "PASS")]
    assert status_reported(project, directory) == "interrupted"
    assert left_in(project.trials) == []
    return done


def status_reported(project: Project, directory: Path) -> str:
    """The status that `skillup report` gives of a run whose first trial ended."""
    report = project.call("report", directory, "--json")
    assert report.code == 0, report.stderr
    run = RunResult.model_validate_json(report.stdout)
    assert [(result.case_id, result.status) for result in run.case_results] == [("a-done", "PASS")]
    return run.status


def left_in(trials: Path) -> list[str]:
    """What lies where trials have their roots."""
    return sorted(path.name for path in trials.iterdir()) if trials.exists() else []


@pytest.mark.parametrize("number", SIGNALS)
def test_a_set_up_step_is_ended(project: Project, number: signal.Signals) -> None:
    sleep = unique_sleep()
    step = f"{{run: '[ ! -e {project.root}/once ] && touch {project.root}/once || {sleep}'}}"
    process, directory = start(project, DONE, "builtin", step)
    until(lambda: processes_mentioning(sleep.replace(" ", "\0")), process)
    stopped(project, process, directory, number)
    assert processes_mentioning(sleep.split()[1]) == []


@pytest.mark.parametrize(("agent", "number"), ENDINGS)
def test_a_turn_that_waits_for_the_model_is_ended(claude: Project, agent: str, number: signal.Signals) -> None:
    process, directory = start(claude, STALLED, agent)
    folder = directory / "b-cut"
    # The CLI names its session before it asks the model.
    until(lambda: folder.exists() and any(out.stat().st_size for out in claude.trials.glob("*.io/1.out")), process)
    stopped(claude, process, directory, number)


@pytest.mark.parametrize(("agent", "number"), ENDINGS)
def test_a_tool_call_is_ended(claude: Project, agent: str, number: signal.Signals) -> None:
    sleep = unique_sleep()
    process, directory = start(claude, ONE_TURN % sleep, agent)
    until(lambda: processes_mentioning(sleep.replace(" ", "\0")), process)
    stopped(claude, process, directory, number)
    assert processes_mentioning(sleep.split()[1]) == []


@pytest.mark.parametrize("number", SIGNALS)
def test_the_wait_between_turns_is_ended_and_the_finished_turn_stays(project: Project, number: signal.Signals) -> None:
    process, directory = start(project, TWO_TURNS, "builtin")
    turn = directory / "b-cut" / "builtin" / "with_skill" / "trial-1" / "attempt-1" / "turn-1" / "turn.json"
    until(turn.exists, process)
    stopped(project, process, directory, number)
    assert turn.exists()


@pytest.mark.parametrize("number", SIGNALS)
def test_planning_is_ended_and_nothing_is_written(project: Project, number: signal.Signals) -> None:
    sleep = unique_sleep()
    project.write("slow-cli", f"#!/bin/sh\n{sleep}\n").chmod(0o755)
    project.write("agents/slow.yaml", "{engine: claude_code, model: scripted, settings: {binary: ../slow-cli}}")
    process, directory = start(project, DONE, "slow")
    until(lambda: processes_mentioning(sleep.replace(" ", "\0")), process)
    os.kill(process.pid, number)
    done = project.wait(process, directory, 30)
    assert done.code == 130
    assert done.stderr == "interrupted: nothing was run\n"
    assert not directory.exists()
    assert processes_mentioning(sleep.split()[1]) == []


def test_a_signal_after_the_last_turn_leaves_a_whole_result_or_none(project: Project) -> None:
    process, directory = start(project, DONE, "builtin")
    folder = directory / "b-cut" / "builtin" / "with_skill" / "trial-1" / "attempt-1"
    until((folder / "turn-1" / "turn.json").exists, process)
    os.kill(process.pid, signal.SIGINT)
    done = project.wait(process, directory, 30)
    assert (done.code, done.run.status) in [(130, "interrupted"), (0, "finished")]
    listed = [result.case_id for result in done.run.case_results]
    assert listed == ["a-done", *(["b-cut"] if (folder / "result.json").exists() else [])]
    assert left_in(project.trials) == []


def test_a_second_signal_ends_at_once_and_the_next_run_cleans_up(project: Project) -> None:
    sleep = unique_sleep()
    step = f"{{run: 'trap \"\" INT TERM; while true; do {sleep}; done'}}"
    process, directory = start(project, DONE, "builtin", step)
    until(lambda: processes_mentioning(sleep.replace(" ", "\0")), process)
    os.kill(process.pid, signal.SIGINT)
    assert process.stderr is not None
    while "stopping: running turns are ended" not in process.stderr.readline():
        pass
    before = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    assert project.wait(process, directory, 30).code == 130
    assert time.monotonic() - before < 1
    until_gone(sleep.split()[1], 5)
    assert left_in(project.trials) != []
    project.write("eval.yaml", SUITE % "")
    assert project.run("eval.yaml", "--agent", "builtin", "--model", "scripted").code == 0
    assert left_in(project.trials) == []


def until_gone(text: str, seconds: float) -> None:
    """Waits until no process mentions a text."""
    end = time.monotonic() + seconds
    while alive := processes_mentioning(text):
        assert time.monotonic() < end, alive
        time.sleep(0.05)


@pytest.mark.parametrize("agent", ENGINES)
def test_when_skillup_is_killed_nothing_stays_alive_and_the_next_run_cleans_up(claude: Project, agent: str) -> None:
    sleep = unique_sleep()
    process, directory = start(claude, ONE_TURN % sleep, agent)
    until(lambda: processes_mentioning(sleep.replace(" ", "\0")), process)
    process.kill()
    assert claude.wait(process, directory).code == -signal.SIGKILL
    until_gone(str(claude.trials), 2)
    assert processes_mentioning(sleep.split()[1]) == []
    assert len(left_in(claude.trials)) == 3, "the root, our files, the lock"
    assert status_reported(claude, directory) == "running", "nobody was there to write its end"
    assert claude.run("a-done.yaml", "--agent", "builtin", "--model", "scripted").code == 0
    assert left_in(claude.trials) == []


def test_a_run_that_starts_meanwhile_leaves_the_trials_of_a_living_run_alone(project: Project) -> None:
    waiting = f"touch begun; until [ -e {project.root}/go ]; do sleep 0.05; done; ls"
    process, directory = start(project, ONE_TURN % waiting, "builtin")
    until(lambda: list(project.trials.glob("*/workspace/begun")), process)
    before = left_in(project.trials)
    assert project.run("a-done.yaml", "--agent", "builtin", "--model", "scripted").code == 0
    assert left_in(project.trials) == before
    (project.root / "go").touch()
    done = project.wait(process, directory, 30)
    assert done.code == 0, done.stderr
    assert done.trial("b-cut").status == "PASS"


def test_a_reader_that_had_the_same_signal_costs_neither_result_nor_exit_code(project: Project) -> None:
    """`skillup run 2>&1 | tee log`: ^C ends `tee`, too."""
    sleep = unique_sleep()
    process, directory = start(project, ONE_TURN % sleep, "builtin")
    until(lambda: processes_mentioning(sleep.replace(" ", "\0")), process)
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        stream.close()
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(20) == 130
    run = RunResult.model_validate_json((directory / "result.json").read_bytes())
    assert (run.status, len(run.case_results)) == ("interrupted", 1)
    assert processes_mentioning(sleep.split()[1]) == []

"""`skillup report RUN`: the results as saved, of runs that ended, that were stopped, and that go on."""

from __future__ import annotations

import os
import signal
import time

from skillup.results import RunResult
from tests.support import Project

PASSES = "{input: {prompt: go}, expect: {must_contain: [done]}, script: [{say: done}]}"
STALLS = """
    input: {prompt: go}
    expect: {must_contain: [done]}
    script: [{replies: [{calls: [{tool: bash, args: {command: "touch here; sleep 600"}}]}, {say: done}]}]
    """


def test_a_finished_run(project: Project) -> None:
    project.write("cases/a.yaml", PASSES)
    ran = project.run("cases", "--agent", "demo")
    report = project.call("report", ran.directory)
    assert (report.code, report.stderr) == (0, "")
    assert report.stdout.splitlines() == ran.stdout.splitlines()[:-1]
    as_json = project.call("report", ran.directory, "--json")
    assert RunResult.model_validate_json(as_json.stdout) == ran.run


def test_a_run_that_goes_on_and_is_then_interrupted(project: Project) -> None:
    project.write("cases/a.yaml", PASSES)
    project.write("cases/b.yaml", STALLS)
    run = project.root / "run-1"
    process = project.start("run", "cases", "--agent", "demo", "--output-dir", run)
    while not list(project.trials.glob("*/workspace/here")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)

    report = project.call("report", run)
    assert report.code == 0
    assert report.stdout.splitlines()[-1] == (
        "This run is not whole (it goes on, or was killed): only 1 of 2 planned trials ended."
    )
    assert RunResult.model_validate_json(project.call("report", run, "--json").stdout).status == "running"

    os.kill(process.pid, signal.SIGINT)
    assert project.wait(process, run).code == 130
    report = project.call("report", run)
    assert report.code == 0
    assert report.stdout.splitlines()[-2:] == [
        "1 passed; 1 of 1 valid trials passed (100%)",
        "This run is not whole (it was interrupted): only 1 of 2 planned trials ended.",
    ]
    interrupted = RunResult.model_validate_json(project.call("report", run, "--json").stdout)
    assert (interrupted.status, interrupted.trials_planned, interrupted.totals.passed) == ("interrupted", 2, 1)

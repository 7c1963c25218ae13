"""`--iteration N`: the same again and again, each in a directory of its own, and which cases are flaky."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from skillup.judging.stability import stability_of
from skillup.results import RunResult, Status
from skillup.schemas import schemas
from tests.reports.saved import ERROR, OVERLOADED, Trials
from tests.support import Finished, Project

STEADY = "input: {prompt: hi}\nexpect: {must_contain: [hello]}\nscript: [{say: hello}]\n"

FLAKY = """
    input: {{prompt: count}}
    expect: {{files_not_exist: ["third"]}}
    script:
      - user: count
        replies:
          - calls:
              - tool: bash
                args: {{command: "echo x >> {counter}; test $(wc -l < {counter}) -lt 3 || touch third"}}
          - say: counted
    """
"""Passes twice and fails from then on: the agent counts its runs outside of its workspace."""


@pytest.fixture
def suite(project: Project) -> Project:
    project.write("cases/flaky.yaml", FLAKY.format(counter=project.root / "counter"))
    project.write("cases/steady.yaml", STEADY)
    return project


def iterations(project: Project) -> list[str]:
    return sorted(str(path.relative_to(project.root)) for path in project.root.glob("*-workspace/*"))


def test_each_run_has_a_directory_and_the_end_says_what_is_flaky(suite: Project) -> None:
    done = suite.call("run", "cases", "--agent", "demo", "--iteration", "4")
    assert iterations(suite) == [f"cases-workspace/iteration-{n}" for n in (1, 2, 3, 4)]
    assert "iteration 3 of 4: cases-workspace/iteration-3" in done.stdout
    end = done.stdout.splitlines()[-6:]
    assert end == [
        "4 iterations",
        "case    agent  outcomes",
        "flaky   demo   PASS ×2, FAIL ×2  flaky",
        "steady  demo   PASS ×4           steady",
        "",
        "1 of 2 cases are flaky",
    ]
    assert done.code == 1, "the worst of the four"
    for folder in iterations(suite):
        saved = RunResult.model_validate_json((suite.root / folder / "result.json").read_bytes())
        assert len(saved.case_results) == 2, "runs are never pooled"


@pytest.mark.parametrize("times", ["0", "1"])
def test_0_and_1_append_the_next_iteration(suite: Project, times: str) -> None:
    suite.call("run", "cases", "--agent", "demo")
    done = suite.call("run", "cases", "--agent", "demo", "--iteration", times)
    assert iterations(suite) == ["cases-workspace/iteration-1", "cases-workspace/iteration-2"]
    assert "iterations" not in done.stdout.splitlines()


def test_a_chosen_directory_holds_them_all(suite: Project) -> None:
    done = suite.run("cases", "--agent", "demo", "--iteration", "2")
    assert sorted(path.name for path in done.directory.iterdir()) == ["iteration-1", "iteration-2"]
    again = suite.call("run", "cases", "--agent", "demo", "--iteration", "2", "--output-dir", done.directory)
    assert (again.code, again.stdout) == (2, "")
    assert "is not empty" in again.stderr


def test_json_is_one_document_with_every_run(suite: Project) -> None:
    done = suite.call("run", "cases", "--agent", "demo", "--iteration", "3", "--json", "--format", "junit")
    found = json.loads(done.stdout)
    Draft202012Validator(json.loads(schemas()["iterations.schema.json"])).validate(found)
    assert found["directories"] == [f"cases-workspace/iteration-{n}" for n in (1, 2, 3)]
    assert [len(run["case_results"]) for run in found["runs"]] == [2, 2, 2]
    assert [(one["case_id"], one["outcomes"], one["stability"]) for one in found["cases"]] == [
        ("flaky", {"PASS": 2, "FAIL": 1}, "flaky"),
        ("steady", {"PASS": 3}, "steady"),
    ]
    assert len(list(suite.root.glob("*/*/report.xml"))) == 3


def test_3_beats_1(suite: Project) -> None:
    suite.write(
        "cases/broken.yaml", "input: {prompt: x}\nexpect: {must_contain: [y]}\nscript: [{faults: [{status: 401}]}]\n"
    )
    suite.write("counter", "x\nx\nx\n")
    done = suite.call("run", "cases", "--agent", "demo", "--iteration", "2")
    assert done.code == 3
    assert "broken  demo   ERROR ×2  unmeasured" in done.stdout


def test_every_iteration_is_held_against_what_is_expected(suite: Project) -> None:
    suite.write("expected.yaml", "flaky: PASS\nsteady: PASS\n")
    options = ("run", "cases", "--agent", "demo", "--expected", "expected.yaml", "--iteration")
    assert suite.call(*options, "2").code == 0
    assert suite.call(*options, "2").code == 1


def test_an_interrupt_ends_all_of_them(project: Project) -> None:
    project.write(
        "cases/slow.yaml",
        "input: {turns: [{content: a}, {content: b, turn_delay: 60}]}\njudge: {type: none}\nscript: [{say: y}]\n",
    )
    project.write("cases/quick.yaml", STEADY)
    process = project.start("run", "cases", "--agent", "demo", "--iteration", "3")
    result = project.root / "cases-workspace/iteration-1/slow/demo/with_skill/trial-1/attempt-1/turn-1/turn.json"
    until = time.monotonic() + 60
    while not result.exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    done: Finished = project.wait(process, project.root)
    assert done.code == 130
    assert iterations(project) == ["cases-workspace/iteration-1"]
    assert "interrupted: 1 of 3 iterations were run" in done.stderr


@pytest.mark.parametrize(
    ("outcomes", "stability"),
    [
        (["PASS", "PASS"], "steady"),
        (["FAIL", "FAIL"], "steady"),
        (["PASS", "FAIL"], "flaky"),
        (["PASS", "SKIP"], "flaky"),
        (["PASS", "ERROR", "PASS"], "steady"),
        (["PASS", "ERROR", "FAIL"], "flaky"),
        (["ERROR", "ERROR"], "unmeasured"),
    ],
)
def test_stability(tmp_path: Path, outcomes: list[Status], stability: str) -> None:
    runs = []
    for number, status in enumerate(outcomes):
        trials = Trials(tmp_path / str(number))
        match status:
            case "ERROR":
                trials.add("a", {"status": "error"}, ending=ERROR, failures=(OVERLOADED,))
            case "SKIP":
                trials.add("a", ending=ERROR.model_copy(update={"how": "unmet"}))
            case _:
                trials.add("a", {"response": "done" if status == "PASS" else "no"})
        runs.append(trials.run())
    (found,) = stability_of(runs)
    assert (found.stability, found.outcomes) == (stability, dict(Counter(outcomes)))


def test_fallback_trials_stand_apart(tmp_path: Path) -> None:
    first, second = Trials(tmp_path / "1"), Trials(tmp_path / "2")
    first.add("a")
    second.add("a", {"response": "no"}, execution_mode="single_shot_fallback")
    found = stability_of([first.run(), second.run()])
    assert [(one.single_shot_fallback, one.stability) for one in found] == [(False, "steady"), (True, "steady")]

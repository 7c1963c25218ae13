"""Evaluators in Python: the example of the docs, what they may return, what goes wrong, and where they are found."""

from __future__ import annotations

import json
import os
import re

import pytest

from skillup.results import Evaluated
from tests.support import REPOSITORY, Finished, Project
from tests.test_schemas import complaints

PAGE = (REPOSITORY / "docs" / "evaluators.md").read_text(encoding="utf-8")

CASE = """
input: {turns: [{content: first}, {content: second}]}
judge: {type: evaluator, evaluator: 'mine:%s'%s}
script: [{say: done}]
"""

MINE = """
import faulthandler, os, subprocess, time
calls = __file__ + ".calls"

def note():
    with open(calls, "a") as file:
        file.write("x")

def good(trial, case):
    note()
    assert [turn.content for turn in trial.turns] == ["first", "second"] and case.id == "a"
    return {"score": 0.75, "reasoning": "well"}

class Strict:
    def __init__(self, most=1):
        self.most = most
    def __call__(self, trial, case):
        return {"score": min(1, self.most / len(trial.turns)), "reasoning": "counted"}

def bad(trial, case): return {"status": "failed", "score": 0.9, "reasoning": "I say so"}
def declines(trial, case): return {"status": "not_evaluated", "reasoning": "not mine"}
def breaks(trial, case): raise RuntimeError("the scale is broken")
def nothing(trial, case): return None
def blank(trial, case): return {"reasoning": "hm"}
def high(trial, case): return {"score": 7, "reasoning": "great"}
def one_turn(trial, case): return {"score": 1, "reasoning": "r", "turns": [{"turn": 1, "score": 1}]}
def wrong_turns(trial, case): return {"score": 1, "reasoning": "r", "turns": [{"turn": 1}, {"turn": 3}]}
value = 5
def no_reason(trial, case): return {"score": 1}
def crashes(trial, case): faulthandler._sigsegv()
def leaves(trial, case): os._exit(7)
def talks(trial, case):
    print("{ not a verdict")
    return {"score": 1, "reasoning": "well"}
def hangs(trial, case):
    with open(calls, "w") as file:
        file.write(str(subprocess.Popen(["sleep", "600"]).pid))
    while True: time.sleep(0.1)
"""


def run(project: Project, name: str, more: str = "") -> Finished:
    project.write("lib/mine.py", MINE)
    project.write("a.yaml", CASE % (name, more))
    return project.run("a.yaml", "--agent", "demo", env={"PYTHONPATH": str(project.root / "lib")})


def said(done: Finished) -> Evaluated:
    return Evaluated.model_validate_json((done.folder() / "evaluation.json").read_bytes())


def test_the_example_of_the_docs_does_what_the_page_says(project: Project) -> None:
    (code,) = re.findall(r"```python\n# short_answers.py\n(.*?)```", PAGE, re.DOTALL)
    (case,) = re.findall(r"```yaml\n# a case\n(.*?)```", PAGE, re.DOTALL)
    project.write("short_answers.py", code)
    project.write("parcels.yaml", case)
    done = project.run("parcels.yaml", "--agent", "demo", env={"PYTHONPATH": "."})
    grading = done.trial().grading
    assert (done.code, grading.code, grading.score, grading.pass_threshold) == (1, "evaluator", 0.5, 0.8), done.stderr
    assert grading.reasoning == "50% of the answers are short"
    assert [turn["score"] for turn in said(done).turns] == [1.0, 0.0]
    assert complaints("evaluation", said(done).model_dump(mode="json")) == []


@pytest.mark.parametrize(
    ("name", "more", "wanted"),
    [
        ("good", "", ("PASS", "all_met", 0.75)),
        ("good", ", pass_threshold: 0.8", ("FAIL", "evaluator", 0.75)),
        ("Strict", ", config: {most: 2}", ("PASS", "all_met", 1.0)),
        ("Strict", "", ("FAIL", "evaluator", 0.5)),
        ("bad", "", ("FAIL", "evaluator", 0.9)),
        ("declines", "", ("UNCHECKED", "not_evaluated", None)),
        ("declines", ", success: [{output_contains: {all: [done]}}]", ("PASS", "all_met", None)),
    ],
)
def test_its_verdict_is_the_trials(
    project: Project, name: str, more: str, wanted: tuple[str, str, float | None]
) -> None:
    done = run(project, name, more)
    grading = done.trial().grading
    assert (grading.status, grading.code, grading.score) == wanted, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("breaks", "it raised RuntimeError: the scale is broken; evaluation.txt has the traceback"),
        (
            "nothing",
            "it returned no evaluation: NoneType: Input should be a valid dictionary or instance of Evaluation",
        ),
        ("high", "it returned no evaluation: score: Input should be less than or equal to 1"),
        ("no_reason", "it returned no evaluation: reasoning: Field required"),
        ("crashes", "its process was ended by signal 11; evaluation.txt has what it printed"),
        ("leaves", "its process ended with 7 before it had said anything"),
        ("blank", "it returned neither a status nor a score"),
        ("one_turn", "it returned 1 result of turns, and 2 turns ran: give none, or one for each"),
        ("wrong_turns", "it returned results for the turns [1, 3], and [1, 2] ran"),
    ],
)
def test_what_goes_wrong_is_an_error_of_the_judge(project: Project, name: str, why: str) -> None:
    done = run(project, name)
    assert (done.code, done.trial().status, done.trial().grading.code) == (3, "ERROR", "judge"), done.stderr
    assert why in done.trial().grading.reason
    printed = done.folder() / "evaluation.txt"
    assert printed.exists() is ("evaluation.txt" in why)
    shown = {"breaks": 'RuntimeError("the scale is broken")', "crashes": "mine.py"}.get(name)
    assert shown is None or shown in printed.read_text()


def test_one_that_does_not_end_is_ended_and_shows_where_it_was(project: Project) -> None:
    done = run(project, "hangs", ", timeout_seconds: 5")
    assert (done.code, done.trial().grading.code) == (3, "judge"), done.stderr
    assert "it did not end within 5 s (`timeout_seconds` raises it)" in done.trial().grading.reason
    assert "while True: time.sleep(0.1)" in (done.folder() / "evaluation.txt").read_text(), "the traceback of the end"
    helper = int((project.root / "lib" / "mine.py.calls").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(helper, 0)


def test_what_it_prints_is_kept_and_never_mistaken_for_a_result(project: Project) -> None:
    project.write("lib/mine.py", MINE + "print('at import')\n")
    project.write("a.yaml", CASE % ("talks", ""))
    there = {"PYTHONPATH": str(project.root / "lib")}
    done = project.run("a.yaml", "--agent", "demo", "--json", env=there)
    assert json.loads(done.stdout)["case_results"][0]["status"] == "PASS", done.stderr
    assert (done.folder() / "evaluation.txt").read_text() == "at import\n{ not a verdict\n"


def test_it_runs_once_and_again_on_demand(project: Project) -> None:
    done = run(project, "good")
    calls = project.root / "lib" / "mine.py.calls"
    before = {path: path.read_bytes() for path in done.directory.rglob("*") if path.is_file()}
    assert project.call("judge", done.directory).code == 0, "the module cannot be found here, and need not be"
    assert {path: path.read_bytes() for path in done.directory.rglob("*") if path.is_file()} == before
    assert calls.read_text() == "x"
    there = {"PYTHONPATH": str(project.root / "lib")}
    assert project.call("judge", done.directory, "--ask", "missing", env=there).code == 0
    assert calls.read_text() == "x"
    assert project.call("judge", done.directory, "--ask", "all", env=there).code == 0
    assert calls.read_text() == "xx"
    project.write("other.yaml", "judge: {type: evaluator, evaluator: 'mine:good', pass_threshold: 0.8}")
    assert project.call("judge", done.directory, "--judge", "other.yaml", env=there).code == 1
    assert calls.read_text() == "xx", "the score is known, and another threshold is held against it"


def test_it_is_not_run_where_fail_is_certain_without_it(project: Project) -> None:
    done = run(project, "good", ", success: [{output_contains: {all: [never said]}}]")
    grading = done.trial().grading
    assert (grading.status, grading.code, grading.score) == ("FAIL", "success", None)
    assert [one.evidence for one in grading.assertion_results if one.role == "evaluator"] == [
        "the evaluator was not run"
    ]
    there = {"PYTHONPATH": str(project.root / "lib")}
    assert project.call("judge", done.directory, "--ask", "all", env=there).code == 1
    assert not (project.root / "lib" / "mine.py.calls").exists()


def test_one_of_several_that_declines_is_out_of_the_mean(project: Project) -> None:
    project.write("lib/mine.py", MINE)
    judges = ", ".join(f"{{id: {name}, type: evaluator, evaluator: 'mine:{name}'}}" for name in ("good", "declines"))
    turns = "[{content: first}, {content: second}]"
    project.write(
        "a.yaml", f"{{input: {{turns: {turns}}}, judges: [{judges}], combine: mean, script: [{{say: done}}]}}"
    )
    done = project.run("a.yaml", "--agent", "demo", env={"PYTHONPATH": str(project.root / "lib")})
    assert (done.trial().status, done.trial().grading.score) == ("PASS", 0.75), done.stdout
    assert [part.code for part in done.trial().grading.judges] == ["all_met", "not_evaluated"]


def test_it_is_found_by_the_name_of_an_entry_point(project: Project) -> None:
    project.write("lib/mine.py", MINE)
    project.write("lib/mine-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    project.write("lib/mine-1.0.dist-info/entry_points.txt", "[skillup.evaluators]\nwell_done = mine:good\n")
    there = {"PYTHONPATH": str(project.root / "lib")}
    project.write("a.yaml", (CASE % ("", "")).replace("'mine:'", "well_done"))
    assert project.run("a.yaml", "--agent", "demo", env=there).trial().status == "PASS"
    project.write("a.yaml", (CASE % ("", "")).replace("'mine:'", "well_dome"))
    done = project.run("a.yaml", "--agent", "demo", env=there)
    assert done.code == 2
    assert 'a.yaml:2:37: judge.evaluator: there is no evaluator "well_dome" (did you mean "well_done"?' in done.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine:goood", 'mine has no evaluator "goood" (did you mean "good"?)'),
        ("mine:value", "the evaluator mine:value cannot be called (name a function or a class)"),
        (
            "nowhere:x",
            "the evaluator nowhere:x cannot be imported: ModuleNotFoundError: No module named 'nowhere' (is its folder",
        ),
        ("raises:x", "the evaluator raises:x cannot be imported: ValueError: no licence, in line 2 of LIB/raises.py"),
        ("leaves:x", "the evaluator leaves:x cannot be imported: SystemExit: 0, in line 1 of LIB/leaves.py"),
        (
            "lacks:x",
            "the evaluator lacks:x cannot be imported: ModuleNotFoundError: No module named 'nowhere', in line 1 of",
        ),
        ("typo:x", "the evaluator typo:x cannot be imported: SyntaxError: "),
    ],
)
def test_one_that_does_not_exist_is_a_fault_at_its_place(project: Project, name: str, message: str) -> None:
    project.write("lib/mine.py", MINE)
    project.write("lib/raises.py", "def x(): pass\nraise ValueError('no licence')\n")
    project.write("lib/leaves.py", "raise SystemExit(0)\n")
    project.write("lib/lacks.py", "import nowhere\n")
    project.write("lib/typo.py", "def x(:\n")
    project.write("a.yaml", (CASE % ("", "")).replace("'mine:'", f"'{name}'"))
    done = project.call("validate", "a.yaml", env={"PYTHONPATH": str(project.root / "lib")})
    assert done.code == 2
    assert f"a.yaml:2:37: judge.evaluator: {message}".replace("LIB", str(project.root / "lib")) in done.stderr
    assert "1 fault" in done.stderr


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_one_that_does_not_exist_is_a_fault_before_anything_runs(project: Project, more: list[str]) -> None:
    project.write("lib/mine.py", MINE)
    project.write("a.yaml", CASE % ("goood", ""))
    done = project.run("a.yaml", "--agent", "demo", *more, env={"PYTHONPATH": str(project.root / "lib")})
    assert (done.code, done.directory.exists()) == (2, False)
    assert 'a.yaml:2:37: judge.evaluator: mine has no evaluator "goood" (did you mean "good"?)' in done.stderr
    assert "nothing was run" in done.stderr


def test_the_fault_of_a_suites_evaluator_is_told_once_and_where_it_stands(project: Project) -> None:
    project.write("lib/mine.py", MINE)
    judges = "judges: [{id: rules, type: rule_based, success: [{output_contains: {all: [a]}}]},"
    project.write(
        "eval.yaml",
        f"schema_version: v1alpha1\n{judges}\n  {{id: b, type: evaluator, evaluator: 'mine:goof'}}]\n"
        "cases: {files: ['*.case.yaml']}\n",
    )
    for name in ("one", "two"):
        project.write(f"{name}.case.yaml", f"id: {name}\ninput: {{prompt: Go}}\n")
    done = project.call("validate", env={"PYTHONPATH": str(project.root / "lib")})
    assert done.code == 2
    assert done.stderr.count("mine has no evaluator") == 1
    assert 'eval.yaml:3:39: judges[1].evaluator: mine has no evaluator "goof" (did you mean "good"?)' in done.stderr

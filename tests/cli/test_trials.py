"""`--trials` and `trials`: each trial stands for itself, in a folder of its own, and totals count trials."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from tests.support import Project

CASE = "input: {prompt: hi}\nexpect: {must_contain: [hello]}\nscript: [{say: hello}]\n"
AGENTV = """
execution: {trials: {count: 3, strategy: pass_at_k}}
tests:
  - id: a
    mode: conversation
    turns: [{input: hi, assertions: [{type: contains, value: hello}, {type: contains, value: moon}]}]
    script: [{say: hello}]
  - id: b
    mode: conversation
    execution: {trials: {count: 1, strategy: mean}}
    turns: [{input: hi, assertions: [{type: contains, value: hello}]}]
    script: [{say: hello}]
"""


def test_every_trial_has_a_row_a_folder_and_a_session_and_counts(project: Project) -> None:
    project.write("cases/one.yaml", CASE + "trials: 2\n")
    project.write("cases/two.yaml", CASE.replace("say: hello", "say: bye"))
    done = project.run("cases", "--agent", "demo", "--parallelism", "2", "--format", "junit", "-v")
    assert [(one.case_id, one.trial, one.status) for one in done.run.case_results] == [
        ("one", 1, "PASS"),
        ("one", 2, "PASS"),
        ("two", 1, "FAIL"),
    ]
    assert (done.run.totals.passed, done.run.totals.valid, done.run.trials_planned) == (2, 3, 3)
    assert (done.directory / "one" / "demo" / "with_skill" / "trial-2" / "attempt-1" / "record.json").is_file()
    sessions = [one.session_ids for one in done.run.case_results]
    assert len(set(sessions)) == 3
    assert [line.split()[:2] for line in done.stdout.splitlines()[1:3]] == [["one", "#1"], ["one", "#2"]]
    assert "one #2 · demo · PASS all_met" in done.stdout
    assert "2 of 3 valid trials passed" in done.stdout
    names = [case.get("name") for case in ElementTree.parse(done.directory / "report.xml").iter("testcase")]
    assert names == ["one #1", "one #2", "two"]
    again = project.call("judge", done.directory)
    assert "one #2" in again.stdout


def test_the_command_line_decides_for_every_case_and_a_plan_says_so(project: Project) -> None:
    project.write("eval.yaml", "schema_version: v1alpha1\ncases: {files: [cases/*.yaml], defaults: {trials: 2}}\n")
    project.write("cases/one.yaml", CASE + "trials: 4\n")
    project.write("cases/two.yaml", CASE)
    planned = json.loads(project.call("run", "--agent", "demo", "--dry-run", "--json").stdout)
    assert [(one["case_id"], one["trial"]) for one in planned["trials"]] == [
        *(("one", number) for number in range(1, 5)),
        ("two", 1),
        ("two", 2),
    ]
    fewer = json.loads(project.call("run", "--agent", "demo", "--trials", "1", "--dry-run", "--json").stdout)
    assert [one["trial"] for one in fewer["trials"]] == [1, 1]
    assert project.call("run", "--agent", "demo", "--trials", "0").code == 2


def test_a_trial_waits_for_the_one_with_its_number_or_for_all(project: Project) -> None:
    project.write("cases/first.yaml", CASE + "trials: 2\n")
    project.write("cases/second.yaml", CASE + "trials: 3\ndepends_on: [first]\n")
    done = project.run("cases", "--agent", "demo", "--parallelism", "4")
    assert {one.status for one in done.run.case_results} == {"PASS"}
    assert len(done.run.case_results) == 5


def test_agentvs_trials_are_made_and_every_row_says_what_they_come_to(project: Project) -> None:
    project.write("t.yaml", AGENTV)
    done = project.run("t.yaml", "--agent", "demo")
    rows = [json.loads(line) for line in (done.directory / "agentv.jsonl").read_text().splitlines()]
    assert [(row["test_id"], row["trial"], row["score"]) for row in rows] == [
        ("a", 1, 0.5),
        ("a", 2, 0.5),
        ("a", 3, 0.5),
        ("b", 1, 1.0),
    ]
    together = {"count": 3, "valid": 3, "passed": 0, "pass_at_k": False, "pass_all": False}
    assert [row["trials"] for row in rows[:3]] == [{**together, "best": 0.5, "mean": 0.5, "worst": 0.5}] * 3
    assert rows[3]["trials"] is None


def test_a_strategy_of_statistics_is_refused_by_name(project: Project) -> None:
    project.write("t.yaml", AGENTV.replace("pass_at_k", "confidence_interval"))
    done = project.call("validate", "t.yaml")
    assert 't.yaml:1:42: execution.trials.strategy: "confidence_interval" is part of the format but' in done.stderr

"""`skillup judge RUN --judge FILE` and `--only`: another judge, a part of the run, and what was judged before stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_model_judge import judging
from tests.judging.judged import given
from tests.support import Finished, Project
from tests.test_schemas import complaints

CASES = {
    "orders-new": "{input: {prompt: go}, expect: {must_contain: [done]}, script: [{say: all done}]}",
    "orders-old": "{input: {prompt: go}, expect: {must_contain: [done]}, script: [{say: done before}]}",
    "refund": """
        input: {prompt: go}
        judges:
          - {id: words, type: rule_based, success: [{output_contains: {all: [done]}}]}
          - {id: tone, type: rubric, criteria: [{id: kind, text: It is kind.}]}
        script: [{say: done gladly}]
        """,
}
STRICT = "judge: {type: rule_based, success: [{output_contains: {all: [all]}}]}"


@pytest.fixture
def ran(project: Project) -> Finished:
    for name, text in CASES.items():
        project.write(f"cases/{name}.yaml", text)
    return project.run("cases", "--agent", "demo", "--no-model-judge")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_another_judge_decides_and_the_earlier_revision_stays(project: Project, ran: Finished) -> None:
    first = contents(ran.folder("orders-old"))
    project.write("strict.yaml", STRICT)
    judged = project.call("judge", ran.directory, "--judge", "strict.yaml", "--only", "orders-*")
    assert judged.code == 1, judged.stderr
    said = {result.case_id: (result.status, result.grading.code) for result in ran.run.case_results}
    assert said == {
        "orders-new": ("PASS", "all_met"),
        "orders-old": ("FAIL", "success"),
        "refund": ("UNCHECKED", "partial"),
    }
    kept = contents(ran.folder("orders-old") / "revisions" / "1")
    assert kept == {name: first[name] for name in ("case.json", "grading.json", "result.json")}
    now = contents(ran.directory)
    assert project.call("judge", ran.directory).code == 1
    assert contents(ran.directory) == now, "judged again it is the same, without the file"
    project.write("first.yaml", "judge: {type: rule_based, success: [{output_contains: {all: [before]}}]}")
    project.call("judge", ran.directory, "--judge", "first.yaml", "--only", "orders-old")
    assert ran.trial("orders-old").status == "PASS"
    assert json.loads(contents(ran.folder("orders-old"))["revisions/2/grading.json"])["status"] == "FAIL"
    assert contents(ran.folder("orders-old") / "revisions" / "1") == kept


def test_no_agent_is_started_no_command_is_run_and_no_model_is_asked(project: Project) -> None:
    """Every process that the run starts leaves a trace, and every request; judging again leaves none."""
    cli = project.write("fake-cli", "#!/bin/sh\necho started >> $(dirname $0)/started\necho 9.9.9\n")
    cli.chmod(0o755)
    project.write("agents/fake.yaml", "{engine: claude_code, model: scripted, settings: {binary: ../fake-cli}}")
    project.write("judge.sh", f"echo script >> {project.root}/started")
    rules = f"{{id: rules, type: rule_based, success: [{{command: 'echo command >> {project.root}/started'}}]}}"
    script, asks = "{id: script, type: script, script_path: judge.sh}", "{id: asks, type: rubric, criteria: [kind]}"
    project.write("a.yaml", f"{{input: {{prompt: x}}, judges: [{rules}, {script}, {asks}], script: [{{say: done}}]}}")
    project.write("other.yaml", "judge: {type: rule_based, success: [{output_contains: {all: [done]}}]}")
    with judging({"criterion-1": given("met", "done")}) as (route, variables):
        done = project.run("a.yaml", "--agent", "demo", "--agent", "fake", env=variables)
        started = (project.root / "started").read_text()
        assert set(started.split()) == {"command", "script", "started"}
        asked = len(route.requests)
        assert asked == 1
        requests = contents(done.directory)["a/demo/with_skill/trial-1/attempt-1/requests.jsonl"]
        for more in ([], ["--judge", "other.yaml"], ["--only", "a"]):
            project.call("judge", done.directory, *more, env=variables)
        assert (len(route.requests), (project.root / "started").read_text()) == (asked, started)
    assert contents(done.directory)["a/demo/with_skill/trial-1/attempt-1/requests.jsonl"] == requests


def test_one_of_several_judges_is_asked_or_replaced_alone(project: Project, ran: Finished) -> None:
    with judging({"kind": given("met", "gladly")}) as (route, variables):
        judged = project.call("judge", ran.directory, "--ask", "all", "--only", "refund/tone", env=variables)
        assert (judged.code, len(route.requests)) == (0, 1), judged.stderr
        assert ran.trial("refund").status == "PASS"
        project.write("strict.yaml", "judge: {type: rule_based, success: [{output_contains: {all: [perfect]}}]}")
        project.call("judge", ran.directory, "--judge", "strict.yaml", "--only", "refund/words", env=variables)
        assert len(route.requests) == 1
    parts = {part.id: (part.type, part.status) for part in ran.trial("refund").grading.judges}
    assert parts == {"words": ("rule_based", "FAIL"), "tone": ("rubric", "PASS")}


def test_what_was_said_about_other_criteria_is_no_answer_to_new_ones(project: Project) -> None:
    rubric = "judge: {type: rubric, criteria: [%s]}"
    project.write("a.yaml", f"{{input: {{prompt: x}}, {rubric % 'It is kind.'}, script: [{{say: done}}]}}")
    project.write("new.yaml", rubric % "It is perfect.")
    with judging({"criterion-1": given("met", "done")}) as (_, variables):
        done = project.run("a.yaml", "--agent", "demo", env=variables)
    assert done.trial().status == "PASS"
    project.call("judge", done.directory, "--judge", "new.yaml", "--ask", "saved")
    assert (done.trial().status, done.trial().grading.code) == ("UNCHECKED", "partial")
    assert (done.folder() / "revisions" / "1" / "criteria.json").exists()
    with judging({"criterion-1": given("not_met", reason="No.")}) as (route, variables):
        assert project.call("judge", done.directory, "--judge", "new.yaml", env=variables).code == 1
        assert len(route.requests) == 1, "with --judge what has no verdict is asked"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "order-*"], '--only: no case matches "order-*"'),
        (["--only", "refund/ton"], 'no judge of these cases has the id "ton" (did you mean "tone"?)'),
        (["--judge", "nowhere.yaml"], "nowhere.yaml"),
        (["--judge", "empty.yaml"], "nobody judges here (give `judge:` or `judges:`, as in a case)"),
        (["--judge", "late.yaml"], "judge.success[0].tool_called.turn: turn 2 does not exist: the case orders-new has"),
        (["--judge", "wrong.yaml"], 'judge.sucess: unknown key "sucess" (did you mean "success"?)'),
        (["--judge", "several.yaml", "--only", "refund/tone"], "judges: one judge is to be replaced: tone"),
    ],
)
def test_what_cannot_be_judged_changes_nothing(
    project: Project, ran: Finished, arguments: list[str], said: str
) -> None:
    project.write("empty.yaml", "combine: all_required")
    project.write("late.yaml", "judge: {type: rule_based, success: [{tool_called: {name: bash, turn: 2}}]}")
    project.write("wrong.yaml", "judge: {type: rule_based, sucess: []}")
    project.write("several.yaml", "judges: [{id: a, type: rule_based, success: [{files_exist: [a]}]}]")
    before = contents(ran.directory)
    judged = project.call("judge", ran.directory, *arguments)
    assert (judged.code, judged.stdout) == (2, "")
    assert said in judged.stderr, judged.stderr
    assert contents(ran.directory) == before


def test_agreement_asks_several_times_reports_the_noise_and_changes_nothing(project: Project, ran: Finished) -> None:
    before = contents(ran.directory)
    yes, no = {"kind": given("met", "gladly")}, {"kind": given("not_met", reason="No.")}
    with judging(yes, no, yes, yes) as (route, variables):
        said = project.call("judge", ran.directory, "--agreement", "4", env=variables)
        assert (said.code, len(route.requests)) == (0, 4), said.stderr
        assert said.stdout.splitlines()[:2] == [
            "refund · demo: 1× FAIL, 3× PASS",
            "  tone.kind: 3× met, 1× not met; agreement 0.75, scores 0.00 to 1.00",
        ]
        assert "asked 4 times: agreement 0.75; 4 calls" in said.stdout
        found = json.loads(project.call("judge", ran.directory, "--agreement", "2", "--json", env=variables).stdout)
        assert len(route.requests) == 6
    assert (found["agreement"], found["calls"], found["trials"][0]["statuses"]) == (1.0, 2, {"PASS": 2})
    assert complaints("agreement", found) == []
    assert contents(ran.directory) == before


def test_agreement_measures_the_judge_of_the_run_alone(project: Project, ran: Finished) -> None:
    said = project.call("judge", ran.directory, "--agreement", "2", "--ask", "all")
    assert said.code == 2
    assert "leave --ask and --judge out" in said.stderr

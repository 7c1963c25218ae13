"""`depends_on`: who waits for whom, also in parallel, and what a dependency that did not pass means."""

from __future__ import annotations

import json
import os

import pytest

from skillup.environments.process import Nursery
from skillup.execution.order import Queue
from skillup.execution.plan import Choices, make_plan
from skillup.execution.waiting import Pools
from skillup.loading.native import load_suites
from tests.support import Finished, Project

PASSES = "input: {prompt: hi}\nexpect: {must_contain: [hello]}\nscript: [{say: hello}]\n"
FAILS = PASSES.replace("say: hello", "say: bye")
BREAKS = PASSES.replace("say: hello", "faults: [{status: 401}]")


def run(project: Project, *options: str, **cases: str) -> Finished:
    for name, text in cases.items():
        project.write(f"cases/{name}.yaml", text)
    return project.run("cases", "--agent", "demo", *options)


def ended(done: Finished) -> dict[str, tuple[str, str]]:
    return {one.case_id: (one.status, one.grading.code) for one in done.run.case_results}


def test_a_case_runs_after_those_that_it_depends_on_however_many_run_at_once(project: Project) -> None:
    slow = PASSES.replace(
        "{say: hello}", "{replies: [{calls: [{tool: bash, args: {command: sleep 1}}]}, {say: hello}]}"
    )
    done = run(
        project,
        "--parallelism",
        "4",
        a=PASSES + "depends_on: [m]\n",
        m=PASSES + "depends_on: [z]\n",
        z=slow,
        other=PASSES,
    )
    assert set(ended(done).values()) == {("PASS", "all_met")}
    assert [one.case_id for one in done.run.case_results] == ["a", "m", "other", "z"], "the order of the plan"
    written = {name: (done.folder(name).parent / "result.json").stat().st_mtime_ns for name in ("a", "m", "z", "other")}
    assert written["other"] < written["z"] < written["m"] < written["a"]


@pytest.mark.parametrize(
    ("dependency", "how", "status", "reason"),
    [
        (FAILS, "skip", "SKIP", "the case depends on others, and first is FAIL"),
        (FAILS, "fail", "FAIL", "the case depends on others, and first is FAIL"),
        (BREAKS, "skip", "SKIP", "the case depends on others, and first is ERROR"),
        (BREAKS, "fail", "SKIP", "the case depends on others, and first is ERROR"),
        (FAILS, "run", "PASS", "all checks held"),
    ],
)
def test_what_a_dependency_that_did_not_pass_means(
    project: Project, dependency: str, how: str, status: str, reason: str
) -> None:
    second = f"{PASSES}depends_on: [first]\non_dependency_failure: {how}\n"
    done = run(project, first=dependency, second=second, third=PASSES + "depends_on: [second]\n")
    second_result = done.trial("second")
    assert second_result.status == status
    if how != "run":
        assert (second_result.grading.code, second_result.grading.reason) == ("dependency", reason)
        assert second_result.turn_results == ()
        assert ended(done)["third"] == ("SKIP", "dependency"), "it goes on from case to case"
        before = (done.folder("second") / "grading.json").read_bytes()
        project.call("judge", done.directory)
        assert (done.folder("second") / "grading.json").read_bytes() == before
    else:
        assert ended(done)["third"] == ("PASS", "all_met")


def test_each_agent_waits_for_its_own_trials_alone(project: Project) -> None:
    first = FAILS + "requires: {engines: [builtin]}\n"
    project.write("agents/other.yaml", "{engine: builtin, model: scripted}")
    project.write("cases/first.yaml", first)
    project.write("cases/second.yaml", PASSES + "depends_on: [first]\n")
    done = project.run("cases", "--agent", "demo", "--agent", "other", "--parallelism", "2")
    assert [one.status for one in done.run.case_results if one.case_id == "second"] == ["SKIP", "SKIP"]


FAULTS = {
    "nobody": (
        {"a": "depends_on: [b-c]"},
        'a.yaml:4:14: depends_on[0]: the suite has no case "b-c" (there are: a, b)',
    ),
    "itself": ({"a": "depends_on: [a]"}, "a.yaml:4:14: depends_on[0]: the case depends on itself"),
    "each other": (
        {"a": "depends_on: [b]", "b": "depends_on: [a]"},
        "a.yaml:4:13: depends_on: these cases wait for each other: a → b → a (none of them could ever run",
    ),
    "nothing decided": ({"a": "on_dependency_failure: run"}, "on_dependency_failure: the case depends on no other"),
    "another way": ({"a": "depends_on: [b]\non_dependency_failure: stop"}, "must be one of skip, fail, run"),
}


@pytest.mark.parametrize(("keys", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_a_dependency_that_can_never_be_met_is_a_fault(project: Project, keys: dict[str, str], message: str) -> None:
    for name in ("a", "b"):
        project.write(f"cases/{name}.yaml", PASSES + keys.get(name, ""))
    done = project.call("validate", "cases")
    assert done.code == 2
    assert message in done.stderr + done.stdout


def test_a_chosen_case_brings_what_it_depends_on_and_says_so(project: Project) -> None:
    cases = {"a": PASSES + "depends_on: [b]\n", "b": PASSES + "depends_on: [c]\n", "c": PASSES, "d": PASSES}
    done = run(project, "--include-case-name", "a", **cases)
    assert sorted(ended(done)) == ["a", "b", "c"]
    assert "warning: b, c: run as well, because chosen cases depend on it" in done.stderr
    refused = project.call("run", "cases", "--agent", "demo", "--exclude-case-name", "c")
    assert refused.code == 2
    assert "c is left out, and b depends on it (leave b out as well, or run both)" in refused.stderr


def test_one_file_of_a_suite_brings_what_it_depends_on(project: Project) -> None:
    project.write("eval.yaml", "schema_version: v1alpha1\ncases: {files: [cases/*.yaml]}\n")
    for name, text in {"a": PASSES + "depends_on: [b]\n", "b": PASSES, "c": PASSES}.items():
        project.write(f"cases/{name}.yaml", text)
    done = project.run("cases/a.yaml", "--agent", "demo")
    assert sorted(ended(done)) == ["a", "b"]


AGENTV = """
tests:
  - id: second
    mode: conversation
    depends_on: [first]
    on_dependency_failure: %s
    turns: [{input: hi, assertions: [{type: contains, value: hello}]}]
    script: [{say: hello}]
  - {id: first, mode: conversation, turns: [{input: hi, assertions: [{type: contains, value: x}]}], script: [{say: y}]}
"""


def test_agentv_tests_wait_too_and_its_rows_say_what_became_of_them(project: Project) -> None:
    project.write("t.yaml", AGENTV % "fail")
    done = project.run("t.yaml", "--agent", "demo")
    assert ended(done) == {"second": ("FAIL", "dependency"), "first": ("FAIL", "score")}
    rows = [json.loads(line) for line in (done.directory / "agentv.jsonl").read_text().splitlines()]
    assert {row["test_id"]: row["execution_status"] for row in rows} == {
        "second": "quality_failure",
        "first": "quality_failure",
    }


def test_a_fault_in_an_agentv_dependency_is_told_at_its_place(project: Project) -> None:
    project.write("t.yaml", (AGENTV % "skip").replace("depends_on: [first]", "depends_on: [frist]"))
    done = project.call("validate", "t.yaml")
    assert 't.yaml:4:18: tests[0].depends_on[0]: the suite has no case "frist" (did you mean "first"?)' in done.stderr


def test_a_trial_that_ended_before_counts_as_it_ended_then(project: Project) -> None:
    """The rest of a run knows of the trials that it need not run again what is saved of them."""
    cases = {"good": PASSES, "bad": FAILS, "never": PASSES}
    cases |= {f"after-{name}": f"{PASSES}depends_on: [{name}]\n" for name in tuple(cases)}
    done = run(project, "--include-case-name", "good", "--include-case-name", "bad", **cases)
    with Nursery() as nursery:
        plan = make_plan(load_suites([project.root / "cases"]), Choices(agents=("demo",)), dict(os.environ), nursery)
    rest = [task for task in plan.below(done.directory) if task.case.depends_on]
    waiting, found = Queue(rest, Pools(lambda _: None)), {}
    while (taken := waiting.take(lambda: False)) is not None:
        found[taken[1].case.id] = taken[1].withheld
    assert found["after-good"] is None
    reasons = {name: ending.reason for name, ending in found.items() if ending}
    assert reasons == {
        "after-bad": "the case depends on others, and bad is FAIL",
        "after-never": "the case depends on others, and never was not run",
    }

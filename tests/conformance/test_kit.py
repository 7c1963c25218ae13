"""The conformance kit itself passes: one run of it, of which every scenario is a test, and the kit can say no."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from skillup.conformance.outcome import ConformanceResult, ScenarioResult, outcome_of
from skillup.conformance.rows import FIELD, ROWS
from skillup.conformance.scenario import SCENARIOS, Scenario, ScenarioFile, choose, load_scenarios
from skillup.conformance.suites import memory_of
from skillup.errors import InputError
from skillup.loading.yamlfile import parse_yaml
from skillup.results import RunResult
from tests.support import REPOSITORY, Finished, Project

ALL = load_scenarios()
BY_NAME = {scenario.name: scenario for scenario in ALL}


@pytest.fixture(scope="session")
def kit(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ScenarioResult]:
    """What one run of the whole kit says, by scenario. Workers of a parallel test run share it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    saved = shared / "conformance.json"
    with FileLock(shared / "conformance.lock"):
        if not saved.exists():
            project = Project(shared / "conformance-project")
            done = project.call("conformance", "--json")
            project.close()
            assert done.code in (0, 1), done.stderr
            saved.write_text(done.stdout, encoding="utf-8")
    result = ConformanceResult.model_validate_json(saved.read_bytes())
    return {one.name: one for one in result.scenarios}


@pytest.mark.parametrize("name", BY_NAME)
def test_scenario(kit: dict[str, ScenarioResult], name: str) -> None:
    assert kit[name].problems == ()
    assert kit[name].ok


def test_every_failure_has_a_scenario() -> None:
    assert len(FIELD) == 30
    assert [row for row in ROWS if row not in {scenario.row for scenario in ALL}] == []


def test_every_scenario_says_where_it_was_seen() -> None:
    said = re.compile(r"\(?measured|[\w.-]+/[\w.-]+#\d+|inferred|not seen yet|source of|long output")
    assert [scenario.name for scenario in ALL if not said.search(scenario.seen)] == []


def test_every_failure_of_the_field_was_seen() -> None:
    seen = {scenario.row for scenario in ALL if not scenario.seen.startswith(("inferred", "not seen"))}
    assert sorted(FIELD.keys() - seen - {"held-output", "cut-line"}) == []


def test_the_docs_list_every_failure_in_the_same_words() -> None:
    text = (REPOSITORY / "docs" / "conformance.md").read_text(encoding="utf-8")
    assert [row for row, does in ROWS.items() if f"\n| `{row}` | {does} |\n" not in text] == []


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project whose runs several tests look at."""
    made = Project(tmp_path_factory.mktemp("keeper") / "project")
    yield made
    made.close()


@pytest.fixture(scope="module")
def kept(keeper: Project) -> Finished:
    """A run of few scenarios that was kept."""
    return keeper.call("conformance", "--only", "daemons", "--only", "new-id", "--output-dir", "kept")


def test_the_example_in_the_docs_is_the_scenario_of_its_name() -> None:
    text = (REPOSITORY / "docs" / "conformance.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    (shown,) = ScenarioFile.model_validate(parse_yaml(block, "docs").data).scenarios
    assert shown == BY_NAME[shown.name]


class TestOneRun:
    """What that run shows."""

    def test_the_table_shows_what_was_expected_and_what_came(self, kept: Finished, keeper: Project) -> None:
        assert kept.code == 0, kept.stderr
        lines = [line.split() for line in kept.stdout.splitlines()]
        noted = ["PASS,", "unfinished_background"]
        assert lines[1][:7] == ["orphans", "daemons", *noted, *noted, "✓"]
        assert lines[2][:7] == ["new-id", "mints-an-id", "ERROR", "session", "ERROR", "session", "✓"]
        assert "2 of 2 scenarios ended as they must" in kept.stdout
        assert f"run: {keeper.root / 'kept' / 'run'}" in kept.stdout

    def test_the_run_that_was_kept_is_one_like_any_other(self, kept: Finished, keeper: Project) -> None:
        report = keeper.call("report", keeper.root / "kept" / "run", "--json")
        assert kept.code == report.code == 0
        assert {one["case_id"] for one in json.loads(report.stdout)["case_results"]} == {"daemons", "mints-an-id"}

    def test_what_is_not_as_it_must_be_is_said(self, kept: Finished, keeper: Project) -> None:
        """The same results, held against other expectations."""
        assert kept.code == 0
        place = keeper.root / "kept"
        trials = RunResult.model_validate_json((place / "run" / "result.json").read_bytes()).case_results

        def judged(name: str, **changes: object) -> tuple[str, ...]:
            scenario = BY_NAME[name]
            expected = scenario.expected.model_copy(update=changes)
            outcome = outcome_of(scenario.model_copy(update={"expected": expected}), trials, place)
            assert outcome.ok is not bool(outcome.problems)
            return outcome.problems

        assert judged("daemons") == ()
        (said,) = judged("daemons", verdict="FAIL success")
        assert said.startswith("expected FAIL success, got PASS: ")
        (said,) = judged("mints-an-id", verdict="ERROR timeout")
        assert said.startswith("expected ERROR timeout, got ERROR session: turn 2 ")
        assert judged("daemons", notes=()) == ("there should be no note unfinished_background",)
        assert judged("mints-an-id", notes=("late_exit",)) == ("there is no note late_exit",)
        assert judged("daemons", attempts=2) == ("expected 2 attempts, got 1",)
        (said,) = judged("daemons", seconds=0.001)
        assert re.fullmatch(r"took \d+\.\d s, and may take 0\.001 s", said)
        assert outcome_of(BY_NAME["deaf"], trials, place).problems == ("1 of 1 trials did not end",)
        pids = memory_of(BY_NAME["daemons"], place) / "pids"
        assert len(pids.read_text().split()) == 5, "the CLI and its four daemons"
        pids.write_text(f"{pids.read_text()}{os.getpid()}\n")
        assert judged("daemons") == (f"process {os.getpid()} is still alive",)


def test_a_scenario_that_does_not_exist_is_bad_input(project: Project) -> None:
    done = project.call("conformance", "--only", "nothing-like-it", "--only", "demons")
    assert done.code == 2
    assert '--only: no scenario or failure is named "nothing-like-it" (failures are: inherited-stdin, ' in done.stderr
    assert '--only: no scenario or failure is named "demons" (did you mean "daemons"?)' in done.stderr
    assert done.stdout == ""


def test_a_scenario_that_ends_otherwise_is_told_and_exit_code_1(project: Project) -> None:
    """Where no trial root can be made nothing ends as it must."""
    no_folder = project.write("file", "x")
    done = project.call("conformance", "--only", "remembers", env={"SKILLUP_TRIAL_ROOT": str(no_folder)})
    assert done.code == 1
    assert "    expected PASS, got ERROR setup: no trial root can be made below " in done.stdout
    assert "0 of 1 scenarios ended as they must" in done.stdout


def test_an_interrupted_kit_leaves_nothing_and_says_so(project: Project) -> None:
    process = project.start("conformance", "--only", "silent-until-the-limit", "--only", "remembers")
    assert process.stderr is not None
    while "remembers" not in (line := process.stderr.readline()):
        assert line, "it ended before"
    process.send_signal(signal.SIGINT)
    done = project.wait(process, project.root)
    assert done.code == 130
    assert "interrupted: not every scenario was run" in done.stderr
    assert done.stdout == ""


def test_a_folder_that_is_not_empty_is_refused(project: Project) -> None:
    project.write("used/file", "x")
    done = project.call("conformance", "--output-dir", "used", "--only", "daemons")
    assert done.code == 2
    assert "used is not empty" in done.stderr


def test_scenarios_are_chosen_by_name_and_by_failure() -> None:
    chosen = choose(ALL, ["crash", "deaf-*"])
    assert {one.name for one in chosen} >= {"crashes-once", "deaf-daemons"}
    assert {one.row for one in chosen} == {"crash", "deaf", "orphans"}
    assert choose(ALL, []) == ALL


def test_faults_of_a_scenario_file_are_told_with_their_place(tmp_path: Path) -> None:
    text = (SCENARIOS / "session.yaml").read_text(encoding="utf-8")
    (tmp_path / "a.yaml").write_text(text.replace("row: stdin-end", "row: nonsense"), encoding="utf-8")
    (tmp_path / "b.yaml").write_text(
        "scenarios:\n  - {name: x, row: deaf, does: x, seen: x, turns: [], expected: {verdict: PASS}, more: 1}\n",
        encoding="utf-8",
    )
    with pytest.raises(InputError) as caught:
        load_scenarios(tmp_path)
    said = {(fault.path, fault.line, fault.key): fault.message for fault in caught.value.faults}
    assert "nonsense" in said["a.yaml", 4, "scenarios[0].row"]
    assert {key for path, _, key in said if path == "b.yaml"} == {"scenarios[0].turns", "scenarios[0].more"}


def test_two_scenarios_of_one_name_are_refused(tmp_path: Path) -> None:
    text = (SCENARIOS / "session.yaml").read_text(encoding="utf-8")
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="in the input") as caught:
        load_scenarios(tmp_path)
    assert "remembers is there twice" in {fault.message for fault in caught.value.faults}


def test_a_scenario_says_where_its_fake_agent_keeps_its_memory(tmp_path: Path) -> None:
    scenario: Scenario = ALL[0]
    assert memory_of(scenario, tmp_path) == tmp_path / scenario.name / "memory"

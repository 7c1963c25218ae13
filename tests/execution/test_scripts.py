"""Scripts that judge: what they get, what their ends mean, that they run once, and that no agent ever sees them."""

from __future__ import annotations

import json
import shutil
import time

import pytest

from skillup.results import ScriptRecord, TrialRecord
from tests.support import Finished, Project, processes_mentioning

CASE = """
input: {turns: [{content: write it}, {content: and again}]}
context: {files: {a.txt: first}}
judge: {type: script, script_path: judges/decide.sh%s}
script:
  - {user: write it, replies: [{calls: [{tool: bash, args: {command: "echo second >> a.txt; ls -laR .. ~ | grep decide; env"}}]}, {say: done}]}
  - {user: again, say: "the token is sk-ant-api03-Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1"}
"""  # noqa: E501 - one line of YAML


def run(project: Project, script: str, more: str = "", case: str = CASE, **given: str) -> Finished:
    project.write("judges/decide.sh", script)
    project.write("a.yaml", case % more)
    return project.run("a.yaml", "--agent", "demo", "--keep", "all", env=given)


def said(done: Finished) -> ScriptRecord:
    (record,) = TrialRecord.model_validate_json((done.folder() / "record.json").read_bytes()).scripts
    return record


def test_it_gets_the_conversation_and_the_answer_by_file_and_a_copy_of_the_workspace(project: Project) -> None:
    done = run(
        project,
        """
        #!/usr/bin/env python3
        import json, os, sys
        talk, last = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
        assert (sys.argv[1], sys.argv[2]) == (os.environ["EVAL_TRANSCRIPT_PATH"], os.environ["EVAL_FINAL_MESSAGE_PATH"])
        assert [turn["content"] for turn in talk["turns"]] == ["write it", "and again"], talk
        assert [turn["response"] for turn in talk["turns"]][0] == "done"
        assert last == "the token is [masked]", last
        assert os.environ["EVAL_EXIT_CODE"] == "0"
        assert open("a.txt").read() == "firstsecond\\n"
        open("a.txt", "w").close()
        print("both turns are there")
        """,
    )
    assert done.trial().status == "PASS", done.stdout
    (check,) = done.trial().grading.assertion_results
    assert (check.id, check.role, check.state, check.reasoning) == (
        "judge.script",
        "script",
        "met",
        "both turns are there",
    )
    assert done.trial().grading.reasoning == "both turns are there"
    assert (done.folder() / "workspace" / "a.txt").read_text() == "firstsecond\n"


def test_an_answer_of_any_length_reaches_it(project: Project) -> None:
    case = CASE.replace("the token is sk-ant-api03-Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1", "x" * 500_000)
    done = run(project, 'test $(wc -c < "$EVAL_FINAL_MESSAGE_PATH") = 500000', case=case)
    assert done.trial().status == "PASS", done.stdout


@pytest.mark.parametrize("code", [1, 2, 125])
def test_an_exit_code_of_its_own_is_fail_with_what_it_said(project: Project, code: int) -> None:
    done = run(project, f"echo the total is wrong; echo trouble >&2; exit {code}")
    grading = done.trial().grading
    assert (done.code, grading.status, grading.code) == (1, "FAIL", "script")
    assert grading.assertion_results[0].evidence == f"the script ended with {code}: the total is wrong · trouble"
    assert grading.reasoning == "the total is wrong"


@pytest.mark.parametrize(
    ("script", "more", "why"),
    [
        ("sleep 4712 & sleep 4712", ", timeout_seconds: 1", "did not end within 1 s"),
        ("kill -SEGV $$", "", "ended by signal 11"),
        ("no-such-program", "", "ended with 127, which is no answer"),
        ("#!/nowhere/python", "", "it could not be run"),
        ("exit 126", "", "ended with 126, which is no answer"),
    ],
)
def test_a_script_that_gives_no_answer_is_an_error(project: Project, script: str, more: str, why: str) -> None:
    started = time.monotonic()
    done = run(project, script, more)
    assert time.monotonic() - started < 60
    assert (done.code, done.trial().status, done.trial().grading.code) == (3, "ERROR", "judge"), done.stdout
    assert why in done.trial().grading.reason
    assert processes_mentioning("sleep\x004712") == []


def test_judging_again_starts_nothing_and_gives_the_same_bytes(project: Project) -> None:
    done = run(project, f"echo x >> {project.root}/times; exit 0")
    before = {path: path.read_bytes() for path in done.directory.rglob("*") if path.is_file()}
    shutil.rmtree(project.root / "judges")
    for _ in range(2):
        assert project.call("judge", done.directory, env={"PATH": ""}).code == 0
    assert {path: path.read_bytes() for path in done.directory.rglob("*") if path.is_file()} == before
    assert (project.root / "times").read_text() == "x\n"


def test_it_gets_no_credential_neither_the_agents_nor_the_judges(project: Project) -> None:
    project.write("agents/keyed.yaml", "{engine: builtin, model: scripted, env: {MY_TOKEN: '${MY_TOKEN}'}}")
    project.write("judges/decide.sh", "env; ! env | grep -E 'TOKEN|SKILLUP|API_KEY|user-home'")
    project.write("a.yaml", CASE % "")
    given = {"MY_TOKEN": "of-the-agent", "SKILLUP_JUDGE_API_KEY": "of-the-judge", "ANTHROPIC_API_KEY": "of-another"}
    done = project.run("a.yaml", "--agent", "keyed", env=given)
    assert done.trial().status == "PASS", done.stdout
    assert "PATH=" in said(done).output


def test_while_the_agent_runs_nothing_names_the_script_where_it_looks(project: Project) -> None:
    """Neither its workspace, its variables, the roots of trials, nor a skill that is installed."""
    project.write("SKILL.md", "---\nname: orders\ndescription: For orders.\n---\nAsk.\n")
    project.write("judges/decide.sh", "exit 0")
    project.write("judges/other.txt", "installed")
    look = "pwd; ls -R .. ; env; find $HOME/.. -name 'decide*'; find $HOME/.. -name other.txt"
    project.write(
        "a.yaml",
        f"""
        input: {{prompt: go}}
        judge: {{type: script, script_path: judges/decide.sh}}
        script: [{{replies: [{{calls: [{{tool: bash, args: {{command: "{look}"}}}}]}}, {{say: done}}]}}]
        """,
    )
    project.write("eval.yaml", "{schema_version: v1alpha1, skills: [{path: .}], cases: {files: [a.yaml]}}")
    done = project.run("eval.yaml", "--agent", "demo")
    assert done.trial().status == "PASS", done.stdout + done.stderr
    asked = json.dumps(done.requests())
    assert "other.txt" in asked, "the agent did look into the skill"
    assert "decide.sh" not in asked


@pytest.mark.parametrize("how", ["echo 'exit 0' >", "rm -f"])
def test_a_script_that_the_agent_has_changed_judges_nothing(project: Project, how: str) -> None:
    path = project.root / "judges" / "decide.sh"
    case = CASE.replace("echo second >> a.txt;", f"{how} {path};")
    done = run(project, "exit 1", case=case)
    assert (done.trial().status, done.trial().grading.code) == ("ERROR", "judge")
    assert "judges/decide.sh has changed since the case was loaded" in done.trial().grading.reason


def test_a_script_that_changes_itself_judges_nothing(project: Project) -> None:
    done = run(project, f"echo '#' >> {project.root}/judges/decide.sh")
    assert done.trial().status == "ERROR"
    assert said(done).problem == "judges/decide.sh was changed while it ran"


@pytest.mark.parametrize("gate", ["", ", post_condition: {must_match: never, on_fail: skip_remaining}"])
def test_after_a_fault_or_a_skip_it_is_not_run(project: Project, gate: str) -> None:
    faulty = "script: [{faults: [{status: 401}]}]" if not gate else "script: [{say: done}]"
    project.write("judges/decide.sh", f"touch {project.root}/ran")
    project.write(
        "a.yaml",
        f"""
        input: {{turns: [{{content: x{gate}}}, {{content: y}}]}}
        judge: {{type: script, script_path: judges/decide.sh}}
        {faulty}
        """,
    )
    done = project.run("a.yaml", "--agent", "demo")
    assert done.trial().status == ("SKIP" if gate else "ERROR"), done.stdout
    assert not (project.root / "ran").exists()
    assert done.trial().grading.assertion_results[-1].state == "unknown"


def test_rules_beside_it_count_too(project: Project) -> None:
    case = CASE.replace("%s}", ", success: [{files_exist: [b.txt]}]%s}")
    done = run(project, "exit 0", case=case)
    assert (done.trial().status, done.trial().grading.code) == ("FAIL", "success")
    assert done.trial().grading.summary.total == 2


@pytest.mark.parametrize(
    ("content", "judge", "message"),
    [
        (None, "script_path: judges/decide.sh", "judge.script_path: there is no file judges/decide.sh"),
        ("", "script_path: judges/decide.sh", "is empty, so it would say yes to everything"),
        ("print(1)", "script_path: judges/decide.txt", "nothing says how to start judges/decide.txt"),
        ("exit 0", "script_path: ../decide.sh", "../decide.sh leaves the suite's folder"),
        ("exit 0", "script_path: fixture/decide.sh", "the fixture holds decide.sh, so the agent would see what is"),
        (
            'test -n "$EVAL_FINAL_MESSAGE"',
            "script_path: judges/decide.sh",
            "judges/decide.sh reads EVAL_FINAL_MESSAGE, which is never set (read the file that EVAL_FINAL_MESSAGE_PATH",
        ),
        (
            "exit 0",
            f"script_path: {{path: judges/decide.sh, sha256: {'a' * 64}}}",
            "judges/decide.sh is not the script with this sha256",
        ),
        ("exit 0", "success: [{files_exist: [a]}]", "judge: a judge of type script without a script"),
        ("exit 0", "script_path: judges/decide.sh, samples: 2", "judge.samples: `samples` says nothing to a judge of"),
    ],
)
def test_what_could_not_judge_is_refused_before_anything_runs(
    project: Project, content: str | None, judge: str, message: str
) -> None:
    for name in ("judges/decide.sh", "judges/decide.txt", "fixture/decide.sh", "fixture/a.txt"):
        if content is not None:
            project.write(name, content)
    (project.root / "fixture").mkdir(exist_ok=True)
    case = f"{{input: {{prompt: x}}, context: {{repo_fixture: fixture}}, judge: {{type: script, {judge}}}, script: []}}"
    project.write("a.yaml", case.replace(", script: []", ""))
    checked = project.call("validate", "a.yaml")
    assert checked.code == 2
    assert message in checked.stderr, checked.stderr


def test_a_script_says_nothing_to_another_judge(project: Project) -> None:
    project.write("a.yaml", "{input: {prompt: x}, judge: {type: rule_based, script_path: a.sh, success: []}}")
    assert "`script_path` says nothing to a judge of type rule_based" in project.call("validate", "a.yaml").stderr

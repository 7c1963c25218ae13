"""Agents on the host that change what they, or others, are judged by: nothing is measured on it, and it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import Finished, Project

SUITE = """
    schema_version: v1alpha1
    skills: [{path: skill}]
    cases: {files: [first.yaml, second.yaml]}
"""

CASE = """
    input: {prompt: go}
    context:
      repo_fixture: fixture
      git: {init: true, apply_diff: change.patch}
    judges:
      - {id: rules, type: rule_based, success: [{output_contains: {all: [done]}}]}
      - {id: own, type: script, script_path: judges/decide.sh}
    script:
      - user: go
        replies: [{calls: [{tool: bash, args: {command: "%s"}}]}, {say: done}]
"""

PATCH = """\
diff --git a/added.txt b/added.txt
new file mode 100644
--- /dev/null
+++ b/added.txt
@@ -0,0 +1 @@
+added
"""


@pytest.fixture
def suite(project: Project) -> Project:
    project.write("eval.yaml", SUITE)
    project.write("skill/SKILL.md", "---\nname: heron\ndescription: For herons.\n---\nSay heron.\n")
    project.write("fixture/a.txt", "as it was")
    project.write("fixture/deep/b.txt", "b")
    project.write("change.patch", PATCH)
    project.write("judges/decide.sh", "exit 0")
    project.write("second.yaml", CASE % "true")
    return project


def run(project: Project, deed: str) -> Finished:
    """Two trials, one after the other; the agent of the first one does it."""
    project.write("first.yaml", CASE % deed.format(root=project.root))
    return project.run("eval.yaml", "--agent", "demo")


@pytest.mark.parametrize(
    ("deed", "changed", "judged"),
    [
        ("echo easier > {root}/fixture/a.txt", "fixture", True),
        ("ln -s /etc/passwd {root}/fixture/link", "fixture", True),
        ("echo Say hint. >> {root}/skill/SKILL.md", "skill", True),
        ("sed -i s/+added/+easier/ {root}/change.patch", "change.patch", True),
        ("echo exit 0 > {root}/judges/decide.sh; echo >> {root}/judges/decide.sh", "judges/decide.sh", False),
    ],
)
def test_no_trial_is_made_from_what_an_agent_has_changed(
    suite: Project, deed: str, changed: str, *, judged: bool
) -> None:
    done = run(suite, deed)
    assert done.trial("first").grading.code == ("all_met" if judged else "judge"), done.stdout
    second = done.trial("second")
    assert (done.code, second.status, second.grading.code, second.turns) == (3, "ERROR", "setup", 0)
    assert second.error is not None
    assert second.error.message == f"{changed} has changed since the run was planned"
    assert done.run.changed_files == (changed,)
    assert f"changed while the run went on: {changed};" in done.stdout
    again = suite.call("report", done.directory)
    assert f"changed while the run went on: {changed};" in again.stdout


def test_a_case_that_an_agent_has_changed_is_judged_as_it_was_and_named(suite: Project) -> None:
    """Neither in the suite nor in the run directory, whose place it may guess."""
    deed = (
        "sed -i s/done/other/ {root}/second.yaml; "
        "sed -i s/done/go/ {root}/run-1/first/demo/with_skill/trial-1/attempt-1/case.json; "
        "grep -c done {root}/run-1/first/demo/with_skill/trial-1/attempt-1/case.json"
    )
    done = run(suite, deed)
    assert (done.trial("first").status, done.trial("second").status) == ("PASS", "PASS"), done.stdout
    assert "done" in (done.folder("first") / "case.json").read_text()
    assert done.run.changed_files == ("second.yaml",)


def test_a_run_in_which_nobody_changes_anything_names_nothing(suite: Project) -> None:
    done = run(suite, "true")
    assert (done.code, done.run.changed_files) == (0, ()), done.stdout
    assert "changed while" not in done.stdout


@pytest.mark.usefixtures("bubblewrap")
def test_a_sandboxed_agent_finds_none_of_it(suite: Project) -> None:
    suite.write("eval.yaml", SUITE + "    environment: {type: bubblewrap}\n")
    done = run(suite, "ls {root} && echo easier > {root}/fixture/a.txt")
    assert (done.code, done.run.changed_files) == (0, ()), done.stdout
    assert Path(suite.root / "fixture" / "a.txt").read_text() == "as it was"

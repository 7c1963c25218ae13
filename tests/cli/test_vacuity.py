"""`validate --vacuity`: what holds with an agent that does nothing, from real files, without starting anything."""

from __future__ import annotations

from tests.support import Project

EMPTY = """
input: {prompt: tidy up}
context: {repo_fixture: app, files: {notes.txt: "keep me"}}
judge:
  type: rule_based
  success:
    - files_exist: [readme.md, notes.txt]
    - file_contains: {path: readme.md, content: hello}
    - tool_not_called: bash
    - max_tokens: 1000
  failure:
    - files_exist: ['*.tmp']
"""

ASKS = """
input: {prompt: write it}
context: {repo_fixture: app}
judge:
  type: rule_based
  success:
    - files_exist: [readme.md]
    - workspace_changed: {created: [out.txt], only: [out.txt]}
    - tool_not_called: web_fetch
"""


def project_of(project: Project, **cases: str) -> Project:
    project.write("cases/app/readme.md", "hello")
    for name, text in cases.items():
        project.write(f"cases/{name}.yaml", text)
    return project


def test_a_case_that_would_pass_is_named_with_all_that_holds(project: Project) -> None:
    done = project_of(project, empty=EMPTY).call("validate", "cases", "--vacuity")
    assert done.code == 1
    assert done.stdout.splitlines() == [
        "1 case in order",
        "empty: would PASS with an agent that does nothing; these checks hold:",
        "  files_exist: [readme.md, notes.txt]",
        "  file_contains: {path: readme.md, content: hello}",
        "  tool_not_called: bash",
        "  max_tokens: {max: 1000}",
        "  must not hold: files_exist: ['*.tmp']",
        "1 would PASS with an agent that does nothing",
    ]
    assert not list(project.root.glob("*-workspace"))


def test_of_other_cases_what_asks_for_something_and_holds_already_is_named(project: Project) -> None:
    done = project_of(project, asks=ASKS).call("validate", "cases", "--vacuity")
    assert done.code == 0
    assert done.stdout.splitlines() == [
        "1 case in order",
        "asks: these checks hold before the agent has done anything:",
        "  files_exist: [readme.md]",
        "0 would PASS with an agent that does nothing",
    ]


def test_a_reason_allows_it_and_one_that_is_not_needed_is_told(project: Project) -> None:
    reason = "vacuous_ok: the right thing is to do nothing\n"
    done = project_of(project, empty=EMPTY + reason, asks=ASKS + reason).call("validate", "cases", "--vacuity")
    assert done.code == 0
    assert done.stdout.splitlines() == [
        "2 cases in order",
        "asks: `vacuous_ok` is not needed: without an agent the case is FAIL",
        "empty: may PASS with an agent that does nothing: the right thing is to do nothing",
        "0 would PASS with an agent that does nothing",
    ]


def test_gates_and_captures_stop_an_agent_that_says_nothing(project: Project) -> None:
    gated = """
    input:
      turns:
        - {role: user, content: a, post_condition: {%s}}
        - {role: user, content: "b"}
    judge: {type: rule_based, success: [{tool_not_called: bash}]}
    """
    captured = """
    input: {turns: [{content: a, capture: [{variable: x, pattern: '(x+)'}]}, {content: 'b {{x}}'}]}
    judge: {type: rule_based, success: [{tool_not_called: bash}]}
    """
    cases = {
        "fails": gated % "must_match: x",
        "skips": gated % "must_match: x, on_fail: skip_remaining",
        "passes": gated % "must_not_contain: [x]",
        "captures": captured,
    }
    done = project_of(project, **cases).call("validate", "cases", "--vacuity")
    assert done.code == 1
    assert [line for line in done.stdout.splitlines() if not line.startswith("  ")] == [
        "4 cases in order",
        "passes: would PASS with an agent that does nothing; these checks hold:",
        "1 would PASS with an agent that does nothing",
    ]


def test_commands_and_set_up_steps_are_not_run(project: Project) -> None:
    project_of(project)
    project.write(
        "eval.yaml",
        f"""
        schema_version: v1alpha1
        environment: {{setup_steps: [{{run: touch {project.root}/ran}}]}}
        cases: {{files: [checks/*.yaml]}}
        """,
    )
    command = f"command: touch {project.root}/ran"
    project.write(
        "checks/a.yaml",
        f"input: {{prompt: x}}\njudge: {{type: rule_based, success: [{{{command}}}, {{files_not_exist: [a]}}]}}\n",
    )
    project.write("checks/b.yaml", "input: {prompt: x}\nexpect: {files_not_exist: [a]}\n")
    done = project.call("validate", "--vacuity")
    assert done.stdout.splitlines()[1:] == [
        "b: would PASS with an agent that does nothing (set-up steps were not run); these checks hold:",
        "  files_not_exist: a",
        "1 would PASS with an agent that does nothing",
    ]
    assert not (project.root / "ran").exists()


def test_without_the_option_nothing_of_it_is_said(project: Project) -> None:
    done = project_of(project, empty=EMPTY).call("validate", "cases")
    assert (done.code, done.stdout, done.stderr) == (0, "1 case in order\n", "")


def test_a_run_warns_once_for_all_cases(project: Project) -> None:
    script = "script: [{say: hi}]\n"
    one = "input: {prompt: x}\njudge: {type: rule_based, success: [{tool_not_called: bash}]}\n" + script
    cases = {"a": one, "b": one, "c": one + "vacuous_ok: it is a test\n", "d": EMPTY + script, "e": ASKS + script}
    done = project_of(project, **cases).run("cases", "--agent", "demo")
    warnings = [line for line in done.stderr.splitlines() if line.startswith("warning:")]
    assert warnings == [
        "warning: 3 cases would PASS with an agent that does nothing: a, b, d; `skillup validate --vacuity` says why"
    ]

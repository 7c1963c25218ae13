"""Checks for a secret: what is judged is masked, so they would match any other secret as well."""

from __future__ import annotations

import pytest

from tests.support import Project

KEY = "sk-ant-api03-" + "Ab1" * 12
MESSAGE = (
    "this looks like a key, and is masked in what is judged: any other one would match, too (write [masked], which"
)

CASE = """\
input:
  turns: [{content: hello, post_condition: {must_contain_all: [KEY]}}]
expect:
  must_not_contain: [fine, KEY]
judge:
  type: rule_based
  success:
    - tool_called: {name: bash, args: {env: {token: [{matches: ^KEY$}]}}}
    - json_path: {path: $.a, equals: {KEY: 1}}
    - file_equals: {path: a.txt, file: secret.txt}
    - command: {run: "echo KEY", output: {all: [fine]}}
    - output_contains: {all: ["[masked]"]}
    - output_matches: {all: ["sk-ant-[A-Za-z0-9_-]{16,}"]}
  failure:
    - output_contains: {any: [fine, key is KEY]}
"""


def test_what_looks_like_a_key_is_a_fault_wherever_a_saved_trial_is_held_against_it(project: Project) -> None:
    project.write("a.yaml", CASE.replace("KEY", KEY))
    project.write("secret.txt", KEY)
    done = project.call("validate", "a.yaml")
    said = [line for line in done.stderr.splitlines() if line.startswith("a.yaml")]
    places = (
        "4:21: expect.must_not_contain:",
        "8:64: judge.success[0].tool_called.args.env.token[0].matches:",
        '9:38: judge.success[1].json_path.equals["[masked]"]:',
        "10:40: judge.success[2].file_equals.file.text:",
        "15:37: judge.failure[0].output_contains.any[1]:",
    )
    assert done.code == 2
    assert len(said) == len(places), done.stderr
    for line, place in zip(said, places, strict=True):
        assert line.startswith(f"a.yaml:{place}"), done.stderr
        assert MESSAGE in line
    assert KEY not in done.stderr


def test_the_judge_of_a_suite_is_told_of_once_and_another_judge_later_on_as_well(project: Project) -> None:
    judge = "{type: rule_based, success: [{output_contains: {all: [%s]}}]}"
    project.write("eval.yaml", f"schema_version: v1alpha1\njudge: {judge % KEY}\ncases: {{files: ['*.case.yaml']}}\n")
    for name in ("one", "two"):
        project.write(f"{name}.case.yaml", f"id: {name}\ninput: {{prompt: Go}}\nscript: [{{say: done}}]\n")
    done = project.call("validate")
    assert (done.code, done.stderr.count(MESSAGE)) == (2, 1), done.stderr
    project.write(
        "eval.yaml", f"schema_version: v1alpha1\njudge: {judge % 'done'}\ncases: {{files: ['*.case.yaml']}}\n"
    )
    ran = project.run("--agent", "demo")
    assert ran.code == 0, ran.stderr
    project.write("other.yaml", f"judge: {judge % KEY}\n")
    again = project.call("judge", ran.directory, "--judge", "other.yaml")
    assert (again.code, MESSAGE in again.stderr) == (2, True), again.stderr


@pytest.mark.parametrize(("held", "status"), [("the-hidden-password", "ERROR"), ("another-password", "PASS")])
def test_a_credential_of_the_trial_itself_is_in_the_way_of_that_trial(project: Project, held: str, status: str) -> None:
    project.write("agents/own.yaml", 'engine: builtin\nmodel: scripted\nenv: {MY_TOKEN: "${MY_TOKEN}"}\n')
    rule = "{output_contains: {all: [it is the-hidden-password]}}"
    script = "[{say: it is the-hidden-password}]"
    project.write(
        "a.yaml", f"input: {{prompt: Go}}\njudge: {{type: rule_based, success: [{rule}]}}\nscript: {script}\n"
    )
    done = project.run("a.yaml", "--agent", "own", env={"MY_TOKEN": held})
    result = done.trial()
    assert result.status == status, done.stdout
    if result.error is not None:
        place = "judge.success[0].output_contains.all[0] of a"
        assert result.error.kind == "setup"
        assert f"{place} holds a credential of this trial, which is masked in what is judged" in result.error.message
        assert "write [masked]" in result.error.hint
        assert "the-hidden-password" not in done.stdout + done.stderr

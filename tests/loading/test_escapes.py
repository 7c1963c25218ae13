"""A stranger's suite gets nothing from outside of its folder: every key that names a file or folder, every way out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillup.errors import InputError
from skillup.loading.native import load_suites
from skillup.loading.rendering import render_faults

SUITE = "{schema_version: v1alpha1, cases: {files: [a.yaml]}%s}"
CASE = "{input: {prompt: x}, judge: {type: none}%s}"
RUBRIC = "type: rubric, criteria: [{id: a, text: b}]"


def judged(judge: str) -> dict[str, str]:
    return {"a.yaml": f"{{input: {{prompt: x}}, judge: {{{judge}}}}}"}


def graded(grader: str) -> dict[str, str]:
    test = f"{{id: a, mode: conversation, turns: [{{input: x, assertions: [{grader}]}}]}}"
    return {"eval.yaml": f"tests: [{test}]"}


FOLDERS: dict[str, dict[str, str]] = {
    "context.repo_fixture": {"a.yaml": CASE % ", context: {repo_fixture: '%s'}"},
    "skills[0].path": {"eval.yaml": SUITE % ", skills: [{path: '%s'}]", "a.yaml": CASE % ""},
    "judge.skills[0]": judged(f"{RUBRIC}, skills: ['%s']"),
}
FILES: dict[str, dict[str, str]] = {
    "cases.files[0]": {"eval.yaml": "{schema_version: v1alpha1, cases: {files: ['%s']}}"},
    "agents[0]": {"eval.yaml": SUITE % ", agents: ['./%s']", "a.yaml": CASE % ""},
    "context.git.apply_diff": {"a.yaml": CASE % ", context: {git: {init: true, apply_diff: '%s'}}"},
    "expect.golden_file": {"a.yaml": CASE % ", expect: {golden_file: '%s'}"},
    "judge.success[0].file_equals.file": judged("type: rule_based, success: [{file_equals: {path: a, file: '%s'}}]"),
    "judge.success[0].json_schema.schema": judged("type: rule_based, success: [{json_schema: {schema: '%s'}}]"),
    "judge.script_path": judged("type: script, script_path: '%s'"),
    "judge.context.attachments[0]": judged(f"{RUBRIC}, context: {{attachments: ['%s']}}"),
    "assertions[0].prompt": graded("{type: llm-grader, prompt: '%s'}"),
    "assertions[0]": graded("{type: code-grader, command: [python3, '%s']}"),
}
CASES = [(key, files, name) for key, files in FOLDERS.items() for name in ("folder", "linked-folder")]
CASES += [(key, files, name) for key, files in FILES.items() for name in ("secret.py", "linked.py", "inner/secret.py")]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite's folder beside what is none of its business; `inner` and two names lead there by links."""
    outside, suite = tmp_path / "outside", tmp_path / "suite"
    for name in ("folder/SKILL.md", "secret.py", "secret.md"):
        (outside / name).parent.mkdir(parents=True, exist_ok=True)
        (outside / name).write_text("---\nname: s\ndescription: d\n---\nsecret\n")
    suite.mkdir()
    for link, target in (
        ("linked.py", "secret.py"),
        ("linked.md", "secret.md"),
        ("linked-folder", "folder"),
        ("inner", "."),
    ):
        (suite / link).symlink_to(outside / target)
    monkeypatch.chdir(suite)
    return suite


@pytest.mark.parametrize(("key", "files", "name"), CASES)
def test_a_path_that_leaves_the_suite_is_refused_at_its_key(
    key: str, files: dict[str, str], name: str, place: Path
) -> None:
    name = name.replace(".py", ".md") if key.endswith("prompt") else name
    written = name if (place / name).exists() else f"../outside/{name}"
    for file, text in files.items():
        (place / file).write_text(text % written if "%s" in text else text)
    with pytest.raises(InputError) as caught:
        load_suites([Path(next(iter(files)))])
    told = render_faults(caught.value.faults)
    assert "secret\n" not in told
    assert any(fault.line and "leaves" in fault.message for fault in caught.value.faults), told
    assert key in told, told


EVAL_SET = {"eval_set_id": "s", "eval_cases": [{"eval_id": "a", "conversation": []}]}


@pytest.mark.parametrize("name", ["home.evalset.json", "tasks.json", "a.yaml"])
def test_a_folder_of_cases_takes_none_by_a_link_that_leads_out(place: Path, name: str) -> None:
    (place.parent / "outside" / name).write_text(json.dumps(EVAL_SET))
    (place / name).symlink_to(place.parent / "outside" / name)
    with pytest.raises(InputError) as caught:
        load_suites([Path()])
    assert "leaves the suite's folder" in render_faults(caught.value.faults)


def test_criteria_of_an_eval_set_that_are_a_link_which_leads_out_are_not_read(place: Path) -> None:
    turn = {"invocation_id": "1", "user_content": {"role": "user", "parts": [{"text": "hello"}]}}
    (place / "home.evalset.json").write_text(
        json.dumps({"eval_set_id": "s", "eval_cases": [{"eval_id": "a", "conversation": [turn]}]})
    )
    (place / "test_config.json").symlink_to(place.parent / "outside" / "secret.py")
    with pytest.raises(InputError) as caught:
        load_suites([Path("home.evalset.json")])
    told = render_faults(caught.value.faults)
    assert "test_config.json" in told
    assert "leaves the suite's folder" in told

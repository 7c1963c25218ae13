"""Files that a case is held against: read when it is loaded, and never where an agent could see them."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.errors import InputError
from skillup.loading.native import load_suites
from skillup.loading.rendering import render_faults
from skillup.spec.case import Case
from skillup.spec.content_rules import FileEquals, OutputEquals
from skillup.spec.json_rules import JsonSchema


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def load(*paths: str) -> tuple[Case, ...]:
    return tuple(case for suite in load_suites([Path(path) for path in paths], ()) for case in suite.cases)


def report_on(*paths: str) -> str:
    with pytest.raises(InputError) as caught:
        load(*paths)
    return render_faults(caught.value.faults)


ALL = """\
input: {prompt: hi}
expect: {golden_file: golden/answer.txt}
judge:
  type: rule_based
  success:
    - file_equals: {path: a.txt, file: golden/a.txt}
    - output_equals: {file: {text: as it is}}
    - json_schema: {schema: golden/shape.json}
"""


@pytest.mark.usefixtures("place")
def test_what_the_files_hold_is_in_the_case() -> None:
    write("a.yaml", ALL)
    write("golden/answer.txt", "the answer\n")
    write("golden/a.txt", "content\n")
    write("golden/shape.json", '{"type": "object"}')
    (case,) = load("a.yaml")
    golden, equals, text, shape = case.all_rules
    assert isinstance(golden, OutputEquals)
    assert isinstance(equals, FileEquals)
    assert isinstance(text, OutputEquals)
    assert isinstance(shape, JsonSchema)
    assert (golden.expected, equals.expected, text.expected) == ("the answer\n", "content\n", "as it is")
    assert shape.file is not None
    assert shape.file.content == '{"type": "object"}'
    assert Case.model_validate(case.model_dump(mode="json", by_alias=True, exclude_unset=True)) == case


@pytest.mark.usefixtures("place")
def test_every_fault_comes_at_its_place() -> None:
    write("a.yaml", ALL)
    write("golden/a.txt", " \n")
    write("golden/shape.json", '{"type": "thing"}')
    assert report_on("a.yaml").splitlines() == [
        f"a.yaml:2:23: expect.golden_file: there is no file golden/answer.txt (paths are relative to {Path.cwd()})",
        (
            "a.yaml:6:40: judge.success[0].file_equals.file: "
            "golden/a.txt is empty, so it says nothing about an agent"
        ),
        (
            "a.yaml:8:29: judge.success[2].json_schema.schema: golden/shape.json: not a valid JSON Schema: "
            "$.type: 'thing' is not valid under any of the given schemas"
        ),
    ]  # fmt: skip


BAD = {
    "a folder": ("golden", "golden is no file"),
    "out of the suite": ("../x.txt", "../x.txt leaves the suite's folder"),
    "no text": ("bytes.bin", "bytes.bin is no UTF-8 text (only texts can be compared with)"),
    "too large": ("large.txt", "large.txt has more than 1,048,576 bytes (compare with a smaller text)"),
    "both": ("{path: answer.txt, text: x}", "both a `path` and a `text` are given: which one counts is not clear"),
    "nothing": ("{}", "there is nothing to compare with"),
}


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("golden", "said"), BAD.values(), ids=BAD)
def test_a_file_that_cannot_be_compared_with(golden: str, said: str) -> None:
    Path("golden").mkdir()
    write("answer.txt", "x")
    write("large.txt", "x" * 2_000_000)
    Path("bytes.bin").write_bytes(b"\xff\xfe\x00")
    write("a.yaml", f"input: {{prompt: hi}}\nexpect: {{golden_file: {golden}}}\n")
    assert said in report_on("a.yaml")


SUITE = """\
schema_version: v1alpha1
cases: {files: [cases/*.yaml], defaults: {expect: {golden_file: golden/all.txt, must_contain: [a]}}}
"""


@pytest.mark.usefixtures("place")
def test_the_golden_file_of_a_case_overrides_that_of_the_defaults_and_lists_are_joined() -> None:
    write("eval.yaml", SUITE)
    write("golden/all.txt", "all")
    write("golden/one.txt", "one")
    write("cases/a.yaml", "input: {prompt: hi}\n")
    write("cases/b.yaml", "input: {prompt: hi}\nexpect: {golden_file: golden/one.txt, must_contain: [b, a]}\n")
    one, other = load("eval.yaml")
    assert [case.expect.golden_file.content for case in (one, other) if case.expect.golden_file] == ["all", "one"]
    assert (one.expect.must_contain, other.expect.must_contain) == (("a",), ("a", "b"))


@pytest.mark.usefixtures("place")
def test_a_fault_of_the_defaults_is_told_once_at_its_place() -> None:
    write("eval.yaml", SUITE)
    for name in "abc":
        write(f"cases/{name}.yaml", "input: {prompt: hi}\n")
    report = report_on("eval.yaml")
    assert report.count("\n") == 0
    assert report.startswith("eval.yaml:2:65: cases.defaults.expect.golden_file: there is no file golden/all.txt")


@pytest.mark.usefixtures("place")
def test_a_fixture_may_not_hold_the_answer() -> None:
    write("a.yaml", "input: {prompt: hi}\nexpect: {golden_file: app/golden/a.txt}\ncontext: {repo_fixture: app}\n")
    write("app/golden/a.txt", "a")
    assert "the fixture holds golden/a.txt, so the agent would see what is checked" in report_on("a.yaml")


@pytest.mark.usefixtures("place")
def test_a_skill_is_installed_without_the_answers() -> None:
    write("SKILL.md", "---\nname: s\ndescription: d\n---\n")
    write("notes/golden.txt", "a")
    write("notes/other.txt", "b")
    write("eval.yaml", "schema_version: v1alpha1\nskills: [{path: .}]\ncases: {files: [cases/*.yaml]}\n")
    write("cases/a.yaml", "input: {prompt: hi}\nexpect: {golden_file: notes/golden.txt}\n")
    (suite,) = load_suites([Path("eval.yaml")], ())
    assert suite.skills[0].files == ("SKILL.md", "notes/other.txt")


GRADED = """\
input: {{prompt: hi}}
judge:
  type: rule_based
  scoring: {{parts: [{{name: a, graders: [{{name: p, program: {{command: {command}}}}}]}}]}}
"""
JUDGED = "input: {{prompt: hi}}\njudge: {{type: evaluator, evaluator: '{name}'}}\n"
KEYS = ("checks/deep/key.json", "checks/run.py", "kind/__init__.py", "kind/strict.py", "short.py")


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("case", "installed"),
    [
        (GRADED.format(command="[python3, -m, unittest, checks]"), KEYS[2:]),
        (GRADED.format(command="cd checks && ls"), KEYS[2:]),
        (GRADED.format(command="[python3, HERE/checks/run.py]"), (KEYS[0], *KEYS[2:])),
        (GRADED.format(command="[ls, HERE/checks/]"), KEYS[2:]),
        (GRADED.format(command="[ls, ., SKILL.md, /, /usr]"), KEYS),
        (JUDGED.format(name="short:judge"), KEYS[:4]),
        (JUDGED.format(name="kind:judge"), (*KEYS[:2], KEYS[4])),
        (JUDGED.format(name="kind.strict:judge"), (*KEYS[:3], KEYS[4])),
        (JUDGED.format(name="short"), KEYS),
        (JUDGED.format(name="json:loads"), KEYS),
        (JUDGED.format(name="/:judge"), KEYS),
    ],
)
def test_a_skill_is_installed_without_what_judges(place: Path, case: str, installed: tuple[str, ...]) -> None:
    write("SKILL.md", "---\nname: s\ndescription: d\n---\n")
    for name in KEYS:
        write(name, "1\n")
    write("eval.yaml", "schema_version: v1alpha1\nskills: [{path: .}]\ncases: {files: [cases/*.yaml]}\n")
    write("cases/a.yaml", case.replace("HERE", str(place)))
    (suite,) = load_suites([Path("eval.yaml")], ())
    assert suite.skills[0].files == ("SKILL.md", *installed)


SCHEMAS = {
    "nothing": ("{}", "an empty schema accepts everything"),
    "a wrong type": ("{type: 5}", "not a valid JSON Schema: $.type"),
    "a foreign reference": ("{$ref: 'https://example.com/a.json'}", "and nothing is fetched"),
    "a missing reference": ("{$ref: '#/$defs/a'}", "which it does not hold"),
    "an unknown draft": ("{$schema: 'https://example.com/x', type: object}", "is no known kind of JSON Schema"),
    "an endless reference": ("{$ref: '#'}", "the schema refers to itself without an end"),
    "a bad pattern": ("{pattern: '(?=x)'}", '"(?=x)" in the schema is not a valid RE2 pattern'),
}


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("schema", "said"), SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_that_cannot_be_applied(schema: str, said: str) -> None:
    write(
        "a.yaml",
        f"input: {{prompt: hi}}\njudge: {{type: rule_based, success: [{{json_schema: {{schema: {schema}}}}}]}}\n",
    )
    report = report_on("a.yaml")
    assert said in report
    assert report.startswith("a.yaml:2:")

"""`--include-case-name` and `--exclude-case-name`: which cases are meant, and what is said when none is."""

from __future__ import annotations

import pytest

from tests.support import Project

CASE = "input: {prompt: hi}\nexpect: {must_contain: [hello]}\nscript: [{say: hello}]\n"
IDS = ("close-one", "close-two", "open-one", "open-two.v2")


@pytest.fixture
def cases(project: Project) -> Project:
    for name in IDS:
        project.write(f"cases/{name}.yaml", CASE)
    return project


def include(*globs: str) -> list[str]:
    return [part for glob in globs for part in ("--include-case-name", glob)]


def exclude(*globs: str) -> list[str]:
    return [part for glob in globs for part in ("--exclude-case-name", glob)]


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        (include("close-*"), IDS[:2]),
        (include("close-one", "open-one"), ("close-one", "open-one")),
        (include("?????-one"), IDS[:1]),
        (include("*[12]"), IDS[3:]),
        (exclude("close-*"), IDS[2:]),
        (exclude("close-*", "open-one"), IDS[3:]),
        (include("*-one") + exclude("open-*"), IDS[:1]),
        (include("*"), IDS),
    ],
)
def test_globs_on_ids_choose_and_exclude_wins(cases: Project, options: list[str], chosen: tuple[str, ...]) -> None:
    listed = cases.call("list-cases", *options)
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(chosen)


def test_a_run_takes_the_chosen_cases_alone(cases: Project) -> None:
    done = cases.run("cases", "--agent", "demo", *include("*-one"))
    assert done.code == 0
    assert [result.case_id for result in done.run.case_results] == ["close-one", "open-one"]


def test_what_is_expected_of_cases_that_were_left_out_does_not_count(cases: Project) -> None:
    expected = cases.write("expected.yaml", "".join(f"{name}: PASS\n" for name in (*IDS, "no-such-case")))
    done = cases.run("cases", "--agent", "demo", "--expected", expected, *include("open-one"))
    assert done.stderr.splitlines()[-1] == "unexpected: no-such-case: expected PASS, but it was not run"
    cases.write("expected.yaml", "".join(f"{name}: PASS\n" for name in IDS))
    assert cases.run("cases", "--agent", "demo", "--expected", expected, *include("open-one")).code == 0


def test_a_suite_without_a_chosen_case_plays_no_part(cases: Project) -> None:
    suite = "schema_version: v1alpha1\nengine: {name: %s, model: scripted}\ncases: {files: ['*.yaml']}\n"
    cases.write("a/eval.yaml", suite % "no-such-engine")
    cases.write("a/one.yaml", CASE)
    cases.write("b/eval.yaml", suite % "builtin")
    cases.write("b/two.yaml", CASE)
    assert cases.run("a", "b", *include("two")).code == 0


@pytest.mark.parametrize("command", ["run", "list-cases", "validate"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            include("nothing"),
            '--include-case-name: no case matches "nothing" (there are: close-one, close-two, open-one, open-two.v2)',
        ),
        (
            include("close-*", "opne-one"),
            '--include-case-name: no case matches "opne-one" (did you mean "open-one"? there are: close-one, ',
        ),
        (exclude("shut-*"), '--exclude-case-name: no case matches "shut-*" (there are: close-one, '),
        (include("Close-One"), '--include-case-name: no case matches "Close-One" (did you mean "close-one"? '),
        (include(""), '--include-case-name: no case matches "" (there are: '),
        (include("close-*") + exclude("*-*"), "--exclude-case-name: no case is left (there are: close-one, "),
    ],
)
def test_a_filter_that_matches_nothing_names_the_ids(
    cases: Project, command: str, options: list[str], said: str
) -> None:
    done = cases.call(command, "cases", *options, *(["--agent", "demo"] if command == "run" else []))
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith(said)
    assert not list(cases.root.glob("*-workspace"))


def test_of_many_ids_the_first_are_named_and_the_others_counted(project: Project) -> None:
    for number in range(100):
        project.write(f"cases/case-number-{number:02}.yaml", CASE)
    said = project.call("list-cases", *include("x")).stderr
    assert "there are: case-number-00, case-number-01," in said
    assert "case-number-07 and 92 more)" in said


def test_validate_reads_every_file_and_says_how_many_are_chosen(cases: Project) -> None:
    assert cases.call("validate", *include("*-one")).stdout == "4 cases in order\n2 of them chosen\n"
    cases.write("cases/other.yaml", "input: {promt: hi}\n")
    assert cases.call("validate", *include("*-one")).code == 2

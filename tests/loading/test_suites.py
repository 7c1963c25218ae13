"""From files to suites: where cases come from, what they inherit, and every fault of every file in one pass."""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from skillup.errors import InputError
from skillup.loading.native import load_suites
from skillup.loading.paths import LONGEST_WALK
from skillup.loading.rendering import render_faults
from skillup.spec.suite import Suite

CASE = "input: {prompt: hi}\nexpect: {must_contain: [x]}\n"
UNCHECKED = "input: {prompt: hi}\njudge: {type: none}\n"
NO_JUDGE = "judge: {type: none}\n"
SUITE = "schema_version: v1alpha1\ncases: {files: ['cases/*.yaml']}\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, text: str = CASE) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def load(*paths: str, allowed: Sequence[str] = ()) -> tuple[Suite, ...]:
    return load_suites([Path(path) for path in paths], [Path(path) for path in allowed])


def ids(*paths: str) -> list[str]:
    return [case.id for suite in load(*paths) for case in suite.cases]


def report_on(*paths: str) -> str:
    with pytest.raises(InputError) as caught:
        load(*paths)
    return render_faults(caught.value.faults)


# Where cases come from


@pytest.mark.usefixtures("place")
def test_a_case_file_is_a_case_named_for_its_file() -> None:
    write("close-ticket.yaml")
    (suite,) = load("close-ticket.yaml")
    assert [case.id for case in suite.cases] == ["close-ticket"]
    assert suite.root == Path.cwd()


@pytest.mark.usefixtures("place")
def test_without_a_name_the_default_places_are_looked_at_in_their_order() -> None:
    write("cases/a.yaml")
    assert ids() == ["a"]
    write("eval.yaml", SUITE)
    assert load()[0].source == Path("eval.yaml").absolute()
    write("evals/eval.yaml", SUITE)
    write("evals/cases/b.yaml")
    assert ids() == ["b"]


@pytest.mark.usefixtures("place")
def test_nothing_in_the_default_places_is_a_fault_that_names_them() -> None:
    assert report_on() == (
        ".: nothing to run here (looked for evals/eval.yaml, eval.yaml, cases) (name a suite or a case)"
    )


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("name", ["eval.yaml", "eval.yml", "evals/eval.yaml", "evals/eval.yml"])
def test_a_folder_with_a_suite_is_that_suite(name: str) -> None:
    write(f"skill/{name}", SUITE)
    write(f"{Path('skill', name).parent}/cases/a.yaml")
    write("skill/b.yaml")
    assert ids("skill") == ["a"]


@pytest.mark.usefixtures("place")
def test_a_bare_folder_holds_cases_and_suites_at_any_depth() -> None:
    write("all/a.yaml")
    write("all/deep/er/b.yml")
    write("all/suite/eval.yaml", SUITE)
    write("all/suite/cases/c.yaml")
    assert sorted(ids("all")) == ["a", "b", "c"]


@pytest.mark.usefixtures("place")
def test_what_is_no_case_is_left_out_of_a_bare_folder() -> None:
    write("all/a.yaml")
    for name in ("agents/x", "fixtures/app/config", ".github/ci", "node_modules/m/x", "all-workspace/x", "expected"):
        write(f"all/{name}.yaml", "no: case\n")
    write("all/other-skill/SKILL.md", "a skill")
    write("all/other-skill/data.yaml", "no: case\n")
    assert ids("all") == ["a"]


@pytest.mark.usefixtures("place")
def test_paths_of_a_bare_case_are_relative_to_its_own_folder_however_it_is_named() -> None:
    write("all/sub/fixtures/app/a.txt", "text")
    write("all/sub/a.yaml", UNCHECKED + "context: {repo_fixture: fixtures/app}\n")
    for path in ("all", "all/sub", "all/sub/a.yaml"):
        assert load(path)[0].root == Path("all/sub").absolute()


@pytest.mark.usefixtures("place")
def test_a_case_that_is_named_alone_keeps_what_its_suite_gives_it() -> None:
    write("SKILL.md", "---\nname: s\ndescription: d\n---\n")
    write(
        "evals/eval.yaml",
        """\
        schema_version: v1alpha1
        cases: {files: ['evals/cases/*.yaml'], defaults: {timeout_seconds: 7}}
        judge: {type: rule_based, success: [{output_contains: {all: [x]}}]}
        """,
    )
    write("evals/cases/a.yaml", "input: {prompt: hi}\n")
    write("evals/cases/b.yaml", "input: {prompt: hi}\n")
    (suite,) = load("evals/cases/a.yaml")
    (case,) = suite.cases
    assert (case.id, case.constraints.timeout_seconds, len(case.success_rules)) == ("a", 7, 1)
    assert suite.root == Path.cwd()


@pytest.mark.usefixtures("place")
def test_a_case_that_no_suite_above_it_names_is_a_bare_one() -> None:
    write("eval.yaml", SUITE)
    write("cases/a.yaml")
    write("other/b.yaml")
    assert load("other/b.yaml")[0].root == Path("other").absolute()


@pytest.mark.usefixtures("place")
def test_a_path_that_is_named_twice_is_loaded_once() -> None:
    write("a.yaml")
    assert ids("a.yaml", "./a.yaml", "x/../a.yaml") == ["a"]


@pytest.mark.usefixtures("place")
def test_globs_of_cases_find_no_hidden_files_and_not_the_suite_itself() -> None:
    write("eval.yaml", "schema_version: v1alpha1\ncases: {files: ['**/*.yaml']}\n")
    write("deep/er/a.yaml")
    write("b.yaml")
    write(".b.yaml.swp.yaml", "no: case\n")
    write(".git/c.yaml", "no: case\n")
    assert ids("eval.yaml") == ["b", "a"]


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("entry", ["cases/a.yaml", "./cases/a.yaml", "cases/[a].yaml", "c*/?.yaml", "cases/**"])
def test_an_entry_of_cases_is_a_path_or_a_glob(entry: str) -> None:
    write("eval.yaml", f"schema_version: v1alpha1\ncases: {{files: ['{entry}']}}\n")
    write("cases/a.yaml")
    assert ids("eval.yaml") == ["a"]


# What is at fault


@pytest.mark.usefixtures("place")
def test_all_faults_of_all_files_come_in_one_pass() -> None:
    write(
        "eval.yaml",
        """\
        schema_version: v1alpha1
        environment: {type: docker}
        skills: [{path: skill}]
        cases: {files: ['cases/*.yaml', none.yaml]}
        """,
    )
    write("cases/a.yaml", "input: {promt: hi}\n")
    write("cases/b.yaml", "input: {prompt: '{{x}}'}\nexpect: {must_contain: []}\n")
    write("cases/c.yaml", "")
    write("cases/d.yaml")
    assert report_on("eval.yaml").splitlines() == [
        'cases/a.yaml:1:9: input.promt: unknown key "promt" (did you mean "prompt"?)',
        "cases/c.yaml:1:1: the file is empty",
        (
            "eval.yaml:2:21: environment.type: `type: docker` needs the `image` that its containers are made of "
            "(add `image: …`)"
        ),
        f"eval.yaml:4:33: cases.files[1]: no case file matches none.yaml (paths are relative to {Path.cwd()})",
    ]
    write("eval.yaml", Path("eval.yaml").read_text().replace("docker", "none"))
    report = report_on("eval.yaml")
    assert "cases/b.yaml:1:17: input.prompt: {{x}} is neither" in report
    assert "cases/b.yaml:1:1: the case checks nothing" in report
    assert "eval.yaml:3:17: skills[0].path: there is no folder skill" in report
    assert "environment.type" not in report


SUITES = {
    "no version": ("cases: {files: [a.yaml]}\n", 'eval.yaml:1:1: "schema_version" is required'),
    "no file": ("schema_version: v1alpha1\ncases: {files: []}\n", "eval.yaml:2:16: cases.files: must not be empty"),
    "an empty glob": (
        "schema_version: v1alpha1\ncases: {files: ['x/*.yaml']}\n",
        "eval.yaml:2:17: cases.files[0]: no case file matches x/*.yaml (paths are relative to {here})",
    ),
    "a file twice": (
        "schema_version: v1alpha1\ncases: {files: [a.yaml, ./a.yaml]}\n",
        "eval.yaml:2:25: cases.files[1]: a.yaml is named twice",
    ),
    "a file outside": (
        "schema_version: v1alpha1\ncases: {files: [../b.yaml]}\n",
        (
            "eval.yaml:2:17: cases.files[0]: ../b.yaml leaves the suite's folder {here} "
            "(move it inside, or pass --allow-path DIR)"
        ),
    ),
    "a glob outside": (
        "schema_version: v1alpha1\ncases: {files: ['/etc/*.yaml']}\n",
        (
            "eval.yaml:2:17: cases.files[0]: /etc/*.yaml leaves the suite's folder {here} "
            "(move it inside, or pass --allow-path DIR)"
        ),
    ),
    "too many at once": (
        "schema_version: v1alpha1\ncases: {files: [a.yaml], parallelism: 300}\n",
        "eval.yaml:2:39: cases.parallelism: must be at most 256",
    ),
    "a turn of a case that the suite's judge names": (
        (
            "schema_version: v1alpha1\ncases: {files: [a.yaml]}\n"
            "judge: {type: rule_based, success: [{output_contains: {all: [x], turn: 7}}]}\n"
        ),
        (
            "eval.yaml:3:72: judge.success[0].output_contains.turn: turn 7 does not exist: the case a has 1 turn "
            "(turns count from 1)"
        ),
    ),
    "more turns than the defaults allow": (
        "schema_version: v1alpha1\ncases: {files: [two.yaml], defaults: {max_turns: 1}}\n",
        (
            "two.yaml:1:16: input.turns: 2 turns, but max_turns is 1 "
            "(raise constraints.max_turns of the case, or cases.defaults.max_turns of the suite)"
        ),
    ),
    "a contradiction with the defaults": (
        "schema_version: v1alpha1\ncases: {files: [a.yaml], defaults: {expect: {must_not_contain: [x]}}}\n",
        "a.yaml:2:9: expect: with cases.defaults, 'x' is in must_contain and in must_not_contain: this can never hold",
    ),
    "not even a mapping": (
        "- a\n",
        "eval.yaml:1:1: expected a mapping, got a list (write lines of the form `key: value`)",
    ),
}


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("text", "report"), SUITES.values(), ids=SUITES)
def test_a_faulty_suite_is_one_line_at_its_place(text: str, report: str) -> None:
    write("suite/a.yaml")
    write("b.yaml")
    write("suite/two.yaml", "input: {turns: [{content: a}, {content: b}]}\njudge: {type: none}\n")
    write("suite/eval.yaml", text)
    os.chdir("suite")
    assert report_on("eval.yaml") == report.format(here=Path.cwd())


CASES = {
    "a capture that comes later": (
        NO_JUDGE + "input: {turns: [{content: '{{id}}'}, {content: b, capture: [{variable: id, pattern: (a)}]}]}\n",
        (
            "a.yaml:2:27: input.turns[0].content: {{id}} is used before it exists: turn 2 captures it later "
            "(known here: none; {{!id}} writes the braces out)"
        ),
    ),
    "a capture of the same turn": (
        NO_JUDGE + "input: {turns: [{content: '{{id}}', capture: [{variable: id, pattern: (a)}]}]}\n",
        (
            "a.yaml:2:27: input.turns[0].content: {{id}} is used before it exists: turn 1 captures it "
            "only after its answer (known here: none; {{!id}} writes the braces out)"
        ),
    ),
    "a misspelt name": (
        NO_JUDGE + "vars: {ticket: T}\ninput: {prompt: 'close {{tickt}}'}\n",
        (
            "a.yaml:3:17: input.prompt: {{tickt}} is neither in `vars` nor captured by an earlier turn "
            "(did you mean {{ticket}}?; {{!tickt}} writes the braces out)"
        ),
    ),
    "no such turn": (
        "input: {prompt: a}\njudge: {type: rule_based, success: [{tool_called_in_turn: {turn: 7, name: bash}}]}\n",
        (
            "a.yaml:2:66: judge.success[0].tool_called_in_turn.turn: turn 7 does not exist: the case has 1 turn "
            "(turns count from 1)"
        ),
    ),
    "no check": (
        "input: {prompt: a}\n",
        (
            "a.yaml:1:1: the case checks nothing, so it could only pass "
            "(add `judge`, `expect` or a `post_condition`; or say so with judge: {type: none})"
        ),
    ),
    "no fixture": (
        UNCHECKED + "context: {repo_fixture: x}\n",
        "a.yaml:3:25: context.repo_fixture: there is no folder x (paths are relative to {here})",
    ),
    "a fixture that is a file": (
        UNCHECKED + "context: {repo_fixture: a.yaml}\n",
        "a.yaml:3:25: context.repo_fixture: a.yaml is no folder (paths are relative to {here})",
    ),
    "a fixture outside": (
        UNCHECKED + "context: {repo_fixture: ..}\n",
        (
            "a.yaml:3:25: context.repo_fixture: .. leaves the suite's folder {here} "
            "(move it inside, or pass --allow-path DIR)"
        ),
    ),
    "a fixture that holds the answers": (
        UNCHECKED + "context: {repo_fixture: .}\n",
        (
            "a.yaml:3:25: context.repo_fixture: the fixture holds a.yaml, so the agent would see what is checked "
            "(move it, or use a subfolder)"
        ),
    ),
    "a fixture outside, by a link": (
        UNCHECKED + "context: {repo_fixture: out}\n",
        (
            "a.yaml:3:25: context.repo_fixture: out leaves the suite's folder {here} (a link leads to /etc) "
            "(move it inside, or pass --allow-path DIR)"
        ),
    ),
    "a link in a fixture": (
        UNCHECKED + "context: {repo_fixture: linked}\n",
        (
            "a.yaml:3:25: context.repo_fixture: the fixture linked cannot be used: "
            "the link deep/secret leads out of the suite's folder"
        ),
    ),
}


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("text", "report"), CASES.values(), ids=CASES)
def test_a_faulty_case_is_one_line_at_its_place(text: str, report: str) -> None:
    write("cases/a.yaml", text)
    os.chdir("cases")
    if "repo_fixture: out" in text:
        Path("out").symlink_to("/etc")
    if "repo_fixture: linked" in text:
        Path("linked/deep").mkdir(parents=True)
        Path("linked/deep/secret").symlink_to("/etc/passwd")
    assert report_on("a.yaml") == report.replace("{here}", str(Path.cwd()))


@pytest.mark.usefixtures("place")
def test_a_case_file_that_is_a_link_out_of_the_suite_is_refused() -> None:
    write("suite/eval.yaml", SUITE)
    write("outside.yaml")
    Path("suite/cases").mkdir()
    Path("suite/cases/a.yaml").symlink_to(Path("outside.yaml").absolute())
    assert report_on("suite") == (
        "suite/eval.yaml:2:17: cases.files[0]: suite/cases/a.yaml is a link that leaves the suite's folder "
        "(copy the file, or pass --allow-path DIR)"
    )
    assert [case.id for suite in load("suite", allowed=["."]) for case in suite.cases] == ["a"]


@pytest.mark.usefixtures("place")
def test_what_allow_path_names_may_be_used() -> None:
    write("suite/a.yaml", UNCHECKED + "context: {repo_fixture: ../shared/app}\n")
    write("shared/app/file.txt", "text")
    assert "leaves the suite's folder" in report_on("suite/a.yaml")
    assert len(load("suite/a.yaml", allowed=["shared"])) == 1


@pytest.mark.usefixtures("place")
def test_an_id_may_be_taken_once_in_a_run_and_the_fault_says_by_which_file() -> None:
    write("one/a.yaml")
    write("two/a.yaml")
    assert report_on("one", "two") == (
        "two/a.yaml:1:1: id: the id a is taken by one/a.yaml "
        "(the id is the file's name; give one of the two an `id:` of its own)"
    )
    write("two/a.yaml", "title: t\nid: b\n" + CASE)
    write("two/c.yaml", "id: b\n" + CASE)
    assert report_on("two") == "two/c.yaml:1:5: id: the id b is taken by two/a.yaml"


@pytest.mark.usefixtures("place")
def test_a_file_name_that_cannot_be_an_id_is_told() -> None:
    write("my case.yaml")
    assert report_on("my case.yaml") == (
        'my case.yaml:1:1: id: the id is the file\'s name, and "my case" cannot name a folder '
        "(give an `id:`, or rename the file)"
    )


PATHS = {
    "a file that is not there": ("none.yaml", "none.yaml: there is no such file"),
    "an empty folder": (
        "empty",
        (
            "empty: the folder holds no eval.yaml and no case files "
            "(a case is a .yaml file, a data set a .json file; name one, a folder of them, or a suite's eval.yaml)"
        ),
    ),
    "a file of another format": (
        "evals.json",
        (
            "evals.json:1:2: evals: this looks like an evals.json of the agent skills format, which cannot be read yet "
            "(write eval.yaml and cases/*.yaml)"
        ),
    ),
    "a file of AgentV without tests": ("agentv.yaml", "agentv.yaml:1:8: tests: must not be empty"),
    "an empty suite": ("suite/eval.yaml", 'suite/eval.yaml:1:1: "cases" is required'),
}


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("path", "report"), PATHS.values(), ids=PATHS)
def test_a_path_that_holds_nothing_to_run_is_told(path: str, report: str) -> None:
    Path("empty").mkdir()
    write("evals.json", '{"evals": []}')
    write("agentv.yaml", "tests: []\n")
    write("suite/eval.yaml", "{}\n")
    assert report in report_on(path).splitlines()


@pytest.mark.usefixtures("place")
def test_a_broken_suite_above_a_case_is_told_and_not_passed_over() -> None:
    write("eval.yaml", "schema_version: v1alpha1\ncases: {files: [a.yaml], parallel: 3}\n")
    write("a.yaml")
    assert "eval.yaml:2:26: cases.parallel: unknown key" in report_on("a.yaml")


@pytest.mark.usefixtures("place")
def test_a_fixture_may_not_hold_any_file_that_says_what_is_checked() -> None:
    write("evals/eval.yaml", "schema_version: v1alpha1\ncases: {files: ['a.yaml', 'app/b.yaml']}\n")
    write("evals/a.yaml", UNCHECKED + "context: {repo_fixture: app}\n")
    write("evals/app/b.yaml", UNCHECKED)
    assert "the fixture holds b.yaml, so the agent would see what is checked" in report_on("evals")
    write("SKILL.md", "---\nname: s\ndescription: d\n---\n")
    write("evals/eval.yaml", "schema_version: v1alpha1\ncases: {files: ['evals/a.yaml']}\n")
    write("evals/a.yaml", UNCHECKED + "context: {repo_fixture: .}\n")
    assert "the fixture holds evals/eval.yaml, so the agent would see" in report_on("evals")


# What is allowed and seldom meant


@pytest.mark.usefixtures("place")
def test_warnings_name_their_place() -> None:
    write("SKILL.md", "---\nname: s\ndescription: d\n---\n")
    write(
        "eval.yaml",
        """\
        schema_version: v1alpha1
        engine: {name: x, entry: y, model: {name: m, params: {a: b}}}
        environment: {env: {PATH: '$HOME/bin:$PATH', MY_TOKEN: abcdef}}
        cases: {files: [a.yaml]}
        """,
    )
    write(
        "a.yaml",
        """\
        vars: {city: Oslo}
        input:
          turns:
            - content: "{{city}}"
              capture: [{variable: id, jsonpath: $.transcripts.tool_calls}]
              post_condition: {must_contain_any: ["{{city}}"], on_fail: skip_remaining}
        judge: {type: rule_based, success: [{output_contains: {all: ["{{id}}"]}}]}
        """,
    )
    (suite,) = load("eval.yaml")
    assert list(suite.warnings) == [
        "eval.yaml:2:19: engine.entry: this key has no effect",
        "eval.yaml:2:46: engine.model.params: this key has no effect",
        "eval.yaml:3:21: environment.env.PATH: $HOME is passed as it is written: variables are not expanded here",
        (
            "eval.yaml:3:46: environment.env.MY_TOKEN: this looks like a secret; pass it by `env` of an agent profile, "
            "where it is masked in results"
        ),
        (
            "a.yaml:6:56: input.turns[0].post_condition.on_fail: skip_remaining on the last turn makes the case SKIP, "
            "as nothing remains"
        ),
        (
            "a.yaml:5:32: input.turns[0].capture[0].jsonpath: this path reads the reply as JSON; "
            "the turn's record begins with $.transcript"
        ),
        (
            "a.yaml:6:7: input.turns[0].post_condition: {{city}} is replaced in messages only: "
            "the check looks for these very characters"
        ),
        (
            "a.yaml:7:38: judge.success[0].output_contains: {{id}} is replaced in messages only: "
            "the check looks for these very characters"
        ),
        "eval.yaml: SKILL.md is not installed; add `skills: [{path: .}]`, or the agent works without it",
    ]


# Size


@pytest.mark.usefixtures("place")
def test_a_glob_over_a_huge_tree_ends_with_a_fault() -> None:
    write("suite/eval.yaml", "schema_version: v1alpha1\ncases: {files: ['**/*.yaml']}\n")
    for number in range(3):
        folder = Path(f"suite/tree/{number}")
        folder.mkdir(parents=True)
        for name in range(LONGEST_WALK // 3 + 1):
            os.mknod(folder / str(name))
    started = time.process_time()
    assert "**/*.yaml looks at more than 20,000 entries" in report_on("suite")
    assert time.process_time() - started < 10


@pytest.mark.usefixtures("place")
def test_a_fixture_that_many_cases_share_is_looked_at_once() -> None:
    for number in range(3000):
        write(f"suite/app/{number}.txt", "x")
    write("suite/eval.yaml", SUITE)
    for number in range(200):
        write(f"suite/cases/{number}.yaml", UNCHECKED + "context: {repo_fixture: app}\n")
    started = time.process_time()
    assert len(load("suite")[0].cases) == 200
    assert time.process_time() - started < 10

"""What ships runs: the demo, the examples, the regression cases, and everything that the guides tell a reader to do."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from skillup.results import RunResult, TrialRecord
from tests.support import REPOSITORY, Finished, Project

CASES = REPOSITORY / "cases"
GUIDES = ("README.md", "docs/getting-started.md")
EXAMPLES = "skillup run cases/examples --agent claude_code --parallelism 4"
CREDENTIALS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")


def copied(project: Project) -> Project:
    """The project with a copy of the cases in it, as in a clone."""
    shutil.copytree(CASES, project.root / "cases", ignore=shutil.ignore_patterns("*-workspace"))
    return project


def the_demo() -> list[str]:
    """What `make demo` calls, without `skillup`."""
    text = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    found = re.search(r"^demo:.*\n\t@\$\(BIN\)/skillup (.+)$", text, re.MULTILINE)
    assert found, "the Makefile's demo has another shape"
    return shlex.split(found[1])


def run_folder(done: Finished) -> str:
    """The folder of the run whose report the output names."""
    named = re.search(r"^report: (\S+)/result\.json$", done.stdout, re.MULTILINE)
    assert named, done.stderr
    return named[1]


def run_of(project: Project, done: Finished) -> RunResult:
    """The result of the run whose report the output names."""
    return RunResult.model_validate_json((project.root / run_folder(done) / "result.json").read_bytes())


def unforeseen(project: Project, done: Finished) -> list[str]:
    """Requests that no script answered: a case that ships plays every one of them."""
    folder = project.root / run_folder(done)
    records = [TrialRecord.model_validate_json(path.read_bytes()) for path in folder.rglob("record.json")]
    assert records
    traffic = [turn.model_traffic for record in records for turn in record.turns if turn.model_traffic]
    return [request for turn in traffic for request in turn.unmatched]


def states(run: RunResult) -> dict[str, list[tuple[str, str]]]:
    """How each check of each case ended."""
    return {
        result.case_id: [(check.id, check.state) for check in result.grading.assertion_results]
        for result in run.case_results
    }


def test_the_demo_shows_every_status_as_expected_and_names_its_report(project: Project) -> None:
    done = copied(project).call(*the_demo())
    assert done.code == 0, done.stderr
    run = run_of(project, done)
    assert {result.status for result in run.case_results} == {"PASS", "FAIL", "ERROR", "SKIP"}
    for status in ("PASS", "FAIL", "ERROR", "SKIP"):
        assert re.search(rf"^{status} +\w+ \w+", done.stdout, re.MULTILINE), f"{status} is not explained"
    by_case = {result.case_id: result for result in run.case_results}
    assert "ignore_case" in by_case["writes-keywords-in-capitals"].grading.reason
    assert any("retried" in note for note in by_case["survives-a-dropped-stream"].turn_results[0].notes)
    assert by_case["change-number-is-used-later"].turn_results[1].content == "What is the state of CR-1042?"
    assert not unforeseen(project, done)
    shown = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    printed = shown.partition("$ make demo\n```\n\n```text\n")[2].partition("```")[0]
    assert stable(printed) == stable(done.stdout), "the README shows another output of the demo"


def stable(output: str) -> list[str]:
    """What is the same in every run: the rows without times and reasons, and all that stands below the table."""
    rows = re.findall(r"^(\S+ +demo +[A-Z]+(?: \S+)? +\d+/\d+ +\d+/\d+)", output, re.MULTILINE)
    assert len(rows) >= 13, f"no table in:\n{output}"
    below = output[output.rindex("\nPASS ") :].splitlines()
    return [" ".join(row.split()) for row in rows] + [line.rstrip() for line in below]


@pytest.mark.claude
def test_the_examples_pass_on_both_engines_with_the_same_outcome_of_every_check(claude: Project) -> None:
    copied(claude)
    assert f"$ {EXAMPLES}\n" in (REPOSITORY / "README.md").read_text(encoding="utf-8")
    runs = {}
    for agent in ("builtin", "claude_code"):
        done = claude.call(*shlex.split(EXAMPLES.replace("claude_code", agent))[1:])
        assert done.code == 0, done.stdout + done.stderr
        runs[agent] = run_of(claude, done)
        assert {result.status for result in runs[agent].case_results} == {"PASS"}
        assert not unforeseen(claude, done)
    assert states(runs["builtin"]) == states(runs["claude_code"])


def test_the_examples_pass_on_the_builtin_agent_whatever_api_it_speaks(project: Project) -> None:
    copied(project)
    runs = {}
    for agent in ("builtin", "builtin_openai"):
        done = project.call(*shlex.split(EXAMPLES.replace("claude_code", agent))[1:], "--model", "scripted")
        assert done.code == 0, done.stdout + done.stderr
        runs[agent] = run_of(project, done)
        assert not unforeseen(project, done)
    assert states(runs["builtin"]) == states(runs["builtin_openai"])


@pytest.mark.claude
def test_what_surprised_us_in_a_real_cli_holds(claude: Project) -> None:
    done = copied(claude).call("run", "cases/regression")
    assert done.code == 0, done.stdout + done.stderr
    assert not unforeseen(claude, done)
    run = run_of(claude, done)
    assert {result.agent.engine for result in run.case_results} == {"claude_code"}
    notes = {result.case_id: str([turn.notes for turn in result.turn_results]) for result in run.case_results}
    assert "unfinished_background" in notes["background-task-ends-with-the-turn"]
    dropped = next(result for result in run.case_results if result.case_id == "dropped-stream-falls-back")
    assert dropped.input_tokens, "tokens after a fallback without streaming are told by modelUsage alone"


@pytest.mark.parametrize("suite", sorted(path.name for path in CASES.iterdir() if path.is_dir()))
def test_every_file_that_ships_is_in_order_and_belongs_to_its_suite(project: Project, suite: str) -> None:
    done = copied(project).call("validate", f"cases/{suite}")
    assert (done.code, done.stderr) == (0, "")
    files = [path for path in (CASES / suite).rglob("*.yaml") if path.parent.name == "cases"]
    tasks = sum(len(json.loads(path.read_text(encoding="utf-8"))) for path in (CASES / suite).glob("*.json"))
    assert done.stdout == f"{len(files) + tasks} cases in order\n"
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert text.startswith("title: "), f"{path.name} begins with its title"
        assert "\ndescription: " in text, f"{path.name} says what it is for"


@dataclass(frozen=True)
class Step:
    """One thing that a guide lets the reader do: save a file, or call a command."""

    kind: str
    name: str
    text: str = ""


def steps_of(guide: str) -> list[Step]:
    """The steps of a guide, in order.

    A yaml block begins with `# PATH` (`# PATH, continued` adds to it), a markdown block stands below a line that ends
    with a path in backticks and a colon. Commands of `console` blocks must succeed; those of `sh` blocks need a key.
    """
    text = (REPOSITORY / guide).read_text(encoding="utf-8")
    steps = []
    for before, kind, body in re.findall(r"([^\n]*)\n\n```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if kind == "yaml":
            first, _, rest = body.partition("\n")
            steps.append(Step("add" if first.endswith(", continued") else "save", first[2:].split(",")[0], rest))
        elif kind == "markdown":
            steps.append(Step("save", before.split("`")[-2], body))
        elif kind == "console":
            steps += [Step("call", line[2:]) for line in body.splitlines() if line.startswith("$ ")]
        elif kind == "sh":
            steps += [Step("need a key", line.partition("  #")[0]) for line in body.splitlines()]
    return steps


@pytest.mark.claude
@pytest.mark.parametrize("guide", GUIDES)
def test_a_reader_can_do_what_a_guide_says_in_its_order(claude: Project, guide: str) -> None:
    copied(claude)
    elsewhere = ("make demo", EXAMPLES)  # the tests above run them
    called = 0
    for step in steps_of(guide):
        path = claude.root / step.name
        if step.kind == "save":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text, encoding="utf-8")
        elif step.kind == "add":
            path.write_text(path.read_text(encoding="utf-8") + step.text, encoding="utf-8")
        elif step.name.startswith("skillup ") and step.name not in elsewhere:
            done = claude.call(*shlex.split(step.name)[1:])
            called += 1
            needs_login = step.kind == "need a key" and " run " in step.name
            assert done.code == (3 if needs_login else 0), f"{step.name}\n{done.stdout}{done.stderr}"
            if needs_login:
                assert {result.grading.code for result in run_of(claude, done).case_results} == {"auth"}
        else:
            assert step.name in elsewhere or step.name.startswith("export "), step.name
    assert called >= 3
    assert not any(name in claude.variables for name in CREDENTIALS)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/index.md", "docs/getting-started.md"])
def test_every_link_and_path_of_a_guide_leads_somewhere(page: str) -> None:
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    folder = (REPOSITORY / page).parent
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    missing = [link for link in links if link and "://" not in link and not (folder / link).exists()]
    named = re.findall(r"`((?:skillup|tests|cases|agents|docs)/[\w./-]+\w)`", text)
    missing += [path for path in named if not (REPOSITORY / path).exists()]
    assert not missing


def test_every_page_of_the_documentation_is_in_its_index() -> None:
    index = (REPOSITORY / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {path.name for path in (REPOSITORY / "docs").glob("*.md")} - {"index.md"}
    assert not [page for page in sorted(pages) if f"({page})" not in index]


def profiles() -> list[Path]:
    return sorted((REPOSITORY / "agents").glob("*.yaml"))


@pytest.mark.parametrize("profile", profiles(), ids=lambda path: path.stem)
def test_every_agent_that_ships_is_found_by_name_and_explains_what_it_lacks(project: Project, profile: Path) -> None:
    project.write("case.yaml", "input: {prompt: hello}\nexpect: {must_contain: [hi]}\nscript: [{say: hi}]\n")
    done = project.run("case.yaml", "--agent", profile.stem)
    trial = done.trial()
    assert trial.agent.name == profile.stem
    if trial.status != "PASS":
        assert trial.error is not None
        assert (trial.error.kind in {"engine_missing", "auth"}, bool(trial.error.hint)) == (True, True)

"""Agents side by side: every status, every width, hostile names, and totals that never mix what cannot be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from rich.console import Console

from skillup.judging.totals import count, count_by_agent
from skillup.reports.junit import junit
from skillup.results import Ending, TrialResult
from tests.judging.story import AGENT
from tests.reports.saved import ERROR, OVERLOADED, Trials, lines, printed
from tests.support import Project

FALLBACK = {"execution_mode": "single_shot_fallback", "continuity": "single_shot_fallback"}
UNMET = Ending(how="unmet", reason="`requires` is not met: psql is not on the PATH")


@pytest.fixture
def trials(tmp_path: Path) -> Trials:
    return Trials(tmp_path)


def add(trials: Trials, case: str, agent: str, *turns: dict[str, Any], **fields: Any) -> TrialResult:
    return trials.add(case, *turns, agent=AGENT.model_copy(update={"name": agent}), **fields)


def two_agents(trials: Trials) -> None:
    add(trials, "holds", "demo")
    add(trials, "lacks", "demo", {"notes": ["retried: network ×1"]})
    add(trials, "only-demo", "demo", ending=UNMET, turns=(), turns_total=1)
    add(trials, "holds", "codex", {"status": "error"}, ending=ERROR, failures=(OVERLOADED,))
    add(trials, "lacks", "codex", {"response": "not yet"})


def test_a_row_a_case_a_column_an_agent_and_the_reasons_below(trials: Trials) -> None:
    two_agents(trials)
    assert lines(trials.run(), width=100) == [
        "case       demo                     codex",
        "holds      PASS          1/1 1.0 s  ERROR overloaded 0/1 1.0 s",
        "    codex: the provider answered 529",
        "        → run it later",
        "lacks      PASS          1/1 1.0 s  FAIL expect      1/1 1.0 s",
        "    demo: note: turn 1: retried: network ×1",
        "    codex: check not met: must_contain: done: the answer of turn 1 does not hold 'done'; it reads: 'not yet'",
        "only-demo  SKIP requires 0/1 1.0 s  -",
        "    demo: `requires` is not met: psql is not on the PATH",
        "",
        "PASS       every check was made and held",
        "FAIL       the agent did not do what the case asks",
        "ERROR      no measurement: a fault of the set-up, the CLI or the provider, not of the agent",
        "SKIP       the agent has not what the case requires; nothing was run",
        "",
        "demo: 2 passed, 1 skipped; 2 of 2 valid trials passed (100%); 3.0 s",
        "codex: 1 failed, 1 error (1 overloaded); 0 of 1 valid trials passed (0%); 2.0 s",
    ]


def test_one_agent_and_agents_that_share_no_case_have_a_row_a_trial(trials: Trials) -> None:
    add(trials, "a", "demo")
    assert lines(trials.run())[0] == "case  agent  result  turns  checks   time"
    add(trials, "b", "codex")
    shown = lines(trials.run())
    assert shown[0] == "case  agent  result  turns  checks   time"
    assert [line.partition(":")[0] for line in shown[-2:]] == ["demo", "codex"]


@pytest.mark.parametrize(
    ("width", "rows"),
    [
        (
            70,
            [
                "case       demo                     codex",
                "holds      PASS          1/1 1.0 s  ERROR overloaded 0/1 1.0 s",
            ],
        ),
        (50, ["case       demo           codex", "holds      PASS           ERROR overloaded"]),
        (30, ["case       demo  codex", "holds      PASS  ERROR"]),
    ],
)
def test_a_narrower_terminal_shows_less_of_each_result(trials: Trials, width: int, rows: list[str]) -> None:
    two_agents(trials)
    shown = lines(trials.run(), width=width, terminal=True, color_system=None)
    assert [line.rstrip() for line in shown[: len(rows)]] == rows


def test_where_not_even_the_statuses_fit_each_trial_has_its_row(trials: Trials) -> None:
    two_agents(trials)
    shown = "".join(lines(trials.run(), width=20, terminal=True, color_system=None))
    assert shown.startswith("case       agent")
    assert shown.count("holds ") == 2


@pytest.mark.parametrize("verbosity", [0, 1])
@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(trials: Trials, width: int, verbosity: int) -> None:
    two_agents(trials)
    for agent in ("漢字" * 20, "a-long-agent-name" * 4):
        add(trials, "holds", agent, {"response": "漢字🧪" * 100})
        add(trials, "漢字" * 30, agent)
    for line in lines(trials.run(), width=width, verbosity=verbosity, terminal=True, color_system=None):
        assert Console(width=1000).measure(line).maximum <= width, line


def test_colours_are_for_terminals_that_want_them(trials: Trials, monkeypatch: pytest.MonkeyPatch) -> None:
    two_agents(trials)
    assert "\x1b[32mPASS" in printed(trials.run(), width=100, terminal=True, color_system="standard")
    assert "\x1b" not in printed(trials.run(), width=100)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[32m" not in printed(trials.run(), width=100, terminal=True, color_system="standard")


@pytest.mark.parametrize("where", ["terminal", "log"])
def test_names_are_escaped(trials: Trials, where: str) -> None:
    hostile = "\x1b[2J\x1b]0;x\x07[bold red]markup[/] :smile: \u202e\r\n\x00"
    add(trials, hostile, hostile, {"response": hostile, "notes": [hostile]})
    add(trials, hostile, "demo", {"response": "no"})
    shown = printed(trials.run(), width=100, terminal=where == "terminal", color_system=None)
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert "[bold red]markup[/]" in shown
    assert ":smile:" in shown


class TestSingleShotFallback:
    """Trials of another execution mode are shown as such everywhere, and pooled nowhere."""

    def mixed(self, trials: Trials) -> None:
        add(trials, "a", "codex")
        add(trials, "b", "codex", **FALLBACK)
        add(trials, "c", "codex", {"response": "no"}, **FALLBACK)

    def test_totals_are_counted_apart(self, trials: Trials) -> None:
        self.mixed(trials)
        found = count_by_agent(trials.results)
        assert [(group.agent, group.single_shot_fallback) for group in found] == [("codex", False), ("codex", True)]
        assert [group.totals.pass_rate_valid for group in found] == [1.0, 0.5]

    def test_there_is_no_rate_of_both(self, trials: Trials) -> None:
        self.mixed(trials)
        together = count(trials.results)
        assert (together.passed, together.failed, together.valid) == (2, 1, 3)
        assert (together.pass_rate_valid, together.pass_rate_all) == (None, None)
        assert count(trials.results[1:]).pass_rate_valid == 0.5

    def test_the_console_marks_and_counts_them_apart(self, trials: Trials) -> None:
        self.mixed(trials)
        shown = lines(trials.run())
        assert shown[2].split()[:3] == ["b", "codex", "PASS*"]
        assert shown[3] == "    note: all turns were sent as one message"
        assert shown[4].split()[:4] == ["c", "codex", "FAIL*", "expect"]
        assert "*          single-shot fallback: all turns were sent as one message; counted apart from" in "".join(
            shown
        )
        assert shown[-2].startswith("codex: 1 passed; 1 of 1 valid trials passed (100%)")
        assert shown[-1].startswith("codex, single-shot fallback: 1 passed, 1 failed; 1 of 2 valid trials passed (50%)")

    def test_so_does_the_matrix(self, trials: Trials) -> None:
        self.mixed(trials)
        add(trials, "b", "demo")
        shown = lines(trials.run())
        assert shown[2].split() == ["b", "PASS*", "1/1", "1.0", "s", "PASS", "1/1", "1.0", "s"]
        assert shown[3] == "    codex: note: all turns were sent as one message"
        assert [line.partition(":")[0] for line in shown[-3:]] == ["codex", "codex, single-shot fallback", "demo"]

    def test_v_says_it(self, trials: Trials) -> None:
        self.mixed(trials)
        shown = lines(trials.run(), verbosity=1)
        start = shown.index("b · codex · PASS all_met")
        assert shown[start + 1] == "  mode       single-shot fallback: all turns were sent as one message"

    def test_junit_has_a_property_and_a_suite_of_their_own(self, trials: Trials) -> None:
        self.mixed(trials)
        root = fromstring(junit(trials.run()))
        assert {suite.get("name"): suite.get("tests") for suite in root} == {
            "demo [codex]": "1",
            "demo [codex, single-shot fallback]": "2",
        }
        modes = [one.get("value") for one in root.iter("property") if one.get("name") == "execution_mode"]
        assert modes == ["multi_turn", "single_shot_fallback", "single_shot_fallback"]


def test_a_real_run_of_several_agents_has_their_totals_and_is_reported_the_same_again(project: Project) -> None:
    case = "input: {prompt: hi}\nexpect: {must_contain: [%s]}\nscript: [{say: hello}]\n"
    project.write("cases/good.yaml", case % "hello")
    project.write("cases/bad.yaml", case % "bye")
    project.write("agents/second.yaml", "engine: builtin\nmodel: scripted\n")
    done = project.run("cases", "--agent", "demo", "--agent", "second", "--agent", "codex", "--model", "scripted")
    assert done.code == 3
    found = {group.agent: group.totals for group in done.run.totals_by_agent}
    assert {name: (one.passed, one.failed, one.errors) for name, one in found.items()} == {
        "demo": (1, 1, 0),
        "second": (1, 1, 0),
        "codex": (0, 0, 2),
    }
    assert done.run.totals.valid == 4
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[0] == ["case", "demo", "second", "codex"]
    assert done.stdout.count("    codex: ") == 2
    again = project.call("report", done.directory)
    assert done.stdout.startswith(again.stdout)


TWO_TURNS = """
    input: {turns: [{content: first}, {content: second}]}
    expect: {must_contain: [hello]}
    script: [{say: hello}]
    """


def test_a_real_run_of_an_agent_that_cannot_resume_is_counted_apart_or_skipped(project: Project) -> None:
    project.write("cases/either.yaml", TWO_TURNS)
    project.write("cases/one.yaml", "input: {prompt: hi}\nexpect: {must_contain: [hello]}\nscript: [{say: hello}]\n")
    project.write("cases/resumed.yaml", TWO_TURNS.replace("    input", "    requires: {resume: true}\n    input"))
    project.write("agents/forgets.yaml", "engine: builtin\nmodel: scripted\nsettings: {sessions: false}\n")
    done = project.run("cases", "--agent", "demo", "--agent", "forgets", "--fallback", "single_shot")
    assert done.code == 0, done.stdout
    groups = [(one.agent, one.single_shot_fallback, one.totals.passed) for one in done.run.totals_by_agent]
    assert groups == [("demo", False, 3), ("forgets", False, 1), ("forgets", True, 1)]
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line and line[0] != " "}
    assert (rows["either"][0], rows["either"][4]) == ("PASS", "PASS*")
    assert rows["resumed"][4:6] == ["SKIP", "requires"]
    assert "    forgets: `requires` is not met: builtin cannot resume a session" in done.stdout
    assert "\nforgets, single-shot fallback: 1 passed; 1 of 1 valid trials passed (100%); " in done.stdout
    assert done.run.totals.pass_rate_valid is None

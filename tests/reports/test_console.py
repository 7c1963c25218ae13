"""What a person reads after a run: on a narrow terminal, on a wide one, in a log, and whatever the agents said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from skillup.reports.console import MEANINGS
from skillup.reports.plain import plain
from skillup.results import Failure, GateRecord, ModelTraffic
from skillup.transcript import Message, ToolCall, Usage
from tests.judging.story import AGENT
from tests.reports.saved import ERROR, OVERLOADED, Trials, every_status, lines, printed

LONG = "a very long reason that goes on and on " * 40


@pytest.fixture
def trials(tmp_path: Path) -> Trials:
    return Trials(tmp_path)


def test_every_status_shows_what_it_means(trials: Trials) -> None:
    assert lines(every_status(trials)) == [
        "case       agent  result            turns  checks   time",
        "holds      demo   PASS                1/1     1/1  1.0 s",
        "lacks      demo   FAIL expect         1/1     0/1  1.0 s",
        "    check not met: must_contain: done: the answer of turn 1 does not hold 'done'; it reads: 'not yet'",
        "broken     demo   ERROR overloaded    0/1     0/1  1.0 s",
        "    the provider answered 529",
        "    → run it later",
        "stops      demo   SKIP gate           1/2     1/1  1.0 s",
        "    the gate of turn 1 did not hold",
        "unchecked  demo   UNCHECKED           1/1     0/0  1.0 s",
        "",
        "PASS       every check was made and held",
        "FAIL       the agent did not do what the case asks",
        "ERROR      no measurement: a fault of the set-up, the CLI or the provider, not of the agent",
        "SKIP       the conversation was meant to stop early; what would have come after was not checked",
        "UNCHECKED  nothing was to be checked, or not all of it was; in no rate",
        "",
        "1 passed, 1 failed, 1 error (1 overloaded), 1 skipped, 1 unchecked; 1 of 2 valid trials passed (50%)",
    ]


def test_only_the_statuses_that_there_are_are_explained(trials: Trials) -> None:
    trials.add("holds")
    shown = printed(trials.run())
    assert MEANINGS["PASS"] in shown
    assert MEANINGS["FAIL"] not in shown


@pytest.mark.parametrize("verbosity", [0, 1, 2])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(trials: Trials, width: int, verbosity: int) -> None:
    every_status(trials)
    trials.add("漢字" * 30, {"response": LONG, "content": LONG, "notes": [LONG]}, {"response": "漢字🧪" * 100})
    run = trials.run()
    for line in lines(run, width=width, verbosity=verbosity, terminal=True, color_system=None):
        assert Console(width=1000).measure(line).maximum <= width, line


def test_on_a_terminal_a_long_reason_is_wrapped_and_stays_indented(trials: Trials) -> None:
    trials.add("lacks", {"response": LONG})
    shown = lines(trials.run(), width=60, terminal=True, color_system=None)
    reason = [line for line in shown if line.startswith("    ")]
    assert len(reason) > 3
    assert len(reason) == len([line for line in shown if "reason" in line or "check not met" in line])


def test_elsewhere_a_line_stays_a_line(trials: Trials) -> None:
    """So that `grep` finds all of a reason."""
    trials.add("lacks", {"response": LONG})
    for verbosity in (0, 1):
        shown = lines(trials.run(), width=60, verbosity=verbosity)
        assert [line for line in shown if line.strip().startswith("check not met") and "goes on and on" in line]


def test_names_give_way_on_a_narrow_terminal_and_nowhere_else(trials: Trials) -> None:
    trials.add("a-case-with-a-name-that-says-exactly-what-it-is-about")
    assert "a-case-with-a-name-that-says-exactly-what-it-is-about" in printed(trials.run(), width=60)
    narrow = printed(trials.run(), width=60, terminal=True, color_system=None)
    assert "a-case-with-a-name-tha…  demo   PASS" in narrow
    assert "PASS" in narrow.splitlines()[1]


def test_columns_stay_aligned_with_wide_characters(trials: Trials) -> None:
    trials.add("漢字")
    trials.add("plain")
    rows = lines(trials.run())[:3]
    assert rows == [
        "case   agent  result  turns  checks   time",
        "漢字   demo   PASS      1/1     1/1  1.0 s",
        "plain  demo   PASS      1/1     1/1  1.0 s",
    ]


def test_colours_are_for_terminals_that_want_them(trials: Trials, monkeypatch: pytest.MonkeyPatch) -> None:
    run = every_status(trials)
    assert "\x1b[32mPASS" in printed(run, terminal=True, color_system="standard")
    assert "\x1b" not in printed(run)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[32m" not in printed(run, terminal=True, color_system="standard")


def test_an_encoding_without_our_signs_still_tells_good_from_bad(trials: Trials) -> None:
    shown = printed(every_status(trials), verbosity=1, encoding="ascii")
    assert "  + expect   must_contain: done" in shown
    assert "  x expect   must_contain: done" in shown
    assert "  ? expect   must_contain: done" in shown


class TestWhatAPassDoesNotShow:
    """A degraded execution is never silent."""

    def notes(self, trials: Trials, *turns: dict[str, Any], **fields: Any) -> list[str]:
        assert trials.add("a", *turns, **fields).status == "PASS"
        return [line.strip() for line in lines(trials.run()) if "note:" in line]

    def test_retries_and_other_notes(self, trials: Trials) -> None:
        assert self.notes(trials, {"notes": ["retried: network ×1"]}) == ["note: turn 1: retried: network ×1"]

    def test_a_default_that_was_used(self, trials: Trials) -> None:
        captures = [{"variable": "ticket", "value": "T-0", "defaulted": True}, {"variable": "b", "value": "x"}]
        assert self.notes(trials, {"captures": captures}) == ["note: turn 1: the default was used for ticket"]

    def test_requests_that_the_script_had_no_answer_to(self, trials: Trials) -> None:
        traffic = ModelTraffic(requests=2, unmatched=("no entry matches 'hello'", "no entry matches 'you'"))
        assert self.notes(trials, {"model_traffic": traffic}) == [
            "note: turn 1: the script had no answer to 2 requests: no entry matches 'hello'"
        ]

    def test_turns_that_were_sent_as_one_message(self, trials: Trials) -> None:
        assert self.notes(trials, execution_mode="single_shot_fallback") == ["note: all turns were sent as one message"]

    def test_many_notes_are_counted(self, trials: Trials) -> None:
        said = self.notes(trials, {"notes": [f"note {n}" for n in range(9)]})
        assert said[3:] == ["note: 6 more; -vv shows them"]

    def test_a_failure_rule_that_could_not_be_checked(self, trials: Trials) -> None:
        judge = {"type": "rule_based", "failure": [{"tool_called": "read"}]}
        trials.add("a", case={"judge": judge}, hidden_tools=("read",))
        assert "    1 check held; 1 failure rule unknown, so not matched" in lines(trials.run())


def test_v_shows_every_check_with_its_evidence(trials: Trials) -> None:
    shown = lines(every_status(trials), verbosity=1)
    start = shown.index("lacks · demo · FAIL expect")
    assert shown[start : start + 4] == [
        "lacks · demo · FAIL expect",
        "  ✗ expect   must_contain: done",
        "             the answer of turn 1 does not hold 'done'; it reads: 'not yet'",
        "  files      1/a/with_skill/trial-1/attempt-1",
    ]
    start = shown.index("broken · demo · ERROR overloaded")
    assert shown[start + 1 : start + 6] == [
        "  ? expect   must_contain: done",
        "             turn 1 did not take place: no answer",
        "  error      overloaded: the provider answered 529",
        "  →          run it later",
        "  it said    529",
    ]


def test_vv_shows_the_conversation(trials: Trials) -> None:
    call = ToolCall(id="c", name="Bash", tool="bash", arguments={}, raw_arguments={})
    trials.add(
        "a",
        {
            "content": "create a ticket",
            "response": "T-42\ndone",
            "messages": [Message(role="tool_call", turn=1, source="agent", tool_call=call)] * 2,
            "usage": Usage(input_tokens=5, output_tokens=3),
            "gate": GateRecord(state="met", on_fail="fail", evidence="it holds 'T-'"),
            "captures": [{"variable": "ticket", "value": "T-42"}, {"variable": "n", "value": "0", "defaulted": True}],
            "changes": {"created": ["a.txt", "b.txt"], "deleted": ["c.txt"]},
            "notes": ["retried: network ×1"],
        },
        {"content": "close T-42"},
    )
    shown = lines(trials.run(), verbosity=2)
    start = shown.index("a · demo · PASS all_met")
    assert shown[start + 1 : start + 15] == [
        "  turn 1     completed, 0.4 s, 8 tokens",
        "    user     create a ticket",
        "    tools    bash ×2",
        "    agent    T-42 done",
        "    gate     met: it holds 'T-'",
        "    captured ticket = T-42",
        "    captured n = 0 (the default: nothing was found)",
        "    created  a.txt, b.txt",
        "    deleted  c.txt",
        "    note     retried: network ×1",
        "  turn 2     completed, 0.4 s",
        "    user     close T-42",
        "    agent    done",
        "  ✓ expect   must_contain: done",
    ]


HOSTILE = "\x1b[2J\x1b]0;owned\x07 [bold red]markup[/] \u202ereversed \0 \r\n\t next \x9b31m :smile:"


@pytest.mark.parametrize("verbosity", [0, 1, 2])
@pytest.mark.parametrize("where", ["terminal", "log"])
def test_nothing_that_an_agent_says_reaches_the_terminal_as_a_command(
    trials: Trials, verbosity: int, where: str
) -> None:
    gate = GateRecord(state="met", on_fail="fail", evidence=HOSTILE)
    turn = {
        "content": HOSTILE,
        "response": HOSTILE,
        "notes": [HOSTILE],
        "reason": HOSTILE,
        "gate": gate,
        "captures": [{"variable": "x", "value": HOSTILE, "defaulted": True}],
        "changes": {"created": [HOSTILE]},
    }
    failure = Failure(kind="crash", phase="conversation", message=HOSTILE, hint=HOSTILE, tail=HOSTILE, turn=1)
    agent = AGENT.model_copy(update={"name": HOSTILE})
    trials.add(HOSTILE, turn, agent=agent)
    trials.add(HOSTILE, {**turn, "status": "error"}, agent=agent, ending=ERROR, failures=(failure,))
    shown = printed(trials.run(), verbosity=verbosity, terminal=where == "terminal", color_system=None)
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert "[bold red]markup[/]" in shown
    assert ":smile:" in shown


def test_an_answer_of_megabytes_is_a_line(trials: Trials) -> None:
    trials.add("a", {"response": "done " * 1_000_000})
    assert max(map(len, lines(trials.run(), verbosity=2))) < 1200


@pytest.mark.parametrize(
    ("statuses", "said"),
    [
        ("P", "1 passed; 1 of 1 valid trials passed (100%)"),
        ("P" * 199 + "F", "199 passed, 1 failed; 199 of 200 valid trials passed (99%)"),
        ("F", "1 failed; 0 of 1 valid trials passed (0%)"),
        ("E", "1 error (1 overloaded); no valid trial: nothing was measured"),
        ("", "no trial ended; no valid trial: nothing was measured"),
    ],
)
def test_the_last_line_counts(trials: Trials, statuses: str, said: str) -> None:
    for status in dict.fromkeys(statuses):
        match status:
            case "P":
                trials.add("a")
            case "F":
                trials.add("a", {"response": "no"})
            case "E":
                trials.add("a", {"status": "error", "response": None}, ending=ERROR, failures=(OVERLOADED,))
    by_letter = dict(zip(dict.fromkeys(statuses), trials.results, strict=True))
    trials.results = [by_letter[letter] for letter in statuses]
    assert lines(trials.run())[-1] == said


def test_a_run_that_is_not_whole_says_so(trials: Trials) -> None:
    trials.add("a")
    said = "This run is not whole ({}): only 1 of 7 planned trials ended."
    assert lines(trials.run(status="interrupted", trials_planned=7))[-1] == said.format("it was interrupted")
    assert lines(trials.run(status="running", trials_planned=7))[-1] == said.format("it goes on, or was killed")


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("a  b\n\tc", None, "a b c"),
        ("abcdef", 4, "abc…"),
        ("abcd", 4, "abcd"),
        (" " * 1_000_000 + "a", 4, ""),
        ("\x1b[0m\u202e\u200f\ud800\0é漢🧪", None, "[0m é漢🧪"),
    ],
)
def test_plain(text: str, limit: int | None, shown: str) -> None:
    assert plain(text, limit) == shown

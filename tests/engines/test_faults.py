"""Faults by engine: the kind comes from what the CLI says as a CLI and from nothing else; so does when to come back."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from skillup.engines import ENGINES, faults
from skillup.engines.events import Retrying
from skillup.engines.faults import BUILTIN, CLAUDE_CODE, CODEX, FaultTable, seconds_in, surer
from skillup.errors import ERROR_KINDS, ErrorKind
from tests.engines.recorded import RECORDINGS, events, folded, names
from tests.support import Project

TABLES: dict[str, FaultTable] = {"builtin": BUILTIN, "claude_code": CLAUDE_CODE, "codex": CODEX}

RECORDED: dict[tuple[str, str], tuple[ErrorKind, float | None]] = {
    ("builtin", "unauthorised"): ("auth", None),
    ("builtin", "interrupted"): ("crash", None),
    ("builtin", "limited"): ("rate_limit", 7200.0),
    ("builtin", "malformed"): ("output", None),
    ("builtin", "overloaded"): ("overloaded", 1.0),
    ("claude_code", "401"): ("auth", None),
    ("claude_code", "404"): ("request", None),
    ("claude_code", "429"): ("rate_limit", None),
    ("claude_code", "429-retry-after"): ("rate_limit", 3.0),
    ("claude_code", "500"): ("overloaded", None),
    ("claude_code", "529"): ("overloaded", 3.0),
    ("claude_code", "credit"): ("quota", None),
    ("claude_code", "hang"): ("timeout", None),
    ("claude_code", "malformed"): ("output", None),
    ("claude_code", "refused"): ("network", None),
    ("claude_code", "resume-missing"): ("session", None),
    ("claude_code", "session-limit"): ("rate_limit", None),
    ("claude_code", "sigint"): ("crash", None),
    ("codex", "fail-401"): ("auth", None),
    ("codex", "fail-402"): ("quota", None),
    ("codex", "fail-429"): ("rate_limit", None),
    ("codex", "fail-429quota"): ("quota", None),
    ("codex", "fail-500"): ("overloaded", None),
    ("codex", "fail-503"): ("overloaded", None),
    ("codex", "fail-capacity"): ("overloaded", None),
    ("codex", "fail-context"): ("request", None),
    ("codex", "fail-drop"): ("network", None),
    ("codex", "fail-rate"): ("rate_limit", 11.054),
    ("codex", "fail-usage"): ("quota", None),
}
"""What each recorded turn that failed means, and the pause in seconds for which it asked."""


@pytest.mark.parametrize(("engine", "name"), RECORDED)
def test_a_recorded_failure_has_its_kind_and_its_pause(engine: str, name: str) -> None:
    fault = folded(engine, name).fault
    assert fault is not None
    assert (fault.kind, fault.retry_after) == RECORDED[engine, name]
    assert fault.message


REPLAYED = {
    "claude_code": ("429-retry-after", "rate_limit", "it asks to wait 3 s"),
    "codex": ("fail-rate", "rate_limit", "it asks to wait 11.054 s"),
    "subscription": ("session-limit", "rate_limit", "; the limit ends at 2026-11-22 09:55 UTC"),
    "account": ("credit", "quota", "Credit balance is too low"),
    "speechless": ("credit", "quota", "Credit balance is too low"),
}
"""Agents whose CLI prints a recording, one without its last word: its name, the kind, and a part of the message."""


def test_a_failure_that_the_cli_tells_is_one_although_it_exits_with_0(project: Project) -> None:
    agents: list[str] = []
    for agent, (name, _, _) in REPLAYED.items():
        engine = "codex" if agent == "codex" else "claude_code"
        recording = RECORDINGS / engine / f"{name}.jsonl"
        shown = "sed '$d'" if agent == "speechless" else "cat"
        program = project.write(
            f"bin/{agent}", f"#!/bin/sh\n[ $1 = --version ] && exec echo 1.0\n{shown} '{recording}'\nexit 0\n"
        )
        program.chmod(0o755)
        text = f"engine: {engine}\nmodel: scripted\nsettings: {{binary: ../bin/{agent}}}\n"
        project.write(f"agents/{agent}-0.yaml", text)
        agents += ["--agent", f"{agent}-0"]
    project.write("one.yaml", "{input: {prompt: go}, expect: {must_contain: [fine]}, script: [{say: fine}]}")
    done = project.run("one.yaml", *agents, "--parallelism", "4")
    assert done.code == 3
    for agent, (_, kind, words) in REPLAYED.items():
        trial = done.trial(agent=f"{agent}-0")
        assert trial.error is not None
        assert (agent, trial.status, trial.error.kind) == (agent, "ERROR", kind)
        assert words in trial.error.message


def test_every_recording_that_failed_is_in_the_list() -> None:
    known = {(engine, name) for engine in ENGINES for name in names(engine)}
    assert {(engine, name) for engine, name in known if folded(engine, name).fault is not None} == RECORDED.keys()


def test_a_limit_that_comes_near_is_noted_and_no_fault() -> None:
    stream = folded("claude_code", "usage-warning")
    assert (stream.fault, stream.answer) == (None, "fine")
    assert stream.notes == ("usage_limit: 95% of the account's limit is used (five_hour)",)


def test_a_pause_of_the_clis_own_is_not_taken_for_the_providers() -> None:
    """Claude Code's own delays have a share of chance; a Retry-After is whole seconds."""
    asked = [event.fault.retry_after for event in events("claude_code", "429") if isinstance(event, Retrying)]
    assert asked == [None] * 10
    asked = [
        event.fault.retry_after for event in events("claude_code", "429-retry-after") if isinstance(event, Retrying)
    ]
    assert asked == [3.0]


SENTENCES: dict[str, float | None] = {
    "Please try again in 11.054s. Visit": 11.054,
    "please try again in 20ms": 0.02,
    "Try again in 6m0s.": 360.0,
    "try again in 1h2m3s": 3723.0,
    "try again in 5 seconds": 5.0,
    "Try again in 2 minutes": 120.0,
    "try again in a moment": None,
    "try again at 9:49 AM.": None,
    "wait 7s": None,
}


@pytest.mark.parametrize(("sentence", "seconds"), SENTENCES.items())
def test_the_pause_in_a_sentence_is_read(sentence: str, seconds: float | None) -> None:
    assert seconds_in(sentence) == pytest.approx(seconds)


class TestTables:
    def test_each_engine_has_one(self) -> None:
        assert TABLES.keys() == ENGINES.keys()
        assert {id(table) for table in TABLES.values()} == {
            id(value) for value in vars(faults).values() if isinstance(value, FaultTable)
        }

    @pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
    def test_each_row_names_its_kind(self, table: FaultTable) -> None:
        for name, kind in table.classes.items():
            assert table.told("said", error_class=name, status=418).kind == kind, "a class outranks the status"
        for words, kind in table.sentences.items():
            assert table.told(f"it said: {words} …").kind == kind
            assert table.told(f"it said: {words} …", status=529).kind == "overloaded", "a status outranks a sentence"
        for refusal in table.refusals:
            for words in refusal.words or ("no prompt",):
                fault = table.ended(refusal.exit_code or 1, None, "", f"first\n{words}\nlast\n")
                assert (fault.kind, refusal.said in fault.message) == (refusal.kind, True)

    @pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
    def test_what_nobody_knows_is_a_guess_that_yields_to_everything_else(self, table: FaultTable) -> None:
        guess = table.told("something new", error_class="brand_new")
        assert guess.kind == table.otherwise
        known = table.told("it said so", status=429)
        assert surer(guess, known) == known
        assert surer(known, guess) == known
        assert surer(known, None) == known

    @pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
    def test_the_end_of_a_process_is_told_by_how_it_ended_not_by_what_the_agent_left_on_stdout(
        self, table: FaultTable
    ) -> None:
        for said in ("429 rate limit exceeded", "Quota exceeded", '{"error":"rate_limit"}', "overloaded_error"):
            assert table.ended(0, None, said, "").kind == "output"
            assert table.ended(1, None, said, said).kind == "crash"
            assert table.ended(None, 9, said, said).kind == "crash"

    def test_every_kind_of_a_provider_can_be_told_by_some_engine(self) -> None:
        named = {kind for table in TABLES.values() for kind in (*table.classes.values(), *table.sentences.values())}
        named |= {refusal.kind for table in TABLES.values() for refusal in table.refusals}
        named |= {table.otherwise for table in TABLES.values()} | {"crash", "output"}
        ours = {"engine_missing", "capture", "template", "simulator", "judge", "unobservable"}
        assert sorted(set(ERROR_KINDS) - named - ours) == []
        assert ours <= set(get_args(ErrorKind))


def test_a_good_last_word_outranks_a_failure_before_it() -> None:
    stream = folded("claude_code", "429-retry-after")
    assert stream.finished is not None
    stream.add(replace(stream.finished, text="all is fine", fault=None), 99.0)
    assert (stream.fault, stream.answer) == (None, "all is fine")


def test_a_cli_that_a_signal_ends_has_crashed_whatever_its_tools_wrote() -> None:
    said = "mcp: Port 3000 is already in use\nNo conversation found"
    assert CLAUDE_CODE.ended(None, 11, "", said).kind == "crash"
    assert CLAUDE_CODE.ended(1, None, "", "mcp: Port 3000 is already in use").kind == "crash"
    assert CLAUDE_CODE.ended(1, None, "", "Error: Session ID x is already in use.").kind == "session"

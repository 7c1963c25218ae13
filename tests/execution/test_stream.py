"""The events of one turn, folded into its transcript, its answer, its faults and its signs of work."""

from __future__ import annotations

from skillup.engines.events import (
    Called,
    EngineFault,
    Event,
    Failing,
    Finished,
    LimitReached,
    Noted,
    Retrying,
    Returned,
    Said,
    SessionSeen,
    Thought,
    Waiting,
    Withheld,
    Working,
)
from skillup.execution.stream import MAX_DAMAGE_NOTES, TurnStream
from skillup.results import StreamDamage
from skillup.transcript import Usage

OVERLOADED = EngineFault("overloaded", "529")
NETWORK = EngineFault("network", "connection closed")


def calls(identity: str = "c1", tool: str = "bash", parent: str | None = None) -> Called:
    return Called(identity, tool.capitalize(), {"command": "ls"}, tool, {"command": "ls"}, parent)


def ended(text: str | None = "done", **more: object) -> Finished:
    return Finished(text=text, usage=Usage(), **more)  # type: ignore[arg-type] # whatever the test says


def told(*events: Event, each: float = 1.0) -> TurnStream:
    """A stream that got one event a second, from second 0."""
    stream = TurnStream(3)
    for index, event in enumerate(events):
        stream.add(event, index * each)
    return stream


def test_the_transcript_is_in_order_with_turn_and_time() -> None:
    stream = told(Thought("hm"), Said("let me look"), calls(), Returned("c1", "ok", "a.txt"), Said("done"), ended())
    assert [(m.role, m.turn, m.time, m.source) for m in stream.messages] == [
        ("reasoning", 3, 0.0, "agent"),
        ("assistant", 3, 1.0, "agent"),
        ("tool_call", 3, 2.0, "agent"),
        ("tool_result", 3, 3.0, "agent"),
        ("assistant", 3, 4.0, "agent"),
    ]


class TestTheStatusOfACall:
    def status(self, stream: TurnStream) -> str:
        return next(m.tool_call.status for m in stream.messages if m.tool_call)

    def test_is_that_of_its_result(self) -> None:
        assert self.status(told(calls(), Returned("c1", "error", "no"))) == "error"

    def test_is_unknown_without_one(self) -> None:
        assert self.status(told(calls())) == "unknown"

    def test_is_denied_when_the_final_word_says_so(self) -> None:
        stream = told(calls(), Returned("c1", "error", "not allowed"), ended(denied=("c1",)))
        assert self.status(stream) == "denied"
        assert next(m.tool_result.status for m in stream.messages if m.tool_result) == "denied"

    def test_is_unknown_when_the_result_is_only_the_answer_to_our_interrupt(self) -> None:
        stream = told(calls(), Returned("c1", "error", "interrupted"))
        stream.cut_at = 0.5
        assert self.status(stream) == "unknown"


class TestTheAnswer:
    def test_is_the_final_word(self) -> None:
        assert told(Said("first"), Said("last"), ended("final")).answer == "final"

    def test_is_the_last_text_where_the_final_word_is_empty(self) -> None:
        assert told(Said("first"), Said("last"), ended("")).answer == "last"
        assert told(Said("first"), Said("last")).answer == "last"

    def test_is_never_a_subagents_text(self) -> None:
        assert told(Said("own"), Said("child's", parent="c1"), ended(None)).answer == "own"

    def test_is_unknown_when_nothing_was_said(self) -> None:
        assert told(calls()).answer is None
        assert told(ended("")).answer == ""

    def test_comes_anew_when_the_cli_goes_on_after_a_final_word(self) -> None:
        stream = told(SessionSeen("s1"), ended("first"), SessionSeen("s1"))
        assert stream.finished is None
        stream.add(ended("second"), 9)
        assert stream.answer == "second"


class TestSessions:
    def test_every_id_is_kept_once_in_order(self) -> None:
        assert told(SessionSeen("a"), SessionSeen("b"), SessionSeen("a")).session_ids == ["a", "b"]

    def test_what_the_cli_said_of_itself_is_not_lost_to_an_event_that_says_nothing(self) -> None:
        assert told(SessionSeen("a", {"model": "m"}), SessionSeen("a")).details == {"model": "m"}


class TestFaults:
    def test_the_final_word_names_the_fault(self) -> None:
        assert told(ended(None, fault=OVERLOADED)).fault == OVERLOADED

    def test_a_good_final_word_outranks_what_went_wrong_before(self) -> None:
        assert told(Retrying(OVERLOADED, 1), Failing(NETWORK), ended("done")).fault is None

    def test_the_error_event_counts_where_the_final_word_is_less_sure_of_the_kind(self) -> None:
        auth, perhaps = EngineFault("auth", "401"), EngineFault("network", "nobody knows", doubt=3)
        assert told(Failing(auth), ended(None, fault=perhaps)).fault == auth
        assert told(Failing(perhaps), ended(None, fault=auth)).fault == auth
        assert told(Failing(auth), ended(None, fault=NETWORK)).fault == NETWORK

    def test_a_failure_that_the_cli_calls_a_good_end_is_one(self) -> None:
        """Nothing was said or done after the error, and the final word is only its text."""
        for text in ("API Error", "", None):
            stream = told(Failing(EngineFault("rate_limit", "API Error")), ended(text))
            assert (stream.fault, stream.answer) == (EngineFault("rate_limit", "API Error"), None)
        assert told(Failing(NETWORK), Said("recovered"), ended("")).fault is None
        assert told(Said("rate limit"), ended("rate limit")).fault is None

    def test_the_pause_that_the_last_retry_was_asked_for_belongs_to_the_fault(self) -> None:
        limited, asked = EngineFault("rate_limit", "429"), EngineFault("rate_limit", "429", retry_after=7.0)
        assert told(Retrying(asked, 1), ended(None, fault=limited)).fault == asked
        assert told(Retrying(asked, 1), ended(None, fault=NETWORK)).fault == NETWORK
        assert told(Retrying(asked, 1), Failing(limited)).trouble == asked

    def test_a_wait_that_the_cli_announces_lasts_until_something_else_happens(self) -> None:
        waiting = Retrying(OVERLOADED, 1, delay=60.0)
        assert told(Said("x"), waiting).waits_until == 61.0
        assert told(waiting, Waiting()).waits_until == 60.0
        for other in (Said("x"), Working(), Failing(OVERLOADED), Retrying(OVERLOADED, 2)):
            assert told(waiting, other).waits_until is None

    def test_each_is_told_the_moment_that_it_comes(self) -> None:
        heard: list[EngineFault] = []
        stream = TurnStream(1, heard.append)
        limited = EngineFault("rate_limit", "429", retry_after=7.0)
        for event in (Retrying(limited, 1), Working(), Failing(NETWORK), ended(None, fault=OVERLOADED), ended("done")):
            stream.add(event, 0.0)
        assert heard == [limited, NETWORK, OVERLOADED]

    def test_the_end_of_a_limit_of_the_account_belongs_to_a_rate_limit_and_to_nothing_else(self) -> None:
        limited = EngineFault("rate_limit", "429")
        fault = told(LimitReached(1_800_000_000.0), ended(None, fault=limited)).fault
        assert fault is not None
        assert fault.resets_at == 1_800_000_000.0
        assert told(LimitReached(1_800_000_000.0), ended(None, fault=NETWORK)).fault == NETWORK
        assert told(LimitReached(1_800_000_000.0), ended("done")).fault is None

    def test_trouble_is_a_fault_that_no_sign_of_work_followed(self) -> None:
        assert told(Retrying(OVERLOADED, 1)).trouble == OVERLOADED
        assert told(Retrying(OVERLOADED, 1), Waiting()).trouble == OVERLOADED
        assert told(Retrying(OVERLOADED, 1), Working()).trouble is None


class TestWithheldTools:
    """A CLI that keeps a tool from its agent, for lack of somebody to approve it, measures nothing."""

    CANCELLED = EngineFault("setup", "Codex cancelled the call")

    def test_the_turn_is_faulty_although_it_ends_well(self) -> None:
        assert told(calls(), Withheld(self.CANCELLED), Said("I could not"), ended()).fault == self.CANCELLED

    def test_the_first_is_told_and_a_fault_of_the_provider_outranks_it(self) -> None:
        later = EngineFault("setup", "again")
        assert told(Withheld(self.CANCELLED), Withheld(later), ended()).fault == self.CANCELLED
        assert told(Withheld(self.CANCELLED), ended(None, fault=OVERLOADED)).fault == OVERLOADED


class TestAtWork:
    """Whether an agent that reached a limit was working, so that the limit is its own doing."""

    def test_while_a_tool_runs_however_long(self) -> None:
        assert told(calls()).at_work(now=10_000, window=1)

    def test_for_a_while_after_each_sign_of_work(self) -> None:
        assert told(Said("x")).at_work(now=5, window=10)
        assert not told(Said("x")).at_work(now=50, window=10)

    def test_not_after_a_retry_or_an_error_even_with_an_open_tool(self) -> None:
        assert not told(Said("x"), Retrying(OVERLOADED, 1)).at_work(now=2, window=10)
        assert not told(calls(), Failing(NETWORK)).at_work(now=2, window=10)

    def test_waiting_for_the_model_is_no_work(self) -> None:
        assert not told(SessionSeen("s"), Waiting()).at_work(now=2, window=10)

    def test_a_subagent_that_says_nothing_is_no_work(self) -> None:
        assert not told(calls(tool="subagent")).at_work(now=50, window=10)
        assert told(calls(tool="subagent"), calls("c2", parent="c1")).at_work(now=50, window=10)

    def test_a_finished_turn_has_no_open_tool(self) -> None:
        assert not told(calls(), ended()).at_work(now=50, window=10)


class TestNotes:
    def test_retries_are_counted_by_kind(self) -> None:
        stream = told(Retrying(NETWORK, 1), Retrying(OVERLOADED, 2), Retrying(NETWORK, 3), Said("x"), ended())
        assert stream.notes == ("retried: network ×2", "retried: overloaded ×1")

    def test_damaged_lines_are_shown_up_to_a_point_and_counted(self) -> None:
        stream = told(ended())
        for number in range(MAX_DAMAGE_NOTES + 3):
            stream.damaged(b"\x1b[2Jrubbish %d" % number, "not JSON", 100 + number, lost=number == 2)
        assert len(stream.notes) == MAX_DAMAGE_NOTES + 1
        assert stream.notes[-1] == "stream_corrupt: 3 more damaged lines"
        assert "\x1b" not in "".join(stream.notes)
        assert stream.damage == StreamDamage(count=MAX_DAMAGE_NOTES + 3, first_position=100, lost=1)

    def test_of_a_damaged_line_only_whole_words_are_shown(self) -> None:
        stream = told(ended())
        stream.damaged(b"warning: the key is " + b"k" * 90, "not JSON", 7, lost=False)
        stream.damaged(b"k" * 90, "not JSON", 120, lost=False)
        assert stream.notes == (
            "stream_corrupt: at byte 7: not JSON: warning: the key is",
            "stream_corrupt: at byte 120: not JSON",
        )

    def test_a_background_task_that_outlives_the_answer_is_unfinished(self) -> None:
        stream = told(Noted("unfinished_background", "early"), ended(), Noted("unfinished_background", "sleep 99"))
        assert stream.unfinished == ("sleep 99",)
        assert "unfinished_background: sleep 99" in stream.notes

    def test_a_command_that_had_not_ended_with_the_answer_is_unfinished(self) -> None:
        """Codex answers while a command runs, and ends it without a word."""
        left = told(calls("a"), calls("b"), Returned("a", "ok", ""), ended())
        assert left.unfinished == ("ls (had not ended when the turn did)",)
        assert left.notes == ("unfinished_background: ls (had not ended when the turn did)",)
        assert told(calls(), ended(), Returned("c1", "ok", "")).unfinished == (), "it ended after all"
        assert told(calls(), ended(None, fault=NETWORK)).unfinished == (), "the turn broke off with it"
        cut = told(calls(), ended())
        cut.cut_at = 0.5
        assert cut.unfinished == (), "we ended it"


def test_half_characters_and_impossible_numbers_of_an_agent_become_storable() -> None:
    stream = told(Said("a\ud800b"), Called("c", "X", {"n": float("nan")}, "other", {"k\udfff": "\ud800"}))
    said, called = stream.messages
    assert said.text == "a\N{REPLACEMENT CHARACTER}b"
    assert called.tool_call is not None
    assert called.tool_call.raw_arguments == {"n": None}
    assert called.tool_call.arguments == {"k\N{REPLACEMENT CHARACTER}": "\N{REPLACEMENT CHARACTER}"}

"""What Claude Code's output means, on recordings of the real CLI."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.engines import ENGINES
from skillup.engines.events import (
    Called,
    Event,
    Failing,
    Noted,
    Retrying,
    Returned,
    Said,
    SessionSeen,
    Working,
)
from skillup.execution.stream import TurnStream
from skillup.transcript import ToolCall, Usage
from tests.engines.recorded import events, folded, lines


def turn(name: str) -> TurnStream:
    """A recording as the turn that it was."""
    return folded("claude_code", name)


def meaning(line: bytes) -> tuple[Event, ...]:
    """What one line means."""
    return ENGINES["claude_code"].events(line, Path("/eval/ev"))


def calls(name: str) -> list[ToolCall]:
    """The tool calls of a recorded turn."""
    return [message.tool_call for message in turn(name).messages if message.tool_call]


def results(name: str) -> dict[str, str]:
    """What each call gave back, by its id."""
    found = [message.tool_result for message in turn(name).messages if message.tool_result]
    return {result.call_id: result.content for result in found}


def usage(name: str) -> Usage:
    """The tokens of a recorded turn."""
    finished = turn(name).finished
    assert finished is not None
    return finished.usage


def test_a_shell_command_with_its_result() -> None:
    (call,) = calls("bash-ok")
    assert (call.tool, call.name, call.status) == ("bash", "Bash", "ok")
    assert call.arguments["command"] == call.raw_arguments["command"]
    (failed,) = calls("bash-fail")
    assert failed.status == "error"
    assert results("bash-fail")[failed.id].startswith("Exit code 3")


def test_file_tools_have_canonical_arguments_and_paths_in_the_workspace() -> None:
    found = {call.name: call for call in calls("write-edit") if call.status == "ok"}
    assert {name: call.tool for name, call in found.items()} == {"Write": "write", "Read": "read", "Edit": "edit"}
    assert found["Write"].arguments["path"] == "a.txt"
    assert found["Write"].raw_arguments["file_path"].endswith("/a.txt")
    assert found["Write"].raw_arguments["file_path"].startswith("/")
    assert {"path", "old", "new"} <= found["Edit"].arguments.keys()
    assert {"file_path", "old_string", "new_string"} <= found["Edit"].raw_arguments.keys()


def test_results_of_several_calls_are_matched_by_id_whatever_their_order() -> None:
    found = calls("multi")
    assert [(call.tool, call.status) for call in found] == [("bash", "ok"), ("bash", "ok"), ("read", "error")]
    assert [results("multi")[call.id] for call in found[:2]] == ["one", "two"]
    assert list(results("multi")) != [call.id for call in found]


def test_a_subagents_calls_name_the_call_that_started_it() -> None:
    started, inner = calls("subagent")
    assert (started.tool, started.name, started.parent) == ("subagent", "Agent", None)
    assert started.arguments["type"] == "general-purpose"
    assert (inner.tool, inner.arguments["command"], inner.parent) == ("bash", "echo insub", started.id)
    assert turn("subagent").answer == "main done"
    assert "sub done" in results("subagent")[started.id]


def test_a_subagents_tokens_are_counted_with_the_turns() -> None:
    spent = usage("subagent")
    assert (spent.input_tokens, spent.output_tokens) == (40, 20)
    assert (spent.cache_read_tokens, spent.cache_write_tokens) == (8, 12)


def test_an_open_call_of_a_subagent_is_no_sign_of_work() -> None:
    """Its own events are; without any, its model is silent, which is the provider's fault. A command may be silent."""
    recorded = events("claude_code", "subagent")
    stream = TurnStream(turn=1)
    for event in recorded[: [isinstance(event, Returned) for event in recorded].index(True) + 1]:
        stream.add(event, 10.0)
    assert stream.at_work(now=60.0, window=60.0)
    assert not stream.at_work(now=71.0, window=60.0)
    shell = TurnStream(turn=1)
    for event in events("claude_code", "bash-ok"):
        if isinstance(event, Returned):
            break
        shell.add(event, 10.0)
    assert shell.at_work(now=1000.0, window=60.0)


def test_a_skill_is_called_by_its_name() -> None:
    (call,) = calls("skill")
    assert (call.tool, call.name, call.status) == ("skill", "Skill", "ok")
    assert call.arguments == {"name": "greet", "args": "bob"}
    texts = [message.text for message in turn("skill").messages if message.role == "assistant"]
    assert texts == ["reply after 2 user messages"], "the body of the skill is not the agent's text"


def test_mcp_tools_are_named_by_server_and_tool_and_keep_their_arguments() -> None:
    found = {call.name: call for call in calls("mcp")}
    assert {name: call.tool for name, call in found.items()} == {
        "mcp__tiny__add": "mcp:tiny/add",
        "mcp__tiny__boom": "mcp:tiny/boom",
        "mcp__web__ping": "mcp:web/ping",
    }
    assert found["mcp__tiny__add"].arguments == {"a": 2, "b": 3}
    assert found["mcp__tiny__boom"].status == "error"
    assert results("mcp")[found["mcp__tiny__add"].id] == "5"


def test_arguments_of_foreign_tools_are_left_as_they_were_sent() -> None:
    line = next(line for line in lines("claude_code", "mcp") if b'"name":"mcp__tiny__add"' in line)
    sent = line.replace(b'{"a":2,"b":3}', b'{"file_path":"/eval/ev/a","skill":"x","path":"/eval/ev/b"}')
    (called,) = meaning(sent)
    assert isinstance(called, Called)
    assert called.arguments == {"file_path": "/eval/ev/a", "skill": "x", "path": "/eval/ev/b"}


def test_a_call_that_was_refused_is_denied_and_so_is_its_result() -> None:
    (call,) = calls("permission-denied")
    assert call.status == "denied"
    stream = turn("permission-denied")
    assert [m.tool_result.status for m in stream.messages if m.tool_result] == ["denied"]
    assert stream.fault is None


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("401", "auth", "Failed to authenticate. API Error: 401"),
        ("404", "request", "issue with the selected model"),
        ("429", "rate_limit", "Request rejected (429)"),
        ("500", "overloaded", "API Error: 500"),
        ("hang", "timeout", "The operation timed out"),
        ("refused", "network", "Unable to connect to API"),
        ("malformed", "output", "Failed to parse JSON"),
        ("resume-missing", "session", "No conversation found with session ID"),
        ("sigint", "crash", "Claude Code gave up"),
    ],
)
def test_what_went_wrong_has_a_kind(name: str, kind: str, words: str) -> None:
    """`subtype` is "success" for most of these; the class, the status and `is_error` say more."""
    stream = turn(name)
    assert stream.fault is not None
    assert (stream.fault.kind, words in stream.fault.message) == (kind, True)
    assert stream.finished is not None
    assert stream.finished.text is None, "the error's text is not an answer"


def test_retries_are_counted_and_name_their_cause() -> None:
    retries = [event for event in events("claude_code", "429") if isinstance(event, Retrying)]
    assert [retry.attempt for retry in retries] == list(range(1, len(retries) + 1))
    assert turn("429").notes == (f"retried: rate_limit ×{len(retries)}",)
    assert any(isinstance(event, Failing) for event in events("claude_code", "429"))


def test_a_fallback_without_streaming_is_noted_and_its_tokens_are_known() -> None:
    """`usage` is 0 then, `modelUsage` is right."""
    stream = turn("drop-then-ok")
    assert stream.notes == ("fallback: a stream broke off, and the CLI asked again without streaming",)
    assert usage("drop-then-ok").input_tokens == 10
    assert stream.answer == "recovered after 1 failures"


def test_streamed_replies_and_the_clis_own_are_no_fallback() -> None:
    for name in ("bash-ok", "thinking", "slash-unknown", "subagent", "500"):
        assert not any(isinstance(event, Noted) for event in events("claude_code", name)), name


def test_reasoning_is_told_from_the_answer() -> None:
    roles = [message.role for message in turn("thinking").messages]
    assert roles == ["reasoning", "assistant"]


def test_partial_messages_are_work_but_their_first_event_is_not() -> None:
    stream = turn("partial")
    assert stream.answer
    assert [message.role for message in stream.messages] == ["assistant"]
    started = next(line for line in lines("claude_code", "partial") if b"message_start" in line)
    delta = next(line for line in lines("claude_code", "partial") if b"content_block_delta" in line)
    assert (meaning(started), meaning(delta)) == ((), (Working(),))


def test_the_last_of_several_results_is_the_answer() -> None:
    """A background task that ends after the first result starts the CLI anew; its figures count from the first."""
    recorded = events("claude_code", "bgtask")
    assert sum(isinstance(event, SessionSeen) for event in recorded) == 4, "two at a start, two at an end"
    stream = turn("bgtask")
    assert len(stream.session_ids) == 1
    assert usage("bgtask").input_tokens == 30
    assert stream.finished is not None
    assert stream.answer == stream.finished.text


def test_a_turn_that_breaks_off_after_a_first_result_has_no_end() -> None:
    """A resumed session reports the tasks of its former process with an empty result before it begins."""
    recorded = events("claude_code", "task-left-resumed")
    stream = turn("task-left-resumed")
    assert stream.answer == "all is fine"
    assert stream.notes == (), "the task belongs to the turn before"
    starts = [place for place, event in enumerate(recorded) if isinstance(event, SessionSeen) and event.details]
    broken = TurnStream(turn=2)
    for event in recorded[: starts[1] + 1]:
        broken.add(event, 0.0)
    assert broken.finished is None


def test_a_task_that_the_cli_had_to_end_is_unfinished() -> None:
    stream = turn("task-left")
    assert stream.unfinished == ("wait (ended by the CLI)",)
    assert stream.notes == ("unfinished_background: wait (ended by the CLI)",)


def test_what_the_cli_says_after_it_was_interrupted_is_no_answer() -> None:
    """Interrupted while it waits for a task, it ends the task, asks the model about it, and answers once more."""
    stream = TurnStream(turn=1)
    for event in events("claude_code", "task-interrupted"):
        stream.closing = stream.closing or stream.finished is not None
        stream.add(event, 0.0)
    assert stream.answer == "started"
    assert stream.unfinished[0] == "wait (ended by the CLI)"
    assert turn("task-interrupted").answer == "(no scripted answer)"


def test_a_limit_of_the_cli_is_a_limit_and_no_fault() -> None:
    finished = turn("maxturns").finished
    assert finished is not None
    assert (finished.limit, finished.fault, finished.text) == ("steps", None, None)


def test_a_command_that_the_cli_takes_for_itself_costs_nothing() -> None:
    stream = turn("slash-unknown")
    assert stream.answer == "Unknown command: /nosuchcmd"
    assert (usage("slash-unknown").input_tokens, usage("slash-unknown").output_tokens) == (0, 0)


def test_tokens_of_a_turn_that_failed_are_unknown_not_0() -> None:
    assert usage("401") == Usage()


def test_what_the_cli_says_of_itself_is_kept() -> None:
    details = turn("skill").details
    assert details["claude_code_version"] == "2.1.197"
    assert "greet" in str(details["skills"])


def test_half_an_emoji_becomes_a_replacement_character() -> None:
    r"""The CLI cuts long outputs between the two halves, and writes the first as `\ud83d`."""
    said = b'{"type":"assistant","message":{"content":[{"type":"text","text":"a\\ud83d b\\ud83d\\ude00"}]}}'
    assert meaning(said) == (Said("a\N{REPLACEMENT CHARACTER} b😀"),)

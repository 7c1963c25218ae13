"""The tools: what each does, and that whatever goes wrong is a failed result and nothing worse."""

import os
import signal
import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from skillup.builtin_agent.tools import RESULT_BYTES, TOOLS, Toolbox, ToolResult
from tests.builtin_agent.model import Answer, Request, agent_with, alive, results, say, send_bytes, until, use


def run(cwd: Path, name: str, arguments: Mapping[str, Any]) -> ToolResult:
    return Toolbox(cwd, {"PATH": "/usr/bin:/bin"}, nullcontext).run(name, arguments)


def bash(cwd: Path, command: str, **arguments: Any) -> ToolResult:
    return run(cwd, "bash", {"command": command, **arguments})


def test_bash_runs_in_the_workspace_and_returns_both_streams_in_their_order(tmp_path: Path) -> None:
    result = bash(tmp_path, "pwd; echo err >&2; echo out")
    assert result == ToolResult(f"{tmp_path}\nerr\nout\n")


def test_bash_understands_bash(tmp_path: Path) -> None:
    assert bash(tmp_path, "[[ abc == a* ]] && a=(x y) && echo ${a[1]} 🧪").content == "y 🧪\n"


@pytest.mark.parametrize(
    ("command", "content"),
    [
        ("echo why; exit 3", "exit code 3\nwhy\n"),
        ("no-such-command-here 2>/dev/null", "exit code 127\n"),
        ("kill -9 $$", "exit code 137, killed by signal 9\n"),
    ],
)
def test_a_command_that_fails_says_its_exit_code_and_its_output(tmp_path: Path, command: str, content: str) -> None:
    assert bash(tmp_path, command) == ToolResult(content, failed=True)


def test_a_command_has_no_input_and_waits_for_none(tmp_path: Path) -> None:
    assert bash(tmp_path, "cat; read line || echo none") == ToolResult("none\n")


def test_each_command_is_a_new_shell(tmp_path: Path) -> None:
    bash(tmp_path, "cd /; export A=1")
    assert bash(tmp_path, "echo $A$PWD").content == f"{tmp_path}\n"


def test_a_command_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    began = time.monotonic()
    result = bash(tmp_path, "sleep 987 & echo $! > pid; echo before; wait", timeout=0.3)
    assert time.monotonic() - began < 5
    assert result.failed
    assert "not finished after 0.3 s" in result.content
    assert result.content.endswith("\nbefore\n")
    child = int((tmp_path / "pid").read_text())
    until(lambda: not alive(child), "the end of the child")


def test_a_command_that_closes_its_output_and_goes_on_is_killed_at_its_time(tmp_path: Path) -> None:
    result = bash(tmp_path, "exec >/dev/null 2>&1; sleep 987", timeout=0.3)
    assert result.failed
    assert "not finished" in result.content


@pytest.mark.parametrize("background", ["sleep 30", "while sleep 0.1; do echo tick; done", "yes"])
def test_a_server_left_in_the_background_does_not_hold_the_call_and_lives_on(tmp_path: Path, background: str) -> None:
    began = time.monotonic()
    result = bash(tmp_path, f"({background}) & echo $! > pid; echo started")
    pid = int((tmp_path / "pid").read_text())
    try:
        assert time.monotonic() - began < 5
        assert not result.failed
        assert "started\n" in result.content
        time.sleep(0.5)
        assert alive(pid)
    finally:
        os.killpg(os.getpgid(pid), signal.SIGKILL)


def test_long_output_keeps_its_beginning_and_its_end_and_says_how_much_is_missing(tmp_path: Path) -> None:
    result = bash(tmp_path, "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert result.content.startswith("first\nxxx")
    assert result.content.endswith("xxx\nlast\n")
    left_out = 5_000_000 + len("first\n\nlast\n") - RESULT_BYTES
    assert f"\n[{left_out} bytes left out]\n" in result.content
    assert len(result.content) < RESULT_BYTES + 100


def test_output_up_to_the_limit_is_whole(tmp_path: Path) -> None:
    assert bash(tmp_path, f"head -c {RESULT_BYTES} /dev/zero | tr '\\0' x").content == "x" * RESULT_BYTES


def test_endless_output_is_read_in_bounded_memory_until_the_time_is_over(tmp_path: Path) -> None:
    result = bash(tmp_path, "yes", timeout=0.5)
    assert result.failed
    assert len(result.content) < RESULT_BYTES + 200


def test_output_that_is_no_text_is_replaced_where_it_must_be(tmp_path: Path) -> None:
    assert bash(tmp_path, r"printf 'a\xff\x00b'").content == "a\ufffd\x00b"


def test_read_returns_a_file_as_it_is(tmp_path: Path) -> None:
    text = "one\r\ntwo\n\x00 🧪 no newline at the end"
    (tmp_path / "a.txt").write_bytes(text.encode())
    assert run(tmp_path, "read", {"path": "a.txt"}) == ToolResult(text)
    assert run(tmp_path, "read", {"path": str(tmp_path / "a.txt")}) == ToolResult(text)


def test_read_of_a_large_file_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * (RESULT_BYTES + 5))
    result = run(tmp_path, "read", {"path": "a"})
    assert result.content == "x" * RESULT_BYTES + "\n[5 more bytes; use bash to read them]"


def test_write_creates_folders_and_replaces_content(tmp_path: Path) -> None:
    for content in ("a much longer first content\r\n", "short 🧪"):
        assert not run(tmp_path, "write", {"path": "a/b/c.txt", "content": content}).failed
        assert (tmp_path / "a/b/c.txt").read_bytes() == content.encode()


def test_edit_replaces_the_one_occurrence_and_keeps_every_other_byte(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"one\r\n\xff two\r\nthree")
    file.chmod(0o755)
    result = run(tmp_path, "edit", {"path": "a.txt", "old": "two\r\n", "new": ""})
    assert not result.failed
    assert file.read_bytes() == b"one\r\n\xff three"
    assert file.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("old", "told"),
    [("four", "does not occur"), ("aa", "more than once"), ("", "empty"), ("ONE", "not occur")],
)
def test_an_edit_that_is_not_of_exactly_one_place_changes_nothing(tmp_path: Path, old: str, told: str) -> None:
    (tmp_path / "a.txt").write_text("one aaa")
    result = run(tmp_path, "edit", {"path": "a.txt", "old": old, "new": "x"})
    assert result.failed
    assert told in result.content
    assert (tmp_path / "a.txt").read_text() == "one aaa"


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("teleport", {}, "there are bash, read, write, edit"),
        ("bash", {}, "`command` is missing"),
        ("bash", {"command": ["ls"]}, "`command` must be text"),
        ("bash", {"command": "ls", "timeout": "5"}, "`timeout` must be a number"),
        ("bash", {"command": "ls", "timeout": 0}, "`timeout` must be a number above 0"),
        ("bash", {"command": "ls", "timeout": True}, "`timeout` must be a number"),
        ("bash", {"command": "ls", "timeout": 10**400}, "too large"),
        ("bash", {"command": "true \x00"}, "null byte"),
        ("bash", {"command": ": " + "x" * 3_000_000}, "too long"),
        ("read", {"file": "a"}, "`path` is missing"),
        ("read", {"path": "a", "limit": 3}, "no argument `limit`"),
        ("read", {"path": "missing"}, "No such file"),
        ("read", {"path": "."}, "not a regular file"),
        ("read", {"path": "fifo"}, "not a regular file"),
        ("read", {"path": "/dev/zero"}, "not a regular file"),
        ("read", {"path": "nul\x00"}, "null byte"),
        ("write", {"path": "fifo", "content": "x"}, "fifo"),
        ("write", {"path": ".", "content": "x"}, "directory"),
        ("write", {"path": "file/below", "content": "x"}, "file"),
        ("write", {"path": "new", "content": "lone \ud800"}, "surrogates"),
        ("edit", {"path": "missing", "old": "a", "new": "b"}, "No such file"),
        ("edit", {"path": "file", "old": "text", "new": "lone \ud800"}, "surrogates"),
    ],
)
def test_what_cannot_be_done_is_a_failed_result_that_says_why(
    tmp_path: Path, name: str, arguments: dict[str, Any], told: str
) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "file").write_text("text")
    result = run(tmp_path, name, arguments)
    assert result.failed
    assert result.content.startswith(f"{name}: ")
    assert told in result.content
    assert (tmp_path / "file").read_text() == "text"
    assert not (tmp_path / "new").exists()


def test_a_workspace_that_was_deleted_is_a_failed_result(tmp_path: Path) -> None:
    assert bash(tmp_path / "gone", "ls").failed


def test_every_tool_that_is_offered_works(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    arguments = {"command": "true", "path": "a", "old": "old", "new": "new", "content": "old"}
    for tool in TOOLS:
        given = {name: arguments[name] for name in tool["input_schema"]["required"]}
        assert not run(tmp_path, tool["name"], given).failed


def test_the_model_learns_of_an_unknown_tool_and_the_turn_goes_on(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        return say(results(request)[0]["content"]) if results(request) else use("teleport", where="home")

    with agent_with(tmp_path, answer) as (agent, _):
        finished = agent.turn("go")
    assert finished.of("tool_result")[0]["status"] == "error"
    assert finished.end["text"] == "teleport: there is no such tool; there are bash, read, write, edit"


@pytest.mark.parametrize("raw", ['{"command": "tou', "[1]", "3", "NaN", '{"timeout": 1e999}', "[" * 100_000])
def test_arguments_that_are_no_json_object_are_a_failed_result(tmp_path: Path, raw: str) -> None:
    call = {"type": "tool_use", "id": "call_1", "name": "bash", "input": raw}
    with agent_with(tmp_path, lambda request: say("ok") if results(request) else Answer((call,), "tool_use")) as (
        agent,
        model,
    ):
        finished = agent.turn("go")
    assert finished.code == 0
    assert "not a JSON object" in results(model.requests[1])[0]["content"]


def test_a_tool_call_without_arguments_sends_none(tmp_path: Path) -> None:
    start = b'data: {"type":"content_block_start","index":0,"content_block":'
    start += b'{"type":"tool_use","id":"c","name":"bash","input":{}}}\n\n'
    stream = b'data: {"type":"message_start","message":{}}\n\n' + start + b'data: {"type":"message_stop"}\n\n'
    with agent_with(tmp_path, lambda request: say("ok") if results(request) else send_bytes(stream)) as (
        agent,
        _,
    ):
        finished = agent.turn("go")
    assert finished.of("tool_call")[0]["arguments"] == {}
    assert "`command` is missing" in finished.of("tool_result")[0]["content"]


def test_commands_do_not_get_the_key_and_keep_the_rest_of_the_environment(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        return say("ok") if results(request) else use("bash", command="env")

    with agent_with(tmp_path, answer) as (agent, _):
        finished = agent.run("go", *agent.flags(), MARK="plover")
    shown = finished.of("tool_result")[0]["content"]
    assert "MARK=plover" in shown
    assert "sk-test" not in shown


def test_a_signal_that_a_command_is_sent_by_default_ends_it(tmp_path: Path) -> None:
    """The agent's own handling of SIGINT, SIGTERM and SIGPIPE is not passed on."""
    started = bash(tmp_path, "sleep 30 & kill -TERM $!; wait $!; echo $?; yes | head -n 1")
    assert started.content == "143\ny\n"


def test_what_a_command_left_running_ends_nobody_else(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        if results(request):
            return say("ok")
        return use("bash", command="sleep 987 >/dev/null 2>&1 & echo $! > pid")

    with agent_with(tmp_path, answer) as (agent, _):
        finished = agent.turn("go")
        pid = int((agent.workspace / "pid").read_text())
    assert finished.code == 0
    assert alive(pid)  # the one who started the agent ends it, and can tell of it
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid), "the end of the sleep")

"""Sessions on disk: resumed whole, one writer each, valid again after every kind of interruption."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from tests.builtin_agent.model import (
    COMMAND,
    Agent,
    Answer,
    Request,
    Running,
    agent_with,
    alive,
    calls,
    refuse,
    results,
    say,
    texts,
    tool_use,
    until,
    use,
)

SLEEP = "echo $$ > pid; sleep 987 & echo $! > child; wait"


def recall(request: Request) -> Answer:
    """Answer with everything that the user has said."""
    return say(" | ".join(texts(request)))


def sleeper(request: Request) -> Answer:
    """Run three commands, the second of them for ever; after that, recall."""
    if results(request):
        return recall(request)
    commands = ("touch first", SLEEP, "touch third")
    return calls(*(tool_use("bash", f"c{n}", command=command) for n, command in enumerate(commands)))


def in_mid_tool(agent: Agent, session: str) -> tuple[Running, list[int]]:
    """A turn whose second command runs, and the processes of that command."""
    running = agent.start("one", *agent.flags(session=session))
    pids = [agent.workspace / "pid", agent.workspace / "child"]
    until(lambda: all(path.exists() and path.read_text() for path in pids), "the command to start")
    return running, [int(path.read_text()) for path in pids]


def test_a_resumed_turn_sends_the_whole_conversation(tmp_path: Path) -> None:
    session = str(uuid4())
    with agent_with(tmp_path, recall) as (agent, model):
        agent.turn("one", session=session)
        agent.turn("two", resume=session)
        third = agent.turn("three", resume=session.upper())
    assert third.of("session")[0]["resumed"] is True
    assert third.of("session")[0]["session_id"] == session
    assert third.end["text"] == "one | two | three"
    roles = [message["role"] for message in model.requests[2]["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert third.end["usage"]["input_tokens"] == 10  # of this process only
    assert third.end["requests"] == 1


def test_tool_calls_and_results_are_part_of_the_session(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        return recall(request) if results(request) or len(texts(request)) > 1 else use("bash", command="echo plover")

    session = str(uuid4())
    with agent_with(tmp_path, answer) as (agent, model):
        agent.turn("one", session=session)
        agent.turn("two", resume=session)
    assert "plover" in json.dumps(model.requests[-1]["messages"])


def test_sessions_of_one_home_know_nothing_of_each_other(tmp_path: Path) -> None:
    sessions = [str(uuid4()) for _ in range(3)]
    with agent_with(tmp_path, recall) as (agent, _):
        for session in sessions:
            agent.turn(f"word of {session}", session=session)
        ends = [agent.turn("again", resume=session).end["text"] for session in sessions]
    assert ends == [f"word of {session} | again" for session in sessions]


def test_a_session_can_be_resumed_in_another_directory(tmp_path: Path) -> None:
    session = str(uuid4())
    with agent_with(tmp_path, recall) as (agent, model):
        agent.turn("one", session=session)
        agent.workspace.rename(tmp_path / "moved")
        finished = agent.turn("two", resume=session)
    assert finished.end["text"] == "one | two"
    assert str(agent.workspace) in model.requests[1]["system"]


def test_an_unknown_session_is_an_error_and_nothing_is_started_instead(tmp_path: Path) -> None:
    with agent_with(tmp_path, recall) as (agent, model):
        finished = agent.turn("hi", resume=str(uuid4()))
    assert (finished.code, finished.kinds) == (1, ["end"])
    assert finished.end["error"]["kind"] == "session"
    assert "there is no session" in finished.end["error"]["message"]
    assert model.requests == []
    assert not agent.home.exists()


def test_an_id_that_is_used_cannot_be_started_again(tmp_path: Path) -> None:
    session = str(uuid4())
    with agent_with(tmp_path, recall) as (agent, model):
        agent.turn("one", session=session)
        before = agent.session_file(session).read_bytes()
        finished = agent.turn("two", session=session)
    assert finished.code == 1
    assert "already used" in finished.end["error"]["message"]
    assert "already used" in finished.stderr
    assert agent.session_file(session).read_bytes() == before
    assert len(model.requests) == 1


@pytest.mark.parametrize("how", ["session", "resume"])
def test_a_second_writer_is_refused_and_the_first_is_not_disturbed(tmp_path: Path, how: str) -> None:
    session = str(uuid4())
    with agent_with(tmp_path, sleeper) as (agent, _):
        running, _pids = in_mid_tool(agent, session)
        second = agent.turn("two", **{how: session})
        running.process.send_signal(signal.SIGINT)
        first = running.finish()
        third = agent.turn("three", resume=session)
    assert second.code == 1
    assert "in use" in second.end["error"]["message"]
    assert first.code == 130
    assert third.end["text"] == "one | three"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"format": 1, "session_id": "SESSION"}',
        b'{"format": 2, "session_id": "SESSION", "messages": []}',
        b'{"format": 1, "session_id": "another", "messages": []}',
        b'{"format": 1, "session_id": "SESSION", "messages": [{"role": "user"}]}',
        b'{"format": 1, "session_id": "SESSION", "messages": [{"role": "user", "content": "text"}]}',
        b'{"format": 1, "session_id": "SESSION", "messages": [{"role": "user", "content": [{"type": "x"}]}]}',
        b"[" * 200_000,
    ],
)
def test_a_damaged_session_file_is_an_error_that_names_it_and_is_left_alone(tmp_path: Path, content: bytes) -> None:
    session = str(uuid4())
    with agent_with(tmp_path, recall) as (agent, model):
        path = agent.session_file(session)
        path.parent.mkdir(parents=True)
        path.write_bytes(content.replace(b"SESSION", session.encode()))
        before = path.read_bytes()
        finished = agent.turn("hi", resume=session)
    assert (finished.code, finished.kinds) == (1, ["end"])
    assert finished.end["error"]["kind"] == "session"
    assert str(path) in finished.end["error"]["message"]
    assert "start a new session" in finished.stderr
    assert "Traceback" not in finished.stderr
    assert path.read_bytes() == before
    assert model.requests == []


def test_a_home_that_cannot_be_written_is_a_session_error(tmp_path: Path) -> None:
    with agent_with(tmp_path, recall) as (agent, _):
        agent.home.write_text("a file")
        finished = agent.turn("hi")
    assert (finished.code, finished.end["error"]["kind"]) == (1, "session")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_in_mid_tool_leaves_no_process_and_a_session_that_goes_on(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    session = str(uuid4())
    with agent_with(tmp_path, sleeper) as (agent, model):
        running, pids = in_mid_tool(agent, session)
        assert all(map(alive, pids))
        running.process.send_signal(number)
        finished = running.finish()
        until(lambda: not any(map(alive, pids)), "the end of the command")
        resumed = agent.turn("two", resume=session)
    assert finished.code == code
    assert (finished.end["reason"], finished.end["text"]) == ("interrupted", None)
    assert (finished.end["error"], finished.end["stop_reason"]) == (None, "tool_use")
    assert (finished.end["requests"], finished.end["steps"]) == (1, 1)
    statuses = [(event["id"], event["status"]) for event in finished.of("tool_result")]
    assert statuses == [("c0", "ok"), ("c1", "error")]
    assert "Traceback" not in finished.stderr
    assert resumed.end["text"] == "one | two"
    answered = {block["tool_use_id"]: block for block in results(model.requests[-1])}
    assert "is_error" not in answered["c0"]
    assert all(answered[call]["is_error"] and "interrupted" in answered[call]["content"] for call in ("c1", "c2"))
    assert not (agent.workspace / "third").exists()


def test_after_a_kill_in_mid_tool_the_session_goes_on_too(tmp_path: Path) -> None:
    session = str(uuid4())
    with agent_with(tmp_path, sleeper) as (agent, model):
        running, pids = in_mid_tool(agent, session)
        running.process.kill()
        running.finish()
        os.killpg(pids[0], signal.SIGKILL)
        resumed = agent.turn("two", resume=session)
    assert resumed.end["text"] == "one | two"
    assert [block["tool_use_id"] for block in results(model.requests[-1])] == ["c0", "c1", "c2"]


def test_an_interruption_while_the_model_is_silent_keeps_what_the_user_said(tmp_path: Path) -> None:
    session = str(uuid4())

    def answer(request: Request) -> Answer:
        return say("late", silent_seconds=60) if len(texts(request)) < 2 else recall(request)

    with agent_with(tmp_path, answer) as (agent, model):
        running = agent.start("one", *agent.flags(session=session))
        until(lambda: len(model.requests) == 1, "the request")
        running.process.send_signal(signal.SIGINT)
        finished = running.finish()
        resumed = agent.turn("two", resume=session)
    assert (finished.code, finished.kinds) == (130, ["session", "end"])
    assert (finished.end["requests"], finished.end["steps"]) == (1, 0)
    assert set(finished.end["usage"].values()) == {None}
    assert resumed.end["text"] == "one | two"


def test_an_interruption_while_waiting_for_a_retry_ends_at_once(tmp_path: Path) -> None:
    with agent_with(tmp_path, lambda _: refuse(429, retry_after="30")) as (agent, _):
        running = agent.start("one", *agent.flags())
        until(lambda: "retry" in [event["type"] for event in running.events()], "the retry event")
        running.process.send_signal(signal.SIGINT)
        finished = running.finish()
    assert (finished.code, finished.end["reason"]) == (130, "interrupted")


def test_a_second_signal_does_not_disturb_the_first(tmp_path: Path) -> None:
    with agent_with(tmp_path, sleeper) as (agent, _):
        running, pids = in_mid_tool(agent, str(uuid4()))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            running.process.send_signal(number)
        finished = running.finish()
    assert finished.code in {130, 143}
    assert finished.end["reason"] == "interrupted"
    assert "Traceback" not in finished.stderr
    until(lambda: not any(map(alive, pids)), "the end of the command")


def test_an_agent_that_was_started_with_signals_ignored_can_be_interrupted(tmp_path: Path) -> None:
    """A background job of a shell script starts with SIGINT ignored."""
    with agent_with(tmp_path, sleeper) as (agent, _):
        (tmp_path / "prompt").write_text("one")
        script = f'trap "" INT; exec {" ".join(COMMAND)} {" ".join(agent.flags())} < {tmp_path}/prompt'
        variables = {"ANTHROPIC_BASE_URL": agent.url, "ANTHROPIC_API_KEY": "k", "PATH": "/usr/bin:/bin"}
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", f"cd {agent.workspace}; {script} > {tmp_path}/out"], variables)
        until((agent.workspace / "child").exists, "the command to start")
        os.kill(pid, signal.SIGINT)
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130


@pytest.mark.parametrize("moment", [0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2])
def test_whenever_the_interruption_comes_the_events_are_whole_lines_and_the_session_is_whole(
    tmp_path: Path, moment: float
) -> None:
    """The work is many short tools, so that the signal meets every part of the loop."""

    def answer(request: Request) -> Answer:
        if texts(request)[-1] == "two":
            return say("fine")
        return use("write", f"call_{len(request['messages'])}", path="a", content="b" * 50_000)

    session = str(uuid4())
    with agent_with(tmp_path, answer) as (agent, _):
        running = agent.start("one", *agent.flags(session=session), "--max-steps", "1000")
        until(agent.session_file(session).exists, "the session")
        time.sleep(moment)
        running.process.send_signal(signal.SIGINT)
        finished = running.finish()
        resumed = agent.turn("two", resume=session)
    assert (finished.code, finished.end["reason"]) == (130, "interrupted")
    assert "Traceback" not in finished.stderr
    calls_told = [event["id"] for event in finished.of("tool_call")]
    results_told = [event["id"] for event in finished.of("tool_result")]
    assert results_told in (calls_told, calls_told[:-1])
    assert resumed.end["text"] == "fine"


def test_an_interruption_that_a_finalizer_swallows_is_raised_at_the_next_safe_place() -> None:
    """Python drops what a signal handler raises while an object is being finalized."""
    code = """
import signal
from skillup.builtin_agent.loop import Interrupted, Interrupts
interrupts = Interrupts()
interrupts.install()
class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
        print("not reached")
Finalized()
print("swallowed")
try:
    with interrupts.held():
        print("held")
except Interrupted as interruption:
    print(interruption)
"""
    shown = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, check=True, text=True)
    assert shown.stdout.splitlines() == ["swallowed", "held", "interrupted by SIGINT"]


def failing(status: int) -> Callable[[Request], Answer]:
    """A model that fails after the first tool call of turn one, and works in turn two."""

    def answer(request: Request) -> Answer:
        if len(texts(request)) > 1:
            return recall(request)
        return refuse(status) if results(request) else use("bash", command="echo plover")

    return answer


@pytest.mark.parametrize("status", [400, 500])
def test_after_a_turn_that_failed_the_session_goes_on_with_what_was_done(tmp_path: Path, status: int) -> None:
    session = str(uuid4())
    with agent_with(tmp_path, failing(status)) as (agent, model):
        failed = agent.turn("one", "--max-retries", "0", session=session)
        resumed = agent.turn("two", resume=session)
    assert failed.code == 1
    assert resumed.end["text"] == "one | two"
    assert "plover" in results(model.requests[-1])[0]["content"]


def test_the_files_of_a_session_are_for_the_user_alone_and_no_partial_file_stays(tmp_path: Path) -> None:
    session = str(uuid4())
    with agent_with(tmp_path, recall) as (agent, _):
        agent.turn("one", session=session)
    folder = agent.session_file(session).parent
    assert sorted(path.name for path in folder.iterdir()) == [f"{session}.json", f"{session}.lock"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}

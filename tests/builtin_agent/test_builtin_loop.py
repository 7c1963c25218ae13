"""One turn of the built-in agent, as a process that is started and read like any other agent CLI."""

import json
import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from skillup import __version__
from tests.builtin_agent.model import (
    COMMAND,
    PREFIX,
    Answer,
    Request,
    agent_with,
    calls,
    results,
    say,
    texts,
    tool_use,
    use,
)


def until_done(request: Request) -> Answer:
    """Write a file, then say so."""
    return say("done") if results(request) else use("write", path="a.txt", content="hello")


def endless(request: Request) -> Answer:
    """Call a tool whatever happened."""
    return use("bash", f"call_{len(request['messages'])}", command="true")


def test_a_plain_answer_is_session_text_end(tmp_path: Path) -> None:
    session = str(uuid4())
    with agent_with(tmp_path, lambda request: say(f"You said: {texts(request)[-1]}")) as (agent, _):
        finished = agent.turn("hi", session=session)
    assert finished.code == 0
    assert finished.stderr == ""
    assert finished.events == (
        {
            "type": "session",
            "session_id": session,
            "resumed": False,
            "model": "test-model",
            "cwd": str(agent.workspace),
            "tools": ["bash", "read", "write", "edit"],
            "skills": [],
            "version": __version__,
        },
        {"type": "text", "text": "You said: hi"},
        {
            "type": "end",
            "reason": "completed",
            "text": "You said: hi",
            "stop_reason": "end_turn",
            "error": None,
            "usage": {
                "input_tokens": 10,
                "output_tokens": 7,
                "cache_read_tokens": 3,
                "cache_write_tokens": 2,
            },
            "requests": 1,
            "steps": 1,
        },
    )


def test_the_request_keeps_the_path_prefix_and_offers_the_four_tools(tmp_path: Path) -> None:
    with agent_with(tmp_path, lambda _: say("ok")) as (agent, model):
        agent.turn("hi")
        agent.run("hi", *agent.flags(), ANTHROPIC_BASE_URL=f"{model.url}/")
    assert [received.path for received in model.received] == [f"{PREFIX}/v1/messages"] * 2
    request = model.requests[0]
    assert model.received[0].headers["x-api-key"] == "sk-test"
    assert model.received[0].headers["anthropic-version"] == "2023-06-01"
    assert set(request) == {"model", "max_tokens", "system", "messages", "tools", "stream"}
    assert (request["model"], request["stream"]) == ("test-model", True)
    assert request["messages"] == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    schemas = {tool["name"]: tool["input_schema"] for tool in request["tools"]}
    required = {
        "bash": ["command"],
        "read": ["path"],
        "write": ["path", "content"],
        "edit": ["path", "old", "new"],
    }
    assert {name: schema["required"] for name, schema in schemas.items()} == required
    assert {name: sorted(schema["properties"]) for name, schema in schemas.items()} == {
        "bash": ["command", "timeout"],
        "read": ["path"],
        "write": ["content", "path"],
        "edit": ["new", "old", "path"],
    }


def test_equal_turns_in_one_workspace_send_equal_requests(tmp_path: Path) -> None:
    with agent_with(tmp_path, lambda _: say("ok")) as (agent, model):
        agent.turn("hi")
        agent.turn("hi")
    assert model.requests[0] == model.requests[1]


def test_a_tool_call_is_told_run_and_answered(tmp_path: Path) -> None:
    with agent_with(tmp_path, until_done) as (agent, model):
        finished = agent.turn("write it")
    assert finished.kinds == ["session", "tool_call", "tool_result", "text", "end"]
    assert finished.events[1] == {
        "type": "tool_call",
        "id": "call_1",
        "name": "write",
        "arguments": {"path": "a.txt", "content": "hello"},
    }
    assert (finished.events[2]["id"], finished.events[2]["status"]) == ("call_1", "ok")
    assert (agent.workspace / "a.txt").read_text() == "hello"
    assert results(model.requests[1])[0]["content"] == finished.events[2]["content"]
    assert (finished.end["requests"], finished.end["steps"], finished.end["text"]) == (2, 2, "done")
    assert finished.end["usage"]["input_tokens"] == 20


def test_calls_of_one_reply_run_in_their_order_and_a_failed_one_stops_nothing(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        if results(request):
            return say("done")
        commands = {"c1": "echo one >> log", "c2": "echo two >> log; exit 3", "c3": "cat log"}
        return calls(*(tool_use("bash", call, command=command) for call, command in commands.items()))

    with agent_with(tmp_path, answer) as (agent, model):
        finished = agent.turn("go")
    told = [(event["type"], event["id"]) for event in finished.events if "id" in event]
    assert told == [(kind, call) for call in ("c1", "c2", "c3") for kind in ("tool_call", "tool_result")]
    assert [event["status"] for event in finished.of("tool_result")] == ["ok", "error", "ok"]
    assert finished.of("tool_result")[2]["content"] == "one\ntwo\n"
    assert [block.get("is_error", False) for block in results(model.requests[1])] == [False, True, False]


def test_max_steps_ends_the_turn_after_the_tools_of_the_last_reply(tmp_path: Path) -> None:
    session = str(uuid4())
    with agent_with(tmp_path, endless) as (agent, model):
        finished = agent.turn("go", "--max-steps", "3", session=session)
        assert finished.code == 0
        assert (finished.end["reason"], finished.end["steps"], finished.end["text"]) == ("max_steps", 3, None)
        assert len(finished.of("tool_result")) == 3
        assert len(model.requests) == 3
        resumed = agent.turn("and now", "--max-steps", "1", resume=session)
    assert resumed.end["error"] is None
    assert [block["type"] for block in model.requests[3]["messages"][-1]["content"]] == [
        "tool_result",
        "text",
    ]


def test_thinking_is_told_and_goes_back_with_its_signature(tmp_path: Path) -> None:
    thinking = {"type": "thinking", "thinking": "let me see", "signature": "c2lnbmF0dXJl"}
    hidden = {"type": "redacted_thinking", "data": "xyz"}

    def answer(request: Request) -> Answer:
        return say("done") if results(request) else calls(thinking, hidden, tool_use("bash", command="true"))

    with agent_with(tmp_path, answer) as (agent, model):
        finished = agent.turn("think")
    assert finished.of("thinking") == [{"type": "thinking", "text": "let me see"}]
    assert model.requests[1]["messages"][1]["content"][:2] == [thinking, hidden]


def test_a_json_answer_is_as_good_as_a_stream(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        blocks = until_done(request).blocks
        return Answer(blocks, streamed=False, content_type="application/json; charset=utf-8")

    with agent_with(tmp_path, answer) as (agent, _):
        finished = agent.turn("write it")
    assert finished.kinds == ["session", "tool_call", "tool_result", "text", "end"]
    assert finished.end["usage"]["output_tokens"] == 14


def test_several_texts_of_one_reply_are_events_of_their_own_and_one_final_text(tmp_path: Path) -> None:
    with agent_with(tmp_path, lambda _: say("one ", "two")) as (agent, _):
        finished = agent.turn("hi")
    assert [event["text"] for event in finished.of("text")] == ["one ", "two"]
    assert finished.end["text"] == "one two"


@pytest.mark.parametrize("blocks", [(), ("",), (" \n",)])
def test_an_empty_reply_completes_without_text_and_does_not_spoil_the_session(
    tmp_path: Path, blocks: tuple[str, ...]
) -> None:
    session = str(uuid4())
    with agent_with(tmp_path, lambda request: say(*blocks) if len(texts(request)) < 2 else say("now")) as (
        agent,
        _,
    ):
        finished = agent.turn("hi", session=session)
        resumed = agent.turn("again", resume=session)
    assert (finished.code, finished.end["reason"], finished.end["text"]) == (0, "completed", None)
    assert resumed.end["text"] == "now"


def test_an_answer_that_is_cut_or_refused_is_an_answer_with_its_stop_reason(tmp_path: Path) -> None:
    with agent_with(tmp_path, lambda _: say("half an ans", stop_reason="max_tokens")) as (agent, _):
        finished = agent.turn("hi")
    assert (finished.code, finished.end["reason"], finished.end["stop_reason"]) == (
        0,
        "completed",
        "max_tokens",
    )


def test_usage_that_one_reply_does_not_tell_is_unknown(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        if results(request):
            return say("done", usage={"input_tokens": 5, "output_tokens": 6})
        return use("bash", command="true")

    with agent_with(tmp_path, answer) as (agent, _):
        finished = agent.turn("hi")
        silent = agent.turn("hi", "--max-steps", "1")
    assert finished.end["usage"] == {
        "input_tokens": 15,
        "output_tokens": 13,
        "cache_read_tokens": None,
        "cache_write_tokens": None,
    }
    assert silent.end["usage"]["cache_read_tokens"] == 3


@pytest.mark.parametrize(
    "prompt",
    [
        "-n --help",
        "/clear the table",
        "\ttabs\r\nand \x00\x01\x1b[31mcontrol\x7f characters\u2028",
        "emoji 🧪👩\u200d🔬 and \ufeff, right to left \u202e",
        "  blanks and line breaks at both ends \n\n",
        "secret " + "0123456789 é🧪 " * 60_000,
    ],
    ids=["dash", "slash", "control", "emoji", "blanks", "1-megabyte"],
)
def test_the_prompt_reaches_the_model_as_it_is_and_the_answer_comes_back_as_it_is(tmp_path: Path, prompt: str) -> None:
    with agent_with(tmp_path, lambda request: say(texts(request)[-1])) as (agent, model):
        finished = agent.turn(prompt)
    assert texts(model.requests[0]) == [prompt]
    assert finished.end["text"] == prompt


def test_skills_of_the_home_are_advertised_and_can_be_read(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        path = request["system"].partition("(file: ")[2].partition(")")[0]
        return say(results(request)[0]["content"]) if results(request) else use("read", path=path)

    with agent_with(tmp_path, answer) as (agent, model):
        path = agent.skill("greet", "---\nname: greet\ndescription: Say hello well.\n---\nThe word is plover.\n")
        finished = agent.turn("greet me")
    assert finished.of("session")[0]["skills"] == ["greet"]
    assert f"- greet: Say hello well. (file: {path})" in model.requests[0]["system"]
    assert finished.end["text"] == path.read_text()


@pytest.mark.parametrize(
    ("front_matter", "line"),
    [
        ("name: a\ndescription: plain # comment", "- a: plain "),
        ("name: 'it''s'\ndescription: \"say \\\"x\\\": y\"", '- it\'s: say "x": y '),
        ("name: a\ndescription: >-\n  folded over\n  two lines\nlicense: MIT", "- a: folded over two lines "),
        ("name: a\ndescription: |\n  kept\n\n  lines\nmetadata:\n  name: other", "- a: kept lines "),
        ("description: starts here\n  and goes on", "- folder: starts here and goes on "),
        ("name: a", "- a: (no description) "),
    ],
)
def test_front_matter_is_read_in_the_forms_that_skills_use(tmp_path: Path, front_matter: str, line: str) -> None:
    with agent_with(tmp_path, lambda _: say("ok")) as (agent, model):
        agent.skill("folder", f"\ufeff---\n{front_matter}\n---\nbody\n")
        agent.turn("hi")
    assert line in model.requests[0]["system"]


@pytest.mark.parametrize("text", ["no front matter", "---\nname: never closed\n", ""])
def test_a_skill_without_front_matter_goes_by_its_folder(tmp_path: Path, text: str) -> None:
    with agent_with(tmp_path, lambda _: say("ok")) as (agent, model):
        agent.skill("folder", text)
        agent.turn("hi")
    assert "- folder: (no description) " in model.requests[0]["system"]


def test_the_request_with_a_skill_differs_only_in_what_the_skill_brings(tmp_path: Path) -> None:
    with agent_with(tmp_path, lambda _: say("ok")) as (agent, model):
        agent.turn("hi")
        agent.skill("greet", "---\nname: greet\ndescription: Say hello.\n---\n")
        agent.turn("hi")
    without, with_skill = model.requests
    assert "Skills" not in without["system"]
    assert with_skill["system"].startswith(without["system"])
    assert {**with_skill, "system": None} == {**without, "system": None}


def test_a_system_prompt_file_replaces_the_instructions_and_keeps_the_skills(tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("You are a parrot.")
    with agent_with(tmp_path, lambda _: say("ok")) as (agent, model):
        agent.skill("greet", "---\nname: greet\ndescription: Say hello.\n---\n")
        agent.turn("hi", "--system-prompt-file", str(tmp_path / "prompt.md"))
    system = model.requests[0]["system"]
    assert system.startswith("You are a parrot.\n\n")
    assert "coding agent" not in system
    assert "- greet: Say hello." in system


@pytest.mark.parametrize("key", ["", "sk\nbroken"])
def test_without_a_usable_key_the_turn_is_an_auth_error_and_nothing_is_sent(tmp_path: Path, key: str) -> None:
    with agent_with(tmp_path, lambda _: say("ok")) as (agent, model):
        finished = agent.run("hi", *agent.flags(), ANTHROPIC_API_KEY=key)
    assert finished.code == 1
    assert finished.kinds == ["end"]
    assert (finished.end["reason"], finished.end["error"]["kind"]) == ("error", "auth")
    assert "ANTHROPIC_API_KEY" in finished.end["error"]["message"]
    assert "broken" not in finished.end["error"]["message"] + finished.stderr
    assert model.requests == []
    assert not agent.home.exists()


@pytest.mark.parametrize(
    ("prompt", "flags", "environment", "told"),
    [
        (" \n\t", (), {}, "blank"),
        (b"caf\xe9", (), {}, "UTF-8"),
        ("hi", ("--resume", "last"), {}, "not a UUID"),
        ("hi", ("--resume", "../../etc/passwd"), {}, "not a UUID"),
        ("hi", ("--session-id", str(uuid4()), "--resume", str(uuid4())), {}, "not allowed with"),
        ("hi", ("--max-steps", "0"), {}, "at least 1"),
        ("hi", ("--max-retries", "-1"), {}, "0 or more"),
        ("hi", ("--timeout", "nan"), {}, "above 0"),
        ("hi", ("--max-st", "3"), {}, "unrecognized"),
        ("hi", ("--system-prompt-file", "/nowhere"), {}, "/nowhere"),
        ("hi", (), {"ANTHROPIC_BASE_URL": ""}, "ANTHROPIC_BASE_URL"),
        ("hi", (), {"ANTHROPIC_BASE_URL": "file:///etc/passwd"}, "http://"),
        ("hi", (), {"ANTHROPIC_BASE_URL": "http://127.0.0.1:port"}, "http://"),
        ("hi", (), {"ANTHROPIC_BASE_URL": "http://127.0.0.1/a b"}, "http://"),
    ],
)
def test_a_wrong_call_is_exit_2_with_a_reason_and_no_event(
    tmp_path: Path, prompt: str | bytes, flags: tuple[str, ...], environment: dict[str, str], told: str
) -> None:
    with agent_with(tmp_path, lambda _: say("ok")) as (agent, model):
        base = ("--home", str(agent.home), "--model", "m")
        chosen = () if "--resume" in flags else ("--session-id", str(uuid4()))
        finished = agent.run(prompt, *base, *chosen, *flags, **environment)
    assert (finished.code, finished.events) == (2, ())
    assert told in finished.stderr
    assert "Traceback" not in finished.stderr
    assert model.requests == []
    assert not agent.home.exists()


def test_version() -> None:
    shown = subprocess.run([*COMMAND, "--version"], capture_output=True, check=True, text=True)
    assert shown.stdout == f"skillup-builtin-agent {__version__}\n"


def test_it_imports_nothing_but_the_standard_library() -> None:
    code = "import sys, skillup.builtin_agent.__main__ as m; print(*{n.partition('.')[0] for n in sys.modules})"
    isolated = subprocess.run(
        [sys.executable, "-S", "-P", "-c", code],
        capture_output=True,
        check=True,
        text=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    ours = {"skillup", "__main__", "__mp_main__"}
    assert set(isolated.stdout.split()) - ours <= set(sys.stdlib_module_names)


def test_modules_in_the_workspace_are_not_imported(tmp_path: Path) -> None:
    with agent_with(tmp_path, lambda _: say("ok")) as (agent, _):
        for name in ("json", "runpy", "http", "skillup"):
            (agent.workspace / f"{name}.py").write_text("raise SystemExit('hijacked')")
        finished = agent.turn("hi")
    assert (finished.code, finished.stderr) == (0, "")


def test_a_reader_that_goes_away_ends_the_turn_without_a_traceback(tmp_path: Path) -> None:
    with agent_with(tmp_path, lambda _: say("ok")) as (agent, _):
        reader, writer = os.pipe()
        os.close(reader)
        variables = {"ANTHROPIC_BASE_URL": agent.url, "ANTHROPIC_API_KEY": "k", "PATH": "/usr/bin"}
        with os.fdopen(writer, "wb") as stdout:
            finished = subprocess.run(
                [*COMMAND, *agent.flags()],
                input=b"hi",
                stdout=stdout,
                stderr=subprocess.PIPE,
                cwd=agent.workspace,
                env=variables,
                check=False,
            )
    assert finished.returncode == 1
    assert b"events cannot be written" in finished.stderr
    assert b"Traceback" not in finished.stderr


def test_an_event_is_one_line_whatever_its_text_holds(tmp_path: Path) -> None:
    text = "a\nb\r\nc\u2028d\u0085e\x0bf\ud800"
    with agent_with(tmp_path, lambda _: say(text)) as (agent, _):
        running = agent.start("hi", *agent.flags())
        running.finish()
    lines = running.files.with_suffix(".out").read_text("ascii").splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["session", "text", "end"]
    assert json.loads(lines[-1])["text"] == text

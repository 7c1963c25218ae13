"""What every engine promises: pure calls, repeatable, closed lists; checked for each one in `ENGINES`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillup.engines import ENGINES
from skillup.engines.base import (
    Endpoint,
    Engine,
    EngineSettings,
    Session,
    TurnRequest,
)
from skillup.engines.events import Called, Finished, SessionSeen
from skillup.errors import ERROR_KINDS
from skillup.execution.stream import TurnStream
from skillup.modelserver.loopback import PROTOCOLS
from skillup.transcript import CANONICAL_TOOLS
from tests.engines.recorded import RECORDINGS, events, folded, lines, names

IDENTITY = "3b0f6f5e-8a4f-4a61-9d5e-000000000001"

SETTINGS: dict[str, dict[str, Any]] = {
    "builtin": {"api": "openai_chat", "max_steps": 7, "max_retries": 3, "sessions": False, "tools": ["bash"]},
    "claude_code": {
        "binary": "/opt/claude",
        "max_retries": 3,
        "workspace_instructions": True,
        "append_system_prompt": "Be brief.",
        "tools": ["Bash", "Read"],
        "effort": "low",
    },
    "codex": {
        "binary": "/opt/codex",
        "max_retries": 3,
        "idle_seconds": 7,
        "patience_seconds": 8,
        "sandbox": "read-only",
        "workspace_instructions": True,
        "workspace_skills": True,
        "effort": "low",
    },
}
"""Every setting of every engine, with a value other than its default where there is one."""


SKILLS = (Path("/trial/workspace/.agents/skills/heron/SKILL.md"),)

each_engine = pytest.mark.parametrize("name", sorted(ENGINES))
each_recording = pytest.mark.parametrize(
    ("engine", "name"), [(engine, name) for engine in sorted(ENGINES) for name in names(engine)]
)

GARBAGE: tuple[bytes, ...] = (
    b"",
    b" ",
    b"plain text",
    b"null",
    b"true",
    b"7",
    b"-1e999",
    b'"text"',
    b"[]",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"{}",
    b'{"type": null}',
    b'{"type": 7}',
    b'{"type": ["result"]}',
    b'{"type": "unheard of"}',
    b'{"type": "result", "modelUsage": {"m": {"inputTokens": 1e999}}}',
    b'{"type": "result"',
    b'{"x": NaN}',
    b"1" * 10_000,
    b"\xff\xfe\x00{",
    b"\x00" * 100,
    b'{"type": "text", "text": "\\ud800"}',
)

JUNK: tuple[Any, ...] = (None, 7, -1.5, True, "junk", [], ["junk"], {}, {"junk": None})
"""What takes the place of each value of each recorded event in turn."""


def request(
    name: str, prompt: str = "hello", *, started: bool = False, workspace: Path = Path("/eval/w")
) -> TurnRequest:
    """A turn for an engine with all its settings."""
    settings = ENGINES[name].settings.model_validate(SETTINGS[name])
    endpoint = Endpoint("a-model", "http://127.0.0.1:9/prefix", scripted=True)
    session = Session(IDENTITY, started=started)
    return TurnRequest(
        prompt=prompt,
        slash_command=False,
        session=session,
        workspace=workspace,
        home=workspace.parent / "home",
        workspace_skills=SKILLS,
        endpoint=endpoint,
        settings=settings,
        as_root=True,
    )


@each_engine
def test_an_engine_goes_by_its_own_name_and_declares_known_tools(name: str) -> None:
    engine = ENGINES[name]
    assert engine.name == name
    assert engine.hidden_tools <= set(CANONICAL_TOOLS)
    provider = engine.provider(engine.settings())
    assert provider.credentials
    assert provider.protocol in {protocol.name for protocol in PROTOCOLS}
    assert engine.version_argv(engine.settings.model_validate({}))
    assert set(SETTINGS[name]) == set(engine.settings.model_fields), "every setting has a sample"


@each_engine
def test_the_same_turn_is_called_in_the_same_way_again_and_nothing_is_touched(name: str, tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    for started in (False, True):
        turn = request(name, started=started, workspace=workspace)
        first = ENGINES[name].invocation(turn)
        assert ENGINES[name].invocation(turn) == first
        assert not any("\0" in part for part in (*first.argv, *first.env.values()))
    assert list(tmp_path.iterdir()) == []


@each_engine
def test_a_session_is_resumed_once_it_was_started_and_every_flag_is_given_again(name: str) -> None:
    """CLIs forget their flags between processes; what differs is how the session is named, and nothing else."""
    first = ENGINES[name].invocation(request(name))
    later = ENGINES[name].invocation(request(name, started=True))
    assert IDENTITY in later.argv
    assert (IDENTITY in first.argv) == ENGINES[name].assigns_session_id
    naming = {"--session-id", "--resume", "resume", IDENTITY}
    assert [part for part in first.argv if part not in naming] == [part for part in later.argv if part not in naming]
    assert {"--resume", "resume"} & set(later.argv)
    assert not {"--resume", "resume"} & set(first.argv)
    assert later.env == first.env
    assert later.stdin == first.stdin


@each_engine
@pytest.mark.parametrize("prompt", ["-", "--help", "/clear", "@file", " blanks \n", "long " * 100_000, "a\0b"])
def test_the_prompt_goes_in_by_stdin_and_ends_it(name: str, prompt: str) -> None:
    invocation = ENGINES[name].invocation(request(name, prompt))
    assert invocation.stdin.endswith(prompt)
    assert invocation.stdin.removesuffix(prompt).strip() == ""
    assert invocation.argv == ENGINES[name].invocation(request(name, "another")).argv


@each_engine
def test_every_setting_reaches_the_cli(name: str) -> None:
    """A setting that changes neither the call nor what we make of it is a promise nobody keeps."""
    engine = ENGINES[name]
    plain = request(name)

    def effect(settings: EngineSettings) -> tuple[object, ...]:
        call = engine.invocation(replace(plain, settings=settings))
        return call, engine.patience(settings), engine.resumes(settings)

    for key in SETTINGS[name]:
        others = {other: value for other, value in SETTINGS[name].items() if other != key}
        if key == "workspace_instructions":
            others[key] = False
        assert effect(engine.settings.model_validate(others)) != effect(plain.settings), key


@each_engine
def test_the_scripted_model_is_reached_with_a_key_that_is_no_secret(name: str) -> None:
    engine = ENGINES[name]
    scripted = engine.invocation(request(name)).env
    call = engine.invocation(request(name))
    assert any("http://127.0.0.1:9/prefix" in part for part in (*call.argv, *call.env.values()))
    credentials = set(engine.provider(request(name).settings).credentials)
    assert credentials & scripted.keys()
    real = engine.invocation(replace(request(name), endpoint=Endpoint(None, None))).env
    assert not credentials & real.keys(), "a real key comes from the profile alone"


@each_engine
def test_the_policy_names_the_permissions(name: str) -> None:
    policy = ENGINES[name].policy(request(name))
    assert policy["permission_mode"]
    assert policy == ENGINES[name].policy(request(name, started=True))


@each_engine
def test_garbage_is_refused_as_garbage_or_means_nothing(name: str) -> None:
    for line in GARBAGE:
        take(ENGINES[name], line)


@each_recording
def test_a_damaged_event_is_refused_as_damage_or_still_read(engine: str, name: str) -> None:
    """Each value of each recorded line is replaced, in turn, by what nobody expects there."""
    kinds = set()
    for line in lines(engine, name):
        event = json.loads(line)
        kind = (event.get("type"), event.get("subtype"))
        if kind not in kinds:  # one of a kind will do
            kinds.add(kind)
            for damaged in damages(event):
                take(ENGINES[engine], json.dumps(damaged).encode())


def take(engine: Engine, line: bytes) -> None:
    """Reads a line as a turn does: only ValueError may come of it."""
    stream = TurnStream(turn=1)
    try:
        found = engine.events(line, Path("/eval/w"))
        assert isinstance(found, tuple)
        for event in found:
            stream.add(event, 0.0)
    except ValueError:
        return
    json.dumps([message.model_dump(mode="json") for message in stream.messages], ensure_ascii=False).encode()
    assert all(isinstance(note, str) for note in stream.notes)


def damages(value: Any) -> Iterator[Any]:
    """The value with one part of it replaced, or missing, for every part of it."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield {other: kept for other, kept in value.items() if other != key}
            for damaged in (*JUNK, *damages(item)):
                yield {**value, key: damaged}
    elif isinstance(value, list):
        for at, item in enumerate(value[:2]):
            for damaged in (*JUNK, *damages(item)):
                yield [*value[:at], damaged, *value[at + 1 :]]


@each_engine
@pytest.mark.parametrize("exit_code", [0, 1, 2, 127, None])
@pytest.mark.parametrize("text", ["", "\n", "some text", "rate limit 429 unauthorized", "No conversation found"])
def test_a_process_without_a_last_word_is_explained_by_a_known_kind(
    name: str, exit_code: int | None, text: str
) -> None:
    signal = 9 if exit_code is None else None
    for stdout, stderr in ((text, ""), ("", text), (text, text)):
        fault = ENGINES[name].explain(exit_code, signal, stdout, stderr)
        assert fault.kind in ERROR_KINDS
        own = {"crash", "output", "session", "setup"}
        assert fault.kind in own, "what the CLI says in passing names no provider's fault"
        assert fault.message
        assert (str(exit_code) if signal is None else "signal 9") in fault.message or fault.kind in {"session", "setup"}


@each_engine
def test_an_engine_has_recordings_and_their_version_is_written_down(name: str) -> None:
    assert len(names(name)) >= 5
    assert f"| `{name}/` |" in (RECORDINGS / "README.md").read_text(encoding="utf-8")
    assert {folder.name for folder in RECORDINGS.iterdir() if folder.is_dir()} == set(ENGINES)


@each_recording
def test_a_recorded_turn_is_read_whole(engine: str, name: str) -> None:
    """Every line is understood, the session is named, the CLI has its last word, and all tools are canonical."""
    found = events(engine, name)
    assert found == events(engine, name)
    assert any(isinstance(event, SessionSeen) for event in found)
    assert isinstance(found[-1], Finished) or folded(engine, name).unfinished
    assert len(folded(engine, name).session_ids) == 1
    tools = {event.tool for event in found if isinstance(event, Called)}
    assert all(tool in CANONICAL_TOOLS or tool.startswith("mcp:") for tool in tools)
    fault = folded(engine, name).fault
    assert fault is None or fault.kind in ERROR_KINDS

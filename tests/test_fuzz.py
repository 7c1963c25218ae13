"""Whatever stands in a case file, in an agent's output or in a journal: an error of ours with its place, or a reading.

The examples are the same in every run; `SKILLUP_FUZZ=20000 pytest tests/test_fuzz.py` hunts with as many others.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillup.engines import ENGINES
from skillup.errors import Fault, InputError, RunDirectoryError
from skillup.execution.agents import agents_of
from skillup.execution.journal import NAME, Journal, JournalFile, read_journal
from skillup.execution.reading import StreamReader, TurnFiles
from skillup.execution.stream import TurnStream
from skillup.execution.vacuity import idle_cases
from skillup.loading.native import load_suites
from skillup.loading.rendering import render_faults
from skillup.loading.yamlfile import parse_yaml
from skillup.masking import Masker
from tests.engines.recorded import RECORDINGS
from tests.support import REPOSITORY

HUNT = int(os.environ.get("SKILLUP_FUZZ", "0"))

bounded = settings(
    max_examples=HUNT or 200,
    derandomize=not HUNT,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)

AGENTV = """
tests:
  - id: greets
    mode: conversation
    window_size: 4
    aggregation: mean
    input: [{role: system, content: Be brief.}, {role: user, content: hello}]
    turns:
      - {input: hello, expected_output: Hi, assertions: [Answers politely, {type: contains, value: Hi}]}
      - {input: bye, assertions: [{type: rubrics, criteria: [{id: a, outcome: says goodbye, weight: 2}]}]}
    assertions: [{type: regex, value: "H.*"}]
"""

ADK = """
{"eval_set_id": "set", "eval_cases": [{"eval_id": "one",
  "session_input": {"app_name": "a", "user_id": "u", "state": {}},
  "conversation": [{"invocation_id": "1", "user_content": {"role": "user", "parts": [{"text": "hello"}]},
    "final_response": {"role": "model", "parts": [{"text": "Hi"}]},
    "intermediate_data": {"tool_uses": [{"name": "bash", "args": {"command": "ls"}}]}}]}]}
"""

PROFILE = """
engine: claude_code
model: {provider: anthropic, name: claude-test, base_url: "http://127.0.0.1:9"}
env: {ANTHROPIC_API_KEY: "${ANTHROPIC_API_KEY}", OTHER: null}
settings: {max_retries: 2}
limits: {turn_seconds: 300, max_cost_usd: 2}
"""


def seeds() -> Iterator[tuple[str, str]]:
    """Files that are in order, small enough to be changed everywhere: (how they may be called, what they hold)."""
    for path in sorted((REPOSITORY / "cases").glob("**/*.yaml")):
        if path.stat().st_size < 5000 and path.name != "expected.yaml":
            yield path.name, path.read_text(encoding="utf-8")
    yield "tasks.json", (REPOSITORY / "cases" / "trajectories" / "multi_turn.json").read_text(encoding="utf-8")
    yield from (("agentv.yaml", AGENTV), ("home.evalset.json", ADK), ("agents/profile.yaml", PROFILE))


SEEDS = tuple(seeds())

SPECIAL = st.sampled_from(
    (
        *"{}[]:,-?&*!|>'\"%@`#\n\t \\~\x00\ud800\ufeff\r\x85\u2028",
        *(": ", "- ", "<<: ", "!!python/object ", "&a [*a]", "---\n", "...\n", "1e999", ".nan", "0x"),
        *("{{x}}", "{{!x}}", "(?P<value>", "$.response", "../"),
    )
)
TEXT = st.one_of(SPECIAL, st.text(max_size=12))


def changed_text(draw: Callable[[Any], Any], text: str) -> str:
    """The text with a few spans removed, repeated, or something else in their place."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 60)))
        put = draw(st.one_of(TEXT, st.just(text[start:end] * 2), st.just("")))
        text = text[:start] + put + text[end:]
    return text


JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=6,
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (parent, key or index) of plain data."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys):
        yield value, key
        yield from places(value[key])


def keys_of(value: Any) -> Iterator[str]:
    yield from (key for parent, key in places(value) if isinstance(parent, dict))


KEYS = sorted({str(key) for name, text in SEEDS for key in keys_of(parse_yaml(text, name).data)})


def changed_data(draw: Callable[[Any], Any], value: Any) -> Any:
    """Plain data of which a few parts are something else, gone, or stand elsewhere."""
    for _ in range(draw(st.integers(1, 3))):
        found = list(places(value))
        if not found:
            return draw(JUNK)
        parent, key = draw(st.sampled_from(found))
        match draw(st.sampled_from(["junk", "gone", "renamed", "moved", "wrapped", "added"])):
            case "junk":
                parent[key] = draw(JUNK)
            case "gone":
                del parent[key]
            case "renamed" if isinstance(parent, dict):
                parent[draw(st.one_of(TEXT, st.sampled_from(KEYS)))] = parent.pop(key)
            case "moved":
                other, place = draw(st.sampled_from(found))
                parent[key] = json.loads(json.dumps(other[place])) if _holds(other, place) else None
            case "wrapped":
                parent[key] = draw(st.sampled_from([[parent[key]], {"value": parent[key]}, [parent[key]] * 3]))
            case _ if isinstance(parent, dict):
                parent[draw(st.sampled_from(KEYS))] = draw(JUNK)
    return value


def _holds(parent: Any, key: Any) -> bool:
    return key in parent if isinstance(parent, dict) else key < len(parent)


@st.composite
def files(draw: Callable[[Any], Any]) -> tuple[str, bytes]:
    """A file that somebody may have written: (name, content)."""
    name, text = draw(st.sampled_from(SEEDS))
    match draw(st.sampled_from(["text", "data", "data", "junk", "bytes"])):
        case "text":
            text = changed_text(draw, text)
        case "data":
            text = json.dumps(
                changed_data(draw, parse_yaml(text, name).data), indent=1, ensure_ascii=draw(st.booleans())
            )
        case "junk":
            text = json.dumps(draw(st.dictionaries(st.sampled_from(KEYS), JUNK, max_size=6)), indent=1)
        case _:
            data = bytearray(text.encode())
            for _ in range(draw(st.integers(1, 3))):
                data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
            return name, bytes(data)
    return name, text.encode("utf-8", errors=draw(st.sampled_from(["surrogatepass", "replace"])))


@bounded
@given(written=files())
def test_a_file_of_a_user_is_read_or_refused_at_its_place(written: tuple[str, bytes], tmp_path: Path) -> None:
    name, content = written
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    named = (str(path),) if path.parent.name == "agents" else ()
    plain = tmp_path / "plain.yaml"
    plain.write_text("{input: {prompt: hello}, judge: {type: none}}")
    faults: tuple[Fault, ...] = ()
    try:
        suites = load_suites([plain if named else path])
        agents_of(suites, named, None, {}, required=False)
        list(idle_cases(suites))
    except InputError as error:
        faults = error.faults
    assert all(fault.message and fault.line > 0 for fault in faults), faults
    assert all(line.isprintable() for line in render_faults(faults).split("\n"))


OUTPUTS = tuple((path.parent.name, path.read_bytes()) for path in sorted(RECORDINGS.glob("*/*.jsonl")))
BYTES = st.one_of(st.binary(max_size=8), TEXT.map(lambda text: text.encode("utf-8", errors="surrogatepass")))


@st.composite
def outputs(draw: Callable[[Any], Any]) -> tuple[str, bytes]:
    """What a CLI may print: (engine, its output)."""
    engine, data = draw(st.sampled_from(OUTPUTS))
    lines = data.split(b"\n")
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(lines) - 1))
        line = lines[at]
        match draw(st.sampled_from(["bytes", "bytes", "data", "data", "data", "gone", "twice", "cut", "injected"])):
            case "bytes":
                start = draw(st.integers(0, len(line)))
                lines[at] = line[:start] + draw(BYTES) + line[start + draw(st.integers(0, 9)) :]
            case "data" if line.startswith(b"{"):
                try:
                    value = json.loads(line)
                except ValueError:
                    continue
                lines[at] = json.dumps(changed_data(draw, value)).encode()
            case "gone":
                lines[at] = b""
            case "twice":
                lines.insert(draw(st.integers(0, len(lines))), line)
            case "cut":
                del lines[at + 1 :]
                lines[at] = line[: draw(st.integers(0, len(line)))]
            case _:
                start = draw(st.integers(0, len(line)))
                lines[at] = line[:start] + draw(st.sampled_from(lines)) + line[start:]
    return engine, b"\n".join(lines)


@bounded
@given(printed=outputs())
def test_the_output_of_a_cli_is_read_whatever_it_is(printed: tuple[str, bytes], tmp_path: Path) -> None:
    name, data = printed
    files = TurnFiles(*(tmp_path / stream for stream in ("stdin", "stdout", "stderr")))
    files.stdout.write_bytes(data)
    files.stderr.write_bytes(b"")
    stream = TurnStream(turn=1)
    reader = StreamReader(ENGINES[name], Path("/eval"), stream, files, time.monotonic())
    while reader.read():
        pass
    reader.finish()
    reader.close()
    shown = [message.model_dump_json() for message in stream.messages]
    assert len(shown) <= data.count(b"{")
    assert Masker(["secret-of-the-test"]).data(data) is not None
    for told in (stream.fault, stream.trouble, stream.answer, stream.unfinished, stream.notes, stream.damage):
        repr(told)
    stream.at_work(1.0, 60.0)


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A journal as a run writes it."""
    folder = tmp_path_factory.mktemp("journal")
    with JournalFile(folder, Masker()) as written:
        told: Journal = written
        told.write("run_started", pid=7, mark=11, command=("skillup", "run", "a.yaml"))
        for number in range(1, 4):
            trial = folder / "case" / "agent" / "with_skill" / f"trial-{number}"
            told.write("turn_ended", trial, attempt=1, turn=1, status="completed")
            told.write("trial_ended", trial, status="PASS", code="")
        told.write("run_ended", status="finished")
    return (folder / NAME).read_bytes()


@bounded
@given(data=st.data())
def test_a_journal_is_read_or_refused_at_its_line(data: st.DataObject, journal: bytes, tmp_path: Path) -> None:
    content = journal
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = min(len(content), start + data.draw(st.integers(0, 80)))
        put = data.draw(st.one_of(BYTES, st.just(content[start:end] * 2), st.just(b"\n"), st.just(b"")))
        content = content[:start] + put + content[end:]
    (tmp_path / NAME).write_bytes(content)
    lines = content.split(b"\n")
    found = damage = None
    try:
        found = read_journal(tmp_path)
    except RunDirectoryError as error:
        damage = error.message.removeprefix(f"{tmp_path / NAME}:").partition(":")[0]
    if found is None:
        assert damage is not None
        assert damage.isdecimal()
        assert 1 <= int(damage) < len(lines)
    else:
        assert (len(found.entries), found.torn_bytes) == (len(lines) - 1, len(lines[-1]))

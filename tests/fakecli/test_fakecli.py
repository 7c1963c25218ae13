"""The fake agent CLI does what its plan says, in the words of both CLIs, and refuses what they refuse."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from skillup.engines import ENGINES
from skillup.engines.claude_events import prompts_in
from skillup.engines.codex_events import turns_in
from skillup.engines.events import (
    Called,
    Finished,
    Returned,
    Said,
    SessionSeen,
    Thought,
)
from tests.support import REPOSITORY

RECORDINGS = REPOSITORY / "tests" / "engines" / "recordings"
ID = "11111111-2222-4333-8444-555555555555"
CLAUDE = ("-p", "--output-format", "stream-json", "--verbose")
CODEX = ("exec", "--json", "--skip-git-repo-check", "-c", 'sandbox_mode="danger-full-access"')


@dataclass(frozen=True)
class Ended:
    """One process of the fake CLI that has ended."""

    code: int
    out: bytes
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def kinds(self) -> list[str]:
        """The types of its events, with what tells them apart."""
        return [
            ".".join(
                str(part) for part in (event["type"], event.get("subtype"), event.get("item", {}).get("type")) if part
            )
            for event in self.events
        ]


class Fake:
    """A home, a workspace, and processes of the fake CLI in them."""

    def __init__(self, root: Path) -> None:
        self.root, self.home, self.cwd, self.memory = root, root / "home", root / "work", root / "memory"
        (self.home / ".codex").mkdir(parents=True)
        self.cwd.mkdir()

    def command(self, arguments: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-P", "-m", "skillup.fakecli", *arguments]

    def variables(self, turns: list[Any] | None, more: Mapping[str, str]) -> dict[str, str]:
        plan = {} if turns is None else {"SKILLUP_FAKE_PLAN": json.dumps({"turns": turns, "memory": str(self.memory)})}
        return {"PATH": os.defpath, "HOME": str(self.home), "PYTHONPATH": str(REPOSITORY), **plan, **more}

    def run(
        self,
        *steps: Any,
        arguments: tuple[str, ...] = CLAUDE,
        turns: list[Any] | None = None,
        prompt: str = "hello",
        env: Mapping[str, str] | None = None,
    ) -> Ended:
        planned = turns if turns is not None or not steps else [list(steps)]
        done = subprocess.run(
            self.command(arguments),
            input=prompt.encode(),
            capture_output=True,
            cwd=self.cwd,
            env=self.variables(planned, env or {}),
            timeout=30,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr.decode())

    @contextmanager
    def start(self, *steps: Any) -> Iterator[subprocess.Popen[bytes]]:
        """A process in mid-turn; when the test is through with it, it is gone."""
        (self.root / "prompt").write_bytes(b"hello")
        with (self.root / "prompt").open("rb") as prompt:
            process = subprocess.Popen(
                self.command(CLAUDE),
                stdin=prompt,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.cwd,
                env=self.variables([list(steps)], {}),
            )
        with process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path)


def documented_steps() -> set[str]:
    text = (REPOSITORY / "docs" / "conformance.md").read_text(encoding="utf-8")
    table = text.partition("| step | what it does |")[2]
    cells = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`(\w+)", cell)}


def test_every_step_is_documented_and_no_other(fake: Fake) -> None:
    refused = fake.run("nonsense")
    assert refused.code == 2
    told = re.search(r"there is no step 'nonsense'; there are: (.*)\n", refused.err)
    assert told is not None
    assert set(told[1].split(", ")) == documented_steps()


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("{", "holds no plan"),
        ("/nowhere/plan.json", "holds no plan: [Errno 2]"),
        ('{"turns": []}', "`turns` is a list with the steps of each turn, and not empty"),
        ('{"turns": [["hang"]], "more": 1}', "a plan has `turns`, `memory` and `version`, and no more"),
        ('{"turns": ["hang"]}', "steps are a list, not 'hang'"),
        ('{"turns": [[{"say": "a", "think": "b"}]]}', "a step is a word, or a mapping of one key"),
        ('{"turns": [[{"half": [{"sya": "a"}]}]]}', "there is no step 'sya'"),
        ('{"turns": [[{"first": {"do": ["hnag"]}}]]}', "there is no step 'hnag'"),
        ('{"turns": [[{"write": {"path": "a"}}]]}', "the step write cannot do {'path': 'a'}: KeyError: 'content'"),
        ('{"turns": [[{"kill": "NOISE"}]]}', "there is no signal 'SIGNOISE'"),
        ('{"turns": [[{"first": {"do": []}}]]}', "counts in the plan's `memory`, and there is none"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_told(fake: Fake, plan: str, said: str) -> None:
    done = fake.run(env={"SKILLUP_FAKE_PLAN": plan})
    assert done.code == 2
    assert said in done.err
    assert done.err.startswith("skillup-fake-agent: ")


def test_without_a_plan_it_answers_with_its_prompt(fake: Fake) -> None:
    done = fake.run(prompt="who are you?")
    assert (done.code, done.err) == (0, "")
    assert done.kinds == ["system.init", "assistant", "result.success"]
    assert done.events[-1]["result"] == "You said: who are you?"


def test_it_says_that_it_is_a_fake(fake: Fake) -> None:
    assert re.fullmatch(rb"\d+\.\d+\.\d+ \(skillup-fake-agent\)\n", fake.run(arguments=("--version",)).out)
    plan = '{"turns": [["hang"]], "version": "2.1.197 (Claude Code)"}'
    assert fake.run(arguments=("--version",), env={"SKILLUP_FAKE_PLAN": plan}).out == b"2.1.197 (Claude Code)\n"


def test_the_plan_may_be_a_file(fake: Fake) -> None:
    (fake.root / "plan.json").write_text('{"turns": [[{"answer": "from a file"}]]}')
    assert fake.run(env={"SKILLUP_FAKE_PLAN": str(fake.root / "plan.json")}).events[-1]["result"] == "from a file"


def test_the_installed_command_speaks_as_the_cli_whose_name_a_link_gives_it(fake: Fake) -> None:
    installed = Path(sys.executable).with_name("skillup-fake-agent")
    for name, arguments, first in (("claude", CLAUDE, "system"), ("codex", (*CODEX[1:],), "thread.started")):
        (fake.root / name).symlink_to(installed)
        done = subprocess.run(
            [str(fake.root / name), *arguments],
            input=b"hello",
            capture_output=True,
            cwd=fake.cwd,
            env=fake.variables(None, {}),
            timeout=30,
            check=True,
        )
        assert json.loads(done.stdout.splitlines()[0])["type"] == first
    assert fake.run(arguments=CODEX).kinds[0] == "thread.started", "`exec` alone tells it, too"


SCENE: tuple[Any, ...] = (
    {"think": "a thought"},
    {"say": "I begin"},
    {"bash": "echo out; echo err >&2; exit 3"},
    {"write": {"path": "a.txt", "content": "hello {turn}"}},
    {"denied": "touch x"},
    {"mcp": {"server": "files", "tool": "list", "arguments": {"at": "/"}}},
    {"retry": {"status": 529, "times": 2}},
    "compacted",
    {"background": "sleep 600"},
    {"answer": "done {prompt}"},
)


class TestBothDialects:
    @pytest.mark.parametrize("engine", ["claude_code", "codex"])
    def test_the_engine_reads_what_it_prints(self, fake: Fake, engine: str) -> None:
        done = fake.run(*SCENE, arguments=CLAUDE if engine == "claude_code" else CODEX)
        assert (done.code, done.err) == (0, "")
        lines = [line for line in done.out.splitlines() if line]
        found = [event for line in lines for event in ENGINES[engine].events(line, fake.cwd)]
        assert {"I begin", "done hello"} <= {event.text for event in found if isinstance(event, Said)}
        assert [event.text for event in found if isinstance(event, Thought)] == ["a thought"]
        calls = list(dict.fromkeys((event.id, event.tool) for event in found if isinstance(event, Called)))
        assert [tool for _, tool in calls] == ["bash", "write", "bash", "mcp:files/list", "bash"]
        statuses = {event.call_id: event.status for event in found if isinstance(event, Returned)}
        assert [statuses.get(call_id) for call_id, _ in calls[:4]] == ["error", "ok", "error", "ok"]
        assert (fake.cwd / "a.txt").read_text() == "hello 1"
        assert not (fake.cwd / "x").exists()
        (finished,) = [event for event in found if isinstance(event, Finished)]
        assert finished.fault is None
        assert any(isinstance(event, SessionSeen) for event in found)

    @pytest.mark.parametrize("engine", ["claude_code", "codex"])
    def test_its_events_have_no_field_that_the_real_ones_have_not(self, fake: Fake, engine: str) -> None:
        """Held against the recordings, type by type, down to the contents of messages and items."""
        real: dict[str, set[str]] = {}
        for path in (RECORDINGS / engine).glob("*.jsonl"):
            for line in path.read_text(encoding="utf-8").splitlines():
                for kind, fields in shapes(json.loads(line)):
                    real.setdefault(kind, set()).update(fields)
        arguments = CLAUDE if engine == "claude_code" else CODEX
        printed = fake.run(*SCENE, arguments=arguments).events
        printed += fake.run({"fail": {"status": 429, "message": "no"}}, arguments=arguments).events
        strange = [
            f"{kind}: {sorted(fields - real[kind]) if kind in real else 'never recorded'}"
            for event in printed
            for kind, fields in shapes(event)
            if not fields <= real.get(kind, set())
        ]
        assert sorted(set(strange) - {"system.compact_boundary: never recorded"}) == []

    @pytest.mark.parametrize(
        ("step", "fault"),
        [
            ({"fail": {"status": 429, "message": "slow down"}}, "rate_limit"),
            ({"fail": {"status": 401, "message": "bad key"}}, "auth"),
            ({"fail": {"status": 400, "message": "bad request"}}, "request"),
            ({"fail": {"status": 529, "message": "overloaded"}}, "overloaded"),
            ({"fail": "connection lost"}, "network"),
        ],
    )
    @pytest.mark.parametrize("engine", ["claude_code", "codex"])
    def test_a_failure_has_its_kind_and_exit_code_1(self, fake: Fake, engine: str, step: Any, fault: str) -> None:
        done = fake.run(step, arguments=CLAUDE if engine == "claude_code" else CODEX)
        found = [event for line in done.out.splitlines() for event in ENGINES[engine].events(line, fake.cwd)]
        (finished,) = [event for event in found if isinstance(event, Finished)]
        assert done.code == 1
        assert finished.fault is not None
        assert finished.fault.kind == fault


def shapes(event: Mapping[str, Any]) -> list[tuple[str, set[str]]]:
    """The kind of an event and of the parts in it, each with its fields; what the task is about stands apart."""
    kind = ".".join(str(event[key]) for key in ("type", "subtype") if key in event)
    found = [(kind, set(event))]
    message, item = event.get("message"), event.get("item")
    if isinstance(message, dict):
        found.append((f"{kind}.message", set(message)))
        blocks = message["content"] if isinstance(message["content"], list) else []
        found += [(f"{kind}.{block['type']}", set(block)) for block in blocks]
    if isinstance(item, dict):
        found.append((f"{kind}.{item['type']}", set(item)))
    return found


class TestBytes:
    def test_half_joined_unended_and_injected(self, fake: Fake) -> None:
        def printed(*steps: Any) -> bytes:
            return fake.run(*steps).out.split(b"\n", 1)[1]

        inner, outer = {"event": {"a": "{prompt}"}}, {"event": {"b": 22222}}
        assert printed({"half": [inner]}) == b'{"a":"h'
        assert printed({"joined": [inner, outer]}) == b'{"a":"hello"}{"b":22222}\n'
        assert printed({"unended": [inner]}) == b'{"a":"hello"}'
        assert printed({"injected": {"outer": [outer], "inner": [inner]}}) == b'{"b":2{"a":"hello"}\n2222}\n'
        assert printed({"print": "as it is"}, {"bytes": "fffe00"}) == b"as it is\xff\xfe\x00"

    def test_a_flood_has_the_size_that_is_asked_for(self, fake: Fake) -> None:
        rubbish = fake.run({"flood": {"megabytes": 2, "of": "rubbish"}})
        assert 0.9 * (2 << 20) < len(rubbish.out) < 1.1 * (2 << 20)
        zeros = fake.run({"flood": {"megabytes": 1, "of": "zeros", "line_kilobytes": 4}})
        assert zeros.out.endswith(bytes(1 << 20))
        thoughts = fake.run({"flood": {"megabytes": 1, "of": "thoughts"}})
        assert set(thoughts.kinds) == {"system.init", "assistant"}
        errors = fake.run({"flood": {"megabytes": 1, "of": "rubbish", "to": "stderr"}})
        assert len(errors.err) > 1_000_000 > len(errors.out)

    def test_long_texts_are_written_short(self, fake: Fake) -> None:
        assert fake.run({"answer": {"text": "ab", "times": 3}}).events[-1]["result"] == "ababab"

    def test_other_formats_of_claude_print_the_end_alone(self, fake: Fake) -> None:
        steps = ({"say": "I begin"}, {"answer": "done"})
        assert fake.run(*steps, arguments=("-p",)).out == b"done\n"
        (event,) = fake.run(*steps, arguments=("-p", "--output-format=json")).events
        assert (event["type"], event["result"]) == ("result", "done")


class TestPrompts:
    @pytest.mark.parametrize(
        ("arguments", "stdin", "prompt"),
        [
            ((*CLAUDE, "say hi"), "", "say hi"),
            ((*CLAUDE, "say hi"), "more", "say hi\nmore"),
            ((*CLAUDE, "--model", "m", "--", "-x"), "", "-x"),
            (CLAUDE, "from stdin", "from stdin"),
            ((*CODEX, "say hi"), "", "say hi"),
            ((*CODEX, "say hi"), "more", "say hi\n\n<stdin>\nmore\n</stdin>"),
            ((*CODEX, "-"), "from stdin", "from stdin"),
            ((*CODEX, "--", "-x"), "", "-x"),
        ],
    )
    def test_by_argument_and_by_stdin(self, fake: Fake, arguments: tuple[str, ...], stdin: str, prompt: str) -> None:
        done = fake.run({"bash": "true"}, {"answer": "{prompt}"}, arguments=arguments, prompt=stdin)
        found = [
            event
            for line in done.out.splitlines()
            for event in ENGINES["codex" if "exec" in arguments else "claude_code"].events(line, fake.cwd)
        ]
        assert [event.text for event in found if isinstance(event, Said)] == [prompt]

    def test_a_thread_that_is_resumed_is_no_prompt(self, fake: Fake) -> None:
        thread = fake.run({"answer": "x"}, arguments=CODEX).events[0]["thread_id"]
        again = fake.run(
            {"answer": "{prompt}"}, arguments=("exec", "resume", "--json", *CODEX[2:], thread, "go on"), prompt=""
        )
        assert again.events[-2]["item"]["text"] == "go on"

    def test_an_open_silent_stdin_holds_codex_up_and_claude_for_three_seconds(self, fake: Fake) -> None:
        with (
            subprocess.Popen(
                fake.command((*CLAUDE, "say hi")),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=fake.cwd,
                env=fake.variables(None, {}),
            ) as claude,
            subprocess.Popen(
                fake.command((*CODEX, "say hi")),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=fake.cwd,
                env=fake.variables(None, {}),
            ) as codex,
        ):
            assert claude.wait(20) == 0
            assert codex.poll() is None
            codex.communicate(timeout=20)
        assert codex.returncode == 0

    def test_messages_as_json_are_not_played(self, fake: Fake) -> None:
        done = fake.run(arguments=(*CLAUDE, "--input-format", "stream-json"))
        assert (done.code, done.err) == (2, "skillup-fake-agent: --input-format stream-json is not played\n")


class TestSessions:
    def test_claude_counts_the_turns_of_a_session_and_keeps_it_for_its_folder(self, fake: Fake) -> None:
        turns = [[{"answer": "{turn}: {first_prompt}"}], [{"answer": "{turn}: {first_prompt}"}]]
        first = fake.run(turns=turns, arguments=(*CLAUDE, "--session-id", ID), prompt="one")
        second = fake.run(turns=turns, arguments=(*CLAUDE, "--resume", ID), prompt="two")
        assert [done.events[-1]["result"] for done in (first, second)] == ["1: one", "2: one"]
        assert {event["session_id"] for event in second.events} == {ID}
        (file,) = (fake.home / ".claude" / "projects").glob(f"*/{ID}.jsonl")
        assert prompts_in(file.read_bytes().splitlines()) == 2
        fork = fake.run(turns=turns, arguments=(*CLAUDE, "--resume", ID, "--fork-session"), prompt="three")
        assert fork.events[-1]["result"] == "3: one", "the plan has two turns, so the third does what the second does"
        assert fork.events[-1]["session_id"] != ID

    def test_codex_resumes_by_id_and_counts_the_thread(self, fake: Fake) -> None:
        step = {"answer": "{turn}: {first_prompt}"}
        first = fake.run(step, arguments=CODEX, prompt="one")
        thread = first.events[0]["thread_id"]
        resume = ("exec", "resume", "--json", "--skip-git-repo-check", thread, "-")
        second = fake.run(step, arguments=resume, prompt="two")
        assert second.events[0]["thread_id"] == thread
        assert [event["item"]["text"] for event in second.events if "item" in event] == ["2: one"]
        assert [done.events[-1]["usage"]["input_tokens"] for done in (first, second)] == [20, 40]
        (file,) = (fake.home / ".codex" / "sessions").glob(f"*/*/*/rollout-*-{thread}.jsonl")
        assert turns_in(file.read_bytes().splitlines()) == 2

    def test_codex_takes_the_newest_thread_for_the_last_and_begins_one_for_a_name(self, fake: Fake) -> None:
        thread = fake.run({"answer": "x"}, "neighbour", arguments=CODEX).events[0]["thread_id"]
        last = fake.run({"answer": "{first_prompt}"}, arguments=(*CODEX[:1], "resume", "--last", *CODEX[1:]))
        assert last.events[0]["thread_id"] != thread
        assert last.events[-2]["item"]["text"] == "a neighbour's prompt"
        named = fake.run({"answer": "{turn}"}, arguments=(*CODEX[:1], "resume", *CODEX[1:], "some-name"))
        assert named.events[0]["thread_id"] not in (thread, last.events[0]["thread_id"])
        assert named.events[-2]["item"]["text"] == "1"

    @pytest.mark.parametrize("arguments", [CLAUDE, CODEX])
    def test_a_new_session_has_a_new_name_and_a_lost_one_is_not_found(
        self, fake: Fake, arguments: tuple[str, ...]
    ) -> None:
        done = fake.run({"say": "{session}"}, {"session": "new"}, {"answer": "{session}"}, arguments=arguments)
        key = "session_id" if arguments is CLAUDE else "thread_id"
        assert len({event[key] for event in done.events if key in event}) == 2
        lost = fake.run({"answer": "x"}, "forget_session", arguments=arguments).events[0][key]
        resume = ("--resume", lost) if arguments is CLAUDE else ()
        again = (*arguments, *resume) if resume else ("exec", "resume", "--json", "--skip-git-repo-check", lost)
        assert fake.run(arguments=again).code == 1


class TestConditions:
    def test_steps_for_what_is_given_and_for_what_is_not(self, fake: Fake) -> None:
        def answer(given: Any, **env: str) -> str:
            steps = ({"if_given": {"any": given, "do": [{"say": "any"}]}},)
            steps += ({"unless_given": {"all": given, "do": [{"say": "not all"}]}},)  # type: ignore[assignment]
            done = fake.run(*steps, "finish", env=env)
            return ", ".join(event["message"]["content"][0]["text"] for event in done.events if "message" in event)

        assert answer(["--verbose"]) == "any"
        assert answer(["--verbose", "--other"]) == "any, not all"
        assert answer(["NAME"]) == "not all"
        assert answer(["NAME"], NAME="") == "any"
        assert answer(["NAME=1"], NAME="2") == "not all"
        assert answer(["NAME=1"], NAME="1") == "any"

    def test_what_is_done_the_first_times_alone(self, fake: Fake) -> None:
        steps = ({"first": {"times": 2, "do": [{"exit": 7}]}}, "finish")
        assert [fake.run(*steps).code for _ in range(4)] == [7, 7, 0, 0]

    def test_whoever_writes_its_configuration_meanwhile_has_damaged_it(self, fake: Fake) -> None:
        (fake.home / ".claude").mkdir()
        assert fake.run({"race": 0.01}, {"answer": "x"}).code == 0
        with fake.start({"say": "begun"}, {"race": 1.5}, {"answer": "x"}) as first:
            read_until(first, b"begun")
            time.sleep(0.3)
            assert fake.run({"race": 0.0}, {"answer": "x"}).code == 0
            _, said = first.communicate(timeout=20)
        assert first.returncode == 1
        assert b"written by another process" in said


class TestProcesses:
    def test_signals_and_exit_codes(self, fake: Fake) -> None:
        assert fake.run({"kill": "SEGV"}).code == -signal.SIGSEGV
        assert fake.run({"kill": "KILL"}).code == -signal.SIGKILL
        assert fake.run({"exit": 3}, {"answer": "x"}).code == 3
        now = fake.run({"exit_now": 4}, {"answer": "x"})
        assert (now.code, now.kinds) == (4, ["system.init"])

    def test_an_interrupt_is_answered_as_the_real_cli_does(self, fake: Fake) -> None:
        with fake.start({"background": "sleep 600"}, "hang") as process:
            read_until(process, b"in background")
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=20)
        assert process.returncode == 1
        last = json.loads(out.splitlines()[-1])
        assert (last["type"], last["subtype"]) == ("result", "error_during_execution")
        assert all(not lives(int(pid)) for pid in (fake.memory / "pids").read_text().split())

    def test_ignored_signals_have_no_effect(self, fake: Fake) -> None:
        with fake.start({"ignore": ["INT", "TERM"]}, {"say": "deaf"}, {"sleep": 1}, {"answer": "done"}) as process:
            read_until(process, b"deaf")
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=20)
        assert process.returncode == 0
        assert json.loads(out.splitlines()[-1])["result"] == "done"

    def test_daemons_hide_and_are_written_down(self, fake: Fake) -> None:
        done = fake.run({"daemons": {"count": 2, "ignore": ["TERM"], "seconds": 600}}, {"answer": "done"})
        own, *daemons = map(int, (fake.memory / "pids").read_text().split())
        try:
            assert done.code == 0
            assert not lives(own)
            assert len(daemons) == 2
            for pid in daemons:
                assert Path(f"/proc/{pid}/environ").read_bytes() == b""
                assert os.getsid(pid) not in (os.getsid(0), own)
                os.kill(pid, signal.SIGTERM)
            time.sleep(0.1)
            assert all(lives(pid) for pid in daemons)
        finally:
            for pid in daemons:
                os.kill(pid, signal.SIGKILL)

    def test_a_daemon_can_hold_the_output_open(self, fake: Fake) -> None:
        holds = {"count": 1, "holds_output": True, "seconds": 600}
        with fake.start({"daemons": holds}, {"answer": "done"}) as process:
            assert process.wait(20) == 0
            with pytest.raises(subprocess.TimeoutExpired):
                process.communicate(timeout=0.3)
            os.kill(int((fake.memory / "pids").read_text().split()[-1]), signal.SIGKILL)
            assert b"done" in process.communicate(timeout=20)[0]


def read_until(process: subprocess.Popen[bytes], words: bytes) -> None:
    """Reads lines up to the one that holds these words."""
    assert process.stdout is not None
    while words not in (line := process.stdout.readline()):
        assert line, "it ended before"


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_keep_alives_are_no_sign_of_work(fake: Fake) -> None:
    done = fake.run({"keep_alive": 0.25}, {"answer": "done"})
    pings = [line for line in done.out.splitlines() if b'"ping"' in line]
    assert len(pings) >= 2
    assert ENGINES["claude_code"].events(pings[0], fake.cwd) == ()
    blank = fake.run({"keep_alive": 0.25}, {"answer": "done"}, arguments=CODEX)
    assert blank.out.count(b"\n\n") >= 1


REFUSED_BY_CLAUDE = [
    ((*CLAUDE, "--session-id", ID, "--resume", ID), "--session-id can only be used with --continue or --resume if"),
    ((*CLAUDE, "--session-id", "no-uuid"), "Invalid session ID. Must be a valid UUID."),
    ((*CLAUDE, "--resume", ID), f"No conversation found with session ID: {ID}"),
    (("-p", "--output-format", "stream-json"), "requires --verbose"),
]
REFUSED_BY_CODEX = [
    (
        ("exec", "resume", "--json", "--skip-git-repo-check", "--sandbox", "read-only", ID, "-"),
        "unexpected argument '--sandbox'",
    ),
    (("exec", "--json", "-"), "Not inside a trusted directory and --skip-git-repo-check was not specified."),
    (("exec", "resume", "--json", "--skip-git-repo-check", ID, "-"), f"no rollout found for thread id {ID}"),
]


class TestRefusals:
    """What the real CLIs refuse before they ask a model the fake one refuses, in the same words, with the same code."""

    @pytest.mark.parametrize(("arguments", "said"), REFUSED_BY_CLAUDE)
    def test_claude_code(self, fake: Fake, tools: Path, arguments: tuple[str, ...], said: str) -> None:
        self._both_refuse(fake, tools / "claude", arguments, said)

    @pytest.mark.parametrize(("arguments", "said"), REFUSED_BY_CODEX)
    def test_codex(self, fake: Fake, tools: Path, arguments: tuple[str, ...], said: str) -> None:
        self._both_refuse(fake, tools / "codex", arguments, said)

    def _both_refuse(self, fake: Fake, binary: Path, arguments: tuple[str, ...], said: str) -> None:
        env = fake.variables(
            None, {"PATH": f"{binary.parent}:/usr/local/bin:/usr/bin:/bin", "DISABLE_AUTOUPDATER": "1"}
        )
        real = subprocess.run(
            [str(binary), *arguments],
            input=b"hello",
            capture_output=True,
            cwd=fake.cwd,
            env=env,
            timeout=60,
            check=False,
        )
        own = fake.run(arguments=arguments)
        assert said in own.err
        assert said in real.stderr.decode()
        assert own.code == real.returncode != 0
        assert bool(own.out) is bool(real.stdout)

    def test_an_id_that_is_taken(self, fake: Fake) -> None:
        arguments = (*CLAUDE, "--session-id", str(uuid.uuid4()))
        assert fake.run({"answer": "x"}, arguments=arguments).code == 0
        again = fake.run({"answer": "x"}, arguments=arguments)
        assert (again.code, again.out) == (1, b"")
        assert "is already in use." in again.err

    def test_codex_is_read_only_unless_it_is_told_otherwise(self, fake: Fake) -> None:
        step = {"write": {"path": "a.txt", "content": "x"}}
        done = fake.run(step, "finish", arguments=("exec", "--json", "--skip-git-repo-check"))
        assert [event["item"]["status"] for event in done.events if "item" in event] == ["in_progress", "failed"]
        assert not (fake.cwd / "a.txt").exists()

    def test_codex_wants_its_home(self, fake: Fake) -> None:
        done = fake.run(arguments=CODEX, env={"CODEX_HOME": "/nowhere"})
        assert done.code == 1
        assert "CODEX_HOME points to '/nowhere'" in done.err

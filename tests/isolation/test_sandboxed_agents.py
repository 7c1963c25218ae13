"""The real CLIs in a sandbox that reaches their model and nothing else."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import Project, processes_mentioning

pytestmark = pytest.mark.usefixtures("bubblewrap")

AGENTS = ("claude_code", "codex")

SUITE = """
    schema_version: v1alpha1
    environment:
      type: bubblewrap
      network: model_only
      limits: {memory_mb: 4096}
      setup_steps: [{run: "sh -c 'cat %(secret)s; exit 0' > setup.txt 2>&1; env > environment.txt"}]
    skills: [{path: skill}]
    cases: {files: [cases/*.yaml]}
"""

# Each attempt says what came of it; the agent is told by its script to make them all.
ATTEMPTS = """
import os, socket
def attempt(name, act):
    try:
        found = act()
    except OSError as error:
        found = f"denied: {error.strerror}"
    print(f"{name}: {found}")
def tcp(host, port):
    socket.create_connection((host, port), 3).close()
    return "reached"
def unix(path):
    socket.socket(socket.AF_UNIX).connect(path)
    return "reached"
def named(word):
    found = []
    for place, folders, files in os.walk("/"):
        found += [name for name in files + folders if name.startswith(word)]
        folders[:] = [name for name in folders if os.path.join(place, name) not in ("/proc", "/usr")]
    return " ".join(found) or "nothing"
attempt("port of the host", lambda: tcp("127.0.0.1", %(port)d))
attempt("another address", lambda: tcp("192.0.2.1", 80))
attempt("a name", lambda: tcp("example.com", 80))
attempt("socket of the host", lambda: unix("%(socket)s"))
attempt("socket by its abstract name", lambda: unix("\\0%(abstract)s"))
attempt("home of the host", lambda: open("%(secret)s").read())
attempt("the suite", lambda: os.listdir("%(suite)s"))
attempt("the judge's files", lambda: named("judge-"))
attempt("trials", lambda: len([name for name in os.listdir("%(trials)s") if not name.endswith(".io")]))
attempt("processes", lambda: "many" if len([name for name in os.listdir("/proc") if name.isdigit()]) > 15 else "few")
attempt("the system", lambda: open("/etc/new", "w"))
"""

DENIED = {
    "port of the host": "denied: Connection refused",
    "another address": "denied: Network is unreachable",
    "a name": "denied: Temporary failure in name resolution",
    "socket of the host": "denied: No such file or directory",
    "socket by its abstract name": "denied: Connection refused",
    "home of the host": "denied: No such file or directory",
    "the suite": "denied: No such file or directory",
    "the judge's files": "nothing",
    "trials": "1",
    "processes": "few",
    "the system": "denied: Read-only file system",
}

CASE = """
    title: it cannot get out, and works
    input:
      turns:
        - {role: user, content: Look around and remember the word heron}
        - {role: user, content: Which word was it}
        - {role: user, content: Take your time, timeout_seconds: 10}
    context: {git: {init: true}, files: {attempts.py: %(attempts)s}}
    collect_artifacts: [found.txt, setup.txt]
    constraints: {on_limit: judge}
    judges:
      - id: rules
        type: rule_based
        success:
          - output_contains: {all: [looked around], turn: 1}
          - output_contains: {all: [heron], turn: 2}
          - tool_called: {name: bash, turn: 1}
          - file_contains: {path: found.txt, content: the system}
          - files_exist: [late.txt]
          - command: {run: "git log --format=%%s; cat note.txt; ! cat %(secret)s; ! ls %(suite)s"}
      - id: script
        type: script
        script_path: judge-script.sh
    script:
      - user: Look around
        replies:
          - calls: [{tool: bash, args: {command: "%(python)s attempts.py > found.txt; echo heron > /tmp/note; cp /tmp/note note.txt"}}]
          - say: looked around
      - {user: Which word, say: heron}
      - user: Take your time
        replies:
          - calls: [{tool: bash, args: {command: "cat /tmp/note > late.txt; sleep 4861"}}]
          - say: never said
"""  # noqa: E501 - a case


@pytest.fixture
def suite(claude: Project) -> Iterator[Path]:
    """A suite whose agents try to get out; what they look for is there on the host."""
    claude.write("user-home/secret.txt", "CANARY-OF-THE-HOST")
    claude.write("suite/skill/SKILL.md", "---\nname: birds\ndescription: knows birds\n---\n")
    claude.write("suite/judge-script.sh", f"#!/bin/sh\n! cat {claude.home}/secret.txt && ! ls {claude.root}\n")
    abstract = f"skillup-{claude.trials.name}"
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as named,
        socket.socket(socket.AF_UNIX) as nameless,
    ):
        named.bind(str(claude.root / "s"))
        nameless.bind(f"\0{abstract}")
        named.listen()
        nameless.listen()
        facts = {
            "port": server.getsockname()[1],
            "socket": claude.root / "s",
            "abstract": abstract,
            "secret": claude.home / "secret.txt",
            "suite": claude.root / "suite",
            "trials": claude.trials,
            "python": Path(sys.executable).resolve(),
        }
        claude.write("suite/eval.yaml", SUITE % facts)
        claude.write("suite/cases/one.yaml", CASE % {**facts, "attempts": json.dumps(ATTEMPTS % facts)})
        yield claude.root / "suite"


def test_real_clis_work_with_their_model_and_reach_nothing_else(claude: Project, suite: Path) -> None:
    flags = [word for agent in AGENTS for word in ("--agent", agent)]
    done = claude.run(suite, *flags, "--model", "scripted", "--parallelism", "2", "-v")
    assert done.code == 0, done.stdout
    for agent in AGENTS:
        result, folder = done.trial(agent=agent), done.folder(agent=agent)
        found = dict(line.split(": ", 1) for line in (folder / "artifacts/found.txt").read_text().splitlines())
        assert found == DENIED, agent
        assert "No such file" in (folder / "artifacts/setup.txt").read_text()
        assert "CANARY" not in (folder / "record.json").read_text()
        assert result.agent.environment.model_dump() == {
            "type": "bubblewrap",
            "network": "model_only",
            "limits": {"memory_mb": 4096},
            "image": None,
        }
    # Claude Code was interrupted before anything else was tried: it wrote its last event and ended by itself.
    turns = json.loads((done.folder(agent="claude_code") / "record.json").read_text())["turns"]
    assert (turns[2]["status"], turns[2]["exit_code"] in (0, 1)) == ("timed_out", True), turns[2]
    assert '"subtype":"error_during_execution"' in (done.folder(agent="claude_code") / "turn-3/stdout").read_text()
    assert processes_mentioning("sleep 4861") == []

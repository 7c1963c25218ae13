"""Whole trials in containers: they work with their model, get nowhere else, and leave none behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.containers import Containers
from tests.support import Project, processes_mentioning

SUITE = """
    schema_version: v1alpha1
    environment:
      type: docker
      image: %s
      network_policy: model_only
      env: {OF_THE_SUITE: yes}
      setup_steps: [{run: "id -u > user; echo set-up > /tmp/set-up; cat %s > canary; true"}]
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
        found = "denied"
    print(f"{name}: {found}")
def tcp(host, port):
    socket.create_connection((host, port), 3).close()
    return "reached"
def unix(path):
    socket.socket(socket.AF_UNIX).connect(path)
    return "reached"
attempt("port of the host", lambda: tcp("127.0.0.1", %(port)d))
attempt("another address", lambda: tcp("192.0.2.1", 80))
attempt("a name", lambda: tcp("example.com", 80))
attempt("socket of the host", lambda: unix("%(socket)s"))
attempt("socket by its abstract name", lambda: unix("\\0%(abstract)s"))
attempt("home of the host", lambda: open("%(secret)s").read())
attempt("the suite", lambda: os.listdir("%(suite)s"))
attempt("trials", lambda: len([name for name in os.listdir("%(trials)s") if not name.endswith(".io")]))
attempt("processes", lambda: "many" if len([name for name in os.listdir("/proc") if name.isdigit()]) > 15 else "few")
attempt("the system", lambda: open("/etc/new", "w"))
attempt("our own code", lambda: open("%(code)s", "a"))
attempt("its first process", lambda: open("/proc/1/mem", "rb").read(1))
attempt("another user", lambda: os.setuid(0))
"""

EXPECTED = {
    **dict.fromkeys(("port of the host", "another address", "a name", "socket of the host"), "denied"),
    **dict.fromkeys(("socket by its abstract name", "home of the host", "the suite", "the system"), "denied"),
    **dict.fromkeys(("our own code", "another user"), "denied"),
    "trials": "1",
    "processes": "few",
}

CASE = """
    title: it cannot get out, and works
    input:
      turns:
        - role: user
          content: Look around and remember the word heron
          post_condition: {must_contain_all: [looked around], on_fail: fail}
        - {role: user, content: Which word was it}
    context: {git: {init: true}, files: {attempts.py: %(attempts)s}}
    collect_artifacts: [found.txt]
    judges:
      - id: rules
        type: rule_based
        success:
          - output_contains: {all: [heron], turn: 2}
          - tool_called: {name: bash, turn: 1}
          - file_contains: {path: found.txt, content: the system}
          - file_contains: {path: user, content: "%(user)s"}
          - file_contains: {path: setup.txt, content: set-up}
          - command: {run: "git log --format=%%s | grep Initial && test $OF_THE_SUITE = yes && ! cat %(secret)s"}
      - {id: script, type: script, script_path: judge-script.sh}
    script:
      - user: Look around
        replies:
          - calls:
              - tool: bash
                args: {command: "python3 attempts.py > found.txt; cp /tmp/set-up setup.txt; (setsid sleep 4871 &)"}
          - say: looked around
      - {user: Which word, say: heron}
"""


def until(condition: Callable[[], object], seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(condition())


def test_an_agent_works_with_its_model_and_reaches_nothing_else(project: Project, containers: Containers) -> None:
    secret = project.write("user-home/secret.txt", "CANARY-OF-THE-HOST")
    project.write("suite/skill/SKILL.md", "---\nname: birds\ndescription: knows birds\n---\n")
    project.write("suite/judge-script.sh", f"#!/bin/sh\ncat found.txt && ! cat {secret} && ! ls {project.root}\n")
    abstract = f"skillup-{project.trials.name}"
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as named,
        socket.socket(socket.AF_UNIX) as nameless,
    ):
        for unix, place in ((named, str(project.root / "s")), (nameless, f"\0{abstract}")):
            unix.bind(place)
            unix.listen()
        facts = {
            "port": server.getsockname()[1],
            "socket": project.root / "s",
            "abstract": abstract,
            "secret": secret,
            "suite": project.root / "suite",
            "trials": project.trials,
            "code": Path(sys.modules["skillup"].__file__ or ""),
        }
        project.write("suite/eval.yaml", SUITE % (containers.image, secret))
        attempts = json.dumps(ATTEMPTS % facts)
        project.write("suite/cases/one.yaml", CASE % {**facts, "attempts": attempts, "user": os.getuid() or 1000})
        project.write("agents/other.yaml", "engine: codex\nmodel: scripted\n")
        done = project.run("suite", "--agent", "demo", "--agent", "other", "-v", env=containers.variables)
    result, missing = done.trial(agent="demo"), done.trial(agent="other").error
    assert result.status == "PASS", done.stdout + done.stderr
    assert missing is not None
    assert missing.kind == "engine_missing"
    assert missing.message.startswith("codex: program not found in the container, on the PATH (")
    assert result.agent.environment.model_dump() == {
        "type": "docker",
        "network": "model_only",
        "limits": {},
        "image": containers.image,
    }
    record = json.loads((done.folder(agent="demo") / "record.json").read_text())
    assert len(record["session_ids"]) == 1
    assert any("sleep 4871" in line for line in record["turns"][0]["unfinished_background"])
    found = dict(
        line.split(": ", 1) for line in (done.folder(agent="demo") / "artifacts/found.txt").read_text().splitlines()
    )
    assert {name: found[name] for name in EXPECTED} == EXPECTED
    assert found["its first process"] in ("denied", "b''")
    assert "CANARY" not in "".join(path.read_text() for path in done.folder(agent="demo").rglob("*.json*"))
    assert containers.below(project.trials) == []
    assert processes_mentioning("sleep 4871") == []


def write(project: Project, environment: str) -> None:
    project.write(
        "eval.yaml", f"schema_version: v1alpha1\nenvironment: {{{environment}}}\ncases: {{files: [one.yaml]}}\n"
    )
    project.write(
        "one.yaml",
        """
        input: {prompt: hi}
        expect: {must_contain: [hello]}
        script:
          - {user: hi, replies: [{calls: [{tool: bash, args: {command: "echo up > up; sleep 4872"}}]}, {say: hello}]}
        """,
    )


def test_a_killed_run_leaves_no_container(project: Project, containers: Containers) -> None:
    write(project, f"type: docker, image: '{containers.image}', network: model_only")
    run = project.start("run", ".", "--agent", "demo", "--output-dir", "out", env=containers.variables)
    assert until(lambda: list(project.trials.glob("*/workspace/up")))
    assert len(containers.below(project.trials)) == 1
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    assert until(lambda: not processes_mentioning("sleep 4872"))
    assert until(lambda: containers.below(project.trials) == [])
    (root,) = project.trials.glob("*.lock")
    left = root.with_suffix("")
    containers.call(
        "create", "--pull", "never", "--label", f"skillup.trial={left}", "--name", left.name, containers.image, "true"
    )
    said = project.call("doctor", env=containers.variables).stdout
    assert f"left behind  the container {left.name} of {left}, of a run that died" in said
    write(project, "type: docker, image: 'localhost/none:such'")
    error = project.run(".", "--agent", "demo", env=containers.variables).trial().error
    assert containers.below(project.trials) == []
    assert not left.exists()
    # An image that is not there is not pulled either.
    assert error is not None
    assert (error.kind, error.phase) == ("environment", "plan")
    assert "has no image localhost/none:such: " in error.message
    assert "pull localhost/none:such`, or build it" in error.hint


def test_without_an_engine_nothing_runs(project: Project) -> None:
    write(project, "type: docker, image: 'localhost/none:such', setup_steps: [{run: 'touch /var/tmp/ran'}]")
    for name, text in {"docker": "Cannot connect to the Docker daemon", "podman": "cannot clone"}.items():
        project.write(f"bin/{name}", f"#!/bin/sh\necho '{text}' >&2; exit 1\n").chmod(0o755)
    env = {"PATH": str(project.root / "bin")}
    done = project.run(".", "--agent", "demo", env=env)
    message = "docker does not work: Cannot connect to the Docker daemon; podman does not work: cannot clone"
    error = done.trial().error
    assert error is not None
    assert (done.code, error.kind, error.phase, error.message) == (3, "environment", "plan", message)
    doctor = project.call("doctor", env=env).stdout
    assert f"containers   unusable: {message}" in doctor
    assert error.hint in doctor

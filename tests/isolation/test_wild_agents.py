"""Sixty-four trials at once whose CLI forks daemons, ignores every polite signal and closes nothing: none survives."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.support import Project

TRIALS = 64

LIMIT_SECONDS = 6
"""Long enough for all of them to be seen at work on a crowded machine."""

GRACE_SECONDS = 3.0
"""What a tree is given after SIGINT and SIGTERM together."""

SLACK_SECONDS = 6.0
"""For a crowded machine on which 64 trees are killed at once."""

WILD = """\
#!/bin/sh
case "$*" in *--version*) echo 1.0; exit ;; esac
trap '' INT TERM HUP
while [ "$1" != --session-id ]; do shift; done
daemon='trap "" INT TERM HUP; exec sleep {mark}'
(env -i /bin/sh -c "(setsid sh -c '$daemon' & ) &")
printf '{{"type":"system","subtype":"init","session_id":"%s"}}\\n' "$2"
echo '{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"1","name":"Bash","input":{{}}}}]}}}}'
sleep {mark}
exit 7
"""
"""Speaks enough of Claude Code's stream to be seen at work: a tool runs."""

CASE = """
    input: {prompt: run wild}
    constraints: {timeout_seconds: %d}
    judge: {type: rule_based, success: [{output_contains: {all: [done]}}]}
    script: [{say: nothing}]
"""


def wild(project: Project, *names: str, cases: int, seconds: int) -> tuple[str, list[str]]:
    """So many cases, and agents of these names to run them on; the mark of what they start, and the arguments."""
    mark = f"86400.{os.getpid()}{time.monotonic_ns() % 1_000_000_000}"
    arguments = ["cases", "--parallelism", str(TRIALS)]
    for number in range(cases):
        project.write(f"cases/case-{number}.yaml", CASE % seconds)
    for name in names:
        project.write(f"bin/{name}", WILD.format(mark=mark)).chmod(0o755)
        project.write(
            f"agents/{name}.yaml", f"engine: claude_code\nmodel: scripted\nsettings: {{binary: ../bin/{name}}}"
        )
        arguments += ["--agent", name]
    return mark, arguments


def test_a_limit_and_the_death_of_a_supervisor_end_every_one_of_them(project: Project) -> None:
    mark, arguments = wild(project, "wild", "doomed", cases=TRIALS // 2, seconds=LIMIT_SECONDS)
    directory = project.root / "run"
    process = project.start("run", *arguments, "--output-dir", directory)
    orphaned: set[int] = set()
    while process.poll() is None and len(orphaned) < TRIALS // 2:
        # A CLI that has come to its own wait has made its daemon before.
        waiting = {parent_of(pid) for pid in living(b"sleep\0" + mark.encode())}
        for root in waiting.intersection(living(b"bin/doomed")) - orphaned:
            orphaned.add(root)
            supervisor = parent_of(root)
            assert supervisor > 1, "it ended by itself"
            os.kill(supervisor, signal.SIGKILL)
        time.sleep(0.05)
    done = project.wait(process, directory)
    assert living(mark.encode()) == []
    outcomes = {(result.agent.name, f"{result.status} {result.grading.code}") for result in done.run.case_results}
    assert outcomes == {("wild", "FAIL limit/case_seconds"), ("doomed", "ERROR environment")}
    assert len(done.run.case_results) == TRIALS
    for result in done.run.case_results:
        if result.agent.name == "wild":
            (turn,) = result.turn_results
            assert turn.duration_ms / 1000 < LIMIT_SECONDS + GRACE_SECONDS + SLACK_SECONDS


def test_the_death_of_skillup_ends_every_one_of_them(project: Project) -> None:
    mark, arguments = wild(project, "wild", cases=TRIALS, seconds=600)
    process = project.start("run", *arguments, "--output-dir", project.root / "run")
    assert until(lambda: len(living(b"sleep\0" + mark.encode())) == 2 * TRIALS, 60)
    process.kill()
    process.communicate()
    assert until(lambda: not living(mark.encode()), GRACE_SECONDS + SLACK_SECONDS)
    project.write("done.yaml", CASE % 60 + "\n")
    assert project.run("done.yaml", "--agent", "demo").code == 1, "the next run sweeps the trial roots"


def living(text: bytes) -> list[int]:
    """Processes with a text in their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text in (folder / "cmdline").read_bytes() and int(folder.name) != os.getpid():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def parent_of(pid: int) -> int:
    """The parent of a process; 0 when it has just ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether a condition comes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True

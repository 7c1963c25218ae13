"""Progress: a line for each trial in a log, one live line on a terminal."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios

from tests.support import Project

CASES = {
    "a": "{input: {prompt: go}, expect: {must_contain: [done]}, script: [{say: done}]}",
    "b": r'{input: {prompt: go}, expect: {must_contain: [done]}, script: [{say: "\e[2Jnot\u202E yet"}]}',
    "c": "{input: {prompt: go}, judge: {type: none}, script: [{say: done}]}",
}


def write(project: Project) -> None:
    for name, text in CASES.items():
        project.write(f"cases/{name}.yaml", text)


def test_in_a_log_it_is_a_line_a_trial(project: Project) -> None:
    write(project)
    ran = project.run("cases", "--agent", "demo")
    reads = r"it reads: '\x1b[2Jnot\u202e yet'"
    why = f"check not met: must_contain: done: the answer of turn 1 does not hold 'done'; {reads}"
    assert ran.stderr.splitlines() == [
        "[1/3] PASS  a · demo",
        f"[2/3] FAIL  b · demo: {why}",
        "[3/3] UNCHECKED c · demo: the case says `judge: {type: none}`: nothing was checked",
    ]


def test_on_a_terminal_the_count_stays_in_sight_and_failures_are_told_at_once(project: Project) -> None:
    """80 columns, and names that are longer than that together."""
    write(project)
    for number in range(3):
        slow = CASES["a"].replace("{say: done}", "{say: done, faults: [{slow: 0.2}]}")
        project.write(f"cases/a-case-with-quite-a-long-name-{number}.yaml", slow)
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    variables = {**project.variables, "TERM": "xterm-256color"}
    del variables["COLUMNS"]
    arguments = ["run", "cases", "--agent", "demo", "--parallelism", "6", "--output-dir", "run-1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "skillup", *arguments],
        cwd=project.root,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    try:
        while block := os.read(ours, 65536):
            said += block
    except OSError:
        pass  # the other end is closed
    os.close(ours)
    assert process.wait(60) == 1
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode())
    lines = [line.strip() for line in re.split(r"[\r\n]+", text)]
    assert max(map(len, lines)) <= 80
    frames = [line for line in lines if "━" in line]
    assert all(re.match("[0-6]/6 ", frame) for frame in frames)
    assert [frame for frame in frames if "a-case-with-quite-a-long-name-" in frame]
    assert frames[-1].startswith("6/6 ")
    assert [line for line in lines if line.startswith("FAIL  b · demo: check not met")]
    assert "\u202e" not in text

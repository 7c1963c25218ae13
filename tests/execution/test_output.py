"""Whatever a CLI prints: what is whole is used, damage is noted, and neither memory nor the run directory grows."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from skillup.execution.raw_output import WHOLE_BYTES, copy_masked
from skillup.masking import Masker
from tests.fake_claude import fake_claude
from tests.support import Finished, Project

CASE = """
    input: {prompt: hello}
    judge:
      type: rule_based
      success: [{output_contains: {all: [done]}}]
    script: [{say: nothing}]
"""

NO_CALL = """
    input: {prompt: hello}
    judge:
      type: rule_based
      success: [{output_contains: {all: [done]}}, {tool_not_called: {name: write}}]
    script: [{say: nothing}]
"""

DAMAGED = {
    "two-on-a-line": """
        raw(line(assistant(call("ls"))) + line(returned("a.txt")) + b"\\n")
        say(result("done"))
    """,
    "injected": """
        broken = line(assistant(text("half of ")))
        at = broken.index(b"of ")
        raw(broken[:at] + line(result("done")) + b"\\n" + broken[at:] + b"\\n")
    """,
    "not-utf-8": """
        raw(line(assistant(text("XX"))).replace(b"XX", b"\\xff\\xfe") + b"\\n")
        say(result("done"))
    """,
    "control-sequences": """
        raw(b"\\x1b[2K\\x1b]0;title\\x07" + line(result("done")) + b"\\x1b[0m\\n")
    """,
    "noise": """
        raw(b"(node:1) Warning: something\\n\\n[7]\\n")
        say(result("done"))
    """,
    "no-newline": """
        raw(line(result("done")))
    """,
    "cut-behind-the-answer": """
        say(result("done"))
        raw(line(assistant(text("never whole")))[:-9])
    """,
}
"""What a fake CLI prints around a good final word."""

NOTES = {
    "two-on-a-line": (1, 0),
    "injected": (2, 1),
    "not-utf-8": (1, 0),
    "control-sequences": (1, 0),
    "noise": (2, 0),
    "no-newline": None,
    "cut-behind-the-answer": (1, 1),
}
"""How many places are damaged, and in how many of them an event may be lost."""


def test_damage_around_a_good_final_word_is_noted_and_the_answer_judged(project: Project) -> None:
    project.write("case.yaml", CASE)
    agents = [argument for name, body in DAMAGED.items() for argument in ("--agent", fake_claude(project, name, body))]
    done = project.run("case.yaml", *agents, "--parallelism", "2")
    for name, counts in NOTES.items():
        trial = done.trial(agent=name)
        (turn,) = trial.turn_results
        assert (name, trial.status, turn.response) == (name, "PASS", "done")
        damage = turn.stream_corrupt
        assert (damage and (damage.count, damage.lost)) == counts, name
        noted = sum(note.startswith("stream_corrupt: at byte ") for note in turn.notes)
        assert noted == (counts[0] if counts else 0), name
    assert "turn 1: stream_corrupt: at byte" in done.stdout
    assert "\x1b" not in done.stdout
    assert done.trial(agent="two-on-a-line").turn_results[0].tool_calls == ("bash",)


LOST = {
    "no-call": ("say(result('done'))", "PASS all_met"),
    "perhaps-a-call": ("raw(line(assistant(call('ls')))[:-4] + b'\\n')\nsay(result('done'))", "ERROR unobservable"),
    "noise-beside": ("raw(b'warning\\n')\nsay(result('done'))", "PASS all_met"),
    "too-much": ("for n in range(20000): say(assistant(text(str(n))))\nsay(result('done'))", "ERROR unobservable"),
    "no-result": ("raw(line(result('done'))[:-4] + b'\\n')", "ERROR output"),
    "no-answer": ("raw(line(assistant(text('done')))[:-4] + b'\\n')\nsay(result(''))", "ERROR output"),
    "no-end": ("os.ftruncate(1, 9 << 30)\ntime.sleep(60)", "ERROR output"),
    "no-format": ("raw(b'y\\n' * 100002)\ntime.sleep(60)", "ERROR output"),
}
"""What a CLI prints, and what that makes of a case that asks for an answer and for no call."""


def test_what_damage_may_hide_is_never_taken_for_absent(project: Project) -> None:
    project.write("case.yaml", NO_CALL)
    bodies = {name: body for name, (body, _) in LOST.items()}
    agents = [argument for name, body in bodies.items() for argument in ("--agent", fake_claude(project, name, body))]
    done = project.run("case.yaml", *agents, "--parallelism", "2")
    found = {name: done.trial(agent=name).grading for name in LOST}
    assert {name: f"{verdict.status} {verdict.code}" for name, verdict in found.items()} == {
        name: outcome for name, (_, outcome) in LOST.items()
    }
    assert "its output is damaged in 1 place, first at byte" in found["no-result"].reason
    assert "may be lost" in found["no-answer"].reason
    assert "claude_code printed more than 8 GiB" in found["no-end"].reason
    assert "none of its format" in found["no-format"].reason
    assert "in the damaged output of turn 1" in found["perhaps-a-call"].reason
    (turn,) = done.trial(agent="too-much").turn_results
    assert turn.messages_left_out > 0
    assert f"messages_left_out: {turn.messages_left_out:,} of this turn are not kept" in turn.notes


TOLD = """
    input: {prompt: hello}
    judge:
      type: rule_based
      scoring:
        parts:
          - name: whole
            graders: [{name: told, program: {command: [python3, told.py]}}]
    script: [{say: nothing}]
"""
TELL = """
import json, sys
metadata = json.load(sys.stdin)["metadata"]
said = {key: metadata[key] for key in ("messages_left_out", "events_lost")}
print(json.dumps({"assertions": [{"text": json.dumps(said), "passed": True}]}))
"""


def test_a_program_that_scores_is_told_what_it_does_not_see(project: Project) -> None:
    project.write("case.yaml", TOLD)
    project.write("told.py", TELL)
    names = ("no-call", "perhaps-a-call", "too-much")
    agents = [argument for name in names for argument in ("--agent", fake_claude(project, name, LOST[name][0]))]
    done = project.run("case.yaml", *agents, "--parallelism", "2")
    told = {name: json.loads(done.trial(agent=name).grading.scores[0].assertions[0].text) for name in names}
    assert told["no-call"] == {"messages_left_out": 0, "events_lost": 0}
    assert told["perhaps-a-call"] == {"messages_left_out": 0, "events_lost": 1}
    (turn,) = done.trial(agent="too-much").turn_results
    assert told["too-much"] == {"messages_left_out": turn.messages_left_out, "events_lost": 0}


HUGE = """
    event = line(returned("x" * 1000)) + b"\\n"
    raw(event * 20)
    raw((line(assistant(text("y" * (1 << 20)))) + b"\\n") * 64)
    size = os.fstat(1).st_size
    for _ in range(100):  # holes: 2 GB that no disk has to hold
        size += 20 << 20
        os.ftruncate(1, size)
        raw(b"\\n")
        size += 1
    say(result("done"))
"""

LONG_LINE = """
    raw(line(assistant(text("z" * 100_000_000))) + b"\\n")
    say(result("done"))
"""


def test_two_gigabytes_and_a_line_of_a_hundred_megabytes_take_little_memory_and_room(project: Project) -> None:
    project.write("case.yaml", CASE)
    for name, body, most in (("huge", HUGE, 200), ("long-line", LONG_LINE, 200)):
        done, peak = run_measured(project, fake_claude(project, name, body))
        trial = done.trial()
        assert (trial.status, trial.turn_results[0].response) == ("PASS", "done"), done.stdout
        assert peak < most, f"{name}: {peak} MB"
        kept = done.folder() / "turn-1" / "stdout"
        assert kept.stat().st_size < WHOLE_BYTES + 1000
        assert b"\n[skillup left out about " in kept.read_bytes()
        if name == "long-line":
            assert "a line of 100,000,1" in trial.turn_results[0].notes[0]


@pytest.mark.parametrize("newline", [b"\n", b""])
def test_no_part_of_a_secret_is_left_where_a_long_stream_is_cut(tmp_path: Path, newline: bytes) -> None:
    secret = b"correct-horse-battery"
    (tmp_path / "stdout").write_bytes((b"12345" + secret + newline) * (WHOLE_BYTES // 20))
    copy_masked(tmp_path / "stdout", tmp_path / "kept", Masker([secret.decode()]))
    kept = (tmp_path / "kept").read_bytes()
    assert kept.count(b"[masked]") > 1000
    assert not re.search(b"corr|ttery|horse", kept)


def run_measured(project: Project, agent: str) -> tuple[Finished, int]:
    """A run of the case, and how many MB of memory skillup itself took at most."""
    directory = project.root / f"run-of-{agent}"
    process = project.start("run", "case.yaml", "--agent", agent, "--output-dir", directory)
    peak = 0
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status")
        lines = [one for one in status.read_text().splitlines() if one.startswith("VmHWM:")]
        peak = max([peak, *(int(one.split()[1]) >> 10 for one in lines)])
        time.sleep(0.02)
    return project.wait(process, directory), peak

"""A run that is killed, or stopped, at any moment and resumed until it is done: nothing is lost, torn or run twice."""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from skillup.execution.journal import read_journal
from tests.forked import Ended, Forked
from tests.support import Project, processes_mentioning

TRIALS = 40
MOMENTS = 50
LINES = 12
"""A command is cut at the latest when its journal has so many lines more; a trial writes five."""

CASE = """
    input: {{prompt: "count {number}"}}
    judge: {{type: rule_based, success: [{{output_contains: {{all: [counted]}}}}]}}
    script:
      - user: count
        replies:
          - calls: [{{tool: bash, args: {{command: "echo {number} >> {witness}"}}}}]
          - say: counted
"""
"""Each trial leaves a line outside of its workspace, so that whoever runs twice is seen."""


START = ("run", "cases", "--agent", "builtin", "--model", "scripted", "--parallelism", "4")


@pytest.fixture
def suite(project: Project) -> Project:
    for number in range(TRIALS):
        project.write(f"cases/c-{number:02}.yaml", CASE.format(number=number, witness=project.root / "witness"))
    return project


class Watch:
    """A run directory between two kills: what it held once must be there for ever."""

    def __init__(self, directory: Path, witness: Path) -> None:
        self.directory = directory
        self.witness = witness
        self.saved: dict[Path, bytes] = {}
        self.ran: dict[str, int] = {}

    @property
    def is_finished(self) -> bool:
        """Whether the run has come to its end."""
        path = self.directory / "result.json"
        return path.exists() and json.loads(path.read_bytes())["status"] == "finished"

    def look(self) -> None:
        """Checks that all that was there is there unchanged, and that nothing is half written."""
        places = (
            f"*/*/*/trial-1/{name}" for name in ("attempt-*/turn-*/turn.json", "attempt-*/record.json", "result.json")
        )
        saved = {path: path.read_bytes() for place in places for path in self.directory.glob(place)}
        assert saved.items() >= self.saved.items(), "what was saved has changed or is gone"
        self.saved = saved
        for path in self.directory.rglob("*.json"):
            json.loads(path.read_bytes())
        for path in self.directory.rglob("*.jsonl"):
            torn = not (path.parent / "record.json").exists()
            lines = path.read_bytes().split(b"\n")[: -1 if torn else None]
            assert all(json.loads(line) for line in lines if line), path
        read_journal(self.directory)
        counted = Counter(self.witness.read_text().split() if self.witness.exists() else ())
        for number, times in self.ran.items():
            assert counted[number] == times, "a trial that had ended ran again"
        ended = {path.parents[3].name for path in saved if path.name == "result.json"}
        self.ran |= {name: counted[name] for name in (str(int(case[2:])) for case in ended)}

    def check_journal(self) -> None:
        """Checks that every trial ended once, with one attempt that ended, and that none began after its end."""
        entries = read_journal(self.directory).entries
        ended = Counter(entry.trial for entry in entries if entry.event == "trial_ended")
        attempts = Counter(entry.trial for entry in entries if entry.event == "attempt_ended")
        assert (len(ended), set(ended.values()), set(attempts.values())) == (TRIALS, {1}, {1})
        last = {entry.trial: entry.event for entry in entries if entry.trial}
        assert set(last.values()) == {"trial_ended"}
        assert entries[-1].event == "run_ended"


def cut_until_done(suite: Project, forked: Forked, numbers: tuple[signal.Signals, ...], chance: random.Random) -> None:
    """Cuts runs at random moments and resumes each until it is done, and then begins another while moments are left."""
    root, moments, runs = suite.root, MOMENTS, 0
    while moments:
        runs += 1
        (root / "witness").unlink(missing_ok=True)
        watch = Watch(root / f"run-{runs}", root / "witness")
        start = (*START, "--output-dir", watch.directory)
        again = ("run", "--resume", watch.directory)
        while moments and not watch.is_finished:
            arguments = again if (watch.directory / "run.json").exists() else start
            if arguments == start and watch.directory.exists():
                break  # it was cut while the directory was made: nothing had begun
            moments -= 1
            number = chance.choice(numbers)
            ended, seconds = forked.cut(suite, arguments, number, moment(watch.directory / "journal.jsonl", chance))
            check_end(suite, ended, number, seconds)
            watch.look()
        if (watch.directory / "run.json").exists():
            check_whole(suite, watch, forked.call(suite, *again))


def moment(journal: Path, chance: random.Random) -> Callable[[], bool]:
    """When to cut a command: so many lines after its start, at any time between two of them; or while it plans."""

    def lines() -> int:
        return journal.read_bytes().count(b"\n") if journal.exists() else 0

    wanted, pause = lines() + chance.randrange(LINES), chance.uniform(0.02, 0.1)
    seen: list[float] = []

    def is_now() -> bool:
        if not seen and lines() >= wanted:
            seen.append(time.monotonic())
        return bool(seen) and time.monotonic() - seen[0] >= pause

    return is_now


def check_end(project: Project, ended: Ended, number: signal.Signals, seconds: float) -> None:
    """What a command that was cut leaves: nothing after ^C and SIGTERM, and nothing for long after SIGKILL."""
    if number == signal.SIGKILL:
        assert ended.code in (-signal.SIGKILL, 0), ended.stderr
        return
    assert seconds < 5
    assert ended.code in (0, 130), ended.stderr
    assert processes_mentioning(str(project.trials)) == []
    assert not project.trials.exists() or list(project.trials.iterdir()) == []
    assert list(project.root.rglob("*.partial")) == []


def check_whole(suite: Project, watch: Watch, ended: Ended) -> None:
    """The run at its end: as if nobody had ever cut it."""
    assert ended.code == 0, ended.stderr
    watch.look()
    watch.check_journal()
    result = json.loads((watch.directory / "result.json").read_bytes())
    assert (result["status"], result["totals"]["passed"], result["trials_planned"]) == ("finished", TRIALS, TRIALS)
    assert processes_mentioning(str(suite.trials)) == []


@pytest.mark.parametrize("seed", [5])
def test_killed_at_any_moment_a_run_is_resumed_without_a_loss(suite: Project, forked: Forked, seed: int) -> None:
    cut_until_done(suite, forked, (signal.SIGKILL,), random.Random(seed))  # noqa: S311 - no secret


@pytest.mark.parametrize("seed", [6])
def test_stopped_at_any_moment_a_run_ends_soon_and_leaves_nothing(suite: Project, forked: Forked, seed: int) -> None:
    cut_until_done(suite, forked, (signal.SIGINT, signal.SIGTERM), random.Random(seed))  # noqa: S311 - no secret

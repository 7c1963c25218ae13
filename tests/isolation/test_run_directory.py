"""Many trials at once, and a run directory that cannot be written: a clear word, and no half measurement."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from skillup.execution.journal import read_journal
from tests.forked import Forked
from tests.support import Project

CASE = """
    input: {{prompt: "say {number}"}}
    judge: {{type: rule_based, success: [{{file_contains: {{path: number, content: "{number}"}}}}]}}
    script:
      - user: say {number}
        replies:
          - calls: [{{tool: bash, args: {{command: "echo {number} > number"}}}}]
          - say: done
"""


def write_cases(project: Project, count: int) -> None:
    """A suite of as many cases."""
    project.write("eval.yaml", "{schema_version: v1alpha1, cases: {files: [cases/*.yaml]}}")
    for number in range(count):
        project.write(f"cases/case-{number:02}.yaml", CASE.format(number=4700 + number))


def test_sixteen_trials_at_once_do_not_meet(project: Project) -> None:
    write_cases(project, 16)
    done = project.run("eval.yaml", "--agent", "demo", "--parallelism", "16", "--keep", "all")
    assert done.code == 0, done.stderr
    assert [result.status for result in done.run.case_results] == ["PASS"] * 16
    assert len({identity for result in done.run.case_results for identity in result.session_ids}) == 16
    for number in range(16):
        name = f"case-{number:02}"
        assert (done.folder(name) / "workspace" / "number").read_text() == f"{4700 + number}\n"
        said = {
            word for request in done.requests(name) for word in str(request["body"]).split() if word.startswith("47")
        }
        assert all(word.startswith(str(4700 + number)) for word in said)


def test_a_terminal_that_was_closed_costs_no_trial(project: Project) -> None:
    write_cases(project, 3)
    with project.start("run", "eval.yaml", "--agent", "demo", "--output-dir", "run") as process:
        assert process.stderr is not None
        process.stderr.close()
        process.wait(60)
    result = json.loads((project.root / "run" / "result.json").read_text())
    assert (result["status"], result["totals"]["passed"]) == ("finished", 3)


MOUNTED = """
place=$1; shift
mount -t tmpfs -o "$1" none "$place" || exit 77
shift
"$@" run eval.yaml --agent demo --output-dir "$place/run" --parallelism 4
code=$?
"$@" report "$place/run"
cp -r "$place/run" saved
if mount -o remount,size=32m "$place" 2> /dev/null; then
    echo resumed >&2
    "$@" run --resume "$place/run"
fi
exit $code
"""


def in_a_small_file_system(project: Project, options: str) -> subprocess.CompletedProcess[str]:
    """Runs the suite, and reports, with the run directory on a file system of its own, which nobody else sees."""
    place = project.root / "small"
    place.mkdir()
    unshare = shutil.which("unshare")
    if unshare is None or os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    done = subprocess.run(
        [unshare, "--mount", "sh", "-c", MOUNTED, "sh", place, options, sys.executable, "-m", "skillup"],
        cwd=project.root,
        env=project.variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip(f"no file system can be mounted here: {done.stderr}")
    return done


def test_a_disk_that_fills_up_stops_the_run_and_what_had_ended_stays(project: Project) -> None:
    write_cases(project, 40)
    done = in_a_small_file_system(project, "size=256k")
    assert done.returncode == 3, done.stderr
    assert "the run was stopped: " in done.stderr
    assert "cannot be written: No space left on device" in done.stderr
    ended = int(done.stderr.partition(" of 40 trials had ended")[0].rpartition("\n")[2])
    assert 1 <= ended < 40
    assert f"{ended} passed" in done.stdout, "the report of what had ended"
    assert "a bug in skillup" not in done.stdout + done.stderr
    assert f"go on with `skillup run --resume {project.root / 'small' / 'run'}`" in done.stderr
    saved = project.root / "saved"
    for path in saved.rglob("*.json"):
        json.loads(path.read_bytes())
    journal = read_journal(saved)
    assert journal.torn_bytes == 0
    assert len([entry for entry in journal.entries if entry.event == "trial_ended"]) <= ended
    assert list(saved.rglob("*.partial")) == []
    assert f"{ended} of 40 trials had ended" in done.stderr.partition("resumed\n")[2], "when there is room again"
    assert "40 passed; 40 of 40 valid trials passed" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("ro", "Read-only file system"),
        ("nr_inodes=1", "No space left on device"),
    ],
)
def test_a_disk_that_takes_nothing_is_found_before_anything_runs(project: Project, options: str, message: str) -> None:
    write_cases(project, 2)
    done = in_a_small_file_system(project, options)
    assert done.returncode == 2, done.stderr
    first, hint = done.stderr.splitlines()[:2]
    assert first.endswith(message)
    assert str(project.root / "small" / "run") in first
    assert hint == "use --output-dir DIR"


READ_ONLY = """
home=$1; shift
mount -t tmpfs -o ro none "$home" || exit 77
exec "$@"
"""


def test_a_home_that_cannot_be_written_is_not_needed(project: Project) -> None:
    """Trials have homes of their own, and skillup keeps nothing in the user's."""
    write_cases(project, 1)
    unshare = shutil.which("unshare")
    if unshare is None or os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    run = [sys.executable, "-m", "skillup", "run", "eval.yaml", "--agent", "demo", "--output-dir", "run"]
    done = subprocess.run(
        [unshare, "--mount", "sh", "-c", READ_ONLY, "sh", project.home, *run],
        cwd=project.root,
        env=project.variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip(f"no file system can be mounted here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    assert json.loads((project.root / "run" / "result.json").read_text())["totals"]["passed"] == 1


BOUND = """
run=$1; shift
mount --bind "$run" "$run" && mount -o remount,bind,ro "$run" || exit 77
for words in "judge run" "report run" "report run --format junit" "run --resume run"; do
    "$@" $words > out 2> err
    echo "$words: $?: $(head -1 err)"
done
"""


def test_a_run_that_cannot_be_written_is_read_and_not_resumed(project: Project, forked: Forked) -> None:
    """To be judged again it need not be written, as long as the verdict is the same."""
    write_cases(project, 1)
    assert forked.call(project, "run", "eval.yaml", "--agent", "demo", "--output-dir", "run").code == 0
    unshare = shutil.which("unshare")
    if unshare is None or os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    done = subprocess.run(
        [unshare, "--mount", "sh", "-c", BOUND, "sh", project.root / "run", sys.executable, "-m", "skillup"],
        cwd=project.root,
        env=project.variables,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip("no file system can be mounted here")
    assert done.stdout.splitlines() == [
        "judge run: 0: ",
        "report run: 0: ",
        "report run --format junit: 2: run cannot be locked: Read-only file system",
        f"run --resume run: 2: {project.root}/run cannot be locked: Read-only file system",
    ]


BACKWARDS = """
import datetime, time
began, now = time.time(), time.time
class Backwards(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime.fromtimestamp(time.time(), tz)
time.time = lambda: began - 1000 * (now() - began)
datetime.datetime = Backwards
"""
"""The clock of a machine that is set back all the time: sixteen minutes for each second."""


def test_a_clock_that_goes_backwards_changes_no_duration(project: Project, forked: Forked) -> None:
    write_cases(project, 2)
    project.write("clock/sitecustomize.py", BACKWARDS)
    done = project.run("eval.yaml", "--agent", "demo", env={"PYTHONPATH": str(project.root / "clock")})
    assert done.code == 0, done.stderr
    assert done.run.end_time is not None
    assert done.run.end_time < done.run.start_time, "the clock did go backwards"
    times = [entry.time for entry in read_journal(done.directory).entries]
    assert times == sorted(times, reverse=True)
    for result in done.run.case_results:
        assert 0 < result.duration_ms < 60_000
        assert all(0 < turn.duration_ms < 60_000 for turn in result.turn_results)
    (done.directory / "result.json").unlink()
    (done.directory / "case-01" / "demo" / "with_skill" / "trial-1" / "result.json").unlink()
    assert forked.call(project, "run", "--resume", done.directory).code == 0

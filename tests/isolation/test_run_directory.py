"""Many trials at once, and a run directory that cannot be written: a clear word, and no half measurement."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

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

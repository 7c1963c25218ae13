"""Whatever an agent does to its workspace, the trial ends clearly, and nothing outside is copied or changed."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import Finished, Project

SUITE = "{schema_version: v1alpha1, cases: {files: [cases/*.yaml], parallelism: 4}}"
CANARY = "canary-outside"
AS_ROOT = os.geteuid() == 0
"""Root may look into every folder, whatever its permissions say."""


@dataclass(frozen=True)
class Deed:
    """What an agent does in its first turn, and what is to become of that.

    `error` is what the trial ends with when it has a second turn, None when that takes place. `kept` is what lies in
    the kept workspace, None when there is none; `left_out` the lines that name what does not.
    """

    command: str
    error: str | None = None
    kept: tuple[str, ...] | None = ()
    left_out: tuple[str, ...] = ()


DEEDS = {
    "link-to-etc": Deed(
        'cd ..; rm -r "$OLDPWD"; ln -s /etc workspace',
        "the workspace is a link to /etc now",
        None,
        (". (it is a link now)",),
    ),
    "link-elsewhere": Deed(
        'cd ..; rm -r "$OLDPWD"; ln -s OUTSIDE workspace',
        "the workspace is a link to OUTSIDE now",
        None,
        (". (it is a link now)",),
    ),
    "deleted": Deed(
        'cd ..; rm -r "$OLDPWD"',
        "the workspace is gone: No such file or directory",
        None,
        (". (No such file or directory)",),
    ),
    "a-file": Deed(
        'cd ..; rm -r "$OLDPWD"; echo > workspace',
        "the workspace is no folder any more",
        None,
        (". (Not a directory)",),
    ),
    "a-pipe": Deed(
        'cd ..; rm -r "$OLDPWD"; mkfifo workspace',
        "the workspace is no folder any more",
        None,
        (". (Not a directory)",),
    ),
    "nearly-everything-gone": Deed(
        "find .. -mindepth 1 -maxdepth 1 ! -name home -exec rm -r {} +",
        "the workspace is gone: No such file or directory",
        None,
        (". (No such file or directory)",),
    ),
    "locked": Deed(
        "mkdir in; echo 1 > in/a; chmod 000 in; chmod 000 .",
        None if AS_ROOT else "the workspace cannot be entered any more: its permissions are d---------",
        ("in/a",) if AS_ROOT else None,
        () if AS_ROOT else (". (Permission denied)",),
    ),
    "locked-inside": Deed(
        "mkdir in; echo 1 > in/a; chmod 000 in; echo 2 > b; chmod 000 b",
        None,
        ("b", "in/a") if AS_ROOT else (),
        () if AS_ROOT else ("b (Permission denied)", "in (Permission denied)"),
    ),
    "deep": Deed(
        """python3 -c 'import os; [(os.mkdir("d"), os.chdir("d")) for _ in range(20000)]'""",
        None,
        ("/".join(["d"] * 100),),
        ("/".join(["d"] * 101) + " (more than 100 folders deep)",),
    ),
    "special": Deed(
        """mkfifo pipe; truncate -s 2G large; echo 1 > a; """
        """python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'""",
        None,
        ("a",),
        ("large (2147483648 bytes)", "pipe (not a regular file)", "socket (not a regular file)"),
    ),
    "links-out": Deed(
        "ln -s /etc etc; ln -s /etc/passwd passwd; ln -s OUTSIDE out; ln -s ../../../.. up; ln -s self self",
        None,
        ("etc", "out", "passwd", "self", "up"),
    ),
    "odd-names": Deed(
        """python3 -c 'open(b"a\\xff\\nb", "w"); open("\\x1b[31m", "w")'; mkfifo "$(printf 'p\\np')" """,
        None,
        ("\x1b[31m", "a\udcff\nb"),
        (r"p\np (not a regular file)",),
    ),
}


def case(command: str, outside: Path) -> str:
    """A case of two turns whose first one does the deed."""
    script = [
        {
            "user": "do it",
            "replies": [
                {"calls": [{"tool": "bash", "args": {"command": command.replace("OUTSIDE", str(outside))}}]},
                {"say": "did it"},
            ],
        },
        {"user": "go on", "say": "went on"},
    ]
    turns = [{"role": "user", "content": "do it"}, {"role": "user", "content": "go on"}]
    rules = [{"output_contains": {"all": ["did it"], "turn": 1}}, {"output_contains": {"all": ["went on"], "turn": 2}}]
    return json.dumps(
        {
            "input": {"turns": turns},
            "context": {"files": {"first": "as it was"}},
            "judge": {"type": "rule_based", "success": rules},
            "script": script,
        }
    )


def kept(folder: Path) -> tuple[str, ...] | None:
    """What lies in a kept workspace, besides the file that was there at first; None without one."""
    if not (folder / "workspace").exists():
        return None
    found: list[str] = []
    for here, folders, names in os.walk(folder / "workspace"):
        links = [name for name in folders if Path(here, name).is_symlink()]
        leaves = [here] if not folders and not names else []
        found += [os.path.relpath(Path(here, name), folder / "workspace") for name in (*links, *names)]
        found += [os.path.relpath(leaf, folder / "workspace") for leaf in leaves]
    return tuple(sorted(name for name in found if name not in ("first", ".")))


def test_no_deed_of_an_agent_reaches_out_of_its_workspace(project: Project) -> None:
    outside = project.root / "outside"
    outside.mkdir()
    (outside / "file").write_text(CANARY)
    project.write("eval.yaml", SUITE)
    for name, deed in DEEDS.items():
        project.write(f"cases/{name}.yaml", case(deed.command, outside))
    done = project.run("eval.yaml", "--agent", "demo", "--keep", "all")
    assert done.code == 3, done.stderr
    for name, deed in DEEDS.items():
        check(name, deed, done, outside)
    files = [path for path in done.directory.rglob("*") if path.is_file() and not path.is_symlink()]
    foreign = [CANARY.encode(), *Path("/etc/passwd").read_bytes().splitlines()[:1]]
    assert not [path for path in files if any(text in path.read_bytes() for text in foreign)]
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert stat.S_IMODE(outside.stat().st_mode) & 0o700 == 0o700
    assert list(project.trials.iterdir()) == []


def check(name: str, deed: Deed, done: Finished, outside: Path) -> None:
    """What a deed has come to."""
    trial, folder = done.trial(name), done.folder(name)
    assert trial.turn_results[0].response == "did it"
    if deed.error is None:
        assert trial.status == "PASS", (name, trial.error)
    else:
        assert trial.error is not None, name
        assert (trial.error.kind, trial.error.turn) == ("environment", 2)
        assert deed.error.replace("OUTSIDE", str(outside)) in trial.error.message
        assert trial.error.hint
    assert kept(folder) == deed.kept, name
    note = folder / "left-out.txt"
    lines = note.read_text().splitlines() if note.exists() else []
    assert len(lines) == len(deed.left_out), (name, lines)
    assert all(expected in line for expected, line in zip(deed.left_out, lines, strict=True)), (name, lines)


def test_names_that_are_too_long_for_the_run_directory_are_left_out(project: Project) -> None:
    name = "n" * 250
    folders = f"""python3 -c 'import os; [(os.mkdir("{name}"), os.chdir("{name}")) for _ in range(50)]'"""
    project.write("long.yaml", case(folders, project.root))
    done = project.run("long.yaml", "--agent", "demo", "--keep", "all")
    assert done.trial().status == "PASS"
    assert (done.folder() / "workspace" / name / name).is_dir()
    assert (done.folder() / "left-out.txt").read_text().endswith(f"/{name} (File name too long)\n")


@pytest.mark.claude
def test_claude_code_is_not_started_in_a_folder_that_its_workspace_was_replaced_by(claude: Project) -> None:
    outside = claude.root / "outside"
    outside.mkdir()
    claude.write("linked.yaml", case('cd ..; rm -r "$OLDPWD"; ln -s OUTSIDE workspace', outside))
    done = claude.run("linked.yaml", "--agent", "claude_code", "--model", "scripted")
    trial = done.trial()
    assert trial.error is not None
    assert trial.error.message == f"the workspace is a link to {outside} now"
    assert trial.turn_results[0].response == "did it"


@pytest.mark.parametrize(
    ("keep", "expected"),
    [("failed", {"fails", "breaks"}), ("all", {"passes", "fails", "breaks"}), ("none", set())],
)
def test_workspaces_are_kept_as_the_command_line_says(project: Project, keep: str, expected: set[str]) -> None:
    project.write("eval.yaml", SUITE)
    script = "[{user: write, replies: [{calls: [{tool: write, args: {path: a, content: b}}]}, {say: done}]}"
    for name, text, more in (
        ("passes", "done", ""),
        ("fails", "no", ""),
        ("breaks", "done", ", {faults: [{status: 400}]}"),
    ):
        project.write(
            f"cases/{name}.yaml",
            f"""
            input: {{turns: [{{role: user, content: write}}{", {role: user, content: more}" if more else ""}]}}
            judge: {{type: rule_based, success: [{{output_contains: {{all: [{text}]}}}}]}}
            script: {script}{more}]
            """,
        )
    done = project.run("eval.yaml", "--agent", "demo", "--keep", keep)
    assert {result.case_id: result.status for result in done.run.case_results} == {
        "passes": "PASS",
        "fails": "FAIL",
        "breaks": "ERROR",
    }
    found = {result.case_id for result in done.run.case_results if (done.folder(result.case_id) / "workspace").exists()}
    assert found == expected
    for name in expected:
        assert (done.folder(name) / "workspace" / "a").read_text() == "b"

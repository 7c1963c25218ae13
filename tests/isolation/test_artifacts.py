"""`collect_artifacts`: files of the final workspace, whatever the verdict, and nothing from anywhere else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from skillup.environments.copying import FILE_LIMIT
from skillup.environments.kept import MAX_ARTIFACTS, MAX_NOTES, Artifacts, collect_artifacts
from skillup.masking import Masker
from tests.support import Project

SUITE = """
    schema_version: v1alpha1
    cases: {files: [cases/*.yaml], parallelism: 4, defaults: {collect_artifacts: [report.md, 'logs/*.log']}}
"""
DEED = "mkdir -p logs out/deep; echo r > report.md; echo l > logs/a.log; echo x > out/deep/x; echo no > other"


def write_case(project: Project, name: str, *, word: str = "did it", more: str = "", command: str = DEED) -> None:
    """A case of two turns whose first one leaves files behind."""
    replies = [{"calls": [{"tool": "bash", "args": {"command": command}}]}, {"say": "did it"}]
    second = {"user": "go on", "say": "went on", **(json.loads(more) if more else {})}
    turns = [{"role": "user", "content": "do it"}, {"role": "user", "content": "go on"}]
    case = {
        "input": {"turns": turns},
        "collect_artifacts": ["out/**", "report.md", "none/*.txt", "logs"],
        "judge": {"type": "rule_based", "success": [{"output_contains": {"all": [word], "turn": 1}}]},
        "script": [{"user": "do it", "replies": replies}, second],
    }
    project.write(f"cases/{name}.yaml", json.dumps(case))


def files_below(folder: Path) -> dict[str, str]:
    """Every file below a folder, with its text; links are shown as such."""
    paths = [path for path in folder.rglob("*") if path.is_symlink() or path.is_file()]
    return {str(path.relative_to(folder)): "link" if path.is_symlink() else path.read_text() for path in paths}


COLLECTED = {"report.md": "r\n", "logs/a.log": "l\n", "out/deep/x": "x\n"}
NOTES = ("none/*.txt matched no file", "logs matched a folder and no file; logs/** takes what is in it")


@pytest.mark.parametrize("keep", ["none", "failed"])
def test_what_matches_is_collected_whatever_the_verdict_and_the_workspace_come_to(project: Project, keep: str) -> None:
    project.write("eval.yaml", SUITE)
    write_case(project, "passes")
    write_case(project, "fails", word="something else")
    write_case(project, "breaks", more='{"faults": [{"status": 400}]}')
    done = project.run("eval.yaml", "--agent", "demo", "--keep", keep)
    statuses = {"passes": "PASS", "fails": "FAIL", "breaks": "ERROR"}
    assert {result.case_id: result.status for result in done.run.case_results} == statuses
    for name in statuses:
        trial, folder = done.trial(name), done.folder(name)
        assert files_below(folder / "artifacts") == COLLECTED
        assert trial.artifacts == tuple(sorted(COLLECTED))
        assert trial.artifact_notes == NOTES
        assert (folder / "workspace").exists() == (keep == "failed" and name != "passes")
    assert f"note: collect_artifacts: {NOTES[0]}" in done.stdout
    shown = project.call("report", done.directory, "-v").stdout
    assert "logs/a.log, out/deep/x, report.md" in shown


def test_a_trial_without_a_turn_has_none_and_one_that_asks_for_none_has_no_notes(project: Project) -> None:
    project.write("cases/a.yaml", "{input: {prompt: hi}, judge: {type: none}, script: [{say: hi}]}")
    broken = "{input: {prompt: hi}, judge: {type: none}, script: [{say: hi}], context: {git: {apply_diff: x.diff}}}"
    project.write("cases/b.yaml", broken)
    project.write("cases/x.diff", "--- a/none\n+++ b/none\n@@ -1 +1 @@\n-a\n+b\n")
    done = project.run("cases", "--agent", "demo")
    assert done.trial("b").error is not None
    for name in ("a", "b"):
        assert (done.trial(name).artifacts, done.trial(name).artifact_notes) == ((), ())
        assert not (done.folder(name) / "artifacts").exists()


def test_judging_again_leaves_artifacts_alone(project: Project) -> None:
    project.write("eval.yaml", SUITE)
    write_case(project, "passes")
    done = project.run("eval.yaml", "--agent", "demo")
    result = (done.folder() / "result.json").read_bytes()
    (done.folder() / "artifacts" / "report.md").write_text("edited by a person\n")
    assert project.call("judge", done.directory).code == 0
    assert (done.folder() / "result.json").read_bytes() == result
    assert files_below(done.folder() / "artifacts") == {**COLLECTED, "report.md": "edited by a person\n"}


def test_secrets_are_masked_in_contents_and_names(project: Project) -> None:
    secret = "swordfish-4711"
    project.write("agents/keyed.yaml", "{engine: builtin, model: scripted, env: {MY_API_KEY: '${MY_API_KEY}'}}")
    project.write("eval.yaml", SUITE)
    write_case(project, "leaks", command='mkdir -p out/$MY_API_KEY; echo "key: $MY_API_KEY" > out/$MY_API_KEY/x')
    done = project.run("eval.yaml", "--agent", "keyed", env={"MY_API_KEY": secret})
    assert done.trial().artifacts == ("out/[masked]/x",)
    assert files_below(done.folder() / "artifacts") == {"out/[masked]/x": "key: [masked]\n"}
    assert secret.encode() not in b"".join(path.read_bytes() for path in done.directory.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ('cd ..; rm -r "$OLDPWD"; ln -s /etc workspace', "it is a link now"),
        ('cd ..; rm -r "$OLDPWD"', "No such file or directory"),
        ('cd ..; rm -r "$OLDPWD"; mkfifo workspace', "Not a directory"),
    ],
)
def test_of_a_workspace_that_is_gone_nothing_is_collected(project: Project, command: str, why: str) -> None:
    project.write("eval.yaml", SUITE)
    write_case(project, "gone", command=command)
    done = project.run("eval.yaml", "--agent", "demo")
    assert (done.trial().artifacts, done.trial().artifact_notes) == ((), (f"left out: . ({why})",))
    assert not (done.folder() / "artifacts").exists()


def collected(place: Path, *patterns: str) -> Artifacts:
    """What is collected from the folder `from`."""
    (place / "to").mkdir(exist_ok=True)
    return collect_artifacts(place / "from", place / "to", Masker(), patterns)


def make(place: Path, names: Iterable[str]) -> None:
    for name in names:
        path = place / "from" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.fsencode(name))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("**", {"a.md", ".b", "in/a.md", "in/.c/d", "in/deep/er/a.txt", "sub/x"}),
        ("*", {"a.md", ".b"}),
        ("*.md", {"a.md"}),
        ("**/*.md", {"a.md", "in/a.md"}),
        ("in/*", {"in/a.md"}),
        ("in/**", {"in/a.md", "in/.c/d", "in/deep/er/a.txt"}),
        ("in/[!a]*/**/?.txt", {"in/deep/er/a.txt"}),
        ("a.md", {"a.md"}),
        ("A.md", set()),
    ],
)
def test_globs_mean_what_they_mean_everywhere(tmp_path: Path, pattern: str, expected: set[str]) -> None:
    make(tmp_path, ("a.md", ".b", "in/a.md", "in/.c/d", "in/deep/er/a.txt", ".git/config", "sub/.git/HEAD", "sub/x"))
    found = collected(tmp_path, pattern)
    assert set(found.paths) == set(files_below(tmp_path / "to" / "artifacts")) == expected
    assert found.notes == (() if expected else (f"{pattern} matched no file",))


def test_links_and_special_files_are_never_followed_or_opened(tmp_path: Path) -> None:
    make(tmp_path, ("real",))
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    source = tmp_path / "from"
    for name, target in (("file", "../outside/secret"), ("folder", "../outside"), ("inner", "real"), ("self", "self")):
        (source / name).symlink_to(target)
    os.mkfifo(source / "pipe")
    found = collected(tmp_path, "**", "folder/**", "folder/secret")
    assert found.paths == ("real",)
    assert files_below(tmp_path / "to" / "artifacts") == {"real": "real"}
    unmatched = ("folder/** matched no file", "folder/secret matched no file")
    links = tuple(f"left out: {name} (a link)" for name in ("file", "folder", "inner"))
    assert found.notes == (*unmatched, *links, "left out: pipe (not a regular file)", "left out: self (a link)")


def test_sizes_and_counts_are_bounded_and_what_is_left_out_is_told(tmp_path: Path) -> None:
    make(tmp_path, (f"many/{number:04}" for number in range(MAX_ARTIFACTS + MAX_NOTES + 5)))
    with (tmp_path / "from" / "large").open("wb") as file:
        file.truncate(FILE_LIMIT + 1)
    found = collected(tmp_path, "large", "many/*")
    assert len(found.paths) == MAX_ARTIFACTS == len(files_below(tmp_path / "to" / "artifacts"))
    assert found.notes[0] == f"left out: large ({FILE_LIMIT + 1} bytes)"
    assert found.notes[1] == f"left out: many/{MAX_ARTIFACTS} (more than {MAX_ARTIFACTS} files)"
    assert found.notes[-1] == "left out: and 6 more"
    assert len(found.notes) == MAX_NOTES + 1


def test_odd_names_are_copied_as_they_are_and_listed_on_one_line(tmp_path: Path) -> None:
    make(tmp_path, ("a\nb", "\x1b[31m", "ü", "a\udcff"))
    found = collected(tmp_path, "*")
    assert found.paths == ("\\x1b[31m", "a\\nb", "a\\udcff", "ü")
    assert {path.name for path in (tmp_path / "to" / "artifacts").iterdir()} == {"a\nb", "\x1b[31m", "ü", "a\udcff"}

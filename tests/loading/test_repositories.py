"""What `context.git` needs is decided when the case is loaded, as far as files show it; git itself is not run."""

from __future__ import annotations

import os
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from skillup.errors import InputError
from skillup.loading.native import load_suites
from skillup.loading.rendering import render_faults

HEAD = "input: {prompt: hi}\njudge: {type: none}\n"
DIFF = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
NO_REPOSITORY = (
    "there will be no repository in the workspace (add `init: true`, or use a fixture with a .git of its own)"
)
ELSEWHERE = "the fixture app cannot be used: it is the working tree of a repository elsewhere: its "
CLONE = " (agents would work in that repository; leave .git out of the fixture, or make it a clone)"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, with a fixture and a patch."""
    monkeypatch.chdir(tmp_path)
    write("app/x", "a\n")
    write("fix.diff", DIFF)
    return tmp_path


def write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")


def git(*arguments: str) -> None:
    """Runs git in the fixture."""
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run([shutil.which("git") or "git", *identity, *arguments], cwd="app", check=True, capture_output=True)


def report_on(context: str, suite: str = "") -> str:
    """The faults of a case with this context; empty when it is in order."""
    write("a.yaml", HEAD + f"context: {context}\n")
    if suite:
        write("eval.yaml", suite)
    try:
        load_suites([Path("eval.yaml" if suite else "a.yaml")])
    except InputError as error:
        return render_faults(error.faults)
    return ""


@pytest.mark.parametrize(
    "context",
    [
        "{git: {init: true, checkout: dev, remotes: [{name: o, url: ../o}]}}",
        "{repo_fixture: app, git: {init: true, checkout: dev}}",
        "{git: {apply_diff: fix.diff}}",
        "{repo_fixture: app, git: {apply_diff: ./fix.diff}}",
        "{git: {checkout: null, apply_diff: null}}",
    ],
)
def test_what_can_be_had_is_in_order(context: str) -> None:
    assert report_on(context) == ""


@pytest.mark.parametrize("fixture", ["", "repo_fixture: app, "])
def test_branch_and_remotes_need_a_repository(fixture: str) -> None:
    report = report_on(f"{{{fixture}git: {{checkout: dev, remotes: [{{name: o, url: ../o}}]}}}}").splitlines()
    assert [line.partition(": ")[2] for line in report] == [
        f"context.git.checkout: {NO_REPOSITORY}",
        f"context.git.remotes: {NO_REPOSITORY}",
    ]
    assert report[0].startswith("a.yaml:3:")


def test_set_up_steps_may_make_the_repository() -> None:
    suite = "schema_version: v1alpha1\nenvironment: {setup_steps: [{run: git init}]}\ncases: {files: [a.yaml]}\n"
    assert report_on("{git: {checkout: dev}}", suite) == ""


def test_a_branch_is_looked_for_in_the_repository_of_the_fixture() -> None:
    git("init", "--quiet", "--initial-branch=main")
    assert report_on("{repo_fixture: app, git: {checkout: any}}") == "", "nothing is committed, so it is made"
    git("add", ".")
    git("commit", "--quiet", "--message", "first")
    git("branch", "feature/login")
    git("update-ref", "refs/remotes/origin/far/away", "HEAD")
    for packed in (False, True):
        if packed:
            git("pack-refs", "--all")
            git("branch", "later")
        for name in ("main", "feature/login", "far/away", *(["later"] if packed else [])):
            assert report_on(f"{{repo_fixture: app, git: {{checkout: {name}}}}}") == "", name
        assert report_on("{repo_fixture: app, git: {checkout: feature/logn}}").endswith(
            'context.git.checkout: the repository of app has no branch "feature/logn" (did you mean "feature/login"?)'
        )
        assert "(it has far/away, feature/login" in report_on("{repo_fixture: app, git: {checkout: zzz}}")
        assert 'has no branch "origin"' in report_on("{repo_fixture: app, git: {checkout: origin}}")
    git("checkout", "--quiet", "--detach")
    assert 'has no branch "zzz"' in report_on("{repo_fixture: app, git: {checkout: zzz}}")


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("none.diff", "there is no file none.diff (paths are relative to {here})"),
        ("app", "app is no file (paths are relative to {here})"),
        ("pipe", "pipe is no file (paths are relative to {here})"),
        ("../x.diff", "../x.diff leaves the suite's folder {here} (move it inside, or pass --allow-path DIR)"),
        ("/etc/passwd", "/etc/passwd leaves the suite's folder {here} (move it inside, or pass --allow-path DIR)"),
        (
            "out.diff",
            (
                "out.diff leaves the suite's folder {here} (a link leads to /etc/passwd) "
                "(move it inside, or pass --allow-path DIR)"
            ),
        ),
        ("empty.diff", "empty.diff holds no diff (write it with `git diff --binary`)"),
        ("text.diff", "text.diff holds no diff (write it with `git diff --binary`)"),
        ("large.diff", "large.diff is larger than 64 MB (put the files into a fixture)"),
    ],
)
def test_a_patch_is_a_file_of_the_suite_that_holds_a_diff(place: Path, written: str, told: str) -> None:
    write("empty.diff", "")
    write("text.diff", "nothing that is one\n")
    os.mkfifo("pipe")
    Path("out.diff").symlink_to("/etc/passwd")
    with Path("large.diff").open("wb") as file:
        file.truncate(64 * 1024 * 1024 + 1)
    report = report_on(f"{{git: {{apply_diff: {written}}}}}")
    assert report.partition("context.git.apply_diff: ")[2] == told.format(here=place)


ELSEWHERES = {
    "a linked working tree": ("echo gitdir: /somewhere/.git > .git", ".git is no folder"),
    "a link": ("mkdir ../other; ln -s ../other .git", ".git is no folder"),
    "a shared folder": ("mkdir .git; echo /somewhere > .git/commondir", ".git/commondir leads there"),
    "borrowed objects": (
        "mkdir -p .git/objects/info; echo /somewhere > .git/objects/info/alternates",
        ".git/objects/info/alternates leads there",
    ),
    "a nested working tree": (
        "mkdir .git sub; echo gitdir: ../../other > sub/.git",
        "sub/.git is no folder",
    ),
    "a nested link": ("mkdir -p .git/modules/sub sub; ln -s ../.git/modules/sub sub/.git", "sub/.git is no folder"),
    "a nested repository": ("mkdir -p .git sub/.git; echo x > sub/.git/commondir", "sub/.git/commondir leads there"),
    "a bare repository": (
        "mkdir -p in/refs in/objects/info; touch in/HEAD; echo x > in/objects/info/alternates",
        "in/objects/info/alternates leads there",
    ),
    "another working tree": (
        "mkdir .git; printf '[core]\\n\\tworktree = /home\\n' > .git/config",
        ".git/config says that it works in /home",
    ),
    "another working tree, in disguise": (
        "mkdir .git; printf '[Core] WorkTree=../../out # /../app' > .git/config",
        ".git/config says that it works in ../../out # /../app",
    ),
    "another working tree, of a submodule": (
        "mkdir -p .git/sub/.git; cd .git/sub/.git; printf '[core]\\nworktree = ../../../..' > config",
        ".git/sub/.git/config says that it works in ../../../..",
    ),
    "another working tree, for this one": (
        "mkdir .git; printf '[core]\\nworktree = \"..\"' > .git/config.worktree",
        '.git/config.worktree says that it works in ".."',
    ),
    "this working tree, which is elsewhere once it is copied": (
        "mkdir .git; printf '[core]\\nworktree = %s' \"$PWD\" > .git/config",
        ".git/config says that it works in {here}/app",
    ),
    "a configuration that lies elsewhere": (
        "mkdir .git; printf '[include]\\n\\tpath = ../config' > .git/config",
        ".git/config includes other files, or is too large to be looked at",
    ),
    "linked references": ("mkdir .git ../refs; ln -s ../../refs .git/refs", ".git/refs is a link"),
}


@pytest.mark.parametrize(("made", "told"), ELSEWHERES.values(), ids=ELSEWHERES)
def test_a_fixture_whose_repository_lies_elsewhere_is_refused(place: Path, made: str, told: str) -> None:
    subprocess.run(["/bin/sh", "-c", made], cwd="app", check=True)
    report = report_on("{repo_fixture: app, git: {checkout: main}}")
    assert report.partition("context.repo_fixture: ")[2].splitlines()[0] == ELSEWHERE + told.format(here=place) + CLONE


SUBMODULE = (
    "mkdir -p .git/modules/sub/objects .git/modules/sub/refs sub; echo gitdir: ../.git/modules/sub > sub/.git; "
    "touch .git/modules/sub/HEAD; printf '[core]\\n\\tworktree = ../../../sub\\n' > .git/modules/sub/config"
)


def test_submodules_are_a_part_of_the_repository() -> None:
    subprocess.run(
        ["/bin/sh", "-c", SUBMODULE],
        cwd="app",
        check=True,
    )
    assert report_on("{repo_fixture: app}") == ""


def test_what_git_is_asked_for_needs_a_repository_that_is_whole() -> None:
    """An agent may be asked to mend a broken one; git itself can do nothing with it."""
    Path("app/.git").mkdir()
    assert report_on("{repo_fixture: app, git: {apply_diff: fix.diff}}") == ""
    assert report_on("{repo_fixture: app, git: {init: true}}").endswith(
        "context.git: the .git of app is no repository: it has no HEAD "
        "(leave .git out of the fixture, or git out of the context)"
    )


def test_a_fixture_that_is_not_there_is_one_fault() -> None:
    assert report_on("{repo_fixture: none, git: {checkout: main}}").count("\n") == 0

"""Git in the workspace, with the real git: what agents find there, and what strangers' repositories cannot do."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from skillup.results import TrialResult
from tests.support import Project

SUITE = "{schema_version: v1alpha1, cases: {files: [cases/*.yaml], parallelism: 4}}"
SHOW = (
    "echo on $(git branch --show-current); git log --all --format='commit %h %an %cn %ad %s'; "
    "git reflog --format='reflog %gn %gd %gs' --date=iso; git remote -v; git status --short; cat x new 2>/dev/null"
)
"""What the agent looks at; its answer is what that printed."""

CHANGE = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-{old}\n+{new}\n"
CREATE = "diff --git a/{0} b/{0}\nnew file mode 100644\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+planted\n"


def write_case(project: Project, name: str, context: object) -> None:
    """A case whose agent looks at the repository."""
    script = [{"replies": [{"calls": [{"tool": "bash", "args": {"command": SHOW}}]}, {"say": "{{result}}"}]}]
    case = {"input": {"prompt": "look"}, "context": context, "judge": {"type": "none"}, "script": script}
    project.write(f"cases/{name}.yaml", json.dumps(case))


def git(folder: Path, *arguments: str) -> None:
    """Runs git in a fixture."""
    identity = ("-c", "user.name=Stranger", "-c", "user.email=s@example.com")
    program = shutil.which("git") or "git"
    subprocess.run([program, *identity, *arguments], cwd=folder, check=True, capture_output=True)


def write_repository(folder: Path) -> None:
    """A fixture that is a repository: `x` is main's on main, feature's on feature."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main", "--template=")
    for branch in ("main", "feature"):
        if branch != "main":
            git(folder, "checkout", "--quiet", "-b", branch)
        (folder / "x").write_text(f"of {branch}\n")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", f"on {branch}")
    git(folder, "checkout", "--quiet", "main")


def run(project: Project) -> dict[str, TrialResult]:
    """The results of all cases, by case; workspaces are kept."""
    project.write("eval.yaml", SUITE)
    done = project.run("eval.yaml", "--agent", "demo", "--keep", "all")
    assert done.directory.exists(), done.stderr
    return {result.case_id: result for result in done.run.case_results}


@dataclass(frozen=True)
class Seen:
    """A context, and what the agent then finds: lines of what it printed, and lines that are not there."""

    context: dict[str, object]
    lines: tuple[str, ...]
    absent: tuple[str, ...] = ()


FIRST = "Sample Author Sample Author Mon Jan 1 00:00:00 2024 +0000 Initial state"

SEEN = {
    "new": Seen({"files": {"x": "1\n"}, "git": {"init": True}}, ("on main", FIRST, "1"), ("?? x",)),
    "new-on-a-branch": Seen(
        {"repo_fixture": "plain", "files": {"new": "2\n"}, "git": {"init": True, "checkout": "feature/a"}},
        ("on feature/a", FIRST, "plain", "2"),
        ("?? new",),
    ),
    "new-with-remotes": Seen(
        {
            "git": {
                "init": True,
                "remotes": [{"name": "origin", "url": "ssh://git@example.invalid/a.git"}, {"name": "b", "url": "../b"}],
            }
        },
        ("origin\tssh://git@example.invalid/a.git (fetch)", "b\t../b (push)", FIRST),
    ),
    "new-with-a-patch": Seen(
        {"repo_fixture": "plain", "git": {"init": True, "apply_diff": "patches/plain.diff"}},
        (" M x", "patched", FIRST),
    ),
    "of-the-fixture": Seen({"repo_fixture": "repository"}, ("on main", "of main"), (FIRST, " M x")),
    "init-changes-no-repository": Seen(
        {"repo_fixture": "repository", "files": {"new": "3\n"}, "git": {"init": True}},
        ("on main", "?? new", "3"),
        (FIRST,),
    ),
    "branch-then-files-then-patch": Seen(
        {
            "repo_fixture": "repository",
            "files": {"x": "of the case\n", "new": "4\n"},
            "git": {
                "checkout": "feature",
                "apply_diff": "patches/case.diff",
                "remotes": [{"name": "o", "url": "../o"}],
            },
        },
        ("on feature", " M x", "?? new", "patched", "o\t../o (fetch)"),
        ("of the case", FIRST),
    ),
    "branch-where-nothing-is-committed": Seen(
        {"repo_fixture": "unborn", "git": {"checkout": "dev"}}, ("on dev", "?? x"), (FIRST,)
    ),
    "branch-of-a-remote": Seen({"repo_fixture": "repository", "git": {"checkout": "far"}}, ("on far", "of feature")),
    "patch-without-a-repository": Seen(
        {"repo_fixture": "plain", "git": {"apply_diff": "patches/plain.diff"}}, ("on", "patched")
    ),
    "binary-patch": Seen({"git": {"apply_diff": "patches/binary.diff"}}, ("on",)),
    "patch-of-crlf": Seen(
        {"files": {"x": "plain\r\n"}, "git": {"init": True, "apply_diff": "patches/crlf.diff"}}, (" M x", "patched")
    ),
}


def write_fixtures(project: Project) -> None:
    """Fixtures and patches of all cases below."""
    project.write("plain/x", "plain\n")
    write_repository(project.root / "repository")
    git(project.root / "repository", "update-ref", "refs/remotes/origin/far", "feature")
    git(project.root / "repository", "config", "remote.origin.url", "../nowhere")
    git(project.root / "repository", "config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    project.write("unborn/x", "unborn\n")
    git(project.root / "unborn", "init", "--quiet", "--initial-branch=main", "--template=")
    project.write("patches/plain.diff", CHANGE.format(old="plain", new="patched"))
    project.write("patches/case.diff", CHANGE.format(old="of the case", new="patched"))
    (project.root / "patches/crlf.diff").write_bytes(CHANGE.format(old="plain\r", new="patched\r").encode())
    made = project.root / "made"
    made.mkdir()
    git(made, "init", "--quiet")
    (made / "picture").write_bytes(bytes(range(256)))
    git(made, "add", "picture")
    with (project.root / "patches" / "binary.diff").open("wb") as file:
        subprocess.run(
            [shutil.which("git") or "git", "diff", "--cached", "--binary"], cwd=made, stdout=file, check=True
        )


def test_agents_find_branch_commit_remotes_and_patch_as_the_case_says(project: Project) -> None:
    write_fixtures(project)
    for name, seen in SEEN.items():
        write_case(project, name, seen.context)
    results = run(project)
    for name, seen in SEEN.items():
        assert results[name].error is None, (name, results[name].error)
        said = results[name].response or ""
        # The short hash of the commit comes before what is compared.
        lines = {part for line in said.splitlines() for part in (line.rstrip("\r"), line.split(" ", 2)[-1])}
        assert set(seen.lines) - lines == set(), (name, said)
        assert set(seen.absent) & lines == set(), (name, said)
    picture = project.root / "run-1" / results["binary-patch"].folder / "workspace" / "picture"
    assert picture.read_bytes() == bytes(range(256))


def test_two_trials_get_the_same_commits_and_the_same_log(project: Project) -> None:
    write_fixtures(project)
    contexts = [seen.context for name, seen in SEEN.items() if name in ("new-on-a-branch", "branch-of-a-remote")]
    for number in range(4):
        write_case(project, f"case-{number}", contexts[number % 2])
    results = run(project)
    said = [results[f"case-{number}"].response or "" for number in range(4)]
    assert said[0] == said[2]
    assert said[1] == said[3]
    assert "reflog Sample Author HEAD@{2024-01-01 00:00:00 +0000} commit (initial): Initial state" in said[0]
    assert "reflog Sample Author HEAD@{2024-01-01 00:00:00 +0000} checkout: moving from main to far" in said[1]


REFUSED = {
    "out": (CREATE.format("../out"), "invalid path '../out'"),
    "into-git": (CREATE.format(".git/hooks/post-checkout"), "invalid path '.git/hooks/post-checkout'"),
    "into-git-in-capitals": (CREATE.format(".GIT/config"), "invalid path '.GIT/config'"),
    "through-a-link": (CREATE.format("link/planted"), "affected file 'link/planted' is beyond a symbolic link"),
    "through-its-own-link": (
        "diff --git a/own b/own\nnew file mode 120000\n--- /dev/null\n+++ b/own\n@@ -0,0 +1 @@\n"
        "+../outside\n\\ No newline at end of file\n" + CREATE.format("own/planted"),
        "affected file 'own/planted' is beyond a symbolic link",
    ),
    "onto-a-link": (CHANGE.format(old="outside", new="planted").replace("/x", "/onto"), "onto: "),
    "of-another-text": (CHANGE.format(old="another", new="planted"), "patch failed: x:1"),
    "crlf-for-lf": (CHANGE.format(old="plain\r", new="planted\r"), "patch failed: x:1"),
    "binary-without-its-bytes": (
        "diff --git a/b b/b\nnew file mode 100644\nindex 0000000..1111111\nBinary files /dev/null and b/b differ\n",
        "cannot apply binary patch to 'b' without full index line",
    ),
    "cut": ("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,4 +1,4 @@\n-plain\n", "corrupt patch at line 6"),
    "headers-alone": ("--- a\n", "No valid patches in input"),
}
"""Patches, and what git says of each."""


@pytest.mark.parametrize("init", ["true", "false"])
def test_a_patch_that_cannot_be_or_leads_out_is_an_error_and_changes_nothing(project: Project, init: str) -> None:
    outside = project.write("fixture/outside/file", "outside\n").parent
    project.write("fixture/x", "plain\n")
    (project.root / "fixture" / "link").symlink_to(outside)
    (project.root / "fixture" / "onto").symlink_to("outside/file")
    for name, (patch, _) in REFUSED.items():
        project.write(f"patches/{name}.diff", "").write_bytes(patch.encode())
        git_wanted = {"init": init == "true", "apply_diff": f"patches/{name}.diff"}
        write_case(project, name, {"repo_fixture": "fixture", "git": git_wanted})
    results = run(project)
    for name, (_, told) in REFUSED.items():
        error = results[name].error
        assert error is not None, name
        assert (error.kind, error.phase) == ("setup", "setup"), (name, error)
        said = f"context.git.apply_diff: `git apply --whitespace=nowarn - < patches/{name}.diff` failed with exit code"
        assert error.message.startswith(said)
        assert told in error.tail, (name, error.tail)
    assert sorted(path.name for path in outside.iterdir()) == ["file"]
    assert (outside / "file").read_text() == "outside\n"


def hostile(project: Project) -> Path:
    """A repository whose configuration and hooks name programs, for every occasion; each would leave a mark."""
    marks = project.root / "marks"
    marks.mkdir()
    folder = project.root / "hostile"
    write_repository(folder)
    git(folder, "update-ref", "refs/remotes/origin/far", "feature")
    hooks = folder / ".git" / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit", "applypatch-msg"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {marks}/hook-{name}\n")
        (hooks / name).chmod(0o755)
    (folder / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    (folder / ".git" / "info").mkdir()
    (folder / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    settings = {
        "core.fsmonitor": f"touch {marks}/fsmonitor; false",
        "core.hooksPath": str(hooks),
        "core.pager": f"touch {marks}/pager",
        "core.editor": f"touch {marks}/editor",
        "core.sshCommand": f"touch {marks}/ssh",
        "core.askPass": f"touch {marks}/askpass",
        "credential.helper": f"!touch {marks}/credential",
        "filter.evil.clean": f"touch {marks}/clean; cat",
        "filter.evil.smudge": f"touch {marks}/smudge; cat",
        "filter.evil.process": f"touch {marks}/process",
        "filter.evil.required": "true",
        "diff.evil.textconv": f"touch {marks}/textconv",
        "merge.evil.driver": f"touch {marks}/driver",
        "apply.whitespace": "error-all",
        "gpg.program": f"touch {marks}/gpg",
        "commit.gpgsign": "true",
        "alias.switch": f"!touch {marks}/alias",
        "gc.auto": "1",
        "remote.origin.url": f"ext::touch {marks}/ext",
        "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*",
        "remote.origin.uploadpack": f"touch {marks}/uploadpack",
        "remote.origin.promisor": "true",
        "remote.origin.partialclonefilter": "blob:none",
        "protocol.allow": "always",
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "submodule.recurse": "true",
    }
    lines = [f"[{section(key)}]\n\t{key.rpartition('.')[2]} = {json.dumps(value)}\n" for key, value in settings.items()]
    config = folder / ".git" / "config"
    config.write_text(config.read_text() + "".join(lines))
    return marks


def section(key: str) -> str:
    """The heading under which a key stands in a configuration."""
    first, *rest = key.split(".")
    return f'{first} "{rest[0]}"' if len(rest) > 1 else first


HOSTILE = {
    "switches": {"repo_fixture": "hostile", "git": {"checkout": "feature"}},
    "guesses": {"repo_fixture": "hostile", "git": {"checkout": "far"}},
    "all": {
        "repo_fixture": "hostile",
        "files": {"new": "1\n"},
        "git": {
            "init": True,
            "checkout": "feature",
            "apply_diff": "patches/feature.diff",
            "remotes": [{"name": "more", "url": "../more"}],
        },
    },
}


def test_a_strangers_repository_runs_nothing(project: Project) -> None:
    marks = hostile(project)
    project.write("patches/feature.diff", CHANGE.format(old="of feature", new="patched"))
    quiet = {"input": {"prompt": "hi"}, "judge": {"type": "none"}, "script": [{"say": "hello"}]}
    for name, context in HOSTILE.items():
        project.write(f"cases/{name}.yaml", json.dumps({**quiet, "context": context}))
    results = run(project)
    for name in HOSTILE:
        assert results[name].error is None, (name, results[name].error)
        kept = project.root / "run-1" / results[name].folder / "workspace"
        assert (kept / "x").read_text() == ("patched\n" if name == "all" else "of feature\n")
        assert (kept / ".git" / "HEAD").read_text() == f"ref: refs/heads/{'far' if name == 'guesses' else 'feature'}\n"
    assert sorted(path.name for path in marks.iterdir()) == []


def test_what_a_strangers_repository_lacks_is_not_fetched(project: Project) -> None:
    """A partial clone: git would fetch the files of the branch, by programs that the repository names."""
    marks = hostile(project)
    blob = subprocess.run(
        [shutil.which("git") or "git", f"--git-dir={project.root}/hostile/.git", "rev-parse", "feature:x"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    lacking = project.root / "hostile" / ".git" / "objects" / blob[:2] / blob[2:]
    lacking.unlink()
    write_case(project, "lacks", {"repo_fixture": "hostile", "git": {"checkout": "feature"}})
    error = run(project)["lacks"].error
    assert error is not None
    assert error.kind == "setup"
    told = "context.git.checkout: `git rev-list --objects --no-walk --quiet HEAD` failed with exit code 128"
    assert error.message == told
    assert f"missing blob object '{blob}'" in error.tail
    assert sorted(path.name for path in marks.iterdir()) == []


def test_folders_that_look_like_a_repository_are_none(project: Project) -> None:
    """A workspace with the files of a bare repository: git would read its configuration, and run its filters."""
    marks = hostile(project)
    (project.root / "hostile" / ".git").rename(project.root / "bare")
    shutil.copytree(project.root / "bare", project.root / "hostile", dirs_exist_ok=True)
    project.write("patches/main.diff", CHANGE.format(old="of main", new="patched"))
    quiet = {"input": {"prompt": "hi"}, "judge": {"type": "none"}, "script": [{"say": "hello"}]}
    context = {"repo_fixture": "hostile", "git": {"apply_diff": "patches/main.diff"}}
    project.write("cases/bare.yaml", json.dumps({**quiet, "context": context}))
    result = run(project)["bare"]
    assert result.error is None, result.error
    assert (project.root / "run-1" / result.folder / "workspace" / "x").read_text() == "patched\n"
    assert sorted(path.name for path in marks.iterdir()) == []


def test_filters_of_repositories_within_the_workspace_are_not_run_either(project: Project) -> None:
    """Nested ones, submodules, and folders that files of the case make look like one; the agent asks each."""
    marks = project.root / "marks"
    marks.mkdir()
    top = project.root / "top"
    evil = f'[core]\n\trepositoryformatversion = 0\n[filter "evil"]\n\tclean = "touch {marks}/FROM; cat"\n'
    write_repository(project.root / "part")
    write_repository(top)
    for name in ("nested", "absorbed"):
        shutil.copytree(project.root / "part", top / name)
        (top / name / ".gitattributes").write_text("* filter=evil\n")
        (top / name / ".git" / "config").write_text(evil.replace("FROM", name))
        git(top, "add", name)
    git(top, "-c", f"submodule.absorbed.url={project.root}/part", "commit", "--quiet", "--message", "both")
    (top / ".git" / "modules").mkdir()
    (top / "absorbed" / ".git").rename(top / ".git" / "modules" / "absorbed")
    (top / "absorbed" / ".git").write_text("gitdir: ../.git/modules/absorbed\n")
    bare = {
        "bare/HEAD": "ref: refs/heads/main\n",
        "bare/refs/x": "",
        "bare/objects/x": "",
        "bare/config": evil.replace("FROM", "bare").replace("[core]", "[core]\n\tbare = false\n\tworktree = ."),
        "bare/.gitattributes": "* filter=evil\n",
    }
    look = "git status; for i in nested absorbed bare; do (cd $i && git add --all && git status); done"
    replies = [{"calls": [{"tool": "bash", "args": {"command": look}}]}, {"say": "{{result}}"}]
    case = {"input": {"prompt": "look"}, "judge": {"type": "none"}, "script": [{"replies": replies}]}
    context = {"repo_fixture": "top", "files": bare, "git": {"checkout": "main"}}
    project.write("cases/nested.yaml", json.dumps({**case, "context": context}))
    result = run(project)["nested"]
    assert result.error is None, result.error
    assert (result.response or "").count("On branch") == 4, result.response
    assert sorted(path.name for path in marks.iterdir()) == []


def test_a_git_that_refuses_or_is_missing_is_an_error_of_the_set_up(project: Project) -> None:
    write_repository(project.root / "repository")
    git(project.root / "repository", "config", "remote.origin.url", "../a")
    (project.root / "repository" / "x").write_text("changed, and not committed\n")
    write_case(project, "dirty", {"repo_fixture": "repository", "git": {"checkout": "feature"}})
    remotes = [{"name": "origin", "url": "../b"}]
    write_case(project, "taken", {"repo_fixture": "repository", "git": {"remotes": remotes}})
    results = run(project)
    for name, message, tail in (
        ("dirty", "context.git.checkout: `git switch --quiet --guess feature` failed with exit code 1", "overwritten"),
        (
            "taken",
            "context.git.remotes: `git remote add -- origin ../b` failed with exit code 3",
            "remote origin already exists",
        ),
    ):
        error = results[name].error
        assert error is not None
        assert (error.kind, error.message) == ("setup", message)
        assert tail in error.tail
    write_case(project, "none", {"git": {"init": True}})
    path = project.root / "bin"
    path.mkdir()
    (path / "bash").symlink_to("/bin/bash")
    done = project.run("cases/none.yaml", "--agent", "demo", env={"PATH": str(path)})
    error = done.trial("none").error
    assert error is not None
    assert error.kind == "setup"
    assert "context.git.init: `git init` cannot be started: git: program not found" in error.message


def test_a_file_of_the_case_is_not_written_into_a_repository_through_a_link(project: Project) -> None:
    write_repository(project.root / "repository")
    (project.root / "repository" / "settings").symlink_to(".git")
    write_case(project, "through", {"repo_fixture": "repository", "files": {"settings/config": "[core]"}})
    error = run(project)["through"].error
    assert error is not None
    assert (error.kind, error.message) == ("setup", "context.files: settings/config leads into a .git")

"""`context.git`, and what may be collected: names and addresses that git, or a program behind it, could misread."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from skillup.spec.case import Case


def case(**keys: Any) -> Case:
    return Case.model_validate({"id": "a", "input": {"prompt": "hi"}, **keys})


def problem_of(**keys: Any) -> str:
    """What is said of the one fault of a case."""
    with pytest.raises(ValidationError) as caught:
        case(**keys)
    (error,) = caught.value.errors()
    return error["msg"]


BRANCHES = ("main", "feature/login", "v1.2", "a-b_c", "übung", "user/x@y", "release-2024.1", "-".join("ab"))
NO_BRANCHES = {
    **dict.fromkeys(("-", "--orphan=x", "-c", "-f/x"), "so git would take it for an option"),
    **dict.fromkeys(
        (
            *("", " ", "a b", "a\tb", "a\nb", "a\0b", "a\x7fb", "a..b", "a~1", "a^", "a:b", "a?", "a*", "a[b", "a\\b"),
            *("/a", "a/", "a//b", ".a", "a/.b", "a.", "a.lock", "a.lock/b", "@", "@{-1}", "a@{1}", "HEAD"),
        ),
        "cannot name a branch",
    ),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_a_branch_may_be_named(name: str) -> None:
    assert case(context={"git": {"init": True, "checkout": name}}).context.git.checkout == name


@pytest.mark.parametrize(("name", "problem"), NO_BRANCHES.items())
def test_a_name_that_no_branch_can_have_is_refused(name: str, problem: str) -> None:
    assert problem in problem_of(context={"git": {"init": True, "checkout": name}})


ADDRESSES = (
    "https://example.com/a.git",
    "https://user@example.com:8443/a.git",
    "git@example.com:team/a.git",
    "ssh://git@example.com/a-b/c.git",
    "file:///srv/a.git",
    "../a.git",
    "/srv/a.git",
)
NO_ADDRESSES = {
    **dict.fromkeys(("", " ", "https://a/b c", "https://a\n", "a\0b", "https://a/\x1b[31m"), "is no address"),
    **dict.fromkeys(("ext::sh -c x", "a b"), "is no address"),
    **dict.fromkeys(("ext::sh", "fd::17", "ext::sh%20-c%20x", "my+helper::x"), "names a program that git would run"),
    **dict.fromkeys(
        ("--upload-pack=x", "-u", "ssh://-oProxyCommand=x/a", "ssh://git@-oProxyCommand=x/a", "git@-oProxyCommand=x:a"),
        "would take what follows for an option",
    ),
}


@pytest.mark.parametrize("url", ADDRESSES)
def test_a_remote_may_have_an_address(url: str) -> None:
    (remote,) = case(context={"git": {"init": True, "remotes": [{"name": "origin", "url": url}]}}).context.git.remotes
    assert remote.url == url


@pytest.mark.parametrize(("url", "problem"), NO_ADDRESSES.items())
def test_an_address_that_could_run_something_is_refused(url: str, problem: str) -> None:
    assert problem in problem_of(context={"git": {"init": True, "remotes": [{"name": "origin", "url": url}]}})


@pytest.mark.parametrize("name", ["", "-f", "a b", "a/b", "..", "a..b", "a.lock", "a.", ".a", "a\n", "é"])
def test_a_name_that_no_remote_can_have_is_refused(name: str) -> None:
    given = {"init": True, "remotes": [{"name": name, "url": "../a"}]}
    assert "cannot name a remote" in problem_of(context={"git": given})


def test_a_remote_is_named_once() -> None:
    twice = [{"name": "origin", "url": "../a"}, {"name": "origin", "url": "../b"}]
    assert 'there is a remote "origin" already' in problem_of(context={"git": {"init": True, "remotes": twice}})


@pytest.mark.parametrize("path", [".git/config", "./.git/hooks/pre-commit", "sub/.git", ".GIT/config", ".git"])
def test_a_file_of_the_case_may_not_be_put_where_git_reads_what_it_runs(path: str) -> None:
    assert "what git reads there it may run" in problem_of(context={"files": {path: "text"}})


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("../*", "leaves its folder"),
        ("a/../../b", "leaves its folder"),
        ("/etc/*", "leaves its folder"),
        ("~/x", "leaves its folder"),
        ("a\\b", "holds a backslash or NUL"),
        ("", "an empty path names nothing"),
        ("./", "an empty path names nothing"),
        (".git/**", "what lies in a .git is never collected"),
        ("sub/.git", "what lies in a .git is never collected"),
    ],
)
def test_what_is_collected_lies_in_the_workspace(pattern: str, problem: str) -> None:
    assert problem in problem_of(collect_artifacts=[pattern])

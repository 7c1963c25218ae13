"""`files_exist`, `files_not_exist` and `file_contains`: what the snapshots hold."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from skillup.environments.snapshot import HASH_LIMIT, MAX_DEPTH
from skillup.judging.rules import evaluate
from tests.judging.story import Story, rule

FILES: dict[str, str | bytes | None] = {
    "a.txt": "first line\nsecond line\n",
    "docs/deep/b.md": "# B",
    ".hidden": "x",
    "empty/": "",
    "[odd] name?.txt": "odd",
}


@pytest.mark.parametrize(
    ("written", "state"),
    [
        ("files_exist: [a.txt]", "met"),
        ("files_exist: [a.txt, missing.txt]", "not_met"),
        ("files_exist: [docs]", "met"),
        ("files_exist: [empty]", "met"),
        ("files_exist: ['*.txt']", "met"),
        ("files_exist: ['*.md']", "not_met"),
        ("files_exist: ['**/*.md']", "met"),
        ("files_exist: ['docs/**/b.md']", "met"),
        ("files_exist: ['?.txt']", "met"),
        ("files_exist: ['.h*']", "met"),
        ("files_exist: ['[odd] name?.txt']", "met"),  # the name itself, though it looks like a glob
        ("files_exist: [A.txt]", "not_met"),
        ("files_not_exist: [missing.txt, '*.log']", "met"),
        ("files_not_exist: [missing.txt, a.txt]", "not_met"),
        ("files_not_exist: ['docs/**']", "not_met"),
        ("files_not_exist: [A.txt]", "met"),
        ("file_contains: {path: a.txt, content: first}", "met"),
        ("file_contains: {path: a.txt, content: First}", "not_met"),
        ("file_contains: {path: a.txt, content: First, ignore_case: true}", "met"),
        ("file_contains: {path: a.txt, all: [first, second]}", "met"),
        ("file_contains: {path: a.txt, all: [first, third]}", "not_met"),
        ("file_contains: {path: a.txt, any: [third, second]}", "met"),
        ("file_contains: {path: a.txt, not: [third]}", "met"),
        ("file_contains: {path: a.txt, not: [second]}", "not_met"),
        ("file_contains: {path: a.txt, content: first, not: [second]}", "not_met"),
        ("file_contains: {path: a.txt, content: second first}", "not_met"),
        ("file_contains: {path: missing.txt, content: first}", "not_met"),
        ("file_contains: {path: missing.txt, not: [first]}", "not_met"),
        ("file_contains: {path: docs, content: first}", "not_met"),
    ],
)
def test_rule(tmp_path: Path, written: str, state: str) -> None:
    found = Story(tmp_path, FILES).turn().judged(written)
    assert found.state == state, found.evidence


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("files_exist: [a.txt, docs]", "after turn 1 the workspace holds a.txt, docs"),
        ("files_exist: [x, y]", "after turn 1 the workspace lacks x, y"),
        ("files_not_exist: [v, w, x, y, z]", "after turn 1 the workspace lacks v, w, x, y, z"),
        ("files_not_exist: [u, v, w, x, y, z]", "after turn 1 the workspace lacks u, v, w, x, y and 1 more"),
        (
            "files_exist: [A.TXT]",
            "after turn 1 the workspace lacks A.TXT (but a.txt is there: the case of the letters differs)",
        ),
        ("files_exist: [b.md]", "after turn 1 the workspace lacks b.md (but docs/deep/b.md is there)"),
        ("files_not_exist: [x]", "after turn 1 the workspace lacks x"),
        ("files_not_exist: [a.txt]", "after turn 1 the workspace holds a.txt"),
        (
            "file_contains: {path: a.txt, content: second}",
            "a.txt after turn 1 holds 'second': 'first line second line'",
        ),
        ("file_contains: {path: docs, content: x}", "docs after turn 1 is a folder, not a file"),
        (
            "file_contains: {path: B.md, content: x}",
            "after turn 1 the workspace lacks B.md",
        ),
    ],
)
def test_evidence(tmp_path: Path, written: str, said: str) -> None:
    assert Story(tmp_path, FILES).turn().judged(written).evidence == said


def test_a_file_rule_never_takes_a_name_with_brackets_for_another_file(tmp_path: Path) -> None:
    """`[ab].txt` is a path, not a pattern: that `a.txt` is there says nothing about its content."""
    found = Story(tmp_path, FILES).turn().judged("file_contains: {path: '[ab].txt', content: first}")
    assert found.state == "not_met"
    assert "takes the path of one file, no glob" in found.evidence


def test_links_are_seen_and_not_followed(tmp_path: Path) -> None:
    story = Story(tmp_path, FILES)
    (story.workspace / "link").symlink_to("/etc/passwd")
    (story.workspace / "gone").symlink_to("nowhere")
    story.turn()
    assert story.judged("files_exist: [link, gone]").state == "met"
    found = story.judged("file_contains: {path: link, content: root}")
    assert (found.state, found.evidence) == (
        "not_met",
        "link after turn 1 is a symbolic link (links are not followed), not a file",
    )


def test_special_files_are_there_and_hold_nothing(tmp_path: Path) -> None:
    story = Story(tmp_path, FILES)
    os.mkfifo(story.workspace / "pipe")
    assert story.turn().judged("files_exist: [pipe]").state == "met"
    assert story.judged("file_contains: {path: pipe, content: x}").state == "not_met"


def test_a_binary_file_is_read_when_a_rule_names_it(tmp_path: Path) -> None:
    data = b"\0\1\2\xff\xfe magic \0"
    story = Story(tmp_path, {"data.bin": data, "other.bin": data + b"2"}, wanted=["data.bin"]).turn()
    assert story.judged("file_contains: {path: data.bin, content: ' magic '}").state == "met"
    assert story.judged("file_contains: {path: data.bin, not: [magic]}").state == "not_met"
    found = story.judged("file_contains: {path: other.bin, content: magic}")
    assert (found.state, found.cause) == ("unknown", "unobservable")


def test_a_file_that_is_too_large_to_be_read_is_unknown(tmp_path: Path) -> None:
    story = Story(tmp_path, wanted=["huge"])
    with (story.workspace / "huge").open("wb") as file:
        file.truncate(HASH_LIMIT + 1)
    story.turn()
    found = story.judged("file_contains: {path: huge, not: [x]}")
    assert (found.state, found.cause) == ("unknown", "unobservable")
    assert "huge after turn 1 (67108865 bytes) was too large" in found.evidence
    assert story.judged("files_exist: [huge]").state == "met"


def test_five_megabytes_of_a_file_are_quick(tmp_path: Path) -> None:
    story = Story(tmp_path, {"big.txt": "word " * 1_000_000}, wanted=["big.txt"]).turn()
    start = time.monotonic()
    assert story.judged("file_contains: {path: big.txt, all: [word], not: [nowhere], ignore_case: true}").state == "met"
    assert time.monotonic() - start < 2


def test_secrets_in_files_are_judged_as_they_were_saved(tmp_path: Path) -> None:
    story = Story(tmp_path, {"a.txt": "key hunter2hunter2"}, mask="hunter2hunter2").turn()
    assert story.judged("file_contains: {path: a.txt, content: '[masked]'}").state == "met"
    assert story.judged("file_contains: {path: a.txt, content: hunter2hunter2}").state == "not_met"
    assert story.judged("file_contains: {path: a.txt, not: [sk-ant-]}").cause == "unobservable"


def test_without_a_snapshot_nothing_is_known(tmp_path: Path) -> None:
    evidence = Story(tmp_path, FILES).turn(snapshot=False).evidence()
    for written in (
        "files_exist: [a.txt]",
        "files_not_exist: {paths: [x.txt], turn: 1}",
        "file_contains: {path: a.txt, not: [x], turn: any}",
        "workspace_changed: {only: [], turn: 1}",
        "workspace_changed: {created: [x]}",
    ):
        found = evaluate(rule(written), evidence)
        assert (found.state, found.cause) == ("unknown", "not_reached"), written
        assert "no snapshot" in found.evidence


def test_a_folder_that_cannot_be_looked_into_hides_what_may_be_in_it(tmp_path: Path) -> None:
    deep = "/".join(["d"] * (MAX_DEPTH + 1))
    story = Story(tmp_path, {f"{deep}/a.txt": "a", "b.txt": "b"}).turn()
    for written in (
        f"files_not_exist: [{deep}/x]",
        f"files_exist: [{deep}/a.txt]",
        "files_not_exist: ['**/*.log']",
        f"workspace_changed: {{created: [{deep}/x]}}",
        "workspace_changed: {only: []}",
    ):
        found = story.judged(written)
        assert (found.state, found.cause) == ("unknown", "unobservable"), written
        assert "could not be looked into" in found.evidence
    assert story.judged("files_not_exist: [x.txt]").state == "met"
    assert story.judged("files_exist: [b.txt]").state == "met"


def test_a_workspace_of_too_many_files_is_seen_in_part_and_what_is_missing_is_unknown(tmp_path: Path) -> None:
    story = Story(tmp_path, {"a.txt": "a"}, most=3).turn(files={f"{n}.txt": "x" for n in range(9)})
    evidence = story.evidence()
    seen = next(path for path in evidence.tree(1) or () if path != "a.txt")
    for written in (
        "files_exist: [nowhere]",
        "files_not_exist: [nowhere]",
        "workspace_changed: {created: [nowhere]}",
        "workspace_changed: {unchanged: [nowhere]}",
        "workspace_changed: {deleted: [a.txt]}",
    ):
        found = evaluate(rule(written), evidence)
        assert (found.state, found.cause) == ("unknown", "unobservable"), written
        assert "too many files" in found.evidence
    assert evaluate(rule(f"files_exist: [{seen}]"), evidence).state == "met"
    assert evaluate(rule(f"files_not_exist: [{seen}]"), evidence).state == "not_met"
    assert evaluate(rule(f"workspace_changed: {{created: [{seen}]}}"), evidence).state == "met"


def test_thousands_of_files_make_short_evidence_in_no_time(tmp_path: Path) -> None:
    story = Story(tmp_path, {f"src/{n}.py": "" for n in range(3_000)}).turn()
    start = time.monotonic()
    paths = ", ".join(f"'missing/{n}/**/*.py'" for n in range(20))
    found = story.judged(f"files_exist: [{paths}]")
    assert found.state == "not_met"
    assert found.evidence.endswith("and 15 more")
    assert time.monotonic() - start < 10  # measured: 0.4 s for 20 globs


def test_names_of_agents_are_shown_harmlessly(tmp_path: Path) -> None:
    story = Story(tmp_path, {"a\x1b[2J\u202e\n.txt": "x"}).turn()
    found = story.judged("files_not_exist: ['a*']")
    assert found.state == "not_met"
    assert story.judged(r'files_exist: ["A\x1b[2J\u202e\n.txt"]').evidence.isprintable()

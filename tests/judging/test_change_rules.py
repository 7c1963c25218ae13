"""`workspace_changed`: what was created, changed and deleted, and what had to stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.environments.snapshot import HASH_LIMIT
from tests.judging.story import Story

BEFORE: dict[str, str | bytes | None] = {"kept.txt": "k", "changed.txt": "c", "deleted.txt": "d", "src/old.py": "o"}
DONE: dict[str, str | bytes | None] = {
    "changed.txt": "C",
    "deleted.txt": None,
    "src/new.py": "n",
    "src/sub/deep.py": "d",
    "folder/": "",
}


@pytest.mark.parametrize(
    ("written", "state"),
    [
        ("workspace_changed: {created: [src/new.py]}", "met"),
        ("workspace_changed: {created: ['src/*.py']}", "met"),
        ("workspace_changed: {created: ['src/**']}", "met"),
        ("workspace_changed: {created: [src/new.py, other.py]}", "not_met"),
        ("workspace_changed: {created: [changed.txt]}", "not_met"),
        ("workspace_changed: {created: [folder]}", "not_met"),  # folders do not count
        ("workspace_changed: {changed: [changed.txt]}", "met"),
        ("workspace_changed: {changed: [kept.txt]}", "not_met"),
        ("workspace_changed: {deleted: [deleted.txt]}", "met"),
        ("workspace_changed: {deleted: [kept.txt]}", "not_met"),
        ("workspace_changed: {created: [src/new.py], changed: [changed.txt], deleted: [deleted.txt]}", "met"),
        ("workspace_changed: {unchanged: [kept.txt, src/old.py]}", "met"),
        ("workspace_changed: {unchanged: [changed.txt]}", "not_met"),
        ("workspace_changed: {unchanged: [deleted.txt]}", "not_met"),
        ("workspace_changed: {unchanged: ['src/**']}", "not_met"),
        ("workspace_changed: {only: ['src/**', changed.txt, deleted.txt]}", "met"),
        ("workspace_changed: {only: ['src/**']}", "not_met"),
        ("workspace_changed: {only: []}", "not_met"),
        ("workspace_changed: {created: [src/new.py], only: ['src/**']}", "not_met"),
    ],
)
def test_rule(tmp_path: Path, written: str, state: str) -> None:
    found = Story(tmp_path, BEFORE).turn(files=DONE).judged(written)
    assert found.state == state, found.evidence


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            "workspace_changed: {changed: [changed.txt]}",
            "turn 1 created src/new.py, src/sub/deep.py; changed changed.txt; deleted deleted.txt",
        ),
        (
            "workspace_changed: {created: [changed.txt]}",
            (
                "turn 1 created nothing that matches changed.txt (but it was changed); "
                "turn 1 created src/new.py, src/sub/deep.py; changed changed.txt; deleted deleted.txt"
            ),
        ),
        (
            "workspace_changed: {created: [SRC/new.py]}",
            (
                "turn 1 created nothing that matches SRC/new.py (but src/new.py: the case of the letters differs); "
                "turn 1 created src/new.py, src/sub/deep.py; changed changed.txt; deleted deleted.txt"
            ),
        ),
        (
            "workspace_changed: {created: [src]}",
            (
                "turn 1 created nothing that matches src (it is a folder; src/** means all below it); "
                "turn 1 created src/new.py, src/sub/deep.py; changed changed.txt; deleted deleted.txt"
            ),
        ),
        (
            "workspace_changed: {unchanged: ['*.txt'], only: ['*.txt']}",
            (
                "turn 1 touched changed.txt, deleted.txt, which had to stay; "
                "turn 1 also touched src/new.py, src/sub/deep.py; "
                "turn 1 created src/new.py, src/sub/deep.py; changed changed.txt; deleted deleted.txt"
            ),
        ),
    ],
)
def test_evidence(tmp_path: Path, written: str, said: str) -> None:
    assert Story(tmp_path, BEFORE).turn(files=DONE).judged(written).evidence == said


def test_the_whole_conversation_is_its_beginning_against_its_end(tmp_path: Path) -> None:
    """What one turn made and a later one removed was not created by the conversation; each turn's own rule sees it."""
    story = Story(tmp_path, BEFORE).turn(files={"tmp.txt": "t"}).turn(files={"tmp.txt": None})
    assert story.judged("workspace_changed: {only: []}").state == "met"
    assert story.judged("workspace_changed: {created: [tmp.txt]}").state == "not_met"
    assert story.judged("workspace_changed: {created: [tmp.txt], turn: 1}").state == "met"
    assert story.judged("workspace_changed: {deleted: [tmp.txt], turn: 2}").state == "met"
    assert story.judged("workspace_changed: {created: [tmp.txt], turn: any}").state == "met"


def test_with_any_turn_what_must_stay_stays_in_every_turn(tmp_path: Path) -> None:
    story = Story(tmp_path, BEFORE).turn(files={"a.txt": "a"}).turn(files={"kept.txt": "K"})
    assert story.judged("workspace_changed: {only: [a.txt], turn: any}").state == "not_met"
    assert story.judged("workspace_changed: {created: [a.txt], unchanged: [kept.txt], turn: any}").state == "not_met"
    assert story.judged("workspace_changed: {created: [a.txt], unchanged: [deleted.txt], turn: any}").state == "met"


def test_a_change_of_permissions_is_a_change(tmp_path: Path) -> None:
    story = Story(tmp_path, BEFORE)
    (story.workspace / "kept.txt").chmod(0o600 if (story.workspace / "kept.txt").stat().st_mode & 0o044 else 0o644)
    assert story.turn().judged("workspace_changed: {changed: [kept.txt]}").state == "met"


def test_a_file_that_is_too_large_to_be_read_changes_with_its_times(tmp_path: Path) -> None:
    story = Story(tmp_path)
    with (story.workspace / "huge").open("wb") as file:
        file.truncate(HASH_LIMIT + 1)
    story.turn()
    with (story.workspace / "huge").open("r+b") as file:
        file.write(b"x")
    story.turn().turn()
    assert story.judged("workspace_changed: {changed: [huge], turn: 2}").state == "met"
    assert story.judged("workspace_changed: {only: [], turn: 3}").state == "met"
    assert story.judged("workspace_changed: {unchanged: [huge], turn: 2}").state == "not_met"


class TestOfACutTurn:
    def test_what_it_did_counts(self, tmp_path: Path) -> None:
        story = Story(tmp_path, BEFORE).cut(files=DONE)
        assert story.judged("workspace_changed: {created: [src/new.py]}").state == "met"
        assert story.judged("workspace_changed: {unchanged: [changed.txt]}").state == "not_met"

    def test_what_is_missing_is_unknown_though_nothing_forbidden_was_done(self, tmp_path: Path) -> None:
        story = Story(tmp_path, BEFORE).cut(files={"src/new.py": "n"})
        found = story.judged("workspace_changed: {created: [src/other.py], only: ['src/**']}")
        assert (found.state, found.cause) == ("unknown", "incomplete")

    def test_what_had_to_stay_may_still_have_been_touched(self, tmp_path: Path) -> None:
        story = Story(tmp_path, BEFORE).cut(files={"src/new.py": "n"})
        assert story.judged("workspace_changed: {only: ['src/**']}").state == "unknown"


def test_only_what_was_done_is_something_that_happened(tmp_path: Path) -> None:
    story = Story(tmp_path, BEFORE).turn(files=DONE)
    assert story.judged("workspace_changed: {unchanged: [changed.txt]}").forbidden
    assert story.judged("workspace_changed: {created: [src/new.py], only: []}").forbidden
    assert not story.judged("workspace_changed: {created: [other.py]}").forbidden


def test_thousands_of_changes_make_short_evidence(tmp_path: Path) -> None:
    found = (
        Story(tmp_path)
        .turn(files={f"f{n:05}.txt": "" for n in range(3_000)})
        .judged("workspace_changed: {only: ['f00000.txt']}")
    )
    assert found.evidence.startswith(
        "turn 1 also touched f00001.txt, f00002.txt, f00003.txt, f00004.txt, f00005.txt and 2994 more"
    )
    assert len(found.evidence) < 300

"""The journal: whole lines that stay, whatever cuts its writing off, and a position for any damage."""

from __future__ import annotations

import json
import random
import re
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skillup.errors import RunDirectoryError
from skillup.execution.journal import NAME, Journal, JournalFile, read_journal
from skillup.masking import Masker

TRIAL = Path("run/a-case/demo/with_skill/trial-1")
SECRET = "correct-horse-battery"


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[JournalFile]:
    with JournalFile(tmp_path, Masker([SECRET])) as opened:
        yield opened


def fill(journal: Journal, turns: int) -> None:
    for turn in range(1, turns + 1):
        journal.write("turn_ended", TRIAL, attempt=1, turn=turn, status="completed")


def test_a_line_has_what_is_said_and_nothing_else(journal: JournalFile, tmp_path: Path) -> None:
    journal.write("turn_ended", TRIAL, attempt=2, turn=1, status="timed_out")
    journal.write("run_started", pid=7, command=("skillup", "run", f"--model={SECRET}"))
    first, second = map(json.loads, (tmp_path / NAME).read_text().splitlines())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("time"))
    assert first == {
        "schema_version": "skillup/1",
        "event": "turn_ended",
        "trial": "a-case/demo/with_skill/trial-1",
        "attempt": 2,
        "turn": 1,
        "status": "timed_out",
    }
    assert second["command"] == ["skillup", "run", "--model=[masked]"]


def test_lines_of_many_trials_at_once_stay_whole(journal: JournalFile, tmp_path: Path) -> None:
    threads = [threading.Thread(target=fill, args=(journal, 20)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    saved = read_journal(tmp_path)
    assert (len(saved.entries), saved.torn_bytes) == (160, 0)
    assert sorted(entry.turn or 0 for entry in saved.entries) == sorted([*range(1, 21)] * 8)


def test_cut_anywhere_all_that_is_before_the_cut_is_read(journal: JournalFile, tmp_path: Path) -> None:
    fill(journal, 3)
    data = (tmp_path / NAME).read_bytes()
    for end in range(len(data) + 1):
        (tmp_path / NAME).write_bytes(data[:end])
        saved = read_journal(tmp_path)
        assert len(saved.entries) == data[:end].count(b"\n")
        assert saved.torn_bytes == len(data[:end].rpartition(b"\n")[2])


def test_a_torn_line_is_gone_when_others_are_added(tmp_path: Path) -> None:
    with JournalFile(tmp_path, Masker()) as journal:
        fill(journal, 2)
    whole = (tmp_path / NAME).read_bytes()
    (tmp_path / NAME).write_bytes(whole + b'{"sch')
    with JournalFile(tmp_path, Masker(), torn_bytes=read_journal(tmp_path).torn_bytes) as journal:
        journal.write("run_ended", status="finished")
    assert (tmp_path / NAME).read_bytes().startswith(whole)
    assert [entry.event for entry in read_journal(tmp_path).entries] == ["turn_ended", "turn_ended", "run_ended"]


def test_damage_of_any_kind_is_read_over_or_told_with_its_line(journal: JournalFile, tmp_path: Path) -> None:
    """Bytes that were changed, lost or added at random: never anything but one of our errors."""
    fill(journal, 5)
    path, chance = tmp_path / NAME, random.Random(11)  # noqa: S311 - no secret
    data = path.read_bytes()
    told: list[tuple[RunDirectoryError, int]] = []
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(damaged))
            damaged[place : place + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
        path.write_bytes(damaged)
        try:
            read_journal(tmp_path)
        except RunDirectoryError as error:
            told.append((error, damaged.count(b"\n")))
    assert len(told) > 200
    for damage, lines in told:
        line = re.match(rf"{re.escape(str(path))}:(\d+): the journal is damaged: .", damage.message)
        assert line, damage.message
        assert 1 <= int(line[1]) <= lines
        assert damage.hint


def test_deep_and_huge_lines_are_damage_like_any_other(tmp_path: Path) -> None:
    for line in (b"[" * 100_000, b'{"a":' * 100_000, b"1" * 1_000_000, b'"' + b"x" * 5_000_000 + b'"', b"null"):
        (tmp_path / NAME).write_bytes(line + b"\n")
        with pytest.raises(RunDirectoryError, match=r"journal\.jsonl:1: the journal is damaged"):
            read_journal(tmp_path)


@contextmanager
def no_room_beyond(size: int) -> Iterator[None]:
    """A disk on which no file may be larger; Python ignores the signal that comes with it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_line_that_finds_half_the_room_leaves_nothing(journal: JournalFile, tmp_path: Path) -> None:
    fill(journal, 2)
    whole = (tmp_path / NAME).read_bytes()
    with no_room_beyond(len(whole) + 40), pytest.raises(RunDirectoryError) as caught:
        fill(journal, 1)
    assert caught.value.message == f"{tmp_path / NAME} cannot be written: File too large"
    assert caught.value.hint == "make room, or use --output-dir DIR"
    assert (tmp_path / NAME).read_bytes() == whole
    fill(journal, 1)
    assert len(read_journal(tmp_path).entries) == 3, "when there is room again"


def test_a_journal_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(RunDirectoryError, match=r"journal\.jsonl cannot be written: Is a directory"):
        JournalFile(tmp_path, Masker())
    with pytest.raises(RunDirectoryError, match=r"journal\.jsonl cannot be read: Is a directory"):
        read_journal(tmp_path)

"""A snapshot sees every change, whatever a program does to hide it, and leaves no trace of its own."""

import hashlib
import json
import mmap
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from skillup.environments.snapshot import Changes, Snapshot, diff, take, text_diff


def settle() -> None:
    """Let the kernel's clock tick pass, so that what was written is older than the next snapshot."""
    time.sleep(0.03)


def write(path: Path, content: str | bytes = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


class Read:
    """A `keep` that remembers what it was given."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}

    def __call__(self, path: str, content: bytes, digest: str) -> None:
        assert hashlib.sha256(content).hexdigest() == digest
        self.contents[path] = content


def paths(snapshot: Snapshot) -> list[str]:
    return list(snapshot.entries)


# --- what is recorded


def test_files_folders_and_links_are_recorded_by_their_relative_path(tmp_path: Path) -> None:
    write(tmp_path / "b" / "two.txt", "2")
    write(tmp_path / "a.txt", "one").chmod(0o640)
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("b/two.txt")
    snapshot = take(tmp_path)
    assert paths(snapshot) == ["a.txt", "b", "b/two.txt", "empty", "link"]
    assert [entry.kind for entry in snapshot.entries.values()] == ["file", "dir", "file", "dir", "symlink"]
    file = snapshot.entries["a.txt"]
    assert (file.size, file.mode, file.note) == (3, 0o640, None)
    assert file.digest == hashlib.sha256(b"one").hexdigest()
    assert snapshot.entries["link"].target == "b/two.txt"
    assert snapshot.entries["link"].digest is None
    assert not snapshot.truncated


def test_an_empty_file_has_a_digest(tmp_path: Path) -> None:
    write(tmp_path / "empty")
    assert take(tmp_path).entries["empty"].digest == hashlib.sha256(b"").hexdigest()


def test_git_folders_are_left_out_at_any_depth(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nested" / "repository"):
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "init", "-q", str(folder)], check=True, env={"PATH": os.environ["PATH"]})
        write(folder / "file", "x")
    assert paths(take(tmp_path)) == ["file", "nested", "nested/repository", "nested/repository/file"]


def test_special_files_are_named_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        begin = time.monotonic()
        snapshot = take(tmp_path)
        assert time.monotonic() - begin < 1  # opening a FIFO would wait for a writer
    assert [(entry.kind, entry.note) for entry in snapshot.entries.values()] == [
        ("special", "fifo"),
        ("special", "socket"),
    ]


def test_links_are_never_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write(outside / "secret.txt", "secret")
    root = tmp_path / "root"
    root.mkdir()
    targets = {"etc": "/etc", "out": str(outside), "loop": ".", "self": "self", "gone": "nowhere"}
    for name, target in targets.items():
        (root / name).symlink_to(target)
    read = Read()
    snapshot = take(root, keep=read)
    assert {path: entry.target for path, entry in snapshot.entries.items()} == targets
    assert read.contents == {}


def test_names_and_targets_that_are_not_utf8_become_json(tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path)
    for name, content in ((b"\xff", b"raw"), (b"\\xff", b"literal"), ("ü\n".encode(), b"text")):
        Path(os.fsdecode(raw + b"/" + name)).write_bytes(content)
    os.mkdir(raw + b"/d\xfe")  # noqa: PTH102 - the name is bytes
    Path(os.fsdecode(raw + b"/d\xfe/in")).write_bytes(b"inside")
    (tmp_path / "link").symlink_to(os.fsdecode(b"to\xfd"))
    read = Read()
    snapshot = take(tmp_path, keep=read)
    assert read.contents == {
        "\\xff": b"literal",
        "\\xff'": b"raw",  # neither hides the other
        "ü\n": b"text",
        "d\\xfe/in": b"inside",
    }
    assert snapshot.entries["link"].target == "to\\xfd"
    assert json.loads(json.dumps(paths(snapshot), ensure_ascii=False).encode()) == paths(snapshot)
    assert diff(snapshot, take(tmp_path, snapshot)) == Changes()


def test_a_file_of_two_gigabytes_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(2 * 1024**3)
    begin = time.monotonic()
    first = take(tmp_path)
    assert time.monotonic() - begin < 0.5
    assert (first.entries["huge"].digest, first.entries["huge"].note) == (None, "unhashed")
    assert first.entries["huge"].size == 2 * 1024**3
    assert diff(first, take(tmp_path, first)) == Changes()
    settle()
    with (tmp_path / "huge").open("r+b") as file:
        file.write(b"x")
    assert diff(first, take(tmp_path, first)).changed == ("huge",)


def test_too_many_entries_are_cut_and_nothing_is_claimed_of_the_rest(tmp_path: Path) -> None:
    for number in range(30):
        write(tmp_path / f"folder{number % 3}" / f"{number}")
    whole, cut = take(tmp_path), take(tmp_path, max_entries=10)
    assert (len(whole.entries), whole.truncated) == (33, False)
    assert (len(cut.entries), cut.truncated) == (10, True)
    assert diff(whole, cut) == Changes(complete=False)
    assert diff(cut, whole) == Changes(complete=False)


def test_folders_too_deep_to_walk_are_unknown_and_not_deleted(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(230):
        deep = deep / "d"
    write(deep / "file")
    snapshot = take(tmp_path)
    assert len(snapshot.entries) == 201
    assert snapshot.entries["/".join(["d"] * 201)].note == "unreadable"
    assert not diff(snapshot, snapshot).complete


# --- content that is handed out


def test_text_is_kept_when_it_is_read_and_only_then(tmp_path: Path) -> None:
    write(tmp_path / "text", "hello")
    write(tmp_path / "binary", b"a\0b")
    write(tmp_path / "long", "x" * 101)
    settle()
    read = Read()
    first = take(tmp_path, keep=read, text_limit=100)
    assert read.contents == {"text": b"hello"}
    write(tmp_path / "text", "changed")
    again = Read()
    second = take(tmp_path, first, again)
    assert again.contents == {"text": b"changed"}
    assert second.entries["binary"] is first.entries["binary"]


def test_a_file_as_young_as_the_last_snapshot_is_read_again(tmp_path: Path) -> None:
    write(tmp_path / "file", "x")
    read = Read()
    take(tmp_path, take(tmp_path), read)
    assert read.contents == {"file": b"x"}


def test_wanted_files_are_kept_whatever_they_hold(tmp_path: Path) -> None:
    write(tmp_path / "a" / "binary", b"a\0b")
    write(tmp_path / "long", "x" * 101)
    read = Read()
    take(tmp_path, keep=read, wanted=frozenset({"a/binary", "long", "none"}), text_limit=100)
    assert read.contents == {"a/binary": b"a\0b", "long": b"x" * 101}


def test_a_file_that_grows_over_what_its_status_says_is_read_whole() -> None:
    # Files of /proc say that they are empty, like one that has grown since it was looked at.
    read = Read()
    take(Path("/proc/sys/kernel/random"), keep=read)
    assert len(read.contents["boot_id"]) == 37


# --- changes


def test_created_changed_and_deleted_paths_are_told_apart(tmp_path: Path) -> None:
    for name in ("keep", "change", "delete", "folder/delete"):
        write(tmp_path / name, name)
    before = take(tmp_path)
    write(tmp_path / "change", "other")
    (tmp_path / "delete").unlink()
    shutil.rmtree(tmp_path / "folder")
    write(tmp_path / "new" / "file")
    (tmp_path / "empty").mkdir()
    after = take(tmp_path, before)
    assert diff(before, after) == Changes(("new/file",), ("change",), ("delete", "folder/delete"))
    assert diff(after, after) == Changes()


def test_a_touched_file_is_not_changed(tmp_path: Path) -> None:
    write(tmp_path / "file", "same")
    before = take(tmp_path)
    settle()
    write(tmp_path / "file", "same")
    assert diff(before, take(tmp_path, before)) == Changes()


def test_same_size_and_time_set_back_is_seen(tmp_path: Path) -> None:
    file = write(tmp_path / "file", "aaaa")
    settle()
    before = take(tmp_path)
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    settle()
    with file.open("r+b") as handle:
        handle.write(b"bbbb")
    os.utime(file, ns=times)
    assert file.stat().st_mtime_ns == times[1]
    assert diff(before, take(tmp_path, before)).changed == ("file",)


def test_a_write_through_memory_with_time_set_back_is_seen(tmp_path: Path) -> None:
    file = write(tmp_path / "file", "aaaa")
    settle()
    before = take(tmp_path)
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    settle()
    with file.open("r+b") as handle, mmap.mmap(handle.fileno(), 4) as memory:
        memory[:4] = b"bbbb"
    os.utime(file, ns=times)
    assert diff(before, take(tmp_path, before)).changed == ("file",)


def test_a_file_rewritten_in_the_instant_of_a_snapshot_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "file"
    missed = 0
    for number in range(100):
        write(file, f"{number:03}a")
        before = take(tmp_path)
        write(file, f"{number:03}b")
        missed += diff(before, take(tmp_path, before)).changed != ("file",)
    assert missed == 0


def test_a_permission_bit_is_a_change(tmp_path: Path) -> None:
    write(tmp_path / "tool", "#!/bin/sh\n").chmod(0o644)
    before = take(tmp_path)
    (tmp_path / "tool").chmod(0o755)
    assert diff(before, take(tmp_path, before)).changed == ("tool",)


def test_a_link_that_points_elsewhere_is_a_change(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("one")
    before = take(tmp_path)
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("two")
    assert diff(before, take(tmp_path, before)).changed == ("link",)


def test_a_change_of_kind_is_a_change(tmp_path: Path) -> None:
    write(tmp_path / "file", "x")
    write(tmp_path / "pipe", "x")
    write(tmp_path / "becomes-folder", "x")
    write(tmp_path / "becomes-file" / "inner", "x")
    before = take(tmp_path)
    for name in ("file", "pipe", "becomes-folder"):
        (tmp_path / name).unlink()
    shutil.rmtree(tmp_path / "becomes-file")
    (tmp_path / "file").symlink_to("x")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "becomes-folder").mkdir()
    write(tmp_path / "becomes-file", "x")
    assert diff(before, take(tmp_path, before)) == Changes(
        ("becomes-file",), ("file", "pipe"), ("becomes-file/inner", "becomes-folder")
    )


def test_renaming_onto_a_file_of_the_same_size_and_time_is_seen(tmp_path: Path) -> None:
    file = write(tmp_path / "file", "aaaa")
    other = write(tmp_path / "other", "bbbb")
    os.utime(other, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    settle()
    before = take(tmp_path)
    other.rename(file)
    assert diff(before, take(tmp_path, before)) == Changes((), ("file",), ("other",))


# --- a folder that does not hold still


def test_a_workspace_that_was_removed_is_empty(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root / "file")
    before = take(root)
    shutil.rmtree(root)
    assert diff(before, take(root, before)) == Changes(deleted=("file",))
    root.symlink_to("/etc")
    assert paths(take(root, before)) == []


def test_a_first_snapshot_of_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        take(tmp_path / "missing")
    with pytest.raises(NotADirectoryError):
        take(write(tmp_path / "file"))


def test_files_may_come_and_go_while_they_are_looked_at(tmp_path: Path) -> None:
    write(tmp_path / "stays", "x")
    stop = threading.Event()

    def churn(name: str) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            folder = tmp_path / f"{name}{number % 20}"
            write(folder / "file", str(number))
            (folder / "link").symlink_to("/etc")
            shutil.rmtree(folder)
            folder.symlink_to("/etc")
            folder.unlink()

    threads = [threading.Thread(target=churn, args=[name]) for name in "ab"]
    for thread in threads:
        thread.start()
    try:
        snapshot = take(tmp_path)
        for _ in range(200):
            snapshot = take(tmp_path, snapshot)
            assert snapshot.entries["stays"].size == 1
            assert not [path for path in paths(snapshot) if "passwd" in path]
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder of an ordinary user, as which the test goes on: root may read everything."""
    was = os.geteuid()
    folder = Path(tempfile.mkdtemp())
    if was == 0:
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
    try:
        yield folder
    finally:
        os.seteuid(was)
        shutil.rmtree(folder)


def test_what_cannot_be_read_is_noted_and_not_called_deleted(unprivileged: Path) -> None:
    write(unprivileged / "file", "x")
    write(unprivileged / "folder" / "inner", "x")
    write(unprivileged / "listed" / "inner", "x")
    before = take(unprivileged)
    (unprivileged / "file").chmod(0)
    (unprivileged / "folder").chmod(0)
    (unprivileged / "listed").chmod(0o400)  # names can be listed, nothing can be looked at
    after = take(unprivileged, before)
    assert [after.entries[path].note for path in ("file", "folder", "listed")] == ["unreadable"] * 3
    assert diff(before, after) == Changes(changed=("file",), complete=False)
    for name, mode in (("file", 0o644), ("folder", 0o755), ("listed", 0o755)):
        (unprivileged / name).chmod(mode)
    assert diff(before, take(unprivileged, after)).complete
    unprivileged.chmod(0)
    hidden = take(unprivileged, before)
    unprivileged.chmod(0o700)
    assert diff(before, hidden) == Changes(complete=False)


def test_what_could_not_be_read_is_tried_again(tmp_path: Path) -> None:
    write(tmp_path / "file", "x")
    settle()
    good = take(tmp_path)
    failed = replace(good.entries["file"], digest=None, note="unreadable")
    assert take(tmp_path, replace(good, entries={"file": failed})).entries == good.entries


def test_four_scans_at_once_take_turns_and_agree(tmp_path: Path) -> None:
    for number in range(300):
        write(tmp_path / f"{number % 7}" / f"{number}", str(number))
    settle()
    found: list[Snapshot] = []
    reading = threading.Lock()
    overlaps: list[str] = []

    def keep(path: str, content: bytes, digest: str) -> None:  # noqa: ARG001 - the signature is given
        if not reading.acquire(blocking=False):
            overlaps.append(path)
            return
        time.sleep(0.02 if path == "0/0" else 0)
        reading.release()

    def scan() -> None:
        found.append(take(tmp_path, keep=keep))

    threads = [threading.Thread(target=scan) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert overlaps == []  # together they would take twice as long
    assert all(snapshot.entries == found[0].entries for snapshot in found)


def test_a_snapshot_leaves_no_trace_and_no_open_file(tmp_path: Path) -> None:
    write(tmp_path / "folder" / "file", "x")
    settle()
    status = [path.stat() for path in (tmp_path, tmp_path / "folder", tmp_path / "folder" / "file")]
    files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counts, with the one that lists
    take(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == files  # noqa: PTH208 - as above
    after = [path.stat() for path in (tmp_path, tmp_path / "folder", tmp_path / "folder" / "file")]
    assert [(s.st_mtime_ns, s.st_ctime_ns) for s in after] == [(s.st_mtime_ns, s.st_ctime_ns) for s in status]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


# --- differences in words


def test_a_diff_shows_the_lines_around_a_change() -> None:
    before = "".join(f"line {number}\n" for number in range(1, 21)).encode()
    after = before.replace(b"line 10\n", b"line ten\nline ten and a half\n")
    assert text_diff("src/a.py", before, after) == (
        "--- a/src/a.py\n+++ b/src/a.py\n@@ -7,7 +7,8 @@\n line 7\n line 8\n line 9\n-line 10\n"
        "+line ten\n+line ten and a half\n line 11\n line 12\n line 13\n"
    )


def test_git_understands_the_diff(tmp_path: Path) -> None:
    before = "".join(f"{number}\n" for number in range(7000)).encode()
    after = before.replace(b"\n4500\n", b"\nx\ny\n").replace(b"\n4700\n", b"\n").removesuffix(b"\n")
    write(tmp_path / "file", before)
    write(tmp_path / "patch", text_diff("file", before, after))
    subprocess.run(["git", "apply", "patch"], cwd=tmp_path, check=True, env={"PATH": os.environ["PATH"]})
    assert (tmp_path / "file").read_bytes() == after


def test_a_new_and_a_deleted_file_are_compared_with_nothing() -> None:
    assert text_diff("f", None, b"a\n") == "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"
    assert text_diff("f", b"a\n", None) == "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    assert text_diff("f", None, b"") == "--- /dev/null\n+++ b/f\n"


def test_a_missing_last_newline_is_a_difference() -> None:
    assert text_diff("f", b"a\n", b"a").endswith("-a\n+a\n\\ No newline at end of file\n")
    assert text_diff("f", b"a", b"a") == ""


def test_binary_contents_are_not_shown() -> None:
    text = text_diff("f", b"a\0" * 5, b"text")
    assert text.endswith("binary content: 10 bytes before, 4 bytes after\n")


def test_bytes_that_are_not_utf8_are_written_out() -> None:
    assert text_diff("f", b"\xff\n", b"\xfe\n").endswith("-\\xff\n+\\xfe\n")


def test_only_newlines_end_a_line_and_names_cannot_fake_one() -> None:
    text = text_diff("a\nb\x1b", "one\u2028two\x0c\r\n".encode(), "one\u2028three\x0c\r\n".encode())
    assert text.startswith("--- a/a\\nb\\x1b\n+++ ")
    assert text.endswith("-one\u2028two\x0c\r\n+one\u2028three\x0c\r\n")


def test_a_long_diff_is_cut_and_says_so() -> None:
    before = "".join(f"old {number}\n" for number in range(5000)).encode()
    after = "".join(f"new {number}\n" for number in range(6000)).encode()
    begin = time.monotonic()
    lines = text_diff("f", before, after, max_lines=100).splitlines()
    assert time.monotonic() - begin < 1
    assert len(lines) == 2 + 100 + 2
    assert lines[-2:] == [
        "(cut: only the first 100 of 5000 and 6000 lines were compared)",
        "(cut: 101 lines of this diff were left out)",
    ]


def test_a_long_line_is_cut_and_says_so() -> None:
    line = text_diff("f", None, b"x" * 100_000).splitlines()[3]
    assert line.startswith("+xxx")
    assert line.endswith(" more characters)")
    assert len(line) < 600

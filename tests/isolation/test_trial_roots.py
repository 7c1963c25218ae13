"""Trial roots: private while they live, gone whatever was done to them, and swept only when nobody owns them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillup.environments.host import child_variables, open_trial_root, sweep
from skillup.environments.removal import remove_tree
from skillup.errors import TrialError


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A private folder for trial roots."""
    made = tmp_path / "roots"
    made.mkdir(mode=0o700)
    return made


def names(folder: Path) -> list[str]:
    """What lies in a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_a_root_and_all_that_belongs_to_it_is_gone_after_its_trial(base: Path) -> None:
    with open_trial_root(base) as root:
        assert names(root.path) == ["home", "tmp", "workspace"]
        assert root.scratch.is_dir()
        assert all(path.lstat().st_mode & 0o077 == 0 for path in (*base.iterdir(), *root.path.iterdir()))
    assert names(base) == []


def test_a_sweep_removes_what_a_dead_run_left_and_nothing_else(base: Path, tmp_path: Path) -> None:
    dead, unlocked, link, folder = ("d" * 16, "a" * 16, "b" * 16, "c" * 16)
    for name in (dead, f"{dead}.io", unlocked, link, folder, "notes", f"{folder}.lock"):
        (base / name / "inner").mkdir(parents=True)
    for name in (f"{dead}.lock", "notes.lock", f"{dead}0.lock"):
        (base / name).touch()
    (tmp_path / "outside").touch()
    (base / f"{link}.lock").symlink_to(tmp_path / "outside")
    with open_trial_root(base) as living:
        own = names(base)
        assert sweep(base) == ()
        assert names(base) == [name for name in own if name not in (dead, f"{dead}.io", f"{dead}.lock")]
        assert living.workspace.is_dir()
    assert (tmp_path / "outside").exists()


def test_a_sweep_leaves_a_folder_alone_that_others_can_write_to(base: Path) -> None:
    (base / f"{'d' * 16}.lock").touch()
    base.chmod(0o755)
    assert sweep(base) == ()
    assert names(base) == [f"{'d' * 16}.lock"]
    with pytest.raises(TrialError, match="not a private folder of this user") as raised, open_trial_root(base):
        pass
    assert raised.value.hint == "remove it, or set SKILLUP_TRIAL_ROOT to a folder with mode 0700"


def test_a_sweep_where_no_run_ever_was_finds_nothing(tmp_path: Path) -> None:
    assert sweep(tmp_path / "nowhere") == ()


def test_a_link_in_the_place_of_a_folder_is_removed_and_not_followed(base: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").touch()
    with open_trial_root(base) as root:
        root.workspace.rmdir()
        root.workspace.symlink_to(tmp_path / "outside")
        (root.home / "link").symlink_to(tmp_path / "outside")
    assert names(base) == []
    (base / "root").symlink_to(tmp_path / "outside")
    assert remove_tree(base / "root")
    assert names(base) == []
    assert names(tmp_path / "outside") == ["file"]


def test_folders_that_are_locked_or_deeper_than_any_path_are_removed(base: Path) -> None:
    (base / "root" / "in" / "inner").mkdir(parents=True)
    (base / "root" / "in" / "inner" / "file").touch()
    for place in ("root/in/inner", "root/in", "root"):
        (base / place).chmod(0)
    assert remove_tree(base / "root")
    (base / "root").mkdir()
    here = os.open(base / "root", os.O_RDONLY)
    for _ in range(5000):
        os.mkdir("deep", dir_fd=here)
        below = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    assert remove_tree(base / "root")
    assert names(base) == []


def test_programs_are_never_looked_for_in_the_workspace(base: Path) -> None:
    with open_trial_root(base) as root:
        for written, expected in ((".::bin:/usr/bin:relative/bin:/bin", "/usr/bin:/bin"), (".", os.defpath)):
            assert child_variables({"PATH": written}, root)["PATH"] == expected

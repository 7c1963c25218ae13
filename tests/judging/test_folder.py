"""The folder of a judge that opens files: the saved workspace of the right turn, with what is missing told as data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from skillup.judging.folder import SavedFolder
from skillup.judging.shown import About
from tests.judging.story import Story


def told(tmp_path: Path) -> Story:
    story = Story(tmp_path, {"given.txt": "of the case", "blob": b"\x00\xff", "kept/": None})
    story.turn("first", files={"report.md": "draft", "in/orders.csv": "ada,12"})
    return story.turn("second", files={"report.md": "final", "in/orders.csv": None})


def written(folder: SavedFolder, place: Path) -> dict[str, str]:
    place.mkdir()
    folder.write(place)
    return {str(path.relative_to(place)): path.read_text() for path in place.rglob("*") if path.is_file()}


def test_it_is_the_workspace_at_the_end_or_after_the_criterions_turn(tmp_path: Path) -> None:
    evidence = told(tmp_path).evidence()
    end = SavedFolder.of(evidence, About())
    assert written(end, tmp_path / "end") == {"given.txt": "of the case", "report.md": "final"}
    first = SavedFolder.of(evidence, About(turn=1))
    assert written(first, tmp_path / "first") == {
        "given.txt": "of the case",
        "report.md": "draft",
        "in/orders.csv": "ada,12",
    }
    assert (tmp_path / "end" / "kept").is_dir()
    assert SavedFolder.of(evidence, About(window=1)) == end


def test_what_the_agent_made_or_changed_there_is_its_own_and_the_rest_is_not(tmp_path: Path) -> None:
    evidence = told(tmp_path).evidence()
    sides = {str(piece.data["file"]): (piece.side, piece.turn) for piece in SavedFolder.of(evidence, About()).pieces}
    assert sides == {"given.txt": ("user", None), "report.md": ("agent", None)}
    second = {str(p.data["file"]): (p.side, p.turn) for p in SavedFolder.of(evidence, About(turn=2)).pieces}
    assert second == {"given.txt": ("user", 2), "report.md": ("agent", 2)}


def test_what_is_missing_is_named_as_data(tmp_path: Path) -> None:
    (gap,) = SavedFolder.of(told(tmp_path).evidence(), About()).gaps
    assert dict(gap.data) == {"files that your folder does not hold": ["blob"]}
    assert SavedFolder.of(Story(tmp_path / "other", {}).turn("a").evidence(), About()).gaps == ()


def test_a_run_directory_of_a_stranger_writes_nothing_elsewhere(tmp_path: Path) -> None:
    evidence = told(tmp_path).evidence()
    tree = dict(evidence.tree(2) or {})
    strange = {**tree, "../escaped": tree["report.md"], "/tmp/escaped": tree["report.md"], "../out": tree["kept"]}
    snapshots = replace(evidence.snapshots, trees={**evidence.snapshots.trees, 2: strange})
    folder = SavedFolder.of(replace(evidence, snapshots=snapshots), About())
    assert set(written(folder, tmp_path / "place")) == {"given.txt", "report.md"}
    assert {"../escaped", "/tmp/escaped"} <= set(folder.missing)
    assert not (tmp_path / "escaped").exists()
    assert not (tmp_path / "out").exists()

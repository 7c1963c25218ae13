"""Proposals and their index as a reader takes them: front matter by a YAML parser, rows by the rules of a table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml

KEYS = ["title", "authors", "created", "last-updated", "status", "number"]
STATUSES = ["draft", "provisional", "implementable", "implementing", "implemented", "withdrawn", "rejected"]


@dataclass(frozen=True)
class Proposal:
    """One file: its front matter, and its first heading."""

    path: Path
    meta: dict[str, Any]
    heading: str

    @property
    def id(self) -> str:
        """`SUP-` and the number in at least four digits."""
        return f"SUP-{self.meta['number']:04d}"


@dataclass(frozen=True)
class Row:
    """One row of the index, unescaped; `path` is where its link leads."""

    id: str
    path: Path
    title: str
    status: str
    updated: str


def read(path: Path) -> Proposal:
    """A proposal from its file."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("---\n"), path
    front, _, body = text.removeprefix("---\n").partition("\n---\n")
    heading = next(line for line in body.split("\n") if line)
    return Proposal(path, yaml.safe_load(front), heading)


def proposals(folder: Path) -> list[Proposal]:
    """All proposals of a folder, by number."""
    return sorted(map(read, folder.glob("[0-9]*.md")), key=lambda proposal: proposal.meta["number"])


def rows(folder: Path) -> list[Row]:
    """The rows of the index, in its order."""
    lines = (folder / "README.md").read_text(encoding="utf-8").split("\n")
    first = lines.index("| Proposal | Title | Status | Last updated |") + 2
    found = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        cells = [re.sub(r"\\(.)", r"\1", cell[1:-1]) for cell in re.findall(r"\|((?:\\.|[^|\\])*)(?=\|)", line)]
        assert len(cells) == 4, line
        link = re.fullmatch(r"\[(SUP-\d+)\]\(([^() ]+)\)", cells[0])
        assert link, line
        found.append(Row(link[1], (folder / unquote(link[2])).resolve(), *cells[1:]))
    return found


def assert_agreement(folder: Path) -> None:
    """Every proposal of a folder says the same in name, front matter, heading and row; every row has its file."""
    written, index = proposals(folder), rows(folder)
    numbers = [int(row.id[4:]) for row in index]
    assert numbers == sorted(set(numbers)), f"the rows are not in order, or a number is there twice: {numbers}"
    for row in index:
        assert row.path.is_file(), f"{row.id} leads to {row.path}, which is not there"
    here = [row for row in index if row.path.parent == folder.resolve()]
    assert [row.path.name for row in here] == [proposal.path.name for proposal in written]
    for proposal, row in zip(written, here, strict=True):
        meta = proposal.meta
        assert list(meta) == KEYS, proposal.path
        assert meta["status"] in STATUSES
        assert all(isinstance(author, str) and author.strip() for author in meta["authors"])
        assert meta["created"] <= meta["last-updated"]
        assert proposal.heading == f"# {proposal.id}: {meta['title']}"
        assert re.match(rf"0*{meta['number']}-.*\.md$", proposal.path.name), proposal.path.name
        assert row == Row(
            proposal.id, proposal.path.resolve(), meta["title"], meta["status"], str(meta["last-updated"])
        )

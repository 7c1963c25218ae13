"""The proposals that are here: index, front matter and titles agree, links lead somewhere, examples run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.proposals.reading import STATUSES, Proposal, assert_agreement, proposals
from tests.support import REPOSITORY, Project

FOLDER = REPOSITORY / "proposals"


def test_index_front_matter_and_titles_of_every_proposal_agree() -> None:
    assert proposals(FOLDER)
    assert_agreement(FOLDER)


def test_the_statuses_are_the_same_in_the_life_cycle_and_in_the_script() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    script = ["bash", str(FOLDER / "init-proposal.sh"), "-s", "unknown", "A title"]
    refused = subprocess.run(script, capture_output=True, text=True, check=False)
    listed = re.search(r"one of: (.*)", refused.stderr)
    assert listed
    assert listed[1].split(", ") == STATUSES
    assert re.findall(r"^\| `(\w+)` \|", readme, re.MULTILINE) == STATUSES


@pytest.mark.parametrize("page", sorted(FOLDER.glob("*.md")), ids=lambda page: page.name)
def test_every_link_of_a_page_leads_to_a_file_or_a_heading(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name, anchor in re.findall(r"\]\(([^()#:\s]*)(?:#([^()\s]*))?\)", text):
        target = page.parent / name if name else page
        assert target.exists(), name
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("proposal", proposals(FOLDER), ids=lambda proposal: proposal.id)
def test_nothing_of_the_template_is_left_in_a_proposal_that_is_past_its_draft(proposal: Proposal) -> None:
    text = proposal.path.read_text(encoding="utf-8")
    if proposal.meta["status"] != "draft":
        assert "<!--" not in text


def test_the_example_of_sup_0001_passes_as_it_stands(project: Project) -> None:
    text = (FOLDER / "0001-multi-turn-conversation-eval.md").read_text(encoding="utf-8")
    example = re.search(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert example
    project.write("ticket.yaml", example[1])
    done = project.run("ticket.yaml", "--agent", "builtin", "--model", "scripted")
    assert done.code == 0, done.stdout + done.stderr
    assert [turn.content for turn in done.trial().turn_results] == ["Open a ticket for the login page.", "Close T-42."]

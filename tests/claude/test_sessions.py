"""Twelve conversations at once: each in a native session of its own, and no word of one in another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import Finished, Project

TREES = ("alder", "beech", "cedar", "date", "elm", "fir", "gum", "hazel", "ilex", "judas", "kauri", "larch")
NUMBERS = ("one", "two", "three", "four")

CASE = """
    input:
      turns:
        - {{role: user, content: my first word is SECRET-{tree}-one}}
        - {{role: user, content: my second word is SECRET-{tree}-two}}
        - {{role: user, content: my third word is SECRET-{tree}-three}}
        - {{role: user, content: my fourth word is SECRET-{tree}-four}}
    judge:
      type: rule_based
      success:
        - output_matches: {{all: ['^I know SECRET-{tree}-one$'], turn: 1}}
        - output_matches: {{all: ['^I know SECRET-{tree}-one, SECRET-{tree}-two, .*, SECRET-{tree}-four$']}}
    script:
      - find: {{words: 'SECRET-[a-z]+-[a-z]+'}}
        say: I know {{{{words}}}}
"""


@pytest.mark.parametrize("agent", ["builtin", pytest.param("claude_code", marks=pytest.mark.claude)])
def test_twelve_conversations_at_once_stay_apart(claude: Project, agent: str) -> None:
    """The model says every word that the conversation in its request holds, so a word that strays is heard."""
    for tree in TREES:
        claude.write(f"cases/{tree}.yaml", CASE.format(tree=tree))
    done = claude.run("cases", "--agent", agent, "--model", "scripted", "--parallelism", "6")
    assert done.code == 0, done.stdout
    assert len({only(done.trial(tree).session_ids) for tree in TREES}) == len(TREES)
    for tree in TREES:
        words = [f"SECRET-{tree}-{number}" for number in NUMBERS]
        turns = done.trial(tree).turn_results
        assert [turn.response for turn in turns] == [f"I know {', '.join(words[:n])}" for n in range(1, 5)]
        assert {turn.session_id for turn in turns} == set(done.trial(tree).session_ids)
        if agent == "claude_code":
            assert sessions_told(done, tree) == list(done.trial(tree).session_ids) * 4
        seen = requests_text(done, tree)
        assert all(word in seen for word in words)
        assert [other for other in TREES if other != tree and f"SECRET-{other}" in seen] == []


def requests_text(done: Finished, case: str) -> str:
    """All that came by a trial's own address, as it was saved."""
    return Path(done.folder(case) / "requests.jsonl").read_text(encoding="utf-8")


def sessions_told(done: Finished, case: str) -> list[str]:
    """The session that Claude Code named to the provider, in each request: held against what it reports to us."""
    return [json.loads(request["body"]["metadata"]["user_id"])["session_id"] for request in done.requests(case)]


def only(ids: tuple[str, ...]) -> str:
    """The one id of a trial."""
    assert len(ids) == 1
    return ids[0]

"""`skill_used`: what shows the use of a skill, what does not, and what nobody can tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.transcript import ToolCall
from tests.judging.story import Story, call, rule

PLACE = "/trial/home/skills/heron/SKILL.md"
TEXT = "---\nname: heron\n---\nSay heron.\n"

USED = "skill_used: heron"
NEVER = "skill_used: {name: heron, used: false}"

USES: dict[str, tuple[ToolCall, str, str]] = {
    "the CLI's own call": (call("skill", more={"name": "heron"}), "Launching skill", "basis: call"),
    "a read of its path": (call("read", path=PLACE), TEXT, f"basis: it reads {PLACE}"),
    "a command that prints it": (call("bash", command=f"cat '{PLACE}'"), TEXT, f"names {PLACE} and printed its text"),
    "text that the CLI put in": (
        call("skill", more={"name": "heron"}).model_copy(update={"basis": "session_file"}),
        TEXT,
        "basis: session_file",
    ),
}

NO_USES: dict[str, tuple[ToolCall, str]] = {
    "another skill": (call("skill", more={"name": "crane"}), "Launching skill"),
    "a call that failed": (call("skill", status="error", more={"name": "heron"}), "unknown skill"),
    "a read that failed": (call("read", status="error", path=PLACE), "no such file"),
    "a listing of the file": (call("bash", command=f"ls -l {PLACE}"), f"-rw-r--r-- 1 {PLACE}\n"),
    "a command without output": (call("bash", command=f"test -f {PLACE}"), ""),
    "a longer path": (call("bash", command=f"cat {PLACE}.orig"), TEXT),
    "another file": (call("read", path="SKILL.md"), TEXT),
    "its name": (call("bash", command="echo heron"), "heron\n"),
}

DOUBTS: dict[str, ToolCall] = {
    "another spelling": call("bash", command="cat ~/skills/heron/SKILL.md"),
    "a change of folder": call("bash", command="cd /trial/home/skills/heron && cat SKILL.md"),
    "a search in it": call("grep", pattern="say", path="/elsewhere/heron/SKILL.md"),
}


def told(folder: Path, made: ToolCall, output: str = "") -> Story:
    return Story(folder).having(heron=PLACE).turn(calls=[made], outputs={made.id: output})


@pytest.mark.parametrize(("made", "output", "basis"), USES.values(), ids=USES)
def test_a_use_is_shown_with_its_basis(tmp_path: Path, made: ToolCall, output: str, basis: str) -> None:
    outcome = told(tmp_path, made, output).judged(USED)
    assert outcome.state == "met"
    assert basis in outcome.evidence


@pytest.mark.parametrize(("made", "output", "basis"), USES.values(), ids=USES)
def test_what_must_never_be_used_and_was_is_not_met(tmp_path: Path, made: ToolCall, output: str, basis: str) -> None:
    outcome = told(tmp_path, made, output).judged(NEVER)
    assert (outcome.state, outcome.forbidden) == ("not_met", True)
    assert basis in outcome.evidence


@pytest.mark.parametrize("written", [USED, NEVER])
@pytest.mark.parametrize(("made", "output"), NO_USES.values(), ids=NO_USES)
def test_what_is_near_is_no_use(tmp_path: Path, made: ToolCall, output: str, written: str) -> None:
    outcome = told(tmp_path, made, output).judged(written)
    assert outcome.state == ("not_met" if written == USED else "met")
    if made.arguments.get("command") == f"cat {PLACE}.orig":
        return
    assert f"no call that reads {PLACE}" in outcome.evidence


@pytest.mark.parametrize("written", [USED, NEVER])
@pytest.mark.parametrize("made", DOUBTS.values(), ids=DOUBTS)
def test_a_call_that_may_be_a_use_leaves_it_unknown(tmp_path: Path, made: ToolCall, written: str) -> None:
    outcome = told(tmp_path, made, TEXT).judged(written)
    assert (outcome.state, outcome.cause) == ("unknown", "unobservable")
    assert "cannot be told" in outcome.evidence


def test_a_message_that_some_clis_take_for_the_skill_leaves_it_unknown(tmp_path: Path) -> None:
    outcome = Story(tmp_path).having(heron=PLACE).turn(content="/heron now").judged(NEVER)
    assert (outcome.state, outcome.cause) == ("unknown", "unobservable")


@pytest.mark.parametrize("written", [USED, NEVER])
def test_an_engine_that_shows_none_of_the_ways_leaves_it_unknown(tmp_path: Path, written: str) -> None:
    outcome = Story(tmp_path).having(heron=PLACE).hiding("skill", "read", "bash").turn().judged(written)
    assert (outcome.state, outcome.cause) == ("unknown", "unobservable")
    assert "builtin cannot show the use of skills" in outcome.evidence


def test_one_way_that_can_be_seen_is_enough(tmp_path: Path) -> None:
    story = Story(tmp_path).having(heron=PLACE).hiding("skill", "read").turn()
    assert story.judged(USED).state == "not_met"


@pytest.mark.parametrize("written", [USED, NEVER])
def test_a_cut_turn_tells_nothing_of_absence(tmp_path: Path, written: str) -> None:
    outcome = Story(tmp_path).having(heron=PLACE).cut().judged(written)
    assert (outcome.state, outcome.cause) == ("unknown", "incomplete")


def test_a_skill_that_was_not_installed_was_not_used_and_the_evidence_says_so(tmp_path: Path) -> None:
    story = Story(tmp_path).having(crane="/elsewhere").turn()
    evidence = story.evidence()
    assert story.judged(USED).state == "not_met"
    assert evidence.record.skills == ("crane",)
    assert "heron was not installed in this trial; installed: crane" in story.judged(USED).evidence


def test_a_record_that_does_not_say_where_the_skill_was_tells_nothing(tmp_path: Path) -> None:
    outcome = Story(tmp_path).having(heron="").turn().judged(NEVER)
    assert (outcome.state, outcome.cause) == ("unknown", "unobservable")


COUNTS = {
    "count: 2": "met",
    "count: 1": "not_met",
    "count: {min: 3}": "not_met",
    "count: {min: 1, max: 2}": "met",
    "turn: 1": "met",
    "turn: 2": "met",
    "turn: 3": "not_met",
    "turn: any, count: 2": "not_met",
    "turn: any": "met",
}


@pytest.mark.parametrize(("more", "state"), COUNTS.items())
def test_uses_are_counted_in_the_turns_that_the_rule_is_about(tmp_path: Path, more: str, state: str) -> None:
    use = call("skill", more={"name": "heron"})
    story = Story(tmp_path).having(heron=PLACE).turn(calls=[use]).turn(calls=[use]).turn()
    outcome = story.judged(f"skill_used: {{name: heron, {more}}}")
    assert outcome.state == state
    if more == "turn: 3":
        assert "but in another turn: turn 1" in outcome.evidence


REFUSED = {
    "skill_used: {name: heron, count: 0}": "a count of 0 asks for absence",
    "skill_used: {name: heron, used: false, count: 2}": "nothing to count",
    "skill_used: {name: ' '}": "blank",
    "skill_used: {name: heron, usd: false}": "usd",
}


@pytest.mark.parametrize(("written", "said"), REFUSED.items())
def test_what_cannot_be_meant_is_refused(written: str, said: str) -> None:
    with pytest.raises(ValueError, match="skill_used") as caught:
        rule(written)
    assert said in str(caught.value)

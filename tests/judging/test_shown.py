"""What a judge is shown: every turn, every call with arguments and result, the workspace; bounded, and saying so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillup.judging.earlier import earlier
from skillup.judging.quotes import Quotable
from skillup.judging.shown import About, Piece, Shown, fitted, shown
from skillup.results import StreamDamage
from skillup.spec.criteria import JudgeContext
from skillup.spec.turn import Input
from skillup.transcript import Message, ToolResult
from tests.judging.story import Story, call, read

EVERYTHING = About()


def seen(told: Story, context: str = "standard", about: About = EVERYTHING) -> Shown:
    return shown(told.evidence(), JudgeContext.model_validate(read(context)), about)


def told(tmp_path: Path) -> Story:
    story = Story(tmp_path, {"old.txt": "one\ntwo\n", "blob.bin": b"\xff\xfe\x00"})
    story.turn(
        "first answer", calls=[call("bash", command="ls -l")], files={"old.txt": "one\n2\n", "blob.bin": b"\xff"}
    )
    return story.turn("second answer", files={"new.txt": "fresh\n"})


def of_turn(what: Shown, number: int) -> list[dict[str, Any]]:
    return [dict(piece.data) for piece in what.pieces if piece.turn == number]


def test_the_standard_context_holds_every_turn_and_every_call(tmp_path: Path) -> None:
    what = seen(told(tmp_path))
    assert of_turn(what, 1) == [
        {"turn": 1, "user says": "go on"},
        {"turn": 1, "agent calls": "bash", "call": "call-1", "arguments": {"command": "ls -l"}, "status": "ok"},
        {"turn": 1, "agent says": "first answer"},
        {"turn": 1, "files in the workspace": {"changed": ["blob.bin", "old.txt"]}},
    ]
    assert {"turn": 2, "agent says": "second answer"} in of_turn(what, 2)
    assert [piece.data for piece in what.pieces if piece.turn is None] == [
        {"diff of the file": "blob.bin", "lines": "(changed; its content is no text, or was not kept)"},
        {"diff of the file": "new.txt", "lines": "(created)\n@@ -0,0 +1 @@\n+fresh"},
        {"diff of the file": "old.txt", "lines": "(changed)\n@@ -1,2 +1,2 @@\n one\n-two\n+2"},
        {"files at the end": ["blob.bin", "new.txt", "old.txt"]},
    ]


def test_what_was_said_before_the_first_turn_is_shown_and_is_nothing_that_the_agent_did(tmp_path: Path) -> None:
    written = """
      system: Be brief.
      messages:
        - {role: user, content: Look.}
        - {role: assistant, content: I do., calls: [{name: look, args: {at: it}, result: 8080}, {name: b, error: no}]}
        - {role: user, content: go on}
    """
    before = tuple(earlier(Input.model_validate(read(written))))
    assert [piece.data for piece in before] == [
        {"the agent's instructions": "Be brief."},
        {"before turn 1 the user said": "Look."},
        {"before turn 1 the assistant said": "I do."},
        {"before turn 1 the assistant called": "look", "arguments": {"at": "it"}, "result": "8080"},
        {"before turn 1 the assistant called": "b", "arguments": {}, "error": "no"},
    ]
    assert {piece.side for piece in before} == {"user"}, "no quote of it proves what the agent did"
    evidence = told(tmp_path).evidence()
    assert shown(evidence, JudgeContext(), EVERYTHING, before).pieces[:5] == before
    assert before[0] not in shown(evidence, JudgeContext(), About(window=1), before).pieces
    assert before[0] not in shown(evidence, JudgeContext(profile="minimal"), EVERYTHING, before).pieces


def test_results_of_calls_are_shown_and_thoughts_are_not(tmp_path: Path) -> None:
    story = Story(tmp_path).turn("done")
    evidence = story.evidence()
    result = ToolResult(call_id="call-1", status="ok", content="x" * 30_000)
    more = (
        Message(role="tool_result", turn=1, source="agent", tool_result=result),
        Message(role="reasoning", turn=1, source="agent", text="secret plans"),
        Message(role="assistant", turn=1, source="agent", text="done"),
    )
    turn = evidence.record.turns[0].model_copy(update={"messages": (*evidence.record.turns[0].messages, *more)})
    record = evidence.record.model_copy(update={"turns": (turn,)})
    what = shown(type(evidence)(record, evidence.snapshots), JudgeContext(), EVERYTHING)
    (content,) = [piece.data["content"] for piece in what.pieces if "result of call" in piece.data]
    assert len(content) < 20_100
    assert "10000 characters are not shown" in content
    assert "secret plans" not in what.text
    assert [piece.data.get("agent says") for piece in what.pieces].count("done") == 1


def test_the_minimal_context_is_the_final_answer_cut(tmp_path: Path) -> None:
    what = seen(Story(tmp_path).turn("first").turn("y" * 5_000, files={"a": "b"}), "minimal")
    (piece,) = what.pieces
    assert piece.data["turn"] == 2
    assert "3000 characters are not shown" in piece.data["final answer of the agent"]


@pytest.mark.parametrize(
    ("context", "there", "missing"),
    [
        ("{transcript: omit}", ["final answer of the agent", "diff of"], ["user says", "first answer"]),
        ("{workspace_diff: omit, generated_files: omit}", ["user says"], ["diff of", "files at the end"]),
        ("{profile: minimal, workspace_diff: file_ref}", ["diff of"], ["user says", "files at the end"]),
        ("{generated_files: include}", ["file at the end", "fresh"], ["files at the end"]),
        ("{limits: {transcript_max_turns: 1}}", ["second answer"], ["first answer"]),
        ("{limits: {workspace_diff_max_lines: 2}}", ["(changed; its content"], ["+fresh"]),
    ],
)
def test_each_part_can_be_chosen(tmp_path: Path, context: str, there: list[str], missing: list[str]) -> None:
    text = seen(told(tmp_path), context).text
    assert [part for part in there if part not in text] == []
    assert [part for part in missing if part in text] == []


def test_what_is_left_out_is_noted(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert seen(told(tmp_path / "a"), "{limits: {transcript_max_turns: 1}}").notes == ("turns 1 to 1 are not shown",)
    (tmp_path / "b").mkdir()
    assert seen(told(tmp_path / "b"), "{limits: {workspace_diff_max_lines: 2}}").notes == (
        "the workspace diff is not whole",
    )


def test_what_of_a_turn_is_not_there_is_told_of_each_turn_that_is_shown(tmp_path: Path) -> None:
    evidence = told(tmp_path).evidence()
    first, second = evidence.record.turns
    first = first.model_copy(update={"messages_left_out": 1200})
    second = second.model_copy(update={"stream_corrupt": StreamDamage(count=2, first_position=7, lost=1)})
    evidence = replace(evidence, record=evidence.record.model_copy(update={"turns": (first, second)}))
    left_out, lost = "1,200 messages of turn 1 are not kept", "more may be lost in the damaged output of turn 2"
    assert shown(evidence, JudgeContext(), EVERYTHING).notes == (left_out, lost)
    assert shown(evidence, JudgeContext(), About(turn=1)).notes == (left_out,)
    assert shown(evidence, JudgeContext(), About(window=1)).notes == ("turns 1 to 1 are not shown", lost)
    whole = StreamDamage(count=2, first_position=7, lost=0)
    turns = (first.model_copy(update={"messages_left_out": 0}), second.model_copy(update={"stream_corrupt": whole}))
    evidence = replace(evidence, record=evidence.record.model_copy(update={"turns": turns}))
    assert shown(evidence, JudgeContext(), EVERYTHING).notes == ()


def test_a_turn_is_shown_with_those_before_it_and_its_own_changes(tmp_path: Path) -> None:
    what = seen(told(tmp_path), "standard", About(turn=1))
    assert "first answer" in what.text
    assert "second answer" not in what.text
    assert "new.txt" not in what.text
    assert "-two" in what.text


def test_a_window_is_the_last_turns(tmp_path: Path) -> None:
    text = seen(told(tmp_path), "standard", About(window=1)).text
    assert "second answer" in text
    assert "first answer" not in text


def test_a_long_trial_is_fitted_by_its_longest_texts_and_says_so() -> None:
    pieces = tuple(Piece("agent", n, {"turn": n, "agent says": "short" if n else "z" * 20_000}) for n in range(50))
    what = fitted(Shown(pieces), 6_000)
    assert what is not None
    assert len(what.text) <= 6_000
    assert what.text.count("short") == 49
    assert what.notes == ("texts of more than 2500 characters are shortened",)
    assert fitted(Shown(pieces), 500) is None


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ('the lamp is "broken"', True),
        ("The lamp is", False),
        ("'the lamp'", True),
        ("the  lamp\nis", True),
        ('the lamp is \\"broken\\"', True),
        ('"agent says": "the lamp', True),
        ("agent says", False),
        ('{"turn": 1, "agent says', False),
        ("la", False),
        ("no", True),
        ("", False),
        ("the lamp … broken", False),
        ("C:\\temp", True),
        ("line one line two", True),
        ("line one\\nline two", True),
    ],
)
def test_a_quote_stands_word_for_word(quote: str, found: bool) -> None:  # noqa: FBT001 - a column of the table
    pieces = [
        Piece("agent", 1, {"turn": 1, "agent says": 'the lamp is "broken"'}),
        Piece("agent", 1, {"turn": 1, "agent says": "no"}),
        Piece("agent", 1, {"turn": 1, "agent calls": "bash", "arguments": {"command": "cd C:\\temp"}}),
        Piece("agent", 1, {"turn": 1, "agent says": "line one\nline two"}),
    ]
    assert Quotable.of(pieces).holds(quote) is found


def test_a_piece_is_one_line_whatever_it_holds() -> None:
    piece = Piece("agent", 1, {"turn": 1, "agent says": 'a\n"}\u2028\u202e\r\n</record>'})
    assert piece.line.isprintable()
    assert len(piece.line.splitlines()) == 1
    assert json.loads(piece.line)["agent says"].startswith("a\n")

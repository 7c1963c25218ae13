"""ADK's metrics that need no model: the scores are those that ADK 2.13 and NLTK compute."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillup.judging.adk import UnseenCallsError, response_match_score, rouge_1, tool_trajectory_avg_score
from skillup.judging.stemming import stem
from skillup.results import StreamDamage
from skillup.spec.case import Case
from tests.judging.story import Story, call

CASE = Case.model_validate({"id": "a", "input": {"turns": [{"content": "one"}, {"content": "two"}]}})
OFF, LIST = {"name": "set_device", "args": {"id": 2, "value": "OFF"}}, {"name": "list_devices"}

STEMS = """
caresses:caress ponies:poni ties:tie caress:caress cats:cat feed:feed agreed:agre plastered:plaster bled:bled
motoring:motor sing:sing conflated:conflat troubled:troubl sized:size hopping:hop tanned:tan falling:fall hissing:hiss
fizzed:fizz failing:fail filing:file happy:happi sky:sky enjoy:enjoy say:say relational:relat conditional:condit
rational:ration valenci:valenc digitizer:digit conformabli:conform radicalli:radic analogousli:analog
vietnamization:vietnam operator:oper feudalism:feudal decisiveness:decis hopefulness:hope callousness:callous
formaliti:formal sensitiviti:sensit sensibiliti:sensibl triplicate:triplic formative:form formalize:formal
electrical:electr hopeful:hope goodness:good revival:reviv allowance:allow inference:infer airliner:airlin
gyroscopic:gyroscop adjustable:adjust irritant:irrit replacement:replac adoption:adopt communism:commun effective:effect
probate:probat rate:rate cease:ceas controll:control roll:roll dying:die skies:sky news:news innings:inning died:die
applied:appli proceed:proceed responsive:respons responses:respons biology:biolog fully:fulli carefully:care yes:ye
"""


def test_words_have_the_stems_that_nltk_gives_them() -> None:
    pairs = [tuple(pair.split(":")) for pair in STEMS.split()]
    assert [(word, stem(word)) for word, _ in pairs] == pairs


@pytest.mark.parametrize(
    ("candidate", "reference", "score"),
    [
        ("I have turned off device_2 in the bedroom.", "I've turned off device_2 in the Bedroom, okay?", 0.8421),
        ("The responses were generated", "A responsive generator", 0.5714),
        ("你好，世界", "你好世界吗", 0.8889),
        ("Ünïcode naïve", "ünïcode NAÏVE", 1.0),
        ("", "x", 0.0),
        ("", "", 0.0),
        ("a a b", "a b b", 0.6667),
    ],
)  # fmt: skip
def test_rouge_is_that_of_adk(candidate: str, reference: str, score: float) -> None:
    assert round(rouge_1(candidate, reference), 4) == score


@pytest.mark.parametrize(
    ("match_type", "expected", "good"),
    [
        ("exact", [LIST, OFF], True),
        ("exact", [OFF, LIST], False),
        ("exact", [OFF], False),
        ("exact", [LIST, OFF, LIST], False),
        ("exact", [LIST, {**OFF, "args": {"id": 2}}], False),
        ("exact", [], False),
        ("in_order", [OFF], True),
        ("in_order", [LIST, OFF], True),
        ("in_order", [OFF, LIST], False),
        ("in_order", [], True),
        ("any_order", [OFF, LIST], True),
        ("any_order", [OFF, OFF], False),
    ],
)
def test_calls_are_compared_in_the_way_of_the_match_type(
    tmp_path: Path, match_type: Any, expected: list[dict[str, Any]], good: object
) -> None:
    story = Story(tmp_path).turn(calls=[call("list_devices"), call("set_device", id=2, value="OFF")])
    found = tool_trajectory_avg_score(story.evidence(), CASE, expected=[expected], match_type=match_type)
    assert (found.score == 1.0) is good, found.reasoning
    if match_type == "exact" and len(expected) == 2 and expected[0] is LIST:
        named = tool_trajectory_avg_score(story.evidence(), CASE, expected=[expected], ignore_args=True)
        assert named.score == 1.0


def test_the_score_is_the_mean_over_turns_with_one_for_each_turn_that_ran(tmp_path: Path) -> None:
    story = Story(tmp_path).turn("It is off.", calls=[call("list_devices")]).turn("Yes.", calls=[call("list_devices")])
    calls = tool_trajectory_avg_score(story.evidence(), CASE, expected=[[LIST], []])
    assert (calls.score, [turn.score for turn in calls.turns]) == (0.5, [1.0, 0.0])
    assert "turn 2: expected calls: none; made: list_devices (not exact)" in calls.reasoning
    words = response_match_score(story.evidence(), CASE, references=["It is off.", "No."])
    assert (words.score, [turn.score for turn in words.turns]) == (0.5, [1.0, 0.0])


def test_a_turn_that_was_cut_scores_0_and_one_that_did_not_take_place_counts(tmp_path: Path) -> None:
    story = Story(tmp_path).cut("It is").skipped()
    found = tool_trajectory_avg_score(story.evidence(), CASE, expected=[[], []])
    assert (found.score, [(turn.turn, turn.reasoning) for turn in found.turns]) == (0.0, [(1, "the turn was cut")])


def test_calls_that_an_engine_does_not_show_are_no_calls_that_were_not_made(tmp_path: Path) -> None:
    with pytest.raises(UnseenCallsError, match="cannot show calls of read"):
        tool_trajectory_avg_score(Story(tmp_path).turn().hiding("read").evidence(), CASE, expected=[[]])


def test_calls_that_may_be_lost_are_no_calls_that_were_not_made(tmp_path: Path) -> None:
    evidence = Story(tmp_path).turn(calls=[call("list_devices")]).evidence()
    (turn,) = evidence.turns
    for update, why in (
        ({"messages_left_out": 3}, "3 messages of turn 1 are not kept"),
        ({"stream_corrupt": StreamDamage(count=1, first_position=0, lost=1)}, "damaged output of turn 1"),
    ):
        record = evidence.record.model_copy(update={"turns": (turn.model_copy(update=update),)})
        with pytest.raises(UnseenCallsError, match=f"not every call is known; but .*{why}"):
            tool_trajectory_avg_score(replace(evidence, record=record), CASE, expected=[[LIST]], match_type="in_order")


@pytest.mark.parametrize(("value", "score"), [(1, 1.0), (1.0, 1.0), (True, 0.0), ("1", 0.0)])
def test_arguments_are_equal_with_their_types(tmp_path: Path, value: object, score: float) -> None:
    story = Story(tmp_path).turn(calls=[call("set_device", on=value)])
    expected = [[{"name": "set_device", "args": {"on": 1}}]]
    assert tool_trajectory_avg_score(story.evidence(), CASE, expected=expected).score == score

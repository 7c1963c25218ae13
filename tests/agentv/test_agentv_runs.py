"""AgentV's conversation tests on a real agent: the scores of its proposal, stopping, and what the judge is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.judging.judged import Wanted, given, judge_model, texts
from tests.support import Finished, Project

TRAVEL = Path(__file__).parent / "travel.yaml"
BARE = "{engine: builtin, model: scripted, settings: {tools: []}}"
QUOTES = {
    "turn-1": "Kyoto and the Kumano Kodo",
    "turn-2": "temple lodging in Koyasan",
    "turn-3": "keep you within $3000",
    "turn-4": "Days 1 to 5 in the mountains",
    "assertions": "Kyoto and the Kumano Kodo",
}
SIZES = {"turn-1": 2, "turn-2": 3, "turn-3": 3, "turn-4": 4, "assertions": 3}
MISSED = {"turn-2.criterion-3", "turn-4.criterion-4", "assertions.criterion-3"}


def verdicts(part: str) -> Wanted:
    ids = [f"{part}.criterion-{number}" for number in range(1, SIZES[part] + 1)]
    return {one: given("not_met") if one in MISSED else given("met", QUOTES[part]) for one in ids}


def variables(route: Any) -> dict[str, str]:
    return {
        "SKILLUP_JUDGE_PROVIDER": "openai",
        "SKILLUP_JUDGE_MODEL": "judge-1",
        "SKILLUP_JUDGE_BASE_URL": f"{route.base_url}/v1",
        "SKILLUP_JUDGE_API_KEY": "the-judges-key",
    }


def travelled(
    project: Project, *edits: tuple[str, str], parts: tuple[str, ...] = tuple(SIZES)
) -> tuple[Finished, list[str]]:
    """The travel planning run on a bare model, and the questions to its judge."""
    text = TRAVEL.read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (project.root / "travel.yaml").write_text(text)
    project.write("agents/bare.yaml", BARE)
    with judge_model(*(verdicts(part) for part in parts)) as route:
        done = project.run("travel.yaml", "--agent", "bare", env=variables(route))
        return done, [texts(request)[1] for request in route.requests]


def row(done: Finished) -> dict[str, Any]:
    (line,) = (done.directory / "agentv.jsonl").read_text().splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_the_travel_planning_scores_as_its_proposal_counts(project: Project) -> None:
    done, questions = travelled(project)
    assert done.code == 0, done.stdout + done.stderr
    found = row(done)
    assert [(one["name"], round(one["score"], 4), one["verdict"]) for one in found["scores"]] == [
        ("turn-1", 1.0, "pass"),
        ("turn-2", 0.6667, "fail"),
        ("turn-3", 1.0, "pass"),
        ("turn-4", 0.75, "fail"),
        ("assertions", 0.6667, "fail"),
    ]
    assert found["score"] == pytest.approx(0.816666667)
    assert (found["execution_status"], found["test_id"]) == ("ok", "travel-planning")
    assert len(questions) == 5, "one question for each part"


def test_the_result_has_every_field_of_the_proposals_output(project: Project) -> None:
    found = row(travelled(project)[0])
    assert {"test_id", "score", "execution_status", "scores", "output"} <= set(found)
    for one in found["scores"]:
        assert {"name", "type", "score", "verdict", "assertions"} <= set(one)
        assert one["type"] == "rubrics"
        assert len(one["assertions"]) == SIZES[one["name"]]
        assert all({"text", "passed"} <= set(assertion) for assertion in one["assertions"])
    assert [one["text"] for one in found["scores"][0]["assertions"] if one["passed"]] == [
        "Recommends specific Japan regions or cities",
        "Acknowledges spring timing (cherry blossom season, weather)",
    ]
    assert [message["role"] for message in found["output"]] == ["user", "assistant"] * 4
    assert found["output"][1]["content"].startswith("Kyoto and the Kumano Kodo")


def test_by_min_the_weakest_part_is_the_score(project: Project) -> None:
    found = row(travelled(project, ("aggregation: mean", "aggregation: min"))[0])
    assert found["score"] == pytest.approx(0.666666667)
    assert found["execution_status"] == "quality_failure"


def test_by_max_the_strongest_part_is_the_score(project: Project) -> None:
    assert row(travelled(project, ("aggregation: mean", "aggregation: max"))[0])["score"] == 1.0


def test_the_reference_answer_reaches_the_judge_of_its_turn_and_never_the_agent(project: Project) -> None:
    done, questions = travelled(project)
    held = ["Great choices!" in question for question in questions]
    assert held == [False, True, False, False, False]
    assert all("relevant travel advice across turns" in question for question in questions), "`criteria`"
    asked = json.dumps([request["body"] for request in done.requests()])
    assert "Great choices" not in asked
    assert "relevant travel advice" not in asked
    assert "temple lodging in Koyasan" in asked, "the actual reply is carried forward"


def test_the_system_message_is_the_models_and_is_there_in_every_turn(project: Project) -> None:
    done, _ = travelled(project)
    requests = [json.dumps(request["body"]) for request in done.requests()]
    assert len(requests) == 4
    assert all("You are a helpful travel planning assistant." in request for request in requests)
    assert not any('"tools": [{' in request for request in requests)


def test_a_window_bounds_what_the_judge_of_a_turn_sees_and_nothing_else(project: Project) -> None:
    done, questions = travelled(project, ("aggregation: mean", "window_size: 1"))
    assert ["two-week trip" in question for question in questions] == [True, False, False, False, True]
    assert "two-week trip" in json.dumps(done.requests()[3]["body"])


STOP = ("aggregation: mean", "on_turn_failure: stop")


def test_after_a_failed_turn_the_rest_does_not_take_place_and_scores_0(project: Project) -> None:
    done, questions = travelled(project, STOP, parts=("turn-1", "turn-2", "assertions"))
    found = row(done)
    assert [(one["score"], one["verdict"]) for one in found["scores"]] == [
        (1.0, "pass"),
        (pytest.approx(2 / 3), "fail"),
        (0.0, "skip"),
        (0.0, "skip"),
        (pytest.approx(2 / 3), "fail"),
    ]
    assert found["score"] == pytest.approx((1 + 2 / 3 + 2 / 3) / 5)
    assert (done.code, found["execution_status"]) == (1, "quality_failure")
    result = done.trial()
    assert [turn.status for turn in result.turn_results] == ["completed", "completed", "skipped", "skipped"]
    assert result.turn_results[2].reason == "turn 2 scored 0.6667, less than 0.8"
    assert len(done.requests()) == 2
    assert len(questions) == 3, "each part is asked about once"
    assert result.grading.judging is not None
    assert (result.grading.judging.calls, result.grading.judging.revision) == (3, 1)
    assert len((done.folder() / "judge-calls.jsonl").read_text().splitlines()) == 3


def test_judging_again_a_stopped_conversation_says_the_same(project: Project) -> None:
    done, _ = travelled(project, STOP, parts=("turn-1", "turn-2", "assertions"))
    before = (done.folder() / "grading.json").read_bytes()
    assert project.call("judge", done.directory).code == 1
    assert (done.folder() / "grading.json").read_bytes() == before


def test_a_judge_that_breaks_is_an_error_and_never_a_reason_to_go_on(project: Project) -> None:
    (project.root / "travel.yaml").write_text(TRAVEL.read_text().replace(*STOP))
    project.write("agents/bare.yaml", BARE)
    with judge_model("I would rather not say.") as route:
        done = project.run("travel.yaml", "--agent", "bare", env=variables(route))
    result = done.trial()
    assert (done.code, result.status) == (3, "ERROR")
    assert result.error is not None
    assert result.error.kind == "judge"
    assert len(done.requests()) == 1
    assert row(done)["score"] is None
    assert row(done)["execution_status"] == "execution_error"


def test_without_a_model_nothing_is_scored_and_nothing_stops(project: Project) -> None:
    (project.root / "travel.yaml").write_text(TRAVEL.read_text().replace(*STOP))
    project.write("agents/bare.yaml", BARE)
    done = project.run("travel.yaml", "--agent", "bare", "--no-model-judge")
    assert (done.trial().status, done.trial().grading.code) == ("UNCHECKED", "partial")
    assert len(done.requests()) == 4


def test_a_fault_of_the_provider_is_an_error_and_no_failed_quality(project: Project) -> None:
    edit = ('say: "Then stay at a temple lodging in Koyasan."', "faults: [{status: 401}]")
    done, _ = travelled(project, edit)
    result = done.trial()
    assert (done.code, result.status) == (3, "ERROR")
    assert result.error is not None
    assert result.error.kind == "auth"
    assert row(done)["execution_status"] == "execution_error"


DETERMINISTIC = """
    assertions:
      - {type: token-usage, max_total: 1000000}
    tests:
      - id: mixed
        mode: conversation
        turns:
          - input: Say hello, please.
            assertions:
              - {type: contains, value: Hello, weight: 3}
              - {type: equals, value: good bye}
          - input: Now nothing is asked of you.
          - input: Answer in JSON.
            assertions:
              - {type: is_json, required: true}
              - {type: contains, value: forbidden, negate: true}
              - {type: icontains-any, value: [ANSWER, reply]}
              - {type: starts-with, value: "{"}
              - {type: ends-with, value: "}"}
              - {type: regex, value: "ANSWER.: \\\\d+", flags: i}
              - {type: tool-trajectory, mode: any_order, minimums: {bash: 1, read: 2}}
              - {type: latency, threshold: 60000}
              - {type: execution-metrics, max_tool_calls: 0, max_duration_ms: 60000}
              - {type: field-accuracy, fields: [{path: answer, match: numeric_tolerance, tolerance: 2}, {path: why}]}
              - type: composite
                aggregator: {type: threshold, threshold: 0.5}
                assertions: [{type: is-json}, {type: contains, value: forbidden}]
            expected_output: {answer: 41, why: because}
        script:
          - {user: hello, say: Hello there.}
          - {user: nothing, say: Fine.}
          - {user: JSON, say: '{"answer": 42}'}
    """


def test_deterministic_graders_score_without_a_model(project: Project) -> None:
    project.write("mixed.yaml", DETERMINISTIC)
    project.write("agents/bare.yaml", BARE)
    done = project.run("mixed.yaml", "--agent", "bare")
    found = row(done)
    scores = {one["name"]: one["score"] for one in found["scores"]}
    assert scores == {"turn-1": 0.75, "turn-2": 1.0, "turn-3": pytest.approx(9 / 11), "assertions": 1.0}, done.stdout
    graders = {one["name"]: one["score"] for one in found["scores"][2]["scores"]}
    assert graders["tool-trajectory"] == 0.0
    assert graders["contains"] == graders["is-json"] == graders["regex"] == 1.0
    assert graders["field-accuracy"] == graders["composite"] == 0.5
    composite = found["scores"][2]["scores"][-1]
    assert [(one["name"], one["score"]) for one in composite["scores"]] == [("is-json", 1.0), ("contains", 0.0)]
    assert (found["scores"][1]["assertions"], found["scores"][1]["verdict"]) == ([], "pass")
    assert done.code == 0
    assert done.trial().grading.score == pytest.approx((0.75 + 1 + 9 / 11 + 1) / 4)


def test_a_required_grader_that_is_missed_leaves_nothing_of_its_turn(project: Project) -> None:
    project.write("mixed.yaml", DETERMINISTIC.replace("""'{"answer": 42}'""", "'answer: 42 }'"))
    project.write("agents/bare.yaml", BARE)
    done = project.run("mixed.yaml", "--agent", "bare")
    assert row(done)["scores"][2]["score"] == 0.0

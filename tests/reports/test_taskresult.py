"""The harness's three cases, as they ship, and what it publishes of them: scores, averages, and a record for each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from skillup.reports.scores import average_lines, scores_of
from skillup.reports.taskresult import taskresult, taskresult_flat
from skillup.results import TrialRecord, TrialResult
from skillup.schemas import schemas
from tests.judging.judged import given, judge_model, texts
from tests.judging.story import AGENT
from tests.reports.saved import ERROR, OVERLOADED, Trials
from tests.support import REPOSITORY, Finished, Project

SHIPPED = REPOSITORY / "cases" / "trajectories"
FORMATS = ("--format", "taskresult", "--format", "taskresult_flat")
FLAT = {
    *("task_id", "level", "question", "answer", "prediction", "is_correct", "score", "runtime_seconds", "error"),
    *("timestamp", "task_metadata", "file_name", "messages", "prediction_metadata", "evaluation_details"),
}


def judged(score: int, quote: str) -> dict[str, Any]:
    return {"output_quality": given(score, quote, reason=f"It is worth {score}.")}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run_shipped(project: Project, *scores: int) -> Finished:
    quotes = ("https://api.example.com/v1", "Is there anything else", "That is 4.")
    with judge_model(*(judged(score, quote) for score, quote in zip(scores, quotes, strict=True))) as route:
        variables = {
            "SKILLUP_JUDGE_PROVIDER": "openai",
            "SKILLUP_JUDGE_MODEL": "judge-1",
            "SKILLUP_JUDGE_BASE_URL": f"{route.base_url}/v1",
            "SKILLUP_JUDGE_API_KEY": "k",
        }
        done = project.run(SHIPPED, *FORMATS, env=variables)
        assert len(route.requests) == 3, "one question a task"
        assert "It names port 8080." in texts(route.requests[1])[1]
    return done


def test_the_three_cases_give_the_published_shape(project: Project) -> None:
    done = run_shipped(project, 10, 7, 10)
    assert done.code == 1, done.stdout + done.stderr
    assert "\nAverages: tool_order=1.000, tools_avoided=1.000, output_quality=0.900\n" in done.stdout
    assert "\n2/3 cases passed (overall >= 0.99)\n" in done.stdout
    fresh, middle, negative = lines(done.directory / "results.jsonl")
    assert Path(done.directory / "results.jsonl").read_bytes().count(b"\n") == 3
    assert (fresh["task_id"], fresh["task"]) == (
        "fresh-task-read-config",
        {"task_id": "fresh-task-read-config", "question": "Find the endpoint of the API in config.json."},
    )
    assert fresh["prediction"]["prediction"] == "The API is at https://api.example.com/v1."
    assert (fresh["evaluation"]["is_correct"], fresh["evaluation"]["score"], fresh["error"]) == (True, 1.0, None)
    details = fresh["evaluation"]["details"]
    assert details["scores"] == {"tool_order": 1.0, "tools_avoided": 1.0, "output_quality": 1.0}
    assert (details["tools_used"], details["tool_call_order"], details["steps"]) == (["readFile"], ["readFile"], 2)
    assert details["threshold"] == 0.99
    assert 0 < fresh["runtime_seconds"] < 60
    assert (middle["evaluation"]["is_correct"], middle["evaluation"]["score"]) == (False, 0.9)
    assert middle["evaluation"]["details"]["scores"] == {"tool_order": 1.0, "tools_avoided": 1.0, "output_quality": 0.7}
    assert middle["evaluation"]["details"]["reasons"]["output_quality"] == "It is worth 7."
    assert middle["evaluation"]["details"]["tool_call_order"] == ["readFile", "writeFile"]
    assert (negative["evaluation"]["is_correct"], negative["evaluation"]["details"]["tools_used"]) == (True, [])
    assert negative["evaluation"]["details"]["reasons"]["tool_order"].startswith("nothing to check")
    schema = Draft202012Validator(json.loads(schemas()["task-result.schema.json"]))
    assert [list(schema.iter_errors(one)) for one in (fresh, middle, negative)] == [[], [], []]


def test_a_task_passes_only_with_full_marks_and_the_whole_conversation_is_in_its_record(project: Project) -> None:
    done = run_shipped(project, 9, 10, 10)
    assert [result.status for result in done.run.case_results] == ["FAIL", "PASS", "PASS"]
    first, middle, _ = lines(done.directory / "results.jsonl")
    assert first["evaluation"]["score"] == pytest.approx((1 + 1 + 0.9) / 3)
    user, asks, answer, writes, _, says = middle["prediction"]["messages"]
    assert user == {"role": "user", "content": "Make it 3000, please."}
    (call,) = asks["tool_calls"]
    assert (asks["role"], call["type"], call["function"]["name"]) == ("assistant", "function", "readFile")
    assert json.loads(call["function"]["arguments"]) == {"path": "config.json"}
    assert answer == {"role": "tool", "tool_call_id": call["id"], "content": '{"port": 8081, "host": "localhost"}'}
    assert (writes["tool_calls"][0]["function"]["name"], says["role"]) == ("writeFile", "assistant")
    system = done.requests("mid-conversation-update-port")[0]["body"]["system"]
    assert system == "You edit configuration files. Read a file before you write it, every time."
    flat = lines(done.directory / "results-flat.jsonl")[0]
    assert flat.keys() == {"schema_version", *FLAT}
    assert (flat["question"], flat["is_correct"]) == (first["task"]["question"], False)
    assert flat["evaluation_details"] == first["evaluation"]["details"]
    again = project.call("report", done.directory, "--format", "taskresult")
    assert again.code == 0
    assert lines(done.directory / "results.jsonl")[1] == middle


def test_without_a_judge_its_score_is_absent_and_nothing_is_said_to_have_passed(project: Project) -> None:
    done = project.run(SHIPPED, "--no-model-judge", *FORMATS)
    assert done.code == 3
    assert "Averages: tool_order=1.000, tools_avoided=1.000, output_quality=unknown\n" in done.stdout
    assert "0/0 cases passed (overall >= 0.99); 3 without a verdict\n" in done.stdout
    for one in lines(done.directory / "results.jsonl"):
        evaluation = one["evaluation"]
        assert (evaluation["is_correct"], evaluation["score"]) == (None, None)
        assert evaluation["details"]["scores"] == {"tool_order": 1.0, "tools_avoided": 1.0}


RULES = [{"tool_order_correct": {"expected": ["bash"]}}, {"tools_avoided": {"forbidden": []}}]
TRAJECTORY = {"expect": {}, "judge": {"type": "rule_based", "success": RULES}}


@pytest.fixture
def trials(tmp_path: Path) -> Trials:
    return Trials(tmp_path)


def written(trials: Trials) -> tuple[dict[str, Any], ...]:
    def record_of(result: TrialResult) -> TrialRecord:
        index = trials.results.index(result)
        return TrialRecord.model_validate_json(
            (trials.folder / str(index) / "a/with_skill/trial-1/attempt-1/record.json").read_bytes()
        )

    whole = taskresult(trials.run(), record_of)
    assert taskresult_flat(trials.run(), record_of).count(b"\n") == whole.count(b"\n")
    return tuple(map(json.loads, whole.splitlines()))


def test_a_fault_is_neither_right_nor_wrong_and_in_no_average(trials: Trials) -> None:
    trials.add("lacks", case=TRAJECTORY)
    trials.add("broken", {"status": "error", "response": None}, case=TRAJECTORY, ending=ERROR, failures=(OVERLOADED,))
    assert list(average_lines(trials.results)) == [
        "Averages: tool_order=0.000, tools_avoided=1.000",
        "0/1 cases passed (overall >= 0.99); 1 without a verdict",
    ]
    lacks, broken = written(trials)
    assert (lacks["evaluation"]["is_correct"], lacks["evaluation"]["score"], lacks["error"]) == (False, 0.5, None)
    assert (broken["evaluation"]["is_correct"], broken["evaluation"]["score"]) == (None, None)
    assert broken["error"] == "overloaded: the provider answered 529"
    assert broken["prediction"]["prediction"] is None
    assert "tool_order" not in broken["evaluation"]["details"]["scores"]
    assert lacks["evaluation"]["details"]["steps"] is None, "nobody said how many"


def test_each_agent_has_its_own_averages(trials: Trials) -> None:
    for name, order in (("one", ["bash"]), ("two", [])):
        rules = [{"tool_order_correct": {"expected": order}}, {"tools_avoided": {"forbidden": []}}]
        agent = AGENT.model_copy(update={"name": name})
        trials.add("a", case={"expect": {}, "judge": {"type": "rule_based", "success": rules}}, agent=agent)
    assert list(average_lines(trials.results)) == [
        "one: Averages: tool_order=0.000, tools_avoided=1.000",
        "one: 0/1 cases passed (overall >= 0.99)",
        "two: Averages: tool_order=1.000, tools_avoided=1.000",
        "two: 1/1 cases passed (overall >= 0.99)",
    ]


def test_of_two_scores_with_one_name_the_worse_counts(trials: Trials) -> None:
    two = [{"tool_not_called": "bash"}, {"tool_order": ["bash"]}, {"tool_order": ["read"]}]
    result = trials.add("one", case={"expect": {}, "judge": {"type": "rule_based", "success": two}})
    assert {name: one.value for name, one in scores_of(result).items()} == {"tools_avoided": 1.0, "tool_order": 0.0}


def test_other_runs_have_no_averages_and_their_score_is_the_share_of_checks(trials: Trials) -> None:
    trials.add("plain", {"response": "not yet"}, case={"expect": {"must_contain": ["done", "yet"]}})
    assert list(average_lines(trials.results)) == []
    (one,) = written(trials)
    assert (one["evaluation"]["score"], one["evaluation"]["details"]["threshold"]) == (0.5, None)

"""Data sets of the harness for trajectories: what their keys become, and every fault at its place in the JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from skillup.errors import Fault, InputError
from skillup.loading.native import load_suites
from skillup.spec.case import Case
from skillup.spec.chat import ChatCall, ChatMessage, Entry
from skillup.spec.dataset import DatasetTool, Task, TaskConfig, TaskData, TaskTarget
from tests.support import REPOSITORY, Project

TOOL = {"description": "Read a file.", "parameters": {"path": "The file"}, "mock_return": "x"}


def task(*, target: dict[str, Any] | None = None, **data: Any) -> dict[str, Any]:
    given = {"prompt": "go", "mock_tools": {"readFile": TOOL}, **data}
    if "messages" in data:
        del given["prompt"]
    return {"data": given, "target": target or {}}


def read(folder: Path, *tasks: Any, name: str = "tasks.json") -> tuple[Case, ...]:
    path = folder / name
    path.write_text(json.dumps(tasks, indent=1), encoding="utf-8")
    (suite,) = load_suites([path])
    return suite.cases


def faults(folder: Path, *tasks: Any) -> list[Fault]:
    with pytest.raises(InputError) as caught:
        read(folder, *tasks)
    return list(caught.value.faults)


def test_a_task_becomes_a_case(tmp_path: Path) -> None:
    (case,) = read(
        tmp_path,
        {
            "id": "first",
            **task(
                config={"max_steps": 7},
                target={
                    "original_task": "Read it.",
                    "expected_tool_order": ["readFile"],
                    "forbidden_tools": [],
                    "mock_tool_results": {"readFile": "x"},
                    "category": "task-completion",
                },
            ),
            "metadata": {"description": "The first.", "author": "me"},
        },
    )
    assert (case.id, case.title, case.description, case.tags) == (
        "first",
        "Read it.",
        "The first.",
        ("task-completion",),
    )
    assert (case.turns[0].content, case.constraints.max_steps) == ("go", 7)
    (tool,) = case.mock_tools
    assert (tool.name, tool.description, tool.answers[0].content) == ("readFile", "Read a file.", "x")
    path = {"type": "string", "description": "The file"}
    assert tool.parameters == {"type": "object", "properties": {"path": path}, "required": ["path"]}
    assert case.judge is not None
    assert [item.name for item in case.judge.success] == ["tool_order_correct", "tools_avoided"]
    assert [rule.kind for rule in case.success_rules] == ["tool_order", "nothing_to_check"]
    assert case.judge.threshold == 0.99
    (criterion,) = case.criteria
    assert (criterion.id, criterion.scored) == ("output_quality", True)
    assert "What was asked: Read it." in criterion.text
    assert '{"readFile": "x"}' in criterion.text


def test_parameters_may_be_a_json_schema_whole_or_one_by_one(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": []}
    number = {"type": "integer"}
    one, two, none = read(
        tmp_path,
        task(mock_tools={"a": {**TOOL, "parameters": schema}}),
        task(mock_tools={"a": {**TOOL, "parameters": {"n": number, "path": "The file"}}}),
        task(mock_tools={"a": {"description": "d", "result": {"deep": [1]}}}),
    )
    assert one.mock_tools[0].parameters == schema
    assert two.mock_tools[0].parameters["properties"] == {
        "n": number,
        "path": {"type": "string", "description": "The file"},
    }
    assert two.mock_tools[0].parameters["required"] == ["path"]
    assert none.mock_tools[0].parameters == {"type": "object", "properties": {}}
    assert none.mock_tools[0].answers[0].content == '{"deep": [1]}'


def call(number: str = "c1", name: str = "readFile", arguments: Any = '{"path": "a"}') -> dict[str, Any]:
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "hi"}
ASSISTANT = {"role": "assistant", "content": "hello"}
CALLS = {"role": "assistant", "content": None, "tool_calls": [call()]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "8080"}


def test_messages_become_history_with_results_in_their_calls(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "and "}, {"type": "text", "text": "now {{x}} {{!y}}"}]
    two = {"role": "assistant", "content": "", "tool_calls": [call(), call("c2", arguments={"path": "b"})]}
    second = {"role": "tool", "tool_call_id": "c2", "name": "readFile", "content": [{"type": "text", "text": "B"}]}
    last = {"role": "user", "content": parts, "name": None}
    (case,) = read(tmp_path, task(messages=[SYSTEM, {**SYSTEM, "role": "developer"}, USER, two, second, RESULT, last]))
    assert case.input.system == "Be brief.\n\nBe brief."
    (said, called) = case.input.history
    assert (said.role, said.content, called.content) == ("user", "hi", None)
    assert [(one.name, one.args, one.content) for one in called.calls] == [
        ("readFile", {"path": "a"}, "8080"),
        ("readFile", {"path": "b"}, "B"),
    ]


def test_braces_of_a_data_set_are_text(project: Project) -> None:
    text = "say {{x}} and {{!y}} and {{ z }}"
    script = [{"say": "{{user}}"}]
    path = project.root / "tasks.json"
    path.write_text(json.dumps([{**task(prompt=text), "script": script}]), encoding="utf-8")
    done = project.run("tasks.json", "--agent", "demo", "--no-model-judge")
    assert done.trial().turn_results[0].content == text


def test_tasks_without_an_id_are_numbered(tmp_path: Path) -> None:
    assert [case.id for case in read(tmp_path, task(), task())] == ["tasks-1", "tasks-2"]
    assert [case.id for case in read(tmp_path, task(), name="one two.json")] == ["task-1"]


BAD = {
    "no task at all": ([], "tasks.json:1:1", "the data set holds no task"),
    "no data": ([{"target": {}}], "[0]", '"data" is required'),
    "no target": ([{"data": {"prompt": "x"}}], "[0]", '"target" is required'),
    "a misspelt key": ([task(target={"expected_tools_order": []})], "[0].target.expected_tools_order", "did you mean"),
    "in the second": (
        [task(), {"data": {"prompt": "x", "mockTools": {}}, "target": {}}],
        "[1].data.mockTools",
        'did you mean "mock_tools"?',
    ),
    "a model": ([task(config={"model": "gpt-5-mini"})], "[0].data.config.model", "--model gpt-5-mini"),
    "no steps": ([task(config={"max_steps": 0})], "[0].data.config.max_steps", "must be at least 1"),
    "nothing said": ([{"data": {}, "target": {}}], "[0].data", "nothing is said to the agent"),
    "both": ([{"data": {"prompt": "x", "messages": [USER]}, "target": {}}], "[0].data.prompt", "both `prompt` and"),
    "no return": ([task(mock_tools={"a": {"description": "d"}})], "[0].data.mock_tools.a", '"mock_return" is required'),
    "a bad name": ([task(mock_tools={"a b": TOOL})], '[0].data.mock_tools["a b"]', "cannot name a tool"),
    "a parameter": (
        [task(mock_tools={"a": {**TOOL, "parameters": {"n": 1}}})],
        "[0].data.mock_tools.a.parameters.n",
        "this says nothing about the parameter",
    ),
    "contradiction": (
        [task(target={"expected_tool_order": ["a"], "forbidden_tools": ["a"]})],
        "[0].target.forbidden_tools[0]",
        '"a" is expected and forbidden',
    ),
    "an id": ([{"id": "a/b", **task()}], "[0].id", "cannot name a folder"),
    "the same id": ([{"id": "a", **task()}, {"task_id": "a", **task()}], "the id a is taken by", ""),
    "a list": ([task(messages=[{"role": "robot", "content": "x"}])], "[0].data.messages[0].role", "must be one of"),
    "an image": (
        [task(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}])],
        "[0].data.messages[0].content[0].type",
        'a part of the type "image_url" cannot be sent',
    ),
    "a late system": (
        [task(messages=[USER, ASSISTANT, SYSTEM, USER])],
        "[0].data.messages[2]",
        "a system message in the middle",
    ),
    "no result": (
        [task(messages=[USER, CALLS, USER])],
        "[0].data.messages[1].tool_calls[0]",
        'the call "c1" has no result',
    ),
    "a stray result": (
        [task(messages=[USER, RESULT, USER])],
        "messages[1].tool_call_id",
        "no call before this message",
    ),
    "twice": ([task(messages=[USER, CALLS, RESULT, RESULT, USER])], "messages[3].tool_call_id", "no call before"),
    "ends with the assistant": (
        [task(messages=[USER, ASSISTANT])],
        "messages[1]",
        "the last message is not the user's",
    ),
    "ends with a result": ([task(messages=[USER, CALLS, RESULT])], "messages[2]", "the last message is not the user's"),
    "two of the user": ([task(messages=[SYSTEM, USER, USER])], "[0].data.messages[2]", "the first was never answered"),
    "begins with the assistant": (
        [task(messages=[SYSTEM, ASSISTANT, USER])],
        "messages[1].role",
        "begins with the user",
    ),
    "arguments": (
        [task(messages=[USER, {**CALLS, "tool_calls": [call(arguments="[1]")]}, RESULT, USER])],
        "messages[1].tool_calls[0].function.arguments",
        "the arguments are no JSON object",
    ),
    "a speaker": ([task(messages=[{**USER, "name": "Ann"}])], "messages[0].name", "cannot be told to the model"),
    "blank": ([task(messages=[{"role": "user", "content": " "}])], "messages[0]", "the message says nothing"),
    "a script": ([{**task(), "script": [{"say": "{{x}}"}]}], "[0].script[0].say", "nothing here is called `x`"),
}


@pytest.mark.parametrize(("tasks", "place", "said"), BAD.values(), ids=BAD)
def test_what_cannot_be_honoured_is_refused_by_name(tmp_path: Path, tasks: list[Any], place: str, said: str) -> None:
    found = faults(tmp_path, *tasks)
    (fault,) = found
    text = f"{fault.path}:{fault.line}:{fault.column}: {fault.key}: {fault.message} {fault.hint}"
    assert place in text
    assert said in text
    assert fault.line >= 1


def test_all_faults_of_all_tasks_are_told_at_their_lines(tmp_path: Path) -> None:
    found = faults(tmp_path, task(config={"steps": 1}), task(), task(target={"order": []}))
    lines = (tmp_path / "tasks.json").read_text().splitlines()
    assert [lines[fault.line - 1].strip() for fault in found] == ['"steps": 1', '"order": []']


def test_a_tool_that_the_model_is_not_offered_is_a_warning(project: Project) -> None:
    given = task(target={"expected_tool_order": ["readfile"], "forbidden_tools": ["rm"]})
    (project.root / "tasks.json").write_text(json.dumps([given]), encoding="utf-8")
    done = project.call("validate", "tasks.json")
    assert done.code == 0
    assert '[0].target.expected_tool_order[0]: "readfile" is no tool of this task' in done.stderr
    assert 'did you mean "readFile"?' in done.stderr
    assert '"rm" is no tool' in done.stderr


def test_in_a_folder_a_data_set_is_found_and_other_json_is_none(project: Project) -> None:
    project.write("all/package.json", '{"name": "x", "data": []}')
    project.write("all/broken-notes.json", "{not json")
    project.write("all/tasks.json", json.dumps([{"id": "a", **task()}, {"id": "b", **task()}]))
    project.write("all/case.yaml", "{input: {prompt: x}, judge: {type: none}}")
    listed = json.loads(project.call("list-cases", "all", "--json").stdout)
    assert sorted(case["id"] for case in listed) == ["a", "b", "case"]
    project.write("all/tasks.json", json.dumps([task()]) + ",")
    broken = project.call("validate", "all")
    assert (broken.code, "tasks.json:1:" in broken.stderr) == (2, True)


def test_a_suite_names_data_sets_and_its_defaults_hold_for_their_tasks(project: Project) -> None:
    cases = "cases: {files: [tasks.json], defaults: {timeout_seconds: 9, expect: {must_contain: [done]}}}"
    project.write("eval.yaml", f"schema_version: v1alpha1\nengine: {{name: builtin, model: scripted}}\n{cases}\n")
    project.write("tasks.json", json.dumps([{"id": "a", **task()}, {"id": "b", **task()}]))
    (suite,) = load_suites([project.root / "tasks.json"])
    assert suite.name == project.root.name
    assert [case.constraints.timeout_seconds for case in suite.cases] == [9, 9]
    assert [case.expect.must_contain for case in suite.cases] == [("done",)] * 2


PAGE = (REPOSITORY / "docs" / "datasets.md").read_text(encoding="utf-8")


def test_the_example_of_the_page_can_be_used_as_it_stands(project: Project) -> None:
    (example,) = re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    project.write("tasks.json", example)
    assert project.call("validate", "tasks.json").stdout == "1 case in order\n"


@pytest.mark.parametrize("model", [Task, TaskData, TaskTarget, TaskConfig, DatasetTool, ChatMessage, ChatCall])
def test_every_key_is_on_the_page(model: type[Entry]) -> None:
    words = set(re.findall(r"[A-Za-z_]\w*", " ".join(re.findall(r"`([^`\n]+)`", PAGE))))
    assert set(model.model_fields) - words == set()


def test_the_same_id_under_two_names_is_one_too_many(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, {"id": "a", "task_id": "b", **task()})
    assert (fault.key, fault.message) == ("[0].task_id", 'unknown key "task_id"')


def test_one_task_alone_is_a_data_set_and_a_case_in_json_stays_a_case(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(task()))
    (tmp_path / "case.json").write_text('{"input": {"prompt": "x"}, "judge": {"type": "none"}}')
    assert [case.id for case in load_suites([tmp_path / "one.json"])[0].cases] == ["one-1"]
    assert [case.id for case in load_suites([tmp_path / "case.json"])[0].cases] == ["case"]

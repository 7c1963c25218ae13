"""The published JSON Schemas: up to date, true of what a run writes, and true of what users may write."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from skillup.loading.yamlfile import parse_yaml, read_yaml
from skillup.schemas import READ, WRITTEN, main
from tests.judging.judged import given, judge_model
from tests.support import REPOSITORY, Project

FOLDER = REPOSITORY / "docs" / "schemas"

FILES = {
    "run.json": "run",
    "result.json": "result",
    "*/*/*/*/result.json": "trial-result",
    "*/*/*/*/*/result.json": "trial-result",
    "*/*/*/*/*/criteria.json": "criteria",
    "*/*/*/*/*/grading.json": "grading",
    "*/*/*/*/*/record.json": "record",
    "*/*/*/*/*/timing.json": "timing",
    "*/*/*/*/*/case.json": "case",
    "*/*/*/*/*/turn-*/turn.json": "turn",
}
"""Every JSON file of a run directory, and its schema."""


@functools.cache
def validator(name: str) -> Draft202012Validator:
    schema = json.loads((FOLDER / f"{name}.schema.json").read_bytes())  # up to date, as another test holds
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def complaints(name: str, data: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(data)]


def test_the_published_schemas_are_up_to_date(tmp_path: Path) -> None:
    """`make schemas` writes them anew."""
    main([str(tmp_path)])
    made = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    published = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert made == published
    assert made.keys() == {f"{name}.schema.json" for name in (*WRITTEN, *READ)}


def test_what_a_run_writes_is_valid(project: Project) -> None:
    """Every status, several turns, tool calls, gates, captures, a retry, a limit."""
    project.write(
        "cases/passes.yaml",
        r"""
        title: all that a turn can have
        vars: {who: Ada}
        input:
          turns:
            - role: user
              content: hello {{who}}
              post_condition: {must_contain_any: [T-]}
              capture: [{variable: id, pattern: '(T-\d+)'}, {variable: x, jsonpath: $.x, default: none}]
            - {role: user, content: "close {{id}}", turn_delay: 0.01}
        judge:
          type: rule_based
          success: [{tool_called: {name: bash, count: 1}}, {workspace_changed: {created: [a.txt]}}]
          failure: [{output_matches: {any: [sorry]}}]
        script:
          - user: hello
            replies: [{calls: [{tool: bash, args: {command: echo x > a.txt}}]}, {say: T-42}]
          - {user: close, say: done, faults: [{status: 529, times: 1}]}
        """,
    )
    project.write("cases/fails.yaml", "{input: {prompt: x}, expect: {must_contain: [y]}, script: [{say: z}]}")
    project.write(
        "cases/breaks.yaml", "{input: {prompt: x}, expect: {must_contain: [y]}, script: [{faults: [{status: 401}]}]}"
    )
    project.write("cases/unchecked.yaml", "{input: {prompt: x}, judge: {type: none}, script: [{say: z}]}")
    project.write(
        "cases/skips.yaml",
        """
        input:
          turns:
            - {role: user, content: a, post_condition: {must_match: 'b', on_fail: skip_remaining}}
            - {role: user, content: b}
        judge: {type: rule_based, success: [{output_contains: {all: [x], turn: 2}}]}
        script: [{say: no}]
        """,
    )
    project.write(
        "cases/judged.yaml",
        "{input: {prompt: x}, judge: {type: rubric, criteria: [a, {text: b, scored: true}]}, script: [{say: a reply}]}",
    )
    answers = {"criterion-1": given("met", "a reply"), "criterion-2": given(8, "a reply")}
    with judge_model(answers) as route:
        variables = {"SKILLUP_JUDGE_MODEL": "openai/judge-1", "SKILLUP_JUDGE_BASE_URL": route.base_url}
        done = project.run("cases", "--agent", "demo", "--parallelism", "4", env=variables)
    assert {trial.status for trial in done.run.case_results} == {"PASS", "FAIL", "ERROR", "UNCHECKED", "SKIP"}
    seen: set[Path] = set()
    for pattern, name in FILES.items():
        paths = set(done.directory.glob(pattern))
        assert paths, pattern
        for path in paths:
            assert complaints(name, json.loads(path.read_bytes())) == [], path
        seen |= paths
    assert seen == set(done.directory.rglob("*.json"))


def test_every_file_says_its_version() -> None:
    """But for the case, which is the user's file and belongs to the record beside it."""
    for name in WRITTEN:
        schema = json.loads((FOLDER / f"{name}.schema.json").read_bytes())  # up to date, as another test holds
        assert schema["properties"]["schema_version"]["const"] == "skillup/1", name
        assert "schema_version" in schema["required"], name


def test_a_written_file_may_gain_keys_and_may_not_lose_any() -> None:
    timing = {"schema_version": "skillup/1", "total_tokens": None, "duration_ms": 5}
    assert complaints("timing", timing) == []
    assert complaints("timing", {**timing, "new": 1}) == []
    assert complaints("timing", {"schema_version": "skillup/1", "duration_ms": 5})
    assert complaints("timing", {**timing, "duration_ms": "5"})
    assert complaints("timing", {**timing, "schema_version": "skillup/2"})


SHIPPED = [
    *(("case", path) for path in sorted(REPOSITORY.glob("cases/**/*.yaml")) if "input" in read_yaml(path, "").data),
    *(("suite", path) for path in sorted(REPOSITORY.glob("cases/**/eval.yaml"))),
    *(("agent", path) for path in sorted(REPOSITORY.glob("agents/*.yaml"))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "path"), SHIPPED, ids=[str(path.relative_to(REPOSITORY)) for _, path in SHIPPED])
def test_shipped_files_are_valid(name: str, path: Path) -> None:
    assert complaints(name, read_yaml(path, path.name).data) == []


CASE = "{input: {prompt: x}, judge: {type: rule_based, success: [%s]}}"


@pytest.mark.parametrize(
    "rule",
    [
        "{tool_called: bash}",
        "{tool_called: {name: bash, count: 2, turn: last}}",
        "{tool_called: {name: [bash, write], count: {max: 3}, args: {a: [1, {b: null}]}}}",
        "{tool_not_called: {name: bash, turn: any}}",
        "{files_exist: [a.txt]}",
        "{files_not_exist: {paths: [a.txt], turn: 1}}",
        "{output_contains: {all: [a], ignore_case: true}}",
        "{workspace_changed: {only: []}}",
        "{turn_response_contains: {turn: 1, contains_all: [a]}}",
        "{tool_order: [read, [write, edit], {name: bash, args: {command: {matches: x}}}]}",
        "{tool_order: {order: [read], mode: exact, turn: any}}",
        "{tools_only: read}",
        "{tools_only: []}",
        "{max_tool_calls: 0}",
        "{max_tool_calls: {max: 1, name: bash}}",
        "{no_repeated_calls: true}",
        "{no_repeated_calls: {ignore: todo, consecutive: true}}",
        "{no_premature_stop: [bash]}",
        "{max_calls_after: {rule: bash, n: 0}}",
        "{max_calls_after: {rule: {files_exist: [a]}, n: 0}}",
        "{asked_user: true}",
        "{max_tokens: 5}",
        "{max_cost_usd: 0.5}",
        "{max_seconds: {max: 5, turn: last}}",
        "{tool_order_correct: {expected: []}}",
        "{tools_avoided: {forbidden: [bash]}}",
        "{output_equals: done}",
        "{output_equals: {file: golden/a.txt}}",
        "{file_equals: {path: a, file: {text: x}, trim: true}}",
        "{file_matches: {path: a, pattern: x}}",
        "{json_path: {path: $.a, equals: {b: [1, null]}}}",
        "{json_path: {source: {file: a.json}, path: $.a, min: 1.5}}",
        "{json_schema: {schema: a.json}}",
        "{command: make}",
        "{command: {run: make, exit_code: 2}}",
        "{command: {run: make, exit_code: [0, 5], output: {not: [x]}}}",
        "{command: {run: make, exit_code: any, output_matches: {any: [x]}}}",
        "{json_schema: {source: {file: a.json}, schema: {type: object}}}",
    ],
)
def test_short_forms_are_valid(rule: str) -> None:
    assert complaints("case", parse_yaml(CASE % rule, "").data) == []


@pytest.mark.parametrize(
    "rule",
    [
        "{}",
        "{tool_called: bash, files_exist: [a]}",
        "{tool_caled: bash}",
        "{tool_called: }",
        "{tool_called: {name: bash, turn: first}}",
        "{tool_called: {name: bash, turn: 0}}",
        "{tool_called: {name: bash, argz: {}}}",
        "{files_exist: []}",
        "{exit_code: {}}",
        "{output_contains: {all: a}}",
        "{tool_order: []}",
        "{tool_order: {order: [read], mode: some}}",
        "{no_repeated_calls: false}",
        "{max_cost_usd: 0}",
        "{max_calls_after: {rule: bash}}",
    ],
)
def test_what_is_refused_is_not_valid(rule: str) -> None:
    assert complaints("case", parse_yaml(CASE % rule, "").data)


@pytest.mark.parametrize(
    ("judge", "valid"),
    [
        ("{type: rubric, criteria: [a, {text: b, weight: 0.5, turn: 1}], model: m, context: minimal}", True),
        ("{type: agent_judge, criteria: [a], context: {attachments: [a.md, {text: b}]}, timeout_seconds: 0}", True),
        ("{type: rubric, criteria: [{builtin: self_coherence}], skills: [a, {path: b}]}", True),
        ("{type: rubric, criteria: [{builtin: self_coherance}]}", False),
        ("{type: rubric, criteria: [{weight: 1}]}", False),
        ("{type: rubric, criteria: [a], context: everything}", False),
        ("{type: rubric, criteria: [a], pass_threshold: 7}", False),
        ("{type: rubric, criteria: [a], model: {provider: acme}}", False),
    ],
)
def test_judges_with_a_model(judge: str, valid: bool) -> None:  # noqa: FBT001 - a column of the table
    found = complaints("case", parse_yaml(f"{{input: {{prompt: x}}, judge: {judge}}}", "").data)
    assert (found == []) is valid


def test_the_rest_of_what_may_be_written() -> None:
    good = parse_yaml(
        """
        input:
          turns: [{content: x, timeout_seconds: 0, post_condition: {must_match: a, must_not_match: [b]}}]
        constraints: {timeout_seconds: 0, max_turns: 0}
        expect: {must_contain: [a]}
        """,
        "",
    ).data
    assert complaints("case", good) == []
    assert (
        complaints("agent", parse_yaml("{engine: builtin, model: scripted, limits: {turn_seconds: 5}}", "").data) == []
    )
    assert complaints("agent", parse_yaml("{engine: builtin, model: {name: m, nam: x}}", "").data)
    assert complaints("case", {**good, "constraints": {"timeout_seconds": -1}})
    assert complaints("case", {"expect": {"must_contain": ["a"]}})

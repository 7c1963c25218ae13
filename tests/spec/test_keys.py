"""Every key of the public `v1alpha1` format: accepted, refused as "not supported yet", or refused with the reason.

The tables are the format's own, key by key. None of them is ever ignored, and none is taken for a misspelling.
"""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from skillup.loading.faults import faults_from_validation
from skillup.loading.rendering import render_faults
from skillup.loading.yamlfile import parse_yaml
from skillup.spec.case import Case
from skillup.spec.suite import SuiteFile

SUITE = "schema_version: v1alpha1\n"
CASES = "cases: {files: [a.yaml]}\n"
LATER = "is part of the format but not supported yet"

ACCEPTED_BY_SUITES = {
    "environment.type": "environment: {type: none}\n" + CASES,
    "environment.type bubblewrap": "environment: {type: bubblewrap}\n" + CASES,
    "environment.type docker, image": "environment: {type: docker, image: x}\n" + CASES,
    "environment.entrypoint": "environment: {type: docker, image: x, entrypoint: [sleep, infinity]}\n" + CASES,
    "environment.workspace_mount": "environment: {type: docker, image: x, workspace_mount: /workspace}\n" + CASES,
    "environment.network_policy": "environment: {type: docker, image: x, network_policy: deny_all}\n" + CASES,
    "environment.network": "environment: {type: bubblewrap, network: none}\n" + CASES,
    "environment.limits": "environment: {type: bubblewrap, limits: {memory_mb: 4096, file_size_mb: 100}}\n" + CASES,
    "environment.env": "environment: {env: {A: b}}\n" + CASES,
    "environment.setup_steps": "environment: {setup_steps: [{run: make}]}\n" + CASES,
    "skills.source": "skills: [{source: local_path, path: .}]\n" + CASES,
    "skills.include": "skills: [{path: ., include: ['**/*.md']}]\n" + CASES,
    "skills.exclude": "skills: [{path: ., exclude: [docs/**]}]\n" + CASES,
    "engine.name": "engine: {name: claude_code}\n" + CASES,
    "engine.entry": "engine: {name: claude_code, entry: x}\n" + CASES,
    "engine.model": "engine: {name: x, model: {provider: p, name: n, base_url: 'http://h'}}\n" + CASES,
    "engine.model.params": "engine: {name: x, model: {name: n, params: {temperature: '0'}}}\n" + CASES,
    "cases.files": CASES,
    "cases.parallelism": "cases: {files: [a.yaml], parallelism: 4}\n",
    "cases.defaults": "cases: {files: [a.yaml], defaults: {timeout_seconds: 60, max_turns: 10}}\n",
    "cases.defaults, 0 for none": "cases: {files: [a.yaml], defaults: {timeout_seconds: 0, max_turns: 0}}\n",
    "cases.defaults.collect_artifacts": "cases: {files: [a.yaml], defaults: {collect_artifacts: ['*.md']}}\n",
    "cases.defaults.expect": "cases: {files: [a.yaml], defaults: {expect: {must_contain: [a]}}}\n",
    "judge": "judge: {type: none}\n" + CASES,
    "judges": "judges: [{id: a, type: script, script_path: a.sh}]\n" + CASES,
    "report.formats": "report: {formats: [json]}\n" + CASES,
}

LATER_IN_SUITES = {
    "environment.network_policy allow_declared": (
        "environment: {network_policy: allow_declared}\n" + CASES,
        "allow_declared",
    ),
    "environment.type opensandbox": ("environment: {type: opensandbox}\n" + CASES, "opensandbox"),
    **{
        f"environment.{key}": (f"environment: {{{key}: x}}\n{CASES}", key)
        for key in (
            *("sandbox_template", "use_server_proxy", "ready_timeout_seconds", "sandbox_timeout_seconds"),
            *("metadata", "kwargs", "allowed_egress"),
        )
    },
    "mcp": ("mcp: {servers: []}\n" + CASES, "mcp"),
    "skills.source registry": ("skills: [{source: registry, path: x}]\n" + CASES, "registry"),
    "skills.target": ("skills: [{path: ., target: x}]\n" + CASES, "target"),
    **{f"engine.{key}": (f"engine: {{name: x, {key}: '1'}}\n{CASES}", key) for key in ("version", "kwargs", "custom")},
    "user_simulator": ("user_simulator: {model: x}\n" + CASES, "user_simulator"),
    "benchmark": ("benchmark: {enabled: true}\n" + CASES, "benchmark"),
    "report.artifacts": ("report: {artifacts: [logs]}\n" + CASES, "artifacts"),
    **{
        f"report.formats {name}": (f"report: {{formats: [json, {name}]}}\n{CASES}", name)
        for name in ("html", "markdown")
    },
}

TURN = "input: {turns: [{role: user, content: hi, %s}]}\njudge: {type: none}\n"
PROMPT = "input: {prompt: hi}\n"
RULE = PROMPT + "judge: {type: rule_based, success: [{%s}]}\n"

ACCEPTED_BY_CASES = {
    "judges": PROMPT
    + "judges: [{id: a, type: rule_based, success: [{files_exist: [a]}]}, {id: b, type: rubric, criteria: [x]}]\n",
    "judge.type script, script_path": PROMPT + "judge: {type: script, script_path: a.sh, timeout_seconds: 30}\n",
    "id, title, description, tag": "id: a\ntitle: t\ndescription: d\ntag: trigger_test\n" + PROMPT,
    "input.prompt": PROMPT,
    "post_condition": TURN
    % "post_condition: {must_contain_all: [a], must_contain_any: [b], must_not_contain: [c], on_fail: skip_remaining}",
    "post_condition.on_fail empty": TURN % "post_condition: {must_contain_all: [a], on_fail: ''}",
    "capture.pattern": TURN % "capture: [{variable: x, pattern: '(?P<value>a)'}]",
    "capture.jsonpath": TURN % "capture: [{variable: x, jsonpath: \"$.a.b[0]['k']\"}]",
    "turns.timeout_seconds": TURN % "timeout_seconds: 30",
    "turns.timeout_seconds 0": TURN % "timeout_seconds: 0",
    "context": PROMPT + "context: {repo_fixture: f, files: {a.txt: text}, git: {init: true}}\n",
    "context.git": PROMPT
    + "context: {git: {init: true, checkout: feature/a, apply_diff: a.diff, remotes: [{name: origin, url: ../a}]}}\n",
    "collect_artifacts": PROMPT + "collect_artifacts: [x, 'out/**/*.md']\n",
    "constraints": PROMPT + "constraints: {timeout_seconds: 10, max_turns: 3}\n",
    "constraints, 0 for the default": PROMPT + "constraints: {timeout_seconds: 0, max_turns: 0}\n",
    "expect": PROMPT
    + "expect: {must_contain: [a], must_not_contain: [b], files_exist: [c], files_not_exist: [d],"
    + " file_contains: [{path: e, content: f}]}\n",
    "expect.golden_file": PROMPT + "expect: {golden_file: x}\n",
    "judge none": PROMPT + "judge: {type: none}\n",
    "judge agent_judge": PROMPT
    + "judge: {type: agent_judge, model: m, criteria: [a], pass_threshold: 0.7, timeout_seconds: 0}\n",
    "judge rubric": PROMPT + "judge: {type: rubric, criteria: [a], samples: 3, success: [{files_exist: [a]}]}\n",
    "judge.model": PROMPT
    + "judge: {type: rubric, criteria: [a], model: {provider: openai, name: m, base_url: 'http://h'}}\n",
    "judge.criteria": PROMPT
    + "judge: {type: rubric, criteria: [{id: a, text: b, weight: 2, required: true, scored: true, scope: turn,"
    + " turn: 1}, {text: c, scope: conversation, window: 2}]}\n",
    "judge.context": PROMPT
    + "judge: {type: rubric, criteria: [a], context: {profile: minimal, final_message: truncate, transcript: file_ref,"
    + " workspace_diff: omit, generated_files: include, attachments: [a.md, {path: b.md, label: c}, {text: d}],"
    + " limits: {max_bytes: 65536, transcript_max_turns: 20, workspace_diff_max_lines: 0}}}\n",
    "judge.skills": PROMPT + "judge: {type: agent_judge, criteria: [a], skills: [{source: local_path, path: s}, t]}\n",
    "judge.engine": PROMPT + "judge: {type: agent_judge, engine: codex, criteria: [a]}\n",
    "judge.criteria.builtin": PROMPT + "judge: {type: rubric, criteria: [{builtin: self_coherence, weight: 2}]}\n",
    "judge.context, a profile": PROMPT + "judge: {type: rubric, criteria: [a], context: minimal}\n",
    "output_contains": RULE % "output_contains: {all: [a], any: [b], not: [c]}",
    "output_matches": RULE % "output_matches: {all: [a], any: [b], not: [c]}",
    "tool_called": RULE % "tool_called: {name: bash, args: {command: ls}}",
    "files_exist": RULE % "files_exist: [a]",
    "files_not_exist": RULE % "files_not_exist: [a]",
    "turn_response_contains": RULE % "turn_response_contains: {turn: 1, contains_all: [a], contains_any: [b]}",
    "turn_response_not_contains": RULE % "turn_response_not_contains: {turn: 1, not_contains: [a]}",
    "tool_called_in_turn": RULE % "tool_called_in_turn: {turn: 1, name: bash, args: {command: ls}}",
    "tool_not_called_in_turn": RULE % "tool_not_called_in_turn: {turn: 1, name: bash}",
    "failure": PROMPT + "judge: {type: rule_based, failure: [{output_contains: {any: [a]}}]}\n",
}

LATER_IN_CASES = {
    "user_simulator": (PROMPT + "user_simulator: {scenario: x}\n", "user_simulator"),
    "turns.respond": ("input: {turns: [{role: user, respond: x}]}\n", "simulated user"),
    "mcp": (PROMPT + "mcp: {servers: []}\n", "mcp"),
    "judge.engine opencode": (PROMPT + "judge: {type: agent_judge, criteria: [a], engine: opencode}\n", "opencode"),
}

REFUSED_WITH_THE_REASON = {
    "expect.exit_code": (PROMPT + "expect: {exit_code: 1}\n", "can never differ on a built-in engine"),
    "exit_code": (RULE % "exit_code: 0", "can never differ on a built-in engine"),
    "a negative limit": (PROMPT + "constraints: {timeout_seconds: -1}\n", "everything that we start has a limit"),
    "a judge without a type": (PROMPT + "judge: {success: []}\n", "without it its rules would not count"),
}


def report_on(text: str, model: type[BaseModel]) -> str:
    """The faults of a document, one a line; empty when it is accepted."""
    document = parse_yaml(text, "file.yaml")
    data: Any = document.data
    if model is Case and "id" not in data:
        data = {"id": "a", **data}
    try:
        model.model_validate(data)
    except ValidationError as error:
        return render_faults(faults_from_validation(error, document, model))
    return ""


@pytest.mark.parametrize("text", ACCEPTED_BY_SUITES.values(), ids=ACCEPTED_BY_SUITES)
def test_a_key_of_eval_yaml_is_accepted(text: str) -> None:
    assert report_on(SUITE + text, SuiteFile) == ""


@pytest.mark.parametrize("text", ACCEPTED_BY_CASES.values(), ids=ACCEPTED_BY_CASES)
def test_a_key_of_a_case_is_accepted(text: str) -> None:
    assert report_on(text, Case) == ""


@pytest.mark.parametrize(("text", "named"), LATER_IN_SUITES.values(), ids=LATER_IN_SUITES)
def test_a_later_key_of_eval_yaml_is_refused_as_not_supported_yet(text: str, named: str) -> None:
    report = report_on(SUITE + text, SuiteFile)
    assert report.count("\n") == 0, "one fault is one line"
    assert LATER in report
    assert named in report
    assert "did you mean" not in report


@pytest.mark.parametrize(("text", "named"), LATER_IN_CASES.values(), ids=LATER_IN_CASES)
def test_a_later_key_of_a_case_is_refused_as_not_supported_yet(text: str, named: str) -> None:
    report = report_on(text, Case)
    assert report.count("\n") == 0, "one fault is one line"
    assert LATER in report
    assert named in report
    assert "did you mean" not in report


@pytest.mark.parametrize(("text", "reason"), REFUSED_WITH_THE_REASON.values(), ids=REFUSED_WITH_THE_REASON)
def test_what_cannot_mean_anything_is_refused_with_the_reason(text: str, reason: str) -> None:
    assert reason in report_on(text, Case)


def test_only_the_published_version_of_the_format_is_read() -> None:
    assert "must be v1alpha1" in report_on("schema_version: v2\n" + CASES, SuiteFile)
    assert '"schema_version" is required' in report_on(CASES, SuiteFile)


def test_what_comes_with_an_unsupported_form_is_not_worth_a_line_each() -> None:
    text = PROMPT + "judge: {type: script, script_path: x}\n"
    assert report_on(text, Case).count("\n") == 0


def test_a_misspelt_key_beside_an_unsupported_form_is_told() -> None:
    text = SUITE + "environment: {type: opensandbox, setup_step: []}\n" + CASES
    assert report_on(text, SuiteFile).splitlines() == [
        (
            'file.yaml:2:21: environment.type: "opensandbox" is part of the format but not supported yet '
            "(supported: none, bubblewrap, docker)"
        ),
        'file.yaml:2:34: environment.setup_step: unknown key "setup_step" (did you mean "setup_steps"?)',
    ]


@pytest.mark.parametrize(
    ("environment", "said"),
    {
        "type: docker": "environment.type: `type: docker` needs the `image` that its containers are made of",
        "type: bubblewrap, image: x": "environment.image: `type: bubblewrap` has no image",
        "entrypoint: [x]": "environment.entrypoint: `type: none` has no entrypoint",
        "network_policy: deny_all": "environment.network_policy: `type: none` is the host, which has no network_policy",
        "type: docker, image: x, network: full, network_policy: deny_all": "network_policy: `network` says it already",
        "type: docker, image: x, workspace_mount: here": "environment.workspace_mount: ",
    }.items(),
)
def test_what_cannot_be_said_of_an_environment_is_refused(environment: str, said: str) -> None:
    assert said in report_on(f"{SUITE}environment: {{{environment}}}\n{CASES}", SuiteFile)


def test_an_unset_limit_and_0_are_the_same() -> None:
    written = Case.model_validate({"id": "a", "input": {"prompt": "x"}, "constraints": {"timeout_seconds": 0}})
    assert written.constraints.timeout_seconds is None

"""Rules on the course of a conversation, as written: short forms, and what could never say anything about an agent."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from skillup.loading.faults import faults_from_validation
from skillup.loading.rendering import render_faults
from skillup.loading.yamlfile import parse_yaml
from skillup.spec.case import Case
from skillup.spec.rule_items import RuleItem
from tests.judging.story import rule


def report_on(item: str, kind: str = "success") -> str:
    """The faults of one rule, one a line, as users see them."""
    document = parse_yaml(f"id: a\ninput: {{prompt: x}}\njudge: {{type: rule_based, {kind}: [{{{item}}}]}}\n", "a.yaml")
    with pytest.raises(ValidationError) as caught:
        Case.model_validate(document.data)
    return render_faults(faults_from_validation(caught.value, document, Case)).partition(f"judge.{kind}[0]")[2]


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("tool_order: [read, [write, edit]]", "tool_order: {order: [{name: read}, {name: [write, edit]}]}"),
        ("tools_only: [read]", "tools_only: {names: [read]}"),
        ("tools_only: read", "tools_only: {names: [read]}"),
        ("max_tool_calls: 3", "max_tool_calls: {max: 3}"),
        ("max_tool_calls: {max: 3, name: bash}", "max_tool_calls: {max: 3, name: [bash]}"),
        ("no_repeated_calls: true", "no_repeated_calls: {max: 1, consecutive: false}"),
        ("no_repeated_calls: 3", "no_repeated_calls: {max: 3}"),
        ("no_repeated_calls: {ignore: bash}", "no_repeated_calls: {ignore: [bash]}"),
        ("no_premature_stop: [write]", "no_premature_stop: {must_attempt: [{name: [write]}]}"),
        ("max_calls_after: {rule: write, n: 1}", "max_calls_after: {rule: {tool_called: {name: [write]}}, n: 1}"),
        ("asked_user: true", "asked_user: {by: any}"),
        ("max_tokens: 5", "max_tokens: {max: 5, of: total}"),
        ("max_cost_usd: 1", "max_cost_usd: {max: 1.0}"),
        ("max_seconds: 5", "max_seconds: {max: 5.0}"),
        ("command: make test", "command: {run: make test, exit_code: 0}"),
        ("command: {run: make, exit_code: 2}", "command: {run: make, exit_code: [2]}"),
        ("tool_order_correct: {expected: [read, write]}", "tool_order: [read, write]"),
        ("tool_order_correct: {expected: [read], mode: exact}", "tool_order: {order: [read], mode: exact}"),
        ("tools_avoided: {forbidden: [bash, write]}", "tool_not_called: {name: [bash, write]}"),
    ],
)  # fmt: skip
def test_a_short_form_means_the_long_one(short: str, long: str) -> None:
    assert rule(short) == rule(long)


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("tool_order: []", ".tool_order: must not be empty"),
        ("tool_order: {order: [bash], mode: some}", ".tool_order.mode: must be one of in_order, any_order, exact"),
        ("tool_order: [{name: bash, arg: {}}]", '.tool_order[0].arg: unknown key "arg"'),
        ("tool_order: [{name: bash, args: {a: {matches: '('}}}]", "not a valid RE2 pattern: missing ): ("),
        ("max_tool_calls: -1", "must be at least 0"),
        ("max_tool_calls: 1.5", "expected a mapping, got a number"),
        ("no_repeated_calls: 0", "must be at least 1"),
        ("no_repeated_calls: false", "expected a mapping, got false"),
        (
            "asked_user: false",
            ".asked_user: the rule checks nothing (to forbid questions write `asked_user: {}` in `fail",
        ),
        ("asked_user: {by: mail}", ".asked_user.by: must be one of any, tool, answer"),
        ("max_tokens: 0", "must be at least 1"),
        ("max_cost_usd: 0", "must be greater than 0"),
        ("max_cost_usd: '1'", "expected a mapping, got text"),
        ("max_seconds: 0", "must be greater than 0"),
        ("max_calls_after: {rule: write}", '.max_calls_after: "n" is required'),
        (
            "max_calls_after: {rule: {}, n: 1}",
            (
                ".max_calls_after.rule: exactly one rule says when the work is done "
                "(give one of tool_called, output_contains, output_matches, files_exist, file_contains)"
            ),
        ),
        (
            "max_calls_after: {rule: {files_exist: {paths: [a], turn: 1}}, n: 1}",
            ".max_calls_after.rule.files_exist.turn: the rule is looked for in every turn (remove `turn`)",
        ),
        (
            "max_calls_after: {rule: {output_contains: {not: [a]}}, n: 1}",
            (
                ".max_calls_after.rule.output_contains: this holds before the agent has done anything "
                "(say what must be there)"
            ),
        ),
        ("file_matches: {path: a}", ".file_matches: the rule checks nothing (give `pattern`, or at least one of all"),
        ("file_matches: {path: a, pattern: '('}", "not a valid RE2 pattern"),
        ("file_matches: {path: '*.txt', pattern: a}", "the rule reads one file and takes no pattern"),
        ("file_matches: {path: a, pattern: x, not: [x]}", '"x" is both required and forbidden'),
        ("file_equals: {path: a}", "the rule needs one content to compare with"),
        ("file_equals: {path: a, content: x, file: y}", "the rule needs one content to compare with"),
        ("output_equals: ' '", "an answer that is empty says nothing about an agent"),
        ("json_path: {path: $.a}", "the rule checks nothing (give at least one of equals, includes, matches, min, max"),
        ("json_path: {path: '$.a[', equals: 1}", ".json_path.path: not a valid JSONPath"),
        (
            "json_path: {path: $.usage.tokens, equals: 1}",
            ".json_path.path: `$.usage` of a turn's record has no `tokens`",
        ),
        ("json_path: {path: $.a, exists: false, equals: 1}", "what must not exist cannot meet anything else"),
        ("json_path: {path: $.a, min: 2, max: 1}", "max 1 is less than min 2: the rule can never be met"),
        ("json_path: {path: $.a, count: 0}", "must be at least 1"),
        ("json_path: {path: $.a, source: report, equals: 1}", ".json_path.source"),
        ("json_schema: {}", "the rule needs one schema"),
        ("command: ' '", ".command: the text is blank"),
        ("command: {run: x, turn: 1}", ".command.turn: a command is run once, when the conversation has ended"),
        ("command: {run: x, exit_code: any}", ".command: the rule checks nothing"),
        ("command: {run: x, exit_code: []}", ".command.exit_code: no exit code is good"),
        ("command: {run: x, exit_code: 256}", "must be at most 255"),
        (
            "command: {run: x, output: {all: [a], turn: 1}}",
            ".command.output.turn: this looks at what the command printed",
        ),
        ("command: {run: x, timeout_seconds: 0}", "must be greater than 0"),
        ("no_premature_stop: []", ".no_premature_stop: must not be empty"),
    ],
)
def test_what_cannot_say_anything_is_refused_at_its_place(item: str, said: str) -> None:
    report = report_on(item)
    assert said in report
    assert report.count("\n") == 0, "one fault is one line"


@pytest.mark.parametrize(
    "item",
    [
        "tools_only: [read]",
        "max_tool_calls: 3",
        "no_repeated_calls: {}",
        "no_premature_stop: [write]",
        "max_calls_after: {rule: write, n: 0}",
        "max_tokens: 5",
        "max_cost_usd: 1",
        "max_seconds: 1",
    ],
)
def test_what_holds_when_all_is_well_is_no_failure_rule(item: str) -> None:
    name = item.partition(":")[0]
    report = report_on(item, "failure")
    assert report.startswith(f".{name}: as a failure rule `{name}` would match when all is well (write it as a success")


def test_a_path_into_a_file_may_have_the_names_of_the_record() -> None:
    assert rule("json_path: {source: {file: a.json}, path: $.usage.tokens, equals: 1}").files_read == ("a.json",)


@pytest.mark.parametrize(
    "item",
    [
        "json_path: {path: $.a, exists: false}",
        "file_matches: {path: a, not: [x]}",
        "command: {run: x, output: {not: [a]}}",
        "command: {run: x, output_matches: {any: [b], not: [a]}}",
    ],
)
def test_a_failure_rule_may_not_ask_for_absence(item: str) -> None:
    assert "in a failure rule would match when" in report_on(item, "failure")


@pytest.mark.parametrize("body", [{"expected": []}, {"forbidden": []}])
def test_an_evaluator_of_a_data_set_may_have_nothing_to_check(body: dict[str, Any]) -> None:
    name = "tool_order_correct" if "expected" in body else "tools_avoided"
    made = RuleItem.model_validate({name: body}).rule
    assert (made.kind, made.forbids, made.needed_calls) == ("nothing_to_check", True, ())

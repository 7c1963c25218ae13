"""The contract's section on rules and scores, sentence by sentence, from what users write to the verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.judging.judge import judge
from skillup.judging.rules import EVALUATORS
from skillup.loading.faults import faults_from_validation
from skillup.loading.rendering import render_faults
from skillup.loading.yamlfile import parse_yaml
from skillup.results import Assertion, Verdict
from skillup.spec.case import Case
from skillup.spec.judge import TRAJECTORY_THRESHOLD
from skillup.spec.rule_items import RuleItem
from skillup.spec.rules import Rule
from skillup.spec.suite import CaseDefaults, with_defaults
from skillup.transcript import Usage
from tests.judging.story import Story, call, read, rule

READ, WRITE = call("read", path="a.txt"), call("write", path="b.txt")
BASH = call("bash", command="make", options={"deep": {"count": 1, "names": ["x", "y"]}}, more={"last": None})
ASK = call("ask_user", question="Which one?")
USED = Usage(input_tokens=10, output_tokens=5, cost_usd=0.5)


def case(text: str) -> Case:
    return Case.model_validate({"id": "a", "input": {"turns": [{"content": "one"}, {"content": "two"}]}, **read(text)})


def judged(story: Story, text: str) -> Verdict:
    return judge(case(text), story.evidence())


def by_id(verdict: Verdict) -> dict[str, Assertion]:
    return {one.id: one for one in verdict.assertion_results}


def refusal(text: str) -> str:
    document = parse_yaml("id: a\ninput: {prompt: x}\n" + text, "a.yaml")
    with pytest.raises(ValueError, match="validation error") as caught:
        Case.model_validate(document.data)
    return render_faults(faults_from_validation(caught.value, document, Case))  # type: ignore[arg-type] # pydantic's


RULES = "judge: {type: rule_based, success: [%s], failure: [%s]}"


def test_judge_failure_outranks_judge_success_any_match_is_fail(tmp_path: Path) -> None:
    story = Story(tmp_path).turn("good").turn("good, sorry")
    text = RULES % (
        "{output_contains: {all: [good]}}",
        "{output_contains: {any: [x]}}, {output_contains: {any: [sorry]}}",
    )
    verdict = judged(story, text)
    assert (verdict.status, verdict.code) == ("FAIL", "failure_rule")
    assert by_id(verdict)["judge.success[0]"].passed


@pytest.mark.parametrize("answer", ["good", "sorry", "neither"])
def test_every_rule_is_evaluated_and_reported_all_the_same(tmp_path: Path, answer: str) -> None:
    text = "expect: {must_contain: [good], golden_file: {text: good}}\n" + RULES % (
        "{output_contains: {all: [good]}}, {tool_order: [bash]}, {command: make}",
        "{output_contains: {any: [sorry]}}, {files_exist: [a.log]}",
    )
    verdict = judged(Story(tmp_path).turn().turn(answer), text)
    assert list(by_id(verdict)) == [
        "expect.must_contain[0]",
        "expect.golden_file",
        "judge.success[0]",
        "judge.success[1]",
        "judge.success[2]",
        "judge.failure[0]",
        "judge.failure[1]",
    ]
    assert verdict.summary.total == 7


def test_without_turn_text_rules_and_text_entries_of_expect_look_at_the_final_answer(tmp_path: Path) -> None:
    text = "expect: {must_contain: [second], must_not_contain: [first], golden_file: {text: second}}\n" + RULES % (
        (
            "{output_contains: {all: [second]}}, {output_matches: {not: [first]}}, {output_equals: second},"
            "{json_path: {path: $.response, equals: second}}"
        ),
        "",
    )
    assert judged(Story(tmp_path).turn("first").turn("second"), text).status == "PASS"


def test_the_final_answer_is_the_reply_of_the_last_turn_that_ran(tmp_path: Path) -> None:
    verdict = judged(Story(tmp_path).turn("first").skipped(), "expect: {must_contain: [first]}")
    assert by_id(verdict)["expect.must_contain[0]"].passed


def test_without_turn_tool_count_and_order_rules_look_at_the_whole_conversation(tmp_path: Path) -> None:
    story = Story(tmp_path).turn("Which?", calls=[READ], usage=USED, seconds=1).turn(calls=[WRITE], usage=USED)
    text = RULES % (
        (
            "{tool_called: read}, {tool_order: [read, write]}, {tools_only: [read, write]}, {max_tool_calls: 2},"
            "{asked_user: {}}, {max_tokens: 30}, {max_cost_usd: 1}, {max_seconds: 1}"
        ),
        "",
    )
    assert judged(story, text).status == "PASS"
    for less in ("{max_tool_calls: 1}", "{max_tokens: 29}", "{max_cost_usd: 0.9}", "{max_seconds: 0.9}"):
        assert judged(story, RULES % (less, "")).status == "FAIL", less


def test_without_turn_file_rules_look_at_the_final_snapshot(tmp_path: Path) -> None:
    story = Story(tmp_path).turn(files={"a.json": '{"n": 1}'}).turn(files={"a.json": '{"n": 2}', "b.txt": "b"})
    text = RULES % (
        (
            "{files_exist: [b.txt]}, {file_contains: {path: a.json, content: '2'}},"
            "{file_matches: {path: a.json, pattern: '2'}},"
            "{file_equals: {path: b.txt, content: b}}, {json_path: {source: {file: a.json}, path: $.n, equals: 2}},"
            "{json_schema: {source: {file: a.json}, schema: {properties: {n: {const: 2}}}}},"
            "{workspace_changed: {created: [a.json, b.txt], only: ['*']}}"
        ),
        "",
    )
    assert judged(story, text).status == "PASS"


@pytest.mark.parametrize(("turn", "state"), [("1", "met"), ("2", "not_met"), ("last", "not_met"), ("any", "met")])
def test_turn_n_names_a_turn_any_each_last_the_last(tmp_path: Path, turn: str, state: str) -> None:
    story = Story(tmp_path).turn("first", calls=[READ], files={"a.txt": "a"}).turn("x", files={"a.txt": None})
    for written in (
        f"output_contains: {{all: [first], turn: {turn}}}",
        f"tool_called: {{name: read, turn: {turn}}}",
        f"tool_order: {{order: [read], turn: {turn}}}",
        f"files_exist: {{paths: [a.txt], turn: {turn}}}",
        f"workspace_changed: {{created: [a.txt], turn: {turn}}}",
    ):
        assert story.judged(written).state == state, written


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("turn_response_contains: {turn: 1, contains_all: [a]}", "output_contains: {turn: 1, all: [a]}"),
        ("turn_response_not_contains: {turn: 1, not_contains: [a]}", "output_contains: {turn: 1, not: [a]}"),
        ("turn_response_matches: {turn: 1, matches_any: [a]}", "output_matches: {turn: 1, any: [a]}"),
        ("tool_called_in_turn: {turn: 1, name: bash}", "tool_called: {turn: 1, name: bash}"),
        ("tool_not_called_in_turn: {turn: 1, name: bash}", "tool_not_called: {turn: 1, name: bash}"),
        ("workspace_in_turn: {turn: 1, created: [a]}", "workspace_changed: {turn: 1, created: [a]}"),
    ],
)
def test_the_per_turn_names_are_aliases_below_loading_only_one_form_of_a_rule_exists(name: str, same: str) -> None:
    assert rule(name).kind == rule(same).kind
    assert rule(name).model_dump() == rule(same).model_dump()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("judge: {type: rule_based, failure: [{output_contains: {not: [a]}}]}", "write output_contains: {any: […]}"),
        ("judge: {type: rule_based, success: [{exit_code: 0}]}", "check the answer, the workspace or a tool call"),
        ("expect: {exit_code: 0}", "check the answer, the workspace or a tool call"),
    ],
)
def test_not_inside_failure_and_exit_code_are_refused_with_the_rule_to_use_instead(text: str, said: str) -> None:
    assert said in refusal(text)


# Every rule of the section, once met and once not, on one conversation.
EACH = {
    "output_contains": ("{all: [Which], any: [x, one], not: [z]}", "{all: [Which], not: [one]}"),
    "output_matches": ("{all: ['^W'], any: ['x', '\\?$'], not: ['z']}", "{any: ['^x']}"),
    "output_equals": ("'Which one?'", "'Which two?'"),
    "tool_called": ("{name: bash, args: {command: make}, count: 1, status: ok}", "{name: bash, status: error}"),
    "tool_not_called": ("grep", "bash"),
    "tool_order": ("[read, bash]", "[bash, read]"),
    "tools_only": ("[read, write, bash, ask_user]", "[bash]"),
    "files_exist": ("[b.txt]", "[c.txt]"),
    "files_not_exist": ("[c.txt]", "[b.txt]"),
    "file_contains": ("{path: a.json, all: [n], not: [x]}", "{path: a.json, content: x}"),
    "file_matches": ("{path: a.json, pattern: '[0-9]'}", "{path: a.json, pattern: '^n'}"),
    "file_equals": ("{path: b.txt, content: b}", "{path: b.txt, content: B}"),
    "json_path": ("{source: {file: a.json}, path: $.n, equals: 2}", "{source: {file: a.json}, path: $.n, equals: '2'}"),
    "json_schema": (
        "{source: {file: a.json}, schema: {required: [n]}}",
        "{source: {file: a.json}, schema: {required: [m]}}",
    ),
    "json_fields": (
        "{source: {file: a.json}, fields: [{path: $.n, equals: 2}]}",
        "{source: {file: a.json}, fields: [{path: $.n, equals: 2}, {path: $.m, equals: 2}]}",
    ),
    "workspace_changed": (
        "{created: [b.txt], changed: [a.json], deleted: [old.txt], only: ['*'], unchanged: [c.txt]}",
        "{unchanged: [a.json]}",
    ),
    "command": ("{run: make, exit_code: 0, output: {all: [ok]}}", "{run: make, exit_code: 1}"),
    "skill_used": ("{name: notes, used: false}", "notes"),
    "asked_user": ("{matches: Which}", "{matches: When}"),
    "max_tool_calls": ("4", "3"),
    "max_tokens": ("30", "29"),
    "max_cost_usd": ("1", "0.99"),
    "max_seconds": ("3", "2.9"),
    "no_repeated_calls": ("{max: 1}", "{max: 1, turn: 3}"),
    "max_calls_after": ("{rule: bash, n: 1}", "{rule: bash, n: 0}"),
    "no_premature_stop": ("[bash]", "{must_attempt: [bash], turn: 3}"),
    "turn_response_contains": ("{turn: 1, contains_all: [done]}", "{turn: 2, contains_all: [done]}"),
    "turn_response_not_contains": ("{turn: 2, not_contains: [done]}", "{turn: 1, not_contains: [done]}"),
    "turn_response_matches": ("{turn: 1, matches_all: ['^d']}", "{turn: 2, matches_all: ['^d']}"),
    "tool_called_in_turn": ("{turn: 1, name: read}", "{turn: 2, name: read}"),
    "tool_not_called_in_turn": ("{turn: 2, name: read}", "{turn: 1, name: read}"),
    "workspace_in_turn": ("{turn: 2, created: [b.txt]}", "{turn: 1, created: [b.txt]}"),
    "tool_order_correct": ("{expected: [read, bash]}", "{expected: [bash, read]}"),
    "tools_avoided": ("{forbidden: [grep]}", "{forbidden: [bash]}"),
}


def a_conversation(folder: Path) -> Story:
    story = Story(folder, {"a.json": '{"n": 1}', "old.txt": "old"})
    story.turn("done", calls=[READ, WRITE], usage=USED, seconds=1)
    files = {"a.json": '{"n": 2}', "b.txt": "b", "old.txt": None}
    return story.turn("Which one?", calls=[BASH, ASK], files=files, usage=USED, seconds=2).ran("make", 0, "ok")


@pytest.mark.parametrize("name", EACH)
def test_each_rule_is_met_and_not_met_on_a_conversation(tmp_path: Path, name: str) -> None:
    met, not_met = EACH[name]
    found = a_conversation(tmp_path / "met").judged(f"{name}: {met}")
    assert found.state == "met", found.evidence
    story = a_conversation(tmp_path / "not-met")
    if "turn: 3" in not_met:  # a loop, and a failure that nobody tries to get over
        story.turn(calls=[READ, READ, call("bash", command="x", status="error")])
    found = story.judged(f"{name}: {not_met}")
    assert found.state == "not_met", found.evidence


def test_the_list_holds_every_rule_that_can_be_written() -> None:
    assert set(RuleItem.model_fields) - {"exit_code"} == set(EACH)
    assert {rule(f"{name}: {met}").kind for name, (met, _) in EACH.items()} == set(EVALUATORS) - {"nothing_to_check"}


@pytest.mark.parametrize(
    ("args", "state"),
    [
        ("{options: {deep: {count: 1}}}", "met"),
        ("{options: {deep: {count: 1.0}}}", "met"),
        ("{options: {deep: {count: '1'}}}", "not_met"),
        ("{options: {deep: {count: true}}}", "not_met"),
        ("{options: {deep: {names: [x, y]}}}", "met"),
        ("{options: {deep: {names: [x]}}}", "not_met"),
        ("{last: null}", "met"),
        ("{missing: null}", "not_met"),
        ("{command: {matches: '^ma'}}", "met"),
        ("{options: {deep: {count: {matches: '1'}}}}", "not_met"),
    ],
)
def test_args_is_a_deep_partial_match_with_typed_equality_or_matches(tmp_path: Path, args: str, state: str) -> None:
    story = Story(tmp_path).turn(calls=[BASH])
    assert story.judged(f"tool_called: {{name: bash, args: {args}}}").state == state
    assert story.judged(f"tool_order: [{{name: bash, args: {args}}}]").state == state


def test_expect_in_full_with_the_suites_defaults_merged() -> None:
    """Lists are appended without duplicates, the defaults first; scalars are overridden."""
    defaults = CaseDefaults.model_validate(
        read("expect: {must_contain: [a, b], files_exist: [x], golden_file: {text: theirs}}")
    )
    merged = with_defaults(case("expect: {must_contain: [b, c], golden_file: {text: ours}}"), defaults, None).expect
    assert (merged.must_contain, merged.files_exist) == (("a", "b", "c"), ("x",))
    assert merged.golden_file is not None
    assert merged.golden_file.content == "ours"
    assert [key for key, _ in merged.rules()] == [
        "must_contain[0]",
        "must_contain[1]",
        "must_contain[2]",
        "files_exist[0]",
        "golden_file",
    ]


def test_scores_are_in_0_to_1_and_nothing_to_check_scores_1_and_says_so(tmp_path: Path) -> None:
    text = RULES % (
        "{tool_order_correct: {expected: []}}, {tools_avoided: {forbidden: [bash]}}, {tool_order: [read]}",
        "",
    )
    found = by_id(judged(a_conversation(tmp_path), text)).values()
    assert [one.score for one in found] == [1.0, 0.0, 1.0]
    assert next(iter(found)).reasoning == "nothing to check: the case gives tool_order_correct nothing to look for"
    assert TRAJECTORY_THRESHOLD == 0.99


def test_scope_is_turn_conversation_or_workspace(tmp_path: Path) -> None:
    text = RULES % (
        (
            "{output_contains: {all: [done], turn: 1}}, {tool_order: [read]}, {file_equals: {path: b.txt, content: b}},"
            "{workspace_changed: {created: [b.txt]}}, {command: {run: make}}"
        ),
        "",
    )
    found = by_id(judged(a_conversation(tmp_path), text)).values()
    assert [one.scope for one in found] == ["turn", "conversation", "workspace", "workspace", "workspace"]


@pytest.mark.parametrize("written", ["max_tokens: 1000000", "max_cost_usd: 1000"])
def test_unknown_usage_or_cost_is_unknown_never_met(tmp_path: Path, written: str) -> None:
    verdict = judged(Story(tmp_path).turn().turn(), RULES % (f"{{{written}}}", ""))
    assert (verdict.status, verdict.code) == ("ERROR", "unobservable")


def test_every_rule_is_a_value_that_reads_back_from_a_saved_case() -> None:
    for name, (met, _) in EACH.items():
        made = case(RULES % (f"{{{name}: {met}}}", ""))
        saved = made.model_dump(mode="json", by_alias=True, exclude_unset=True)
        again = Case.model_validate(saved)
        assert again.success_rules == made.success_rules, name
        assert isinstance(again.success_rules[0], Rule)

"""What a case may say, beyond the format's own table: gates, captures, rules, files, limits."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from skillup.environments.locks import HOLDER_NAME, LOCK_NAME
from skillup.reports.formats import REPORTS
from skillup.spec.case import Case, can_be_an_id
from skillup.spec.judge import Expect
from skillup.spec.rule_items import RuleItem
from skillup.spec.rules import OutputContains, OutputMatches, ToolCalled, ToolNotCalled, WorkspaceChanged
from skillup.spec.suite import CaseDefaults, with_defaults


def case(**keys: Any) -> Case:
    return Case.model_validate({"id": "a", "input": {"prompt": "hi"}, **keys})


def problem_of(**keys: Any) -> tuple[tuple[str | int, ...], str]:
    """Place and words of the first error in a case."""
    with pytest.raises(ValidationError) as caught:
        case(**keys)
    error = caught.value.errors()[0]
    context = error.get("ctx", {})
    return (*error["loc"], *context.get("at", ())), str(context.get("problem", error["msg"]))


def turn(**keys: Any) -> dict[str, Any]:
    return {"turns": [{"content": "hi", **keys}]}


def test_a_prompt_is_a_conversation_of_one_turn() -> None:
    one = case(input={"prompt": "/help", "slash_command": True})
    assert [(t.content, t.slash_command) for t in one.turns] == [("/help", True)]


def test_every_addition_of_ours_is_accepted() -> None:
    whole = case(
        tags=["a"],
        vars={"city": "Oslo"},
        turn_delay=0.5,
        vacuous_ok="it is the right thing to do nothing",
        ignore_case=True,
        constraints={"on_limit": "judge"},
        input=turn(
            post_condition={"must_match": "a+", "must_not_match": ["b"], "ignore_case": True},
            capture=[
                {"variable": "x", "pattern": "(a)", "default": ""},
                {"variable": "y", "jsonpath": "$.transcript.tool_calls[0].id", "on_missing": "skip_remaining"},
            ],
            turn_delay=0,
        ),
        script=[{"say": "hello"}],
    )
    assert whole.turns[0].post_condition is not None
    assert whole.turns[0].post_condition.must_match == ("a+",)


GATES = {
    "empty": ({}, "the gate checks nothing"),
    "only on_fail": ({"on_fail": "fail"}, "the gate checks nothing"),
    "empty lists": ({"must_contain_any": []}, "the gate checks nothing"),
    "an empty text": ({"must_contain_any": [""]}, "an empty text is contained in everything"),
    "an empty pattern": ({"must_match": [""]}, "an empty pattern matches everything"),
    "a contradiction": (
        {"must_contain_all": ["a", "b"], "must_not_contain": ["b"]},
        '"b" is both required and forbidden: this can never hold',
    ),
}


@pytest.mark.parametrize(("gate", "problem"), GATES.values(), ids=GATES)
def test_a_gate_that_cannot_say_anything_is_refused(gate: dict[str, Any], problem: str) -> None:
    assert problem_of(input=turn(post_condition=gate))[1] == problem


CAPTURES = {
    "neither way": ({}, "the capture has neither `pattern` nor `jsonpath`"),
    "both ways": ({"pattern": "(a)", "jsonpath": "$.a"}, "the capture has `pattern` and `jsonpath`"),
    "no group": ({"pattern": "a"}, "the pattern has no group, so what to take is not clear"),
    "two groups": ({"pattern": "(a)(b)"}, "the pattern has 2 groups, so what to take is not clear"),
    "a default and a consequence": (
        {"pattern": "(a)", "default": "x", "on_missing": "fail"},
        "`default` and `on_missing` contradict each other",
    ),
    "no path": ({"jsonpath": " "}, "an empty path finds nothing"),
    "below the response": (
        {"jsonpath": "$.response.id"},
        "`$.response` is the reply as a text, and nothing lies below it",
    ),
    "not in the record": ({"jsonpath": "$.usage.tokens"}, "`$.usage` of a turn's record has no `tokens`"),
    "a regular expression": (
        {"jsonpath": "$.a[?(@.b =~ '(x+)+y')]"},
        "a regular expression inside a JSONPath could hang the run",
    ),
    "a substitution": (
        {"jsonpath": "$.a.`sub(/(x+)+y/, z)`"},
        "a regular expression inside a JSONPath could hang the run",
    ),
    "endless": ({"jsonpath": "$" + "[0]" * 400}, "the path is longer than 1000 characters"),
}


@pytest.mark.parametrize(("capture", "problem"), CAPTURES.values(), ids=CAPTURES)
def test_a_capture_that_can_take_nothing_is_refused(capture: dict[str, Any], problem: str) -> None:
    assert problem_of(input=turn(capture=[{"variable": "x", **capture}]))[1] == problem


def test_a_path_that_cannot_be_parsed_is_refused() -> None:
    place, problem = problem_of(input=turn(capture=[{"variable": "x", "jsonpath": "$.a["}]))
    assert place == ("input", "turns", 0, "capture", 0, "jsonpath")
    assert problem.startswith("not a valid JSONPath: ")


def test_a_word_that_the_path_language_reserves_is_refused_where_it_could_never_be_found() -> None:
    assert problem_of(input=turn(capture=[{"variable": "x", "jsonpath": "$.where"}]))[1].startswith("not a valid")
    case(input=turn(capture=[{"variable": "x", "jsonpath": "$['where']"}]))


@pytest.mark.parametrize("path", ["$.id", "$['response'].id", "$.items[?(@.k == 'v')].n", "$.response", "$..id", "id"])
def test_a_path_that_can_find_something_is_accepted(path: str) -> None:
    case(input=turn(capture=[{"variable": "x", "jsonpath": path}]))


RULES = {
    "empty": ({}, "the rule is empty"),
    "two rules": (
        {"output_contains": {"all": ["a"]}, "tool_called": {"name": "bash"}},
        "two rules in one list item: output_contains, tool_called",
    ),
    "a turn beside the rule": ({"output_contains": {"all": ["a"]}, "turn": 1}, "`turn` belongs inside the rule"),
    "no body": ({"output_contains": None}, "the rule has no body"),
    "no text": ({"output_contains": {}}, "the rule checks nothing"),
    "a bare text": ({"output_contains": "a"}, "the rule does not say how many of its texts are wanted"),
    "a contradiction": (
        {"output_contains": {"all": ["a"], "not": ["a"]}},
        '"a" is both required and forbidden: this can never hold',
    ),
    "no call": ({"tool_called": {"name": "bash", "count": 0}}, "a count of 0 asks for absence"),
    "any number of calls": (
        {"tool_called": {"name": "bash", "count": {"min": 0}}},
        "every number of calls is at least 0, so the rule is always met",
    ),
    "an impossible number of calls": (
        {"tool_called": {"name": "bash", "count": {"min": 3, "max": 2}}},
        "max 2 is less than min 3: the rule can never be met",
    ),
    "a bad pattern in an argument": (
        {"tool_called": {"name": "bash", "args": {"a": [{"matches": "("}]}}},
        "not a valid RE2 pattern: missing ): (",
    ),
    "nothing in a file": ({"file_contains": {"path": "a"}}, "the rule checks nothing"),
    "several files": (
        {"file_contains": {"path": "*.txt", "content": "a"}},
        "the rule reads one file and takes no pattern",
    ),
    "no change": ({"workspace_changed": {}}, "the rule checks nothing"),
    "turn 0": ({"output_contains": {"all": ["a"], "turn": 0}}, "must be a turn number from 1, `any` or `last`"),
    "a path that leaves": ({"files_exist": ["../a"]}, 'the path "../a" leaves its folder'),
    "an absolute path": ({"files_exist": ["/etc/passwd"]}, 'the path "/etc/passwd" leaves its folder'),
    "a path of another system": ({"files_exist": ["a\\b"]}, 'the path "a\\b" holds a backslash or NUL'),
    "a path that names nothing": ({"files_exist": ["./"]}, "an empty path names nothing"),
}


@pytest.mark.parametrize(("rule", "problem"), RULES.values(), ids=RULES)
def test_a_rule_that_can_never_or_always_match_is_refused(rule: dict[str, Any], problem: str) -> None:
    assert problem_of(judge={"type": "rule_based", "success": [rule]})[1] == problem


FORBIDDING = {
    "output_contains": {"output_contains": {"not": ["a"]}},
    "output_matches": {"output_matches": {"any": ["b"], "not": ["a"]}},
    "file_contains": {"file_contains": {"path": "f", "not": ["a"]}},
    "SUP-0001": {"turn_response_not_contains": {"turn": 1, "not_contains": ["a"]}},
}


@pytest.mark.parametrize("rule", FORBIDDING.values(), ids=FORBIDDING)
def test_a_failure_rule_may_not_ask_for_absence_of_texts(rule: dict[str, Any]) -> None:
    place, problem = problem_of(judge={"type": "rule_based", "failure": [{"files_exist": ["x"]}, rule]})
    assert place == ("judge", "failure", 1, next(iter(rule)))
    assert problem == "`not` in a failure rule would match when the texts are absent"


ALIASES = {
    "turn_response_contains": (
        {"turn": 2, "contains_all": ["a"], "contains_any": ["b"]},
        OutputContains(turn=2, all=("a",), any=("b",)),
    ),
    "turn_response_not_contains": ({"turn": 2, "not_contains": ["a"]}, OutputContains(turn=2, **{"not": ("a",)})),
    "turn_response_matches": ({"turn": 2, "matches_any": ["a"]}, OutputMatches(turn=2, any=("a",))),
}


@pytest.mark.parametrize("name", ALIASES)
def test_a_per_turn_name_turns_into_the_rule_itself(name: str) -> None:
    body, rule = ALIASES[name]
    assert RuleItem.model_validate({name: body}).rule == rule


def test_the_per_turn_names_of_calls_and_files_are_these_rules_with_a_turn() -> None:
    def rule(name: str, body: dict[str, Any]) -> Any:
        return RuleItem.model_validate({name: {"turn": 2, **body}}).rule

    assert isinstance(rule("tool_called_in_turn", {"name": "bash"}), ToolCalled)
    assert isinstance(rule("tool_not_called_in_turn", {"name": "bash"}), ToolNotCalled)
    changed = rule("workspace_in_turn", {"created": ["a"]})
    assert isinstance(changed, WorkspaceChanged)
    assert changed.turn == 2
    with pytest.raises(ValidationError, match="turn"):
        RuleItem.model_validate({"tool_called_in_turn": {"name": "bash"}})


def test_paths_are_read_without_dots_and_empty_parts() -> None:
    """A snapshot knows `out/a.txt`, so another spelling of it could never match."""
    expect = case(expect={"files_exist": ["./out//a.txt", "out/"]}).expect
    assert expect.files_exist == ("out/a.txt", "out")


OTHERS = {
    "a file twice": (
        {"context": {"files": {"a/b": "1", "./a//b": "2"}}},
        '"a/b" is written twice, in two spellings',
    ),
    "a file below a file": (
        {"context": {"files": {"a": "1", "a/b": "2"}}},
        '"a" is a file, so nothing can lie below it',
    ),
    "both kinds of input": (
        {"input": {"prompt": "a", "turns": [{"content": "b"}]}},
        "both `prompt` and `turns` are given",
    ),
    "no input": ({"input": {"turns": []}}, "nothing is said to the agent"),
    "a blank message": ({"input": {"turns": [{"content": " \n"}]}}, "the text is blank"),
    "a command without a slash": (
        {"input": {"prompt": "hi", "slash_command": True}},
        "the message is no slash command",
    ),
    "an id that is a path": ({"id": "a/b"}, '"a/b" cannot name a folder'),
    "an id that is a file of ours": ({"id": "run.json"}, '"run.json" is a file of the run directory'),
    "a variable's name": ({"vars": {"a-b": "x"}}, '"a-b" is not a variable name'),
    "a day too long": ({"constraints": {"timeout_seconds": 10**9}}, "Input should be less than or equal to 604800"),
    "infinity": ({"constraints": {"timeout_seconds": float("inf")}}, "Input should be a finite number"),
    "a contradiction": (
        {"expect": {"files_exist": ["./a"], "files_not_exist": ["a"]}},
        '"a" is both required and forbidden: this can never hold',
    ),
    "rules of no judge": (
        {"judge": {"type": "none", "success": [{"files_exist": ["a"]}]}},
        "`type: none` checks nothing, but rules are given",
    ),
    "a judge of no rules": ({"judge": {"type": "rule_based"}}, "a rule_based judge without rules"),
}


@pytest.mark.parametrize(("keys", "problem"), OTHERS.values(), ids=OTHERS)
def test_what_cannot_be_meant_is_refused(keys: dict[str, Any], problem: str) -> None:
    assert problem_of(**keys)[1] == problem


def test_a_template_may_begin_a_slash_command() -> None:
    assert case(vars={"cmd": "/help"}, input={"prompt": "{{cmd}}", "slash_command": True}).turns[0].slash_command


def test_lists_of_expect_are_joined_without_duplicates_and_the_defaults_come_first() -> None:
    defaults = Expect(must_contain=("a", "b"), files_exist=("x",))
    merged = Expect(must_contain=("b", "c"), must_not_contain=("d",)).merged_over(defaults)
    assert merged.must_contain == ("a", "b", "c")
    assert merged.must_not_contain == ("d",)
    assert merged.files_exist == ("x",)


def test_scalars_of_the_case_win_over_those_of_the_defaults() -> None:
    defaults = CaseDefaults(timeout_seconds=10, max_turns=2, on_limit="judge", turn_delay=3, ignore_case=True)
    silent = with_defaults(case(), defaults, None)
    assert (silent.constraints.timeout_seconds, silent.constraints.max_turns) == (10, 2)
    assert (silent.constraints.on_limit, silent.turn_delay, silent.ignore_case) == ("judge", 3, True)
    spoken = case(constraints={"timeout_seconds": 5, "on_limit": "fail"}, turn_delay=0, ignore_case=False)
    merged = with_defaults(spoken, defaults, None)
    assert (merged.constraints.timeout_seconds, merged.constraints.max_turns) == (5, 2)
    assert (merged.constraints.on_limit, merged.turn_delay, merged.ignore_case) == ("fail", 0, False)


def test_a_judge_of_the_case_replaces_that_of_the_suite_whole() -> None:
    suite = case(judge={"type": "rule_based", "success": [{"files_exist": ["a"]}]}).judge
    own = case(judge={"type": "rule_based", "failure": [{"files_exist": ["b"]}]})
    merged = with_defaults(own, CaseDefaults(), suite)
    assert merged.success_rules == ()
    assert len(merged.failure_rules) == 1
    assert with_defaults(case(), CaseDefaults(), suite).judge == suite


def test_a_case_that_was_saved_is_read_back_the_same() -> None:
    """The judge reads the resolved case from the trial's folder, not from the suite."""
    written = with_defaults(
        case(
            input=turn(capture=[{"variable": "x", "jsonpath": "$.a"}], post_condition={"must_match": "a"}),
            judge={
                "type": "rule_based",
                "success": [{"tool_called": {"name": "bash", "count": 2}}, {"output_contains": {"all": ["a"]}}],
                "failure": [{"turn_response_contains": {"turn": 1, "contains_any": ["b"]}}],
            },
            script=[{"say": "hello"}],
        ),
        CaseDefaults(timeout_seconds=10, expect=Expect(must_contain=("x",))),
        None,
    )
    saved = written.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert Case.model_validate(saved) == written


def test_no_id_is_a_file_that_a_run_directory_holds() -> None:
    ours = {LOCK_NAME, HOLDER_NAME, "run.json", "journal.jsonl", "result.json"}
    names = ours | {report.file for report in REPORTS.values()}
    assert {name for name in names if can_be_an_id(name)} == set()
    assert can_be_an_id("report")

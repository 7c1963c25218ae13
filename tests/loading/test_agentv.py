"""AgentV's files: every validation rule with its place, and what each assertion becomes."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from skillup.errors import InputError
from skillup.loading.native import load_suites
from skillup.loading.rendering import render_faults
from skillup.spec.case import Case
from skillup.spec.template import render

HEAD = "tests:\n  - id: a\n"
TURNS = "    turns: [{input: x, assertions: [{type: contains, value: y}]}]\n"
MODE = "    mode: conversation\n"


def load(tmp_path: Path, text: str) -> tuple[Case, ...]:
    path = tmp_path / "a.yaml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    (suite,) = load_suites([path])
    return suite.cases


def told(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        load(tmp_path, text)
    return [line.partition("a.yaml:")[2] for line in render_faults(caught.value.faults).splitlines()]


def one(tmp_path: Path, test: dict[str, Any], **file: Any) -> Case:
    written = {"id": "a", "mode": "conversation", **test}
    (case,) = load(tmp_path, yaml.safe_dump({**file, "tests": [written]}, sort_keys=False))
    return case


def turn(*assertions: Any, **more: Any) -> dict[str, Any]:
    return {"turns": [{"input": "say", "assertions": list(assertions), **more}]}


def in_turn(assertion: str) -> str:
    return HEAD + MODE + f"    turns:\n      - input: x\n        assertions:\n          - {assertion}\n"


def grader(assertion: str, hint: str) -> tuple[str, str]:
    return in_turn(assertion), hint


FAULTS: dict[str, tuple[str, str]] = {
    "turns without mode": (HEAD + TURNS, "3:5: tests[0].turns: `turns` needs `mode: conversation` (write `mode: conv"),
    "mode without turns": (HEAD + MODE, "3:11: tests[0].mode: a conversation needs `turns` (write at least one, with"),
    "no turns": (HEAD + MODE + "    turns: []\n", "4:12: tests[0].turns: a conversation needs `turns`"),
    "neither": (HEAD + "    input: x\n", "2:5: tests[0]: a test without `mode: conversation` is not read here"),
    "aggregation without mode": (
        HEAD + "    aggregation: min\n" + TURNS,
        "3:5: tests[0].aggregation: `aggregation` needs `mode: conversation`",
    ),
    "on_turn_failure without mode": (HEAD + "    on_turn_failure: stop\n" + TURNS, "`on_turn_failure` needs `mode: "),
    "window_size without mode": (HEAD + "    window_size: 2\n" + TURNS, "`window_size` needs `mode: conversation`"),
    "median": (HEAD + MODE + "    aggregation: median\n" + TURNS, "4:18: tests[0].aggregation: must be one of mean,"),
    "explode": (HEAD + MODE + "    on_turn_failure: explode\n" + TURNS, "4:22: tests[0].on_turn_failure: must be one"),
    "another mode": (HEAD + "    mode: dialogue\n" + TURNS, "3:11: tests[0].mode: must be conversation"),
    "no window": (HEAD + MODE + "    window_size: 0\n" + TURNS, "4:18: tests[0].window_size: must be at least 1"),
    "an answer to nothing": (
        HEAD + MODE + "    expected_output: z\n" + TURNS,
        "4:5: tests[0].expected_output: with `turns` there is no one reply that this could be (write it below the turn",
    ),
    "a blank turn": (HEAD + MODE + "    turns: [{input: '  '}]\n", "4:21: tests[0].turns[0].input: the text is blank"),
    "a turn that says nothing": (HEAD + MODE + "    turns: [{assertions: [x]}]\n", '"input" is required'),
    "a misspelt key": (
        HEAD + MODE + "    turns: [{input: x, asertions: [x]}]\n",
        '4:24: tests[0].turns[0].asertions: unknown key "asertions" (did you mean "assertions"?)',
    ),
    "an image": (
        HEAD + MODE + "    turns: [{input: [{type: text, value: a}, {type: image, value: b}]}]\n",
        '4:53: tests[0].turns[0].input[1].type: a part of type "image" cannot be said to an agent',
    ),
    "weights of 0": (
        in_turn("{type: contains, value: y, weight: 0}"),
        "7:11: tests[0].turns[0].assertions: the weights sum to 0",
    ),
    "weights of rubrics": grader(
        "{type: rubrics, criteria: [{id: a, outcome: b, weight: 0}]}", "assertions[0].criteria: the weights sum to 0"
    ),
    "a misspelt grader": grader("{type: contians, value: y}", "assertions[0].type: must be one of contains, icontains"),
    "did you mean": grader("{type: contians, value: y}", '(did you mean "contains"?)'),
    "an empty text": grader("{type: contains, value: ''}", "assertions[0].value: an empty text is contained in"),
    "no pattern": grader("{type: regex, value: '(?=x)'}", "assertions[0].value: not a valid RE2 pattern"),
    "an old name": grader("{type: code_judge, command: x}", "is not read here (it is called code-grader)"),
    "a program that is not there": grader(
        "{type: code_grader, command: [python3, checks/x.py]}",
        "7:13: tests[0].turns[0].assertions[0]: there is no file checks",
    ),
    "a program elsewhere": grader("{type: code-grader, command: x, cwd: ../up}", 'the path "../up" leaves its folder'),
    "a folder that is not there": grader(
        "{type: code-grader, command: x, cwd: up}", "assertions[0]: there is no folder up"
    ),
    "a program before its time": (
        in_turn("{type: code-grader, command: x}").replace(MODE, MODE + "    on_turn_failure: stop\n"),
        "assertions[0]: programs run at the end, and the score is needed before the next turn",
    ),
    "an aggregator that is a program": grader(
        "{type: composite, assertions: [x], aggregator: {type: code-grader}}",
        'aggregator.type: "code-grader" is part of',
    ),
    "a share of what": grader(
        "{type: composite, assertions: [x], aggregator: {type: threshold}}", "aggregator: `threshold` is the share"
    ),
    "a weight of nobody": grader(
        "{type: composite, assertions: [{type: is-json}], aggregator: {weights: {is-jsn: 1}}}",
        '7:93: tests[0].turns[0].assertions[0].aggregator.weights.is-jsn: no member has the name "is-jsn" (did you',
    ),
    "a member that means nothing": grader(
        "{type: composite, assertions: [x, {type: llm-grader}]}", "assertions[0].assertions[1]: the grader has nothing"
    ),
    "fields of nothing": grader(
        "{type: field-accuracy, fields: [{path: a}]}", "assertions[0]: the fields are compared with nothing"
    ),
    "fields of a text": (
        in_turn("{type: field-accuracy, fields: [{path: a}]}") + "        expected_output: words\n",
        "assertions[0]: the turn's `expected_output` is not JSON",
    ),
    "a field that is not expected": (
        in_turn("{type: field-accuracy, fields: [{path: 'rows[0].totl'}]}")
        + "        expected_output: {rows: [{total: 1}]}\n",
        'fields[0].path: the turn\'s `expected_output` has no "rows[0].totl", so nothing could be compared',
    ),
    "include": grader("{include: a}", "include: templates of assertions are not read (write the assertions"),
    "the judge's target": grader(
        "{type: llm-grader, prompt: x, target: y}", '"target" is part of the format but not supported yet'
    ),
    "a prompt that is not there": grader(
        "{type: llm-grader, prompt: 'file://x.md'}",
        "7:40: tests[0].turns[0].assertions[0].prompt: there is no file x.md",
    ),
    "a prompt elsewhere": grader(
        "{type: llm-grader, prompt: ../x.md}", "assertions[0].prompt: ../x.md leaves the suite"
    ),
    "nothing to judge by": grader("{type: llm-grader}", "7:13: tests[0].turns[0].assertions[0]: the grader has no"),
    "an unknown variable": grader(
        "{type: llm-grader, prompt: '{{ metadata }}'}", 'there is no variable "metadata" here (known: {{ input }},'
    ),
    "criteria that there are not": grader(
        "{type: llm-grader, prompt: 'By {{criteria}}?'}",
        "7:40: tests[0].turns[0].assertions[0].prompt: {{ criteria }} has no value here (give the test `criteria`)",
    ),
    "a reference that there is not": grader(
        "{type: llm-grader, prompt: 'Is it {{ expected_output }}?'}",
        "assertions[0].prompt: {{ expected_output }} has no value here (give `expected_output` to the turn)",
    ),
    "a reference of the whole": (
        HEAD + MODE + "    turns: [{input: x}]\n    assertions: [{type: llm-grader, prompt: '{{expected_output}}'}]\n",
        "5:45: tests[0].assertions[0].prompt: {{ expected_output }} has no value here (give `expected_output` to a",
    ),
    "criteria with an unknown variable": (
        HEAD + MODE + "    criteria: Be {{who}}.\n" + TURNS,
        '4:15: tests[0].criteria: there is no variable "who" here (known: none; {{!who}} writes the braces out)',
    ),
    "a reference with an unknown variable": (
        HEAD + MODE + "    vars: {a: b}\n    turns: [{input: x, expected_output: '{{a}} {{b-c}}'}]\n",
        '5:41: tests[0].turns[0].expected_output: there is no variable "b-c" here (known: {{ a }};',
    ),
    "a message with an unknown variable": (
        HEAD + MODE + "    input: [{role: system, content: '{{who}}'}]\n" + TURNS,
        '4:13: tests[0].input[0]: there is no variable "who" here',
    ),
    "arguments that would be a pattern": grader(
        "{type: tool-trajectory, mode: exact, expected: [{tool: bash, args: {command: {matches: ls}}}]}",
        "assertions[0].expected[0].args: a mapping with `matches` alone is a pattern here",
    ),
    "an argument of no call": grader(
        "{type: tool-trajectory, mode: exact, args_match: [path, comand], expected: "
        "[{tool: read, args: {path: x}}, {tool: bash, args: {command: ls}}]}",
        '7:69: tests[0].turns[0].assertions[0].args_match[1]: no expected call has the argument "comand", so nothing '
        'could be compared (did you mean "command"?)',
    ),
    "an argument that the call has not": grader(
        "{type: tool-trajectory, mode: exact, expected: [{tool: bash, args: {env: {A: 1}}, args_match: [env.B]}]}",
        'assertions[0].expected[0].args_match[0]: no expected call has the argument "env.B", so nothing could be '
        'compared (did you mean "env.A"?)',
    ),
    "a skill that is not there": grader(
        "{type: skill-trigger, skill: s}", '7:13: tests[0].turns[0].assertions[0]: the suite installs no skill "s"'
    ),
    "nothing judged": (
        HEAD + MODE + "    turns: [{input: x}]\n",
        "2:5: tests[0]: the test judges nothing, so",
    ),
    "the best of turns of which one is always 1": (
        HEAD + MODE + "    aggregation: max\n    turns: [{input: x, assertions: [y]}, {input: z}]\n",
        "5:42: tests[0].turns[1]: turn-2 has no grader, so it scores 1, and `aggregation: max` could only pass (let",
    ),
    "a dependency on itself": (
        HEAD + MODE + "    depends_on: [a]\n" + TURNS,
        "4:18: tests[0].depends_on[0]: the case depends on itself",
    ),
    "a variable that is not there": (
        HEAD + MODE + "    turns: [{input: 'x {{who}}', assertions: [y]}]\n",
        "4:21: tests[0].turns[0].input: {{who}} is neither",
    ),
    "a reply at the beginning": (
        HEAD + MODE + "    input: [{role: assistant, content: x}]\n" + TURNS,
        "4:13: tests[0].input[0]: a conversation begins with the user",
    ),
    "a late system message": (
        HEAD + MODE + "    input: [{role: user, content: x}, {role: system, content: y}]\n" + TURNS,
        "4:39: tests[0].input[1]: a system message in the middle of a conversation",
    ),
}


@pytest.mark.parametrize(("text", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    lines = told(tmp_path, text)
    assert any(message in line for line in lines), lines


def test_all_faults_of_all_tests_are_told_at_once(tmp_path: Path) -> None:
    text = (
        HEAD
        + MODE
        + "    window_size: 0\n  - id: b\n"
        + TURNS
        + "  - {id: c, mode: conversation, turns: [{input: x}], tu: 1}\n"
    )
    lines = told(tmp_path, text)
    assert len(lines) == 4, lines


def test_two_tests_with_one_id_are_a_fault(tmp_path: Path) -> None:
    lines = told(tmp_path, HEAD + MODE + TURNS + "  - id: a\n" + MODE + TURNS)
    assert "tests[1].id: the id a is taken by" in lines[0]


ARGS: dict[str, Any] = {"command": "ls", "env": {"A": 1, "B": 2}}
ARGUMENTS: list[tuple[Any, dict[str, Any]]] = [
    ("exact", {"args": ARGS, "args_match": "exact"}),
    ("superset", {"args": ARGS}),
    ("subset", {"args": ARGS, "args_match": "within"}),
    ("ignore", {}),
    (["command", "env.A"], {"args": {"command": "ls", "env": {"A": 1}}}),
]

RULES: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    ({"type": "contains", "value": "x"}, [{"output_contains": {"all": ["x"], "ignore_case": False}}]),
    ({"type": "icontains_all", "value": ["x", "y"]}, [{"output_contains": {"all": ["x", "y"], "ignore_case": True}}]),
    ({"type": "contains-any", "value": ["x", "y"]}, [{"output_contains": {"any": ["x", "y"], "ignore_case": False}}]),
    ({"type": "equals", "value": "x"}, [{"output_equals": {"text": "x"}}]),
    ({"type": "starts-with", "value": " a.b"}, [{"output_matches": {"all": [r"\A\s*a\.b"], "ignore_case": False}}]),
    ({"type": "ends-with", "value": "a.b"}, [{"output_matches": {"all": [r"a\.b\s*\z"], "ignore_case": False}}]),
    (
        {"type": "regex", "value": "a+", "flags": "gi"},
        [{"output_matches": {"all": ["(?i)a+"], "ignore_case": False}}],
    ),
    (
        {"type": "tool-trajectory", "mode": "any_order", "minimums": {"bash": 2, "read": 1}},
        [
            {"tool_called": {"name": ["bash"], "count": {"min": 2}}},
            {"tool_called": {"name": ["read"], "count": {"min": 1}}},
        ],
    ),
    (
        {"type": "tool-trajectory", "mode": "subset", "expected": [{"tool": "bash"}, {"tool": "read"}]},
        [{"tools_only": {"names": ["bash", "read"]}}],
    ),
    *(
        (
            {
                "type": "tool-trajectory",
                "mode": "in_order",
                "args_match": how,
                "expected": [{"tool": "bash", "args": ARGS}],
            },
            [{"tool_order": {"order": [{"name": ["bash"], **match}], "mode": "in_order"}}],
        )
        for how, match in ARGUMENTS
    ),
    (
        {
            "type": "tool-trajectory",
            "mode": "subset",
            "expected": [{"tool": "read"}, {"tool": "bash", "args": {"command": "ls"}, "args_match": "superset"}],
        },
        [{"tools_only": {"names": ["read"], "calls": [{"name": ["bash"], "args": {"command": "ls"}}]}}],
    ),
    ({"type": "latency", "threshold": 1500}, [{"max_seconds": {"max": 1.5}}]),
    ({"type": "cost", "budget": 2}, [{"max_cost_usd": {"max": 2.0}}]),
    (
        {"type": "token-usage", "max_total": 5, "max_output": 3},
        [{"max_tokens": {"max": 5, "of": "total"}}, {"max_tokens": {"max": 3, "of": "output"}}],
    ),
    (
        {"type": "execution-metrics", "max_tool_calls": 0, "max_duration_ms": 100},
        [{"max_tool_calls": {"max": 0}}, {"max_seconds": {"max": 0.1}}],
    ),
]


@pytest.mark.parametrize(
    ("assertion", "rules"), RULES, ids=[f"{row[0]['type']}-{number}" for number, row in enumerate(RULES)]
)
def test_a_deterministic_grader_becomes_rules(
    tmp_path: Path, assertion: dict[str, Any], rules: list[dict[str, Any]]
) -> None:
    case = one(tmp_path, turn(assertion))
    assert case.scoring is not None
    (part,) = case.scoring.parts
    (made,) = part.graders
    assert [item.model_dump(mode="json", by_alias=True, exclude_unset=True) for item in made.rules] == rules
    assert [rule.turn for rule in part.rules_of(made)] == [1] * len(rules)
    assert case.judge is not None
    assert (case.judge.type, case.judge.threshold) == ("rule_based", 0.8)


def test_texts_are_one_grader_that_weighs_as_much_as_there_are(tmp_path: Path) -> None:
    case = one(tmp_path, turn("first", {"type": "contains", "value": "x", "weight": 3}, "second"))
    assert case.scoring is not None
    made = case.scoring.parts[0].graders
    assert [(one.name, one.weight, len(one.criteria)) for one in made] == [("rubrics", 2.0, 2), ("contains", 3.0, 0)]
    assert [(one.id, one.text, one.turn) for one in case.criteria] == [
        ("turn-1.criterion-1", "first", 1),
        ("turn-1.criterion-2", "second", 1),
    ]


def test_the_mixed_example_of_the_design_is_read(tmp_path: Path) -> None:
    rubric = {"id": "no-premature-diagnosis", "outcome": "Gathers first", "weight": 2, "required": True}
    case = one(
        tmp_path,
        turn("Asks about tags", {"type": "contains", "value": "CSS"}, {"type": "rubrics", "criteria": [rubric]}),
    )
    assert case.scoring is not None
    texts, contains, rubrics = case.scoring.parts[0].graders
    assert (texts.kind, contains.kind, rubrics.kind) == ("rubrics", "contains", "rubrics")
    (graded,) = rubrics.criteria
    assert (graded.id, graded.required) == ("turn-1.no-premature-diagnosis", True)
    assert next(one.weight for one in case.criteria if one.id == graded.id) == 2


def test_a_rubric_with_ranges_is_scored_and_says_what_scores_mean(tmp_path: Path) -> None:
    ranges = [{"score_range": [0, 3], "outcome": "poor"}, {"score_range": [4, 10], "outcome": "good"}]
    rubric = {"outcome": "How clear?", "score_ranges": ranges, "required": True, "min_score": 0.7}
    case = one(tmp_path, turn({"type": "rubrics", "criteria": [rubric]}))
    (criterion,) = case.criteria
    assert criterion.scored
    assert criterion.text == "How clear?\nWhat the scores mean:\n1 to 3: poor\n4 to 10: good"
    assert case.scoring is not None
    (graded,) = case.scoring.parts[0].graders[0].criteria
    assert graded.floor(0.8) == 0.7


def test_a_reference_is_given_to_its_judge_or_compared_where_no_model_would_see_it(tmp_path: Path) -> None:
    case = one(tmp_path, turn({"type": "contains", "value": "x"}, expected_output="the answer"))
    assert [(one.id, one.scored, one.turn) for one in case.criteria] == [("turn-1.criterion-1", True, 1)]
    assert case.judge is not None
    (attachment,) = case.judge.context.attachments
    assert (attachment.turn, attachment.text) == (1, "the answer")
    judged = one(tmp_path, turn("a statement", expected_output="the answer"))
    assert [one.text for one in judged.criteria] == ["a statement"]


FIELDS = [
    {"path": "rows[0].n", "weight": 2},
    {"path": "b-c", "match": "numeric_tolerance", "tolerance": 1, "required": False},
]


@pytest.mark.parametrize("reference", [{"rows": [{"n": "x"}], "b-c": 4}, '{"rows": [{"n": "{{who}}"}], "b-c": 4}'])
def test_fields_are_held_against_the_reference_and_no_model_compares_it(tmp_path: Path, reference: Any) -> None:
    grader = {"type": "field_accuracy", "fields": FIELDS, "aggregation": "all_or_nothing"}
    case = one(tmp_path, {**turn(grader, expected_output=reference), "vars": {"who": "x"}})
    assert case.criteria == ()
    assert case.scoring is not None
    (item,) = case.scoring.parts[0].graders[0].rules
    assert item.model_dump(mode="json", by_alias=True, exclude_defaults=True) == {
        "json_fields": {
            "fields": [
                {"path": "$['rows'][0]['n']", "equals": "x", "weight": 2.0},
                {"path": "$['b-c']", "equals": 4, "match": "number", "tolerance": 1.0, "optional": True},
            ],
            "partial": False,
        }
    }


def test_a_composite_is_a_grader_of_graders(tmp_path: Path) -> None:
    members = [
        "first",
        {"type": "is-json", "name": "json", "weight": 5},
        "second",
        {"type": "composite", "assertions": ["z"]},
    ]
    weighed = {"type": "composite", "assertions": members, "aggregator": {"weights": {"json": 3}}}
    passing = {"type": "composite", "assertions": ["y"], "aggregator": {"type": "threshold", "threshold": 0.5}}
    case = one(tmp_path, turn(weighed, passing))
    assert case.scoring is not None
    first, second = case.scoring.parts[0].graders
    assert [(made.name, made.weight, len(made.criteria)) for made in first.graders] == [
        ("rubrics", 2.0, 2),
        ("json", 3.0, 0),
        ("composite", 1.0, 0),
    ]
    assert (first.aggregation, second.aggregation, second.pass_threshold) == ("mean", "passing", 0.5)
    assert [made.id.rpartition("-")[2] for made in case.criteria] == ["1", "2", "3", "4"]


def test_criteria_are_judged_where_nothing_else_is_and_given_to_the_judge_where_it_is(tmp_path: Path) -> None:
    alone = one(tmp_path, {"criteria": "Be kind.", "turns": [{"input": "x"}]})
    assert [(one.text, one.scored, one.turn) for one in alone.criteria] == [("Be kind.", True, None)]
    beside = one(tmp_path, {"criteria": "Be kind.", **turn("a statement")})
    assert [one.text for one in beside.criteria] == ["a statement"]
    assert beside.judge is not None
    assert [one.text for one in beside.judge.context.attachments] == ["Be kind."]


def test_template_variables_are_put_in_or_name_their_place_in_the_record(tmp_path: Path) -> None:
    prompt = "By {{criteria}} and {{ expected_output }}: {{ output }} after {{ input }}"
    case = one(
        tmp_path,
        {"criteria": "GOAL", **turn({"type": "llm-grader", "prompt": prompt}, expected_output="REFERENCE")},
    )
    assert case.criteria[0].text == (
        "By GOAL and REFERENCE: (the answer of the agent in turn 1 of the record) after "
        "(the conversation in the record up to the user's message of turn 1)"
    )


@pytest.mark.parametrize(
    ("assertion", "warned"),
    [
        ({"type": "contains", "value": "x"}, True),
        ({"type": "composite", "assertions": [{"type": "is-json"}]}, True),
        ({"type": "composite", "assertions": ["a statement"]}, False),
        ({"type": "code-grader", "command": "true"}, False),
        ("a statement", False),
    ],
)
def test_criteria_that_nobody_judges_are_warned_of(tmp_path: Path, assertion: Any, warned: object) -> None:
    test = {"id": "a", "mode": "conversation", "criteria": "Be kind.", **turn(assertion)}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({"tests": [test]}, sort_keys=False), encoding="utf-8")
    (suite,) = load_suites([tmp_path / "a.yaml"])
    said = [line.partition("a.yaml:")[2] for line in suite.warnings]
    assert said == (["4:3: tests[0].criteria: nobody judges this: no assertion asks a model"] if warned else [])


def test_variables_are_put_in_once_and_their_values_stay_as_they_are(tmp_path: Path) -> None:
    said = [("system", "{{a}}"), ("user", "{{ a }}"), ("assistant", "{{!a}}"), ("user", "{{a}} {{!a}}")]
    messages = [{"role": role, "content": content} for role, content in said]
    test = {"vars": {"a": "{{b}}", "b": "{{a}}"}, "criteria": "{{ a }} {{b}}", "input": messages}
    case = one(tmp_path, {**test, **turn({"type": "llm-grader"}, expected_output="{{b}} {{!b}}")})
    assert case.criteria[0].text.splitlines()[0] == "{{b}} {{a}}"
    assert case.judge is not None
    assert [one.text for one in case.judge.context.attachments] == ["{{b}} {{a}}", "{{a}} {{b}}"]
    assert (case.input.system, [one.content for one in case.input.messages]) == ("{{b}}", ["{{b}}", "{{a}}"])
    assert render(case.turns[0].content, case.vars) == "{{b}} {{a}}\n\nsay"


def test_a_prompt_in_a_file_is_read_beside_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("---\nname: a\ndescription: b\n---\n")
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "kind.md").write_text("Is it {{ criteria }}?")
    case = one(tmp_path / "evals", {"criteria": "kind", **turn({"type": "llm-grader", "prompt": "kind.md"})})
    assert case.criteria[0].text == "Is it kind?"


def test_the_input_becomes_a_system_message_a_history_and_the_context_of_the_first_turn(tmp_path: Path) -> None:
    said = [("system", "S {{who}}"), ("user", "q"), ("assistant", "r"), ("user", "c1"), ("user", "c2")]
    messages = [{"role": role, "content": content} for role, content in said]
    parts = [{"type": "text", "value": "one"}, {"type": "text", "value": "two"}]
    test = {"vars": {"who": "Ann"}, "input": messages, "turns": [{"input": parts, "assertions": ["x"]}]}
    case = one(tmp_path, test, input="of the file")
    assert case.input.system == "S Ann"
    assert [(one.role, one.content) for one in case.input.messages] == [
        ("user", "of the file\n\nq"),
        ("assistant", "r"),
    ]
    assert [one.content for one in case.turns] == ["c1\n\nc2\n\none\ntwo"]


def test_assertions_and_threshold_of_the_file_hold_for_every_test_that_wants_them(tmp_path: Path) -> None:
    shared: dict[str, Any] = {
        "assertions": [{"type": "contains", "value": "z"}],
        "execution": {"threshold": 0.5},
    }
    case = one(tmp_path, {**turn("x"), "assertions": ["y"]}, **shared)
    assert case.scoring is not None
    assert [(part.name, len(part.graders)) for part in case.scoring.parts] == [("turn-1", 1), ("assertions", 2)]
    assert case.judge is not None
    assert case.judge.threshold == 0.5
    own = one(tmp_path, {**turn("x"), "execution": {"threshold": 0.9, "skip_defaults": True}}, **shared)
    assert own.judge is not None
    assert own.judge.threshold == 0.9
    assert own.scoring is not None
    assert [part.name for part in own.scoring.parts] == ["turn-1"]


def test_a_suite_of_ours_can_name_such_a_file(tmp_path: Path) -> None:
    (tmp_path / "conversations.yaml").write_text(HEAD + MODE + TURNS + "  - id: b\n" + MODE + TURNS)
    (tmp_path / "eval.yaml").write_text("schema_version: v1alpha1\ncases: {files: [conversations.yaml]}\n")
    (suite,) = load_suites([tmp_path / "eval.yaml"])
    assert [case.id for case in suite.cases] == ["a", "b"]

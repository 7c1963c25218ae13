"""Patterns in files, exact contents, and data: what each finds, where it differs, and what hides behind a mask."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.judging.story import Story, call

FILES = {"a.txt": "first line\nsecond LINE\n", "data.json": '{"id": 7, "tags": ["x", "y"], "who": {"name": "Ada"}}'}


@pytest.mark.parametrize(
    ("written", "state"),
    [
        ("file_matches: {path: a.txt, pattern: '^first'}", "met"),
        ("file_matches: {path: a.txt, pattern: '^second'}", "not_met"),
        ("file_matches: {path: a.txt, pattern: '(?m)^second'}", "met"),
        ("file_matches: {path: a.txt, all: [first, 'sec.nd'], not: [third]}", "met"),
        ("file_matches: {path: a.txt, any: [third, 'l[a-z]ne']}", "met"),
        ("file_matches: {path: a.txt, pattern: 'second line', ignore_case: true}", "met"),
        ("file_matches: {path: a.txt, not: ['LINE']}", "not_met"),
        ("file_matches: {path: b.txt, not: ['LINE']}", "not_met"),
        ('file_equals: {path: a.txt, content: "first line\\nsecond LINE\\n"}', "met"),
        ('file_equals: {path: a.txt, content: "first line\\nsecond LINE"}', "not_met"),
        ('file_equals: {path: a.txt, content: "first line\\nsecond LINE", trim: true}', "met"),
        ("file_equals: {path: b.txt, content: x}", "not_met"),
        ("json_path: {source: {file: data.json}, path: $.id, equals: 7}", "met"),
        ("json_path: {source: {file: data.json}, path: $.id, equals: 7.0}", "met"),
        ("json_path: {source: {file: data.json}, path: $.id, equals: '7'}", "not_met"),
        ("json_path: {source: {file: data.json}, path: $.tags, equals: [x, y]}", "met"),
        ("json_path: {source: {file: data.json}, path: $.tags, equals: [y, x]}", "not_met"),
        ("json_path: {source: {file: data.json}, path: '$.tags[*]', equals: y}", "met"),
        ("json_path: {source: {file: data.json}, path: '$.tags[*]', count: 2}", "met"),
        ("json_path: {source: {file: data.json}, path: '$.tags[*]', count: 3}", "not_met"),
        ("json_path: {source: {file: data.json}, path: $, includes: {who: {name: Ada}}}", "met"),
        ("json_path: {source: {file: data.json}, path: $, equals: {who: {name: Ada}}}", "not_met"),
        ("json_path: {source: {file: data.json}, path: $.who.name, matches: '^A'}", "met"),
        ("json_path: {source: {file: data.json}, path: $.id, matches: '7'}", "not_met"),
        ("json_path: {source: {file: data.json}, path: $.id, min: 7, max: 7}", "met"),
        ("json_path: {source: {file: data.json}, path: $.id, max: 6.5}", "not_met"),
        ("json_path: {source: {file: data.json}, path: $.id, exists: true}", "met"),
        ("json_path: {source: {file: data.json}, path: $.nothing, exists: false}", "met"),
        ("json_path: {source: {file: data.json}, path: $.id, exists: false}", "not_met"),
        ("json_path: {source: {file: a.txt}, path: $.id, exists: true}", "not_met"),
        ("json_path: {source: {file: missing.json}, path: $.id, exists: true}", "not_met"),
        ("json_schema: {source: {file: data.json}, schema: {required: [id, who]}}", "met"),
        ("json_schema: {source: {file: data.json}, schema: {properties: {id: {type: string}}}}", "not_met"),
        ("json_schema: {source: {file: data.json}, schema: {additionalProperties: false}}", "not_met"),
        (
            (
                "json_schema: {source: {file: data.json}, schema: "
                "{patternProperties: {'^(id|tags|who)$': true}, additionalProperties: false}}"
            ),
            "met",
        ),
        ("json_schema: {source: {file: data.json}, schema: {properties: {tags: {uniqueItems: true}}}}", "met"),
        ("json_schema: {source: {file: a.txt}, schema: {type: object}}", "not_met"),
    ],
)
def test_rule(tmp_path: Path, written: str, state: str) -> None:
    found = Story(tmp_path, FILES).turn().judged(written)
    assert found.state == state, found.evidence


@pytest.mark.parametrize(
    ("answer", "written", "state"),
    [
        ("  done\n", "output_equals: done", "met"),
        ("done.", "output_equals: done", "not_met"),
        ('{"id": 7}', "json_path: {path: $.id, equals: 7}", "met"),
        ('Here:\n```json\n{"id": 7}\n```\n', "json_path: {path: $.id, equals: 7}", "met"),
        ("no data", "json_path: {path: $.id, equals: 7}", "not_met"),
        ("no data", "json_path: {path: $.id, exists: false}", "met"),
        ('{"id": null}', "json_path: {path: $.id, equals: null}", "met"),
        ("{}", "json_path: {path: $.id, equals: null}", "not_met"),
        ('{"ok": true}', "json_path: {path: $.ok, equals: 1}", "not_met"),
        ('{"ok": 1}', "json_path: {path: $.ok, equals: true}", "not_met"),
        ('{"n": "5"}', "json_path: {path: $.n, min: 1}", "not_met"),
        ("[1, 1.0]", "json_schema: {schema: {type: array, uniqueItems: true}}", "not_met"),
        ("[1, 2]", "json_schema: {schema: {type: array, uniqueItems: true}}", "met"),
        ('{"id": "T-1"}', "json_schema: {schema: {properties: {id: {pattern: '^T-[0-9]+$'}}}}", "met"),
        ('{"id": "X"}', "json_schema: {schema: {properties: {id: {pattern: '^T-[0-9]+$'}}}}", "not_met"),
        ("x", "json_schema: {schema: {type: object}}", "not_met"),
        ("[" * 150 + "]" * 150, "json_schema: {schema: {type: array}}", "not_met"),
        ("[" * 150 + "]" * 150, "json_path: {path: '$[0]', exists: true}", "not_met"),
    ],
)
def test_answers(tmp_path: Path, answer: str, written: str, state: str) -> None:
    found = Story(tmp_path).turn(answer).judged(written)
    assert found.state == state, found.evidence


def test_a_schema_may_refer_to_its_own_parts_and_name_an_older_draft(tmp_path: Path) -> None:
    tree = (
        "{$schema: 'http://json-schema.org/draft-07/schema#', allOf: [{$ref: '#/definitions/t'}],"
        " definitions: {t: {type: array, items: {$ref: '#/definitions/t'}}}}"
    )
    assert Story(tmp_path / "a").turn("[[], [[]]]").judged(f"json_schema: {{schema: {tree}}}").state == "met"
    assert Story(tmp_path / "b").turn("[[], [1]]").judged(f"json_schema: {{schema: {tree}}}").state == "not_met"


def test_a_property_may_have_the_name_of_a_keyword(tmp_path: Path) -> None:
    written = "json_schema: {schema: {properties: {$ref: {type: string}, pattern: {type: string}}}}"
    assert Story(tmp_path / "a").turn('{"$ref": "x"}').judged(written).state == "met"
    assert Story(tmp_path / "b").turn('{"pattern": 1}').judged(written).state == "not_met"


def test_a_schema_without_an_end_on_some_data_is_a_fault_of_judging(tmp_path: Path) -> None:
    loop = "{properties: {a: {$ref: '#/$defs/x'}}, $defs: {x: {$ref: '#/$defs/y'}, y: {$ref: '#/$defs/x'}}}"
    found = Story(tmp_path).turn('{"a": 1}').judged(f"json_schema: {{schema: {loop}}}")
    assert (found.state, found.cause) == ("unknown", "judging")


def test_a_path_into_the_record_is_that_of_captures(tmp_path: Path) -> None:
    story = Story(tmp_path).turn(calls=[call("bash", command="ls")]).turn("done", files={"a.txt": "a"})
    assert story.judged("json_path: {path: '$.workspace.created[0]', equals: a.txt}").state == "met"
    assert story.judged("json_path: {path: '$.transcript.tool_calls[0].tool', equals: bash, turn: 1}").state == "met"
    assert story.judged("json_path: {path: '$.transcript.tool_calls[0].tool', equals: bash}").state == "not_met"
    assert story.judged("json_path: {path: $.usage.input_tokens, equals: null}").state == "met"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            'file_equals: {path: a.txt, content: "first line\\nsecond LINE"}',
            "only blanks or line breaks at the ends differ (`trim: true` leaves them out)",
        ),
        ('file_equals: {path: a.txt, content: "first line\\nsecond line\\n"}', "only the case of letters differs"),
        ('file_equals: {path: a.txt, content: "first line\\r\\nsecond LINE\\r\\n"}', "the kind of line breaks differs"),
        ('file_equals: {path: a.txt, content: "first line\\nthird\\n"}', "line 2 is 'second LINE', expected 'third'"),
        ("file_equals: {path: a.txt, content: first line}", "after line 1 it goes on with 'second LINE'"),
        (
            'file_equals: {path: a.txt, content: "first line\\nsecond LINE\\nx"}',
            "it ends after line 2; expected next: 'x'",
        ),
        (
            "json_path: {source: {file: data.json}, path: $.id, equals: '7'}",
            "$.id of data.json after turn 1 is 7: expected '7', a text, not a number",
        ),
        (
            "json_path: {source: {file: data.json}, path: $, includes: {who: {name: ada}}}",
            "$.who.name: expected 'ada', got 'Ada' (they differ by the case of letters alone)",
        ),
        ("json_path: {source: {file: data.json}, path: $.x, equals: 1}", "has no $.x: there is no $.x"),
        ("json_path: {source: {file: a.txt}, path: $.x, equals: 1}", "has no $.x: it is not JSON (Expecting value"),
        (
            "json_schema: {source: {file: data.json}, schema: {properties: {id: {type: string}}}}",
            "data.json after turn 1 is not as the schema says: $.id: 7 is not of type 'string'",
        ),
    ],
)
def test_evidence_says_what_differs(tmp_path: Path, written: str, said: str) -> None:
    assert said in Story(tmp_path, FILES).turn().judged(written).evidence


@pytest.mark.parametrize(
    "written",
    [
        "file_equals: {path: key.txt, content: '[masked]'}",
        "file_matches: {path: key.txt, not: ['sk-ant-']}",
        "output_equals: 'the key: [masked]'",
        "json_path: {source: {file: key.json}, path: $.key, equals: '[masked]'}",
        "json_path: {source: {file: key.json}, path: $.key, matches: '^sk-ant-'}",
        "json_schema: {source: {file: key.json}, schema: {properties: {key: {pattern: '^sk-ant-'}}}}",
    ],
)
def test_two_secrets_look_the_same_once_they_are_masked(tmp_path: Path, written: str) -> None:
    key = "hunter2hunter2"
    story = Story(tmp_path, {"key.txt": key, "key.json": f'{{"key": "{key}"}}'}, mask=key).turn(f"the key: {key}")
    found = story.judged(written)
    assert (found.state, found.cause) == ("unknown", "unobservable"), found.evidence


def test_a_pattern_of_a_schema_takes_linear_time(tmp_path: Path) -> None:
    """With backtracking this would take years."""
    story = Story(tmp_path).turn('{"id": "' + "a" * 5_000 + '!"}')
    assert story.judged("json_schema: {schema: {properties: {id: {pattern: '^(a+)+$'}}}}").state == "not_met"


def test_thousands_of_different_items_take_linear_time(tmp_path: Path) -> None:
    items = ",".join(f'{{"n": {n}}}' for n in range(20_000))
    assert Story(tmp_path).turn(f"[{items}]").judged("json_schema: {schema: {uniqueItems: true}}").state == "met"

"""Strict YAML: what a file means, where its parts are, and how every bad file is reported."""

from __future__ import annotations

import json
import math
import os
import random
import time
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from skillup.errors import Fault, InputError
from skillup.loading.document import Mark, Position
from skillup.loading.rendering import render_faults
from skillup.loading.yamlfile import LIBYAML, MAX_BYTES, EventLoader, parse_yaml, read_yaml

LOADERS = [pytest.param(yaml.BaseLoader, id="python")]
if LIBYAML:
    LOADERS.append(pytest.param(yaml.CBaseLoader, id="libyaml"))

both_parsers = pytest.mark.parametrize("loader", LOADERS)


def value_of(text: str, loader: type[Any] = EventLoader) -> Any:
    return parse_yaml(text, "case.yaml", loader=loader).data


def report_on(text: str, loader: type[Any] = EventLoader) -> str:
    with pytest.raises(InputError) as caught:
        parse_yaml(text, "case.yaml", loader=loader)
    return render_faults(caught.value.faults)


def report_on_file(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_yaml(path, "case.yaml")
    return render_faults(caught.value.faults)


# --- what scalars mean -------------------------------------------------------------------------------------------

SCALARS: dict[str, Any] = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "FALSE": False,
    "tRUE": "tRUE",
    "yes": "yes",
    "No": "No",
    "on": "on",
    "off": "off",
    "y": "y",
    "~": None,
    "null": None,
    "Null": None,
    "nULL": "nULL",
    "": None,
    "0": 0,
    "-7": -7,
    "+7": 7,
    "010": 10,
    "0o10": 8,
    "0x1F": 31,
    "-0x1F": "-0x1F",
    "0b11": "0b11",
    "0o8": "0o8",
    "1_000": "1_000",
    "1:30": "1:30",
    "2024-01-01": "2024-01-01",
    "2024-01-01T10:00:00Z": "2024-01-01T10:00:00Z",
    "1.5": 1.5,
    "1.": 1.0,
    "-.5": -0.5,
    "1e3": 1000.0,
    "1E-2": 0.01,
    ".": ".",
    "1.2.3": "1.2.3",
    "+": "+",
    ".inf": math.inf,
    "+.INF": math.inf,
    "-.Inf": -math.inf,
    "inf": "inf",
    "=": "=",
    "text with blanks": "text with blanks",
    '"true"': "true",
    "'1'": "1",
    '""': "",
    '"\\x1b[31m"': "\x1b[31m",
    '"\\0"': "\0",
    '"\\U0001F600"': "😀",
}


@both_parsers
@pytest.mark.parametrize(("written", "meant"), SCALARS.items(), ids=SCALARS)
def test_scalars_follow_the_core_schema_of_yaml_1_2(written: str, meant: Any, loader: type[Any]) -> None:
    value = value_of(f"key: {written}\n", loader)["key"]
    assert (value, type(value)) == (meant, type(meant))


@both_parsers
def test_nan_is_a_number(loader: type[Any]) -> None:
    assert all(math.isnan(value) for value in value_of("[.nan, .NaN, .NAN]", loader))


def test_block_texts_keep_tabs_and_lines() -> None:
    assert value_of("a: |\n  all:\n  \tmake\n\nb: >-\n  one\n  two\n") == {"a": "all:\n\tmake\n", "b": "one two"}


@both_parsers
def test_a_document_may_have_markers_and_a_directive(loader: type[Any]) -> None:
    assert value_of("%YAML 1.2\n---\na: 1\n...\n# end\n", loader) == {"a": 1}


@both_parsers
def test_windows_line_ends_do_not_matter(loader: type[Any]) -> None:
    document = parse_yaml("a: 1\r\nb:\r\n  c: 2\r\n", "case.yaml", loader=loader)
    assert document.data == {"a": 1, "b": {"c": 2}}
    assert document.marks[("b", "c")] == Mark(Position(3, 6), Position(3, 3))


def randomness(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - it must repeat itself, not be a secret


def plain_value(source: random.Random, depth: int = 0) -> Any:
    """Random plain data. Its texts hold no digits, since YAML 1.1 and 1.2 differ on what is a number."""
    match source.randrange(8 if depth < 4 else 5):
        case 0:
            return source.choice([None, True, False])
        case 1:
            return source.randint(-(10**12), 10**12)
        case 2:
            return source.uniform(-1e9, 1e9)
        case 3 | 4:
            return "".join(source.choice("aeioNY ~:-#[]{},'\"\\\n|>&*!%@`é😀.=<") for _ in range(source.randrange(30)))
        case 5 | 6:
            return {f"key {i}": plain_value(source, depth + 1) for i in range(source.randrange(5))}
    return [plain_value(source, depth + 1) for _ in range(source.randrange(5))]


@both_parsers
@pytest.mark.parametrize("seed", range(20))
def test_plain_data_reads_as_with_a_full_yaml_library(seed: int, loader: type[Any]) -> None:
    data = {"root": [plain_value(randomness(seed * 100 + i)) for i in range(10)]}
    written = yaml.safe_dump(data, allow_unicode=True, sort_keys=False)
    assert value_of(written, loader) == yaml.safe_load(written) == data


@both_parsers
@pytest.mark.parametrize("seed", range(5))
def test_json_is_yaml(seed: int, loader: type[Any]) -> None:
    data = {"root": [plain_value(randomness(seed * 100 + i)) for i in range(10)]}
    assert value_of(json.dumps(data, ensure_ascii=False, indent=2), loader) == data


# --- aliases and merges ------------------------------------------------------------------------------------------


@both_parsers
def test_an_alias_repeats_what_its_anchor_names(loader: type[Any]) -> None:
    text = "a: &x {b: [1, 2]}\nc: *x\nd: &y yes\n*y : 1\n"
    assert value_of(text, loader) == {"a": {"b": [1, 2]}, "c": {"b": [1, 2]}, "d": "yes", "yes": 1}


MERGES: dict[str, tuple[str, Any]] = {
    "one": ("{<<: *base}", {"x": 1, "y": 2}),
    "own keys win, before": ("{y: 9, <<: *base}", {"x": 1, "y": 9}),
    "own keys win, after": ("{<<: *base, y: 9}", {"x": 1, "y": 9}),
    "the first of a list wins": ("{<<: [{x: 7}, *base]}", {"x": 7, "y": 2}),
    "a quoted << is a key": ('{"<<": 1}', {"<<": 1}),
}


@both_parsers
@pytest.mark.parametrize(("written", "meant"), MERGES.values(), ids=MERGES)
def test_a_merge_key_brings_in_values_below_the_own_ones(written: str, meant: Any, loader: type[Any]) -> None:
    assert value_of(f"base: &base {{x: 1, y: 2}}\nuse: {written}\n", loader)["use"] == meant


def test_merged_values_have_the_marks_of_where_they_are_written() -> None:
    marks = parse_yaml("base: &base\n  x: 1\nuse:\n  <<: *base\n  y: 2\n", "case.yaml").marks
    assert marks[("use", "x")] == Mark(Position(2, 6), Position(2, 3))
    assert marks[("use", "y")] == Mark(Position(5, 6), Position(5, 3))


# --- marks -------------------------------------------------------------------------------------------------------

MARKED = """\
id: x
"täg": [a, {b: 1}]
input:
  turns:
    - role: user
      content:
    -
      role: user
"""


@both_parsers
def test_every_value_and_key_has_its_place(loader: type[Any]) -> None:
    document = parse_yaml(MARKED, "case.yaml", loader=loader)
    assert dict(document.marks) == {
        (): Mark(Position(1, 1), None),
        ("id",): Mark(Position(1, 5), Position(1, 1)),
        ("täg",): Mark(Position(2, 8), Position(2, 1)),
        ("täg", 0): Mark(Position(2, 9), None),
        ("täg", 1): Mark(Position(2, 12), None),
        ("täg", 1, "b"): Mark(Position(2, 16), Position(2, 13)),
        ("input",): Mark(Position(4, 3), Position(3, 1)),
        ("input", "turns"): Mark(Position(5, 5), Position(4, 3)),
        ("input", "turns", 0): Mark(Position(5, 7), None),
        ("input", "turns", 0, "role"): Mark(Position(5, 13), Position(5, 7)),
        ("input", "turns", 0, "content"): Mark(Position(6, 15), Position(6, 7)),
        ("input", "turns", 1): Mark(Position(8, 7), None),
        ("input", "turns", 1, "role"): Mark(Position(8, 13), Position(8, 7)),
    }
    assert len(document.marks) == 13
    assert ("input", "turns", 2) not in document.marks


def test_a_fault_of_a_document_is_at_the_value_or_at_its_key() -> None:
    document = parse_yaml(MARKED, "case.yaml")
    path = ("input", "turns", 0, "role")
    assert document.fault(path, "no") == Fault("case.yaml", 5, 13, "input.turns[0].role", "no")
    assert document.fault(path, "no", hint="so", on_key=True) == Fault(
        "case.yaml", 5, 7, "input.turns[0].role", "no", "so"
    )


def test_a_fault_at_a_place_that_is_not_in_the_file_is_at_the_nearest_one_above() -> None:
    document = parse_yaml(MARKED, "case.yaml")
    assert document.fault(("input", "turns", 7, "x"), "no") == Fault("case.yaml", 5, 5, "input.turns[7].x", "no")


# --- bad text ----------------------------------------------------------------------------------------------------

TAB = "a tab is used for indentation (use spaces)"
TAG_HINT = "(remove it, and quote what is text)"
INDENT = "(check the indentation, and quote texts that hold quotes or begin with one of [ ] { } , & * ! | > % @ `)"

BAD_TEXTS: dict[str, tuple[str, str]] = {
    "empty": ("", "case.yaml:1:1: the file is empty"),
    "blanks": ("  \n\n", "case.yaml:1:1: the file is empty"),
    "only comments": ("# a\n# b\n", "case.yaml:1:1: the file is empty"),
    "only a marker": ("---\n", "case.yaml:1:1: the file is empty"),
    "tab": ("a:\n\tb: 1\n", f"case.yaml:2:1: {TAB}"),
    "tab after blanks": ("a:\n  b:\n  \tc: 1\n", f"case.yaml:3:3: {TAB}"),
    "tab on a later line": ("ä:\n  b: é😀\n\tc: 2\n", f"case.yaml:3:1: {TAB}"),
    "tab before an item": ("a:\n\t- x\n", f"case.yaml:2:1: {TAB}"),
    "tab after a dash": (
        "a:\n  -\tb: 1\n    c: 2\n",
        "case.yaml:2:4: a tab stands where a blank is needed (use spaces)",
    ),
    "duplicate key": ("id: a\nb: 1\nid: c\n", 'case.yaml:3:1: id: "id" is given twice, first in line 1 (keep one)'),
    "duplicate key, three times": (
        "a: 1\na: 2\na: 3\n",
        (
            'case.yaml:2:1: a: "a" is given twice, first in line 1 (keep one)\n'
            'case.yaml:3:1: a: "a" is given twice, first in line 1 (keep one)'
        ),
    ),
    "duplicate key below": (
        "x:\n  - b: 1\n    'b': 2\n",
        'case.yaml:3:5: x[0].b: "b" is given twice, first in line 2 (keep one)',
    ),
    "number as key": ("x: {1: a}\n", "case.yaml:1:5: x: the key 1 is not text (put it in quotes)"),
    "true as key": ("true: a\n", "case.yaml:1:1: the key true is not text (put it in quotes)"),
    "empty key": ("? \n: a\n", "case.yaml:1:2: a key without text (put it in quotes)"),
    "mapping as key": ("{a: 1}: b\n", "case.yaml:1:1: a key must be text, not a mapping or a list"),
    "list as key": ("? [a]\n: b\n", "case.yaml:1:3: a key must be text, not a mapping or a list"),
    "unquoted template": (
        "content: {{name}}\n",
        (
            "case.yaml:1:11: content: a key must be text, not a mapping or a list "
            "(put a text that begins with {{ in quotes)"
        ),
    ),
    "unquoted template and text": (
        "content: {{name}} and more\n",
        (
            "case.yaml:1:11: content: a key must be text, not a mapping or a list "
            "(put a text that begins with {{ in quotes)"
        ),
    ),
    "python tag": (
        "a: !!python/object/apply:os.system ['true']\n",
        f'case.yaml:1:4: a: the tag "!!python/object/apply:os.system" is not supported {TAG_HINT}',
    ),
    "own tag": ("a: !foo x\n", 'case.yaml:1:4: a: the tag "!foo" is not supported (remove it, and quote what is text)'),
    "standard tag": (
        "a: !!str 1\n",
        'case.yaml:1:4: a: the tag "!!str" is not supported (remove it, and quote what is text)',
    ),
    "tag with unknown handle": ("a: !x!y 1\n", "case.yaml:1:4: tags (`!`) are not supported (quote what is text)"),
    "two documents": (
        "a: 1\n---\nb: 2\n",
        "case.yaml:2:1: a second document begins here (one file holds one document: remove the `---`)",
    ),
    "text after the end": (
        "a: 1\n...\nb\n",
        "case.yaml:3:1: this follows the end of the document (one file holds one mapping or list)",
    ),
    "alias without anchor": (
        "content: *bold text\n",
        "case.yaml:1:10: content: *bold names nothing (write &bold in front of an earlier value, or quote the text)",
    ),
    "alias in itself": ("a: &a [*a]\n", "case.yaml:1:8: a[0]: *a stands inside the value that it names"),
    "merge of a number": ("a:\n  <<: 3\n", 'case.yaml:2:7: a["<<"]: `<<` takes a mapping, or a list of mappings'),
    "two merges": (
        "a:\n  <<: {b: 1}\n  <<: {c: 1}\n",
        'case.yaml:3:3: a["<<"]: "<<" is given twice, first in line 2 (keep one)',
    ),
    "thousands of digits": (
        "a: " + "7" * 5000 + "\n",
        f'case.yaml:1:4: a: the number "{"7" * 80}…" is too large (quote it when it is text)',
    ),
    "thousands of hexadecimal digits": (
        "a: 0x" + "f" * 5000 + "\n",
        f'case.yaml:1:4: a: the number "0x{"f" * 78}…" is too large (quote it when it is text)',
    ),
    "a float that would be infinite": (
        "a: 1e999\n",
        'case.yaml:1:4: a: the number "1e999" is too large (quote it when it is text)',
    ),
    "control character": (
        "a: b\nc: é\x1b[31m\n",
        'case.yaml:2:5: the control character U+001B (write it as "\\u001b", in double quotes)',
    ),
    "delete character": (
        "\x7f",
        'case.yaml:1:1: the control character U+007F (write it as "\\u007f", in double quotes)',
    ),
    "two colons": (
        "title: a: b\n",
        'case.yaml:1:9: a second ": " in one value (quote a text that holds a colon and a blank)',
    ),
    "key without colon": (
        "a: 1\nb\nc: 2\n",
        "case.yaml:2:1: a key without a colon (write `key: value`, or indent the line as part of a longer text)",
    ),
    "dedented too little": (
        "a:\n    b: 1\n  c: 2\n",
        f"case.yaml:3:3: this does not continue what began in line 1 {INDENT}",
    ),
    "item after keys": ("a: 1\n- b\n", f"case.yaml:2:1: this does not continue what began in line 1 {INDENT}"),
    "text after quotes": ('a: 1\nb: "x" y\n', f"case.yaml:2:8: this does not continue what began in line 1 {INDENT}"),
    "quotes not closed": ('a: 1\nb: "x\nc: 1\n', "case.yaml:2:4: the quotes that open here are never closed"),
    "list not closed": (
        "a: [1, 2\nb: 3\n",
        "case.yaml:2:2: a `,` or `]` is missing in the list from line 1 (quote texts that hold them)",
    ),
    "mapping not closed": (
        "a: {x: 1\n",
        "case.yaml:2:1: a `,` or `}` is missing in the mapping from line 1 (quote texts that hold them)",
    ),
    "list on the line of its key": (
        "a: - b\n",
        "case.yaml:1:4: a list cannot begin here (begin it on a line of its own)",
    ),
    "at sign": ("a: @x\n", "case.yaml:1:4: the character @ cannot stand here (quote the text)"),
    "closing bracket": ("a: ]\n", "case.yaml:1:4: the character ] cannot stand here (quote the text)"),
    "bullet": ("a: *\n", "case.yaml:1:4: the character * cannot stand here (quote the text)"),
    "quotation mark of Markdown": (
        "a: > b\n",
        "case.yaml:1:4: after > a longer text begins on the next line (quote the text when > is its beginning)",
    ),
    "several": (
        "1: a\nb: !x 2\nb: *c\nd: [\n",
        (
            "case.yaml:1:1: the key 1 is not text (put it in quotes)\n"
            'case.yaml:2:4: b: the tag "!x" is not supported (remove it, and quote what is text)\n'
            'case.yaml:3:1: b: "b" is given twice, first in line 2 (keep one)\n'
            "case.yaml:3:4: b: *c names nothing (write &c in front of an earlier value, or quote the text)\n"
            "case.yaml:5:1: the file ends inside a list or mapping (close every bracket)"
        ),
    ),
}


@both_parsers
@pytest.mark.parametrize(("text", "report"), BAD_TEXTS.values(), ids=BAD_TEXTS)
def test_bad_text_is_reported_with_its_place_and_a_way_out(text: str, report: str, loader: type[Any]) -> None:
    assert report_on(text, loader) == report


@both_parsers
@pytest.mark.parametrize("written", ['"\\d+"', '"\\xZZ"'])
def test_an_unknown_escape_is_explained(written: str, loader: type[Any]) -> None:
    report = report_on(f"a: {written}\n", loader)
    assert report.startswith("case.yaml:1:")
    assert "a backslash escape that YAML does not know (in double quotes write two backslashes" in report


@both_parsers
@pytest.mark.parametrize("written", ['"\\ud83d\\ude00"', '"\\ud800"'])
def test_half_a_character_is_refused(written: str, loader: type[Any]) -> None:
    report = report_on(f"a: {written}\n", loader)
    assert "an escape that stands for no character (write the character itself)" in report


@both_parsers
@pytest.mark.parametrize("text", ['a: "\\U00110000"\n', 'a: "\\UFFFFFFFF"\n', f"%YAML 1.{'9' * 5000}\n---\na: 1\n"])
def test_what_breaks_the_parsers_own_arithmetic_is_a_fault(text: str, loader: type[Any]) -> None:
    assert report_on(text, loader).startswith("case.yaml")


def test_no_text_makes_it_raise_anything_but_faults() -> None:
    source = randomness(7)
    pieces = [
        *"\t \n-:{}[],\"'&*!|>#%@`?~\\é😀\r",
        "- ",
        ": ",
        "&a ",
        "*a",
        "<<: ",
        "---\n",
        "...\n",
        "a: b\n",
        "\u2028",
    ]
    outcomes = {"read": 0, "refused": 0}
    for _ in range(1500):
        text = MARKED if source.random() < 0.5 else ""
        for _ in range(source.randrange(1, 12)):
            at = source.randrange(len(text) + 1)
            text = text[:at] + source.choice(pieces) + text[at:]
        try:
            parse_yaml(text, "case.yaml")
            outcomes["read"] += 1
        except InputError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 100


# --- bounds ------------------------------------------------------------------------------------------------------


def bomb(levels: int) -> str:
    """Each level repeats the one before ten times."""
    names = "abcdefghi"[:levels]
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]" for before, name in pairwise(names)]
    return "\n".join(lines)


def merge_bomb(levels: int) -> str:
    names = "abcdefghi"[:levels]
    lines = ["a: &a {x: [1, 2, 3, 4, 5, 6, 7, 8, 9]}"]
    for before, name in pairwise(names):
        lines.append(f"{name}: &{name} {{<<: *{before}, {', '.join(f'{name}{i}: *{before}' for i in range(9))}}}")
    return "\n".join(lines)


DEEP = "nested more than 64 levels deep"
MANY = "more than 100,000 keys and values in one file (split the file)"
ALIASES = "aliases repeat more than 20,000 values (write out what differs)"

HOSTILE: dict[str, tuple[str, str]] = {
    "100,000 lists in each other": ("[" * 100_000, f":1:65: {DEEP}"),
    "100,000 block lists in each other": ("- " * 100_000, f":1:129: {DEEP}"),
    "100,000 mappings in each other": ("[{a: " * 50_000, f"{DEEP}"),
    "100,000 keys in each other": ("? " * 100_000, "a key must be text"),
    "deep by indentation": ("".join(" " * i + "a:\n" for i in range(1000)), f":65:65: {DEEP}"),
    "deep by aliases": (
        "".join(f"- &a{i} {'[' * 40}*a{i - 1}{']' * 40}\n" for i in range(1, 30)).replace("*a0", "x"),
        "with its aliases nested more than 64 levels deep",
    ),
    "alias bomb": (bomb(9), ALIASES),
    "merge bomb": (merge_bomb(9), ALIASES),
    "many aliases of a large value": ("- &a [" + "1," * 19_000 + "]\n" + "- *a\n" * 50, ALIASES),
    "too many items": ("[" + "1," * 1_900_000 + "]", MANY),
    "too many keys": ("".join(f"k{i}: 1\n" for i in range(200_000)), MANY),
    "a duplicate on every line": ("a: 1\n" * 400_000, "... and 50 more"),
    "4 MB of digits": ("1" * MAX_BYTES, "is too large"),
    "4 MB of open quotes": ('"' + "x" * (MAX_BYTES - 1), "never closed"),
    "4 MB of tabs": ("\t" * MAX_BYTES, TAB),
    "4 MB of a tag": ("!" * MAX_BYTES, "is not supported"),
}


@pytest.mark.skipif(not LIBYAML, reason="the pure Python parser is within the bounds too, but ten times slower")
@pytest.mark.parametrize(("text", "report"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_refused_soon(text: str, report: str) -> None:
    started = time.process_time()
    assert report in report_on(text)
    assert time.process_time() - started < 5  # a runaway takes minutes, a busy machine thrice what it took


@both_parsers
@pytest.mark.parametrize("text", [bomb(9), merge_bomb(9)], ids=["aliases", "merges"])
def test_a_bomb_costs_neither_time_nor_memory(text: str, loader: type[Any]) -> None:
    started = time.process_time()
    assert ALIASES in report_on(text, loader)
    assert time.process_time() - started < 5
    tracemalloc.start()
    try:
        assert ALIASES in report_on(text, loader)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_64_levels_are_read() -> None:
    value = value_of("[" * 64 + "]" * 64)
    for _ in range(63):
        (value,) = value
    assert value == []


def test_a_suite_of_a_thousand_cases_fits_into_one_file() -> None:
    case = "- {id: c, input: {turns: [" + "{role: user, content: x, timeout_seconds: 5}, " * 5 + "]}}\n"
    assert len(value_of(case * 1000)) == 1000


@pytest.mark.skipif(not LIBYAML, reason="the bound holds with libyaml")
def test_a_thousand_case_files_are_read_in_seconds(tmp_path: Path) -> None:
    turn = "    - role: user\n      content: What did I tell you? Answer with the word alone.\n"
    gate = "      post_condition:\n        must_contain_any: [word, Word]\n        on_fail: skip_remaining\n"
    judge = "judge:\n  type: rule_based\n  success:\n    - output_contains: {all: [word]}\n"
    text = f"id: x\ntitle: one of many\ntags: [a, b]\ninput:\n  turns:\n{(turn + gate) * 4}{judge}"
    path = tmp_path / "case.yaml"
    path.write_text(text)
    assert 750 < len(text) < 900

    def seconds() -> float:
        started = time.process_time()
        for _ in range(1000):
            read_yaml(path, "case.yaml")
        return time.process_time() - started

    assert min(seconds() for _ in range(3)) < 3


# --- bad files ---------------------------------------------------------------------------------------------------

BAD_BYTES: dict[str, tuple[bytes, str]] = {
    "NUL": (b"a: 1\nb: \x00\n", "case.yaml:2:4: a binary file: byte 9 is NUL (a YAML file holds text)"),
    "PNG": (b"\x89PNG\r\n\x1a\n\x00\x00", "case.yaml:3:1: a binary file: byte 9 is NUL (a YAML file holds text)"),
    "Latin-1": ("a: é\nb: ü\n".encode("latin-1"), "case.yaml:1:4: byte 4 (0xe9) is not UTF-8 (save the file as UTF-8)"),
    "cut in a character": (
        "a: 1\nb: é".encode()[:-1],
        "case.yaml:2:4: byte 9 (0xc3) is not UTF-8 (save the file as UTF-8)",
    ),
    "encoded surrogate": (b"a: \xed\xa0\x80", "case.yaml:1:4: byte 4 (0xed) is not UTF-8 (save the file as UTF-8)"),
    "UTF-16": ("a: 1\n".encode("utf-16"), "case.yaml:1:1: the file is UTF-16 (save it as UTF-8)"),
    "too large": (b"#" * (MAX_BYTES + 1), "case.yaml: larger than 4 MB (move large texts into files of their own)"),
    "empty": (b"", "case.yaml:1:1: the file is empty"),
    "only a byte order mark": (b"\xef\xbb\xbf", "case.yaml:1:1: the file is empty"),
}


@pytest.mark.parametrize(("content", "report"), BAD_BYTES.values(), ids=BAD_BYTES)
def test_bytes_that_are_no_text_are_reported(content: bytes, report: str, tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_bytes(content)
    assert report_on_file(path) == report


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_bytes(b"\xef\xbb\xbfid: x\n")
    document = read_yaml(path, "case.yaml")
    assert document.data == {"id": "x"}
    assert document.marks[("id",)] == Mark(Position(1, 5), Position(1, 1))


def test_a_file_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_bytes(b"a: 1\n#" + b"x" * (MAX_BYTES - 6))
    assert read_yaml(path, "case.yaml").data == {"a": 1}


def test_paths_that_are_no_files_are_reported(tmp_path: Path) -> None:
    loop, pipe = tmp_path / "loop", tmp_path / "pipe"
    loop.symlink_to(loop)
    os.mkfifo(pipe)
    reports = {
        tmp_path / "none.yaml": "case.yaml: there is no such file",
        tmp_path: "case.yaml: a folder, where a YAML file is expected",
        loop: "case.yaml: cannot be read: Too many levels of symbolic links",
        pipe: "case.yaml: not a regular file",
        Path("/dev/null"): "case.yaml: not a regular file",
        tmp_path / ("x" * 300): "case.yaml: cannot be read: File name too long",
        tmp_path / "a\0b": "case.yaml: cannot be read: embedded null byte",
        tmp_path / "none.yaml" / "x": "case.yaml: there is no such file",
    }
    assert {path: report_on_file(path) for path in reports} == reports


NOBODY = 65534


def test_a_file_without_permission_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_text("a: 1\n")
    path.chmod(0)
    before = os.geteuid()
    try:
        if before == 0:
            os.seteuid(NOBODY)  # root may read everything
        assert report_on_file(path) == "case.yaml: cannot be read: Permission denied"
    finally:
        os.seteuid(before)

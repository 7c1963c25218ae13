"""JSON with the place of every value: what it reads, and where it says that a file is none."""

from __future__ import annotations

import json

import pytest

from skillup.errors import InputError
from skillup.loading.jsonfile import parse_json

SAMPLE = {
    "text": 'quotes " and \\ and / and \u00e9 and \U0001f600 and {{braces}}',
    "numbers": [0, -1, 12.5, 1e3, -0.0, 123456789012345678901234567890],
    "words": [True, False, None],
    "empty": [{}, [], ""],
    "k" * 2000: {"a": {"b": [[1]]}},
}


@pytest.mark.parametrize("indent", [None, 2, "\t"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_it_reads_what_json_writes(indent: int | str | None, ascii_only: bool) -> None:  # noqa: FBT001
    text = json.dumps(SAMPLE, indent=indent, ensure_ascii=ascii_only)
    assert parse_json(f"\n {text}\r\n", "a.json").data == SAMPLE


def test_every_value_and_key_has_its_place() -> None:
    document = parse_json('[\n  {"a": [1,\n   {"b": "x"}]}\n]', "a.json")
    fault = document.fault((0, "a", 1, "b"), "wrong")
    assert (fault.line, fault.column, fault.key) == (3, 10, "[0].a[1].b")
    key = document.fault((0, "a"), "wrong", on_key=True)
    assert (key.line, key.column) == (2, 4)
    assert document.fault((0, "a", 0), "x").column == 10
    assert document.fault((0, "nowhere"), "x").line == 2


FAULTS = {
    "": (1, 1, "the file is empty"),
    '{"a": 1,}': (1, 9, "a comma before the `}`"),
    "[1,\n2,\n]": (3, 1, "a comma before the `]`"),
    '["a" "b"]': (1, 6, "a `,` or `]` is missing in the list from line 1"),
    '{"a" 1}': (1, 6, 'a `:` is missing after the key "a"'),
    "{a: 1}": (1, 2, "a key is expected here"),
    "['a']": (1, 2, "a value is expected here"),
    '["a\nb"]': (1, 2, "the text that begins here does not end on its line"),
    r'["\x"]': (1, 2, "an escape in this text stands for no character"),
    r'["\ud83d"]': (1, 2, "an escape in this text stands for no character"),
    "[1] // done": (1, 5, "this follows the end of the document"),
    "[// first\n1]": (1, 2, "JSON has no comments"),
    "[NaN]": (1, 2, "a value is expected here"),
    "[1e999]": (1, 2, "the number is too large"),
    "[" + "9" * 5000 + "]": (1, 2, "the number is too large"),
    "[1, 2": (1, 5, "a `,` or `]` is missing in the list from line 1"),
    '{"a": ': (1, 6, "the file ends inside a list or an object"),
    "[" * 200: (1, 65, "nested more than 64 levels deep"),
    '{"a": 1, "b": 2, "a": 3}': (1, 18, '"a" is given twice, first in line 1'),
    "[" + "1," * 200_000 + "1]": (1, 200_000, "more than 100,000 keys and values"),
}


@pytest.mark.parametrize(("text", "wanted"), FAULTS.items(), ids=[said for *_, said in FAULTS.values()])
def test_what_is_no_json_is_told_at_its_place(text: str, wanted: tuple[int, int, str]) -> None:
    with pytest.raises(InputError) as caught:
        parse_json(text, "a.json")
    (fault,) = caught.value.faults
    assert (fault.path, fault.line, fault.column) == ("a.json", *wanted[:2]), fault
    assert fault.message.startswith(wanted[2])

"""One error of pydantic, located in the data of a document, and its words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import ErrorDetails

from skillup.loading.document import Document, KeyPath
from skillup.loading.spelling import closest
from skillup.spec.problems import quoted


@dataclass(frozen=True)
class Problem:
    """One error of pydantic, located in the data."""

    kind: str
    path: KeyPath
    context: Mapping[str, Any]
    value: Any
    text: str
    """pydantic's own words, for the kinds that we have none for."""
    expected: str = ""
    """For errors of type: what the value should be."""
    name: str = ""
    """The key that is unknown, or that is required below `path`."""
    on_key: bool = False
    branches: tuple[tuple[KeyPath, str], ...] = ()
    """Labels that pydantic put between the keys, with their place: the members of unions that it tried."""

    @property
    def depth(self) -> int:
        """How far into the data the validation came."""
        return len(self.path) + (self.kind == "missing")

    @property
    def is_echo(self) -> bool:
        """Whether pydantic finds a list too short only because it left out the items that have faults."""
        return self.kind == "too_short" and len(self.value) >= self.context["min_length"]


def located_problem(details: ErrorDetails, document: Document, at: KeyPath) -> Problem:
    """An error of pydantic with its place in the data; `at` is the part of the document that was validated."""
    kind, location, context = details["type"], details["loc"], details.get("ctx") or {}
    on_key = location[-1:] == ("[key]",)
    name = str(location[-1]) if kind in ("missing", "extra_forbidden") else ""
    path, branches = _walk(document, at, location[:-1] if name or on_key else location)
    if kind == "extra_forbidden":
        path, _ = _walk(document, path, (name,))
    if kind.startswith("union_tag_"):
        path, _ = _walk(document, path, (str(context.get("discriminator", "")).strip("'"),))
    path, _ = _walk(document, path, context.get("at", ()))
    return Problem(
        kind,
        path,
        context,
        details["input"],
        details["msg"],
        _EXPECTED.get(kind, ""),
        name,
        on_key,
        branches,
    )


def _walk(
    document: Document, start: KeyPath, labels: Iterable[str | int]
) -> tuple[KeyPath, tuple[tuple[KeyPath, str], ...]]:
    """Follow the labels that are in the data. Gives the path, and the other labels with their place."""
    path, branches = start, []
    for label in labels:
        if (*path, label) in document.marks:
            path = (*path, label)
        elif isinstance(label, str):
            branches.append((path, label))
    return path, tuple(branches)


_EXPECTED: Mapping[str, str] = {
    **dict.fromkeys(("string_type", "string_sub_type"), "text"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type", "iterable_type"), "a list"),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "model_attributes_type"), "a mapping"),
    "none_required": "nothing",
}
"""What pydantic's errors of type wanted."""

_LIMITS: Mapping[str, tuple[str, str]] = {
    "greater_than": ("gt", "must be greater than {}"),
    "greater_than_equal": ("ge", "must be at least {}"),
    "less_than": ("lt", "must be less than {}"),
    "less_than_equal": ("le", "must be at most {}"),
    "multiple_of": ("multiple_of", "must be a multiple of {}"),
    "too_short": ("min_length", "must have at least {} items"),
    "too_long": ("max_length", "must have at most {} items"),
    "string_too_short": ("min_length", "must have at least {} characters"),
    "string_too_long": ("max_length", "must have at most {} characters"),
    "string_pattern_mismatch": ("pattern", "must match the pattern {}"),
}
"""Where the context of these errors holds the limit, and our words."""


def words(problem: Problem) -> tuple[str, str]:
    """Message and hint for everything but unknown and missing keys."""
    kind, context = problem.kind, problem.context
    if problem.expected:
        return f"expected {problem.expected}, got {_described(problem)}", _type_hint(problem)
    if kind in ("literal_error", "enum", "union_tag_invalid"):
        return _choice(context.get("expected") or context["expected_tags"], context.get("tag", problem.value))
    if kind in ("value_error", "assertion_error"):
        text = str(context["error"])
    elif kind == "union_tag_not_found":
        text = f"the key {context['discriminator']} is required, since it says which form this is"
    elif kind in _LIMITS:
        name, words = _LIMITS[kind]
        limit = context[name]
        is_empty = name == "min_length" and limit == 1
        text = "must not be empty" if is_empty else words.format(f"{limit:g}" if isinstance(limit, float) else limit)
    else:
        text = str(context.get("problem", problem.text.replace("Input should be", "must be")))
    return text, str(context.get("hint", ""))


def listed(expected: str) -> list[str]:
    """The values that an error of pydantic lists in its form `'a', 'b' or 3`."""
    return [text or other for text, other in re.findall(r"'([^']*)'|([^\s,']+)", expected) if other != "or"]


def _choice(expected: str, value: Any) -> tuple[str, str]:
    """Words for a value that is none of those listed."""
    options = listed(expected)
    meant = closest(value, options) if isinstance(value, str) else ""
    if len(options) == 1:
        return f"must be {options[0]}", ""
    return f"must be one of {', '.join(options)}", f"did you mean {quoted(meant)}?" if meant else ""


_KINDS: Mapping[type, str] = {
    type(None): "nothing",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a mapping",
}


def _described(problem: Problem) -> str:
    """The value that is there; in full where its kind alone would not explain the fault."""
    value, expected = problem.value, problem.expected
    if isinstance(value, bool):
        return str(value).lower()
    kind = _KINDS.get(type(value), f"a {type(value).__name__}")
    if "number" in expected or "true" in expected:
        kind = {"text": f"the text {quoted(str(value))}", "a number": f"the number {value}"}.get(kind, kind)
    return kind


def _type_hint(problem: Problem) -> str:
    value, expected = problem.value, problem.expected
    if expected == "text" and isinstance(value, (bool, int, float)):
        return "put it in quotes"
    if expected == "true or false" and isinstance(value, str) and value.lower() in ("yes", "no", "on", "off"):
        return "write true or false"
    if "number" in expected and isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value):
        return "remove the quotes"
    if expected == "a mapping" and not isinstance(value, dict):
        return "write lines of the form `key: value`"
    if expected == "a list" and isinstance(value, dict):
        return "begin each item with `- `"
    if expected == "a list" and isinstance(value, (str, int, float)):
        return "write [a, b], or each item on a line of its own after `- `"
    return ""

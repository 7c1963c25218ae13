"""JSONPaths of captures and rules, checked when a file is read: their syntax, and what they can find at all."""

from __future__ import annotations

import re

from jsonpath_ng.exceptions import JSONPathError
from jsonpath_ng.ext.parser import parse

from skillup.spec.problems import fault_at
from skillup.transcript import Usage

RECORD_PARTS = {
    "transcript": frozenset({"tool_calls", "tool_results"}),
    "usage": frozenset(Usage.model_fields),
    "workspace": frozenset({"created", "changed", "deleted"}),
}
"""What lies below each part of a turn's record; below `response`, which is a text, lies nothing."""

_BELOW_RESPONSE = re.compile(r"\$\.response\s*[.\[]")
_RECORD = re.compile(r"\$\.(transcript|usage|workspace)\.([A-Za-z_][A-Za-z0-9_]*)")
_REGULAR_EXPRESSION = re.compile(r"=~|`\s*(?:sub|split)\s*\(")

_PLAIN = re.compile(r"\$(?:\.(?!where|parent)[A-Za-z_][A-Za-z0-9_]*|\[[0-9]{1,9}\]|\['[^'\\]*'\])+")
"""The format's own subset, without the words that the parser reserves: valid without asking it, since it is built anew
for every path and takes half a millisecond."""

_MAX_CHARACTERS = 1_000
"""Longer paths are no paths, and each bracket costs a level of recursion in every step that reads them."""


def checked_path(path: str) -> str:
    """The path of a capture itself.

    Raises:
        PydanticCustomError: it is no JSONPath, or one that can never find anything.
    """
    checked_syntax(path)
    check_record(path)
    return path


def checked_syntax(path: str) -> str:
    """The path itself.

    Raises:
        PydanticCustomError: it is no JSONPath.
    """
    if not path.strip():
        raise fault_at("an empty path finds nothing", hint="write one such as $.id")
    if len(path) > _MAX_CHARACTERS:
        raise fault_at(f"the path is longer than {_MAX_CHARACTERS} characters")
    if _REGULAR_EXPRESSION.search(path):
        raise fault_at("a regular expression inside a JSONPath could hang the run", hint="use `pattern`")
    if not _PLAIN.fullmatch(path):
        _parse(path)
    return path


def check_record(path: str, *at: str) -> None:
    """Makes sure that a path which reads the record of a turn can find something there.

    Raises:
        PydanticCustomError: it never can; the fault is at the place `at`.
    """
    if _BELOW_RESPONSE.match(path):
        raise fault_at(
            "`$.response` is the reply as a text, and nothing lies below it",
            *at,
            hint="a path such as $.id reads the reply as JSON; its own key of this name is $['response']",
        )
    if (record := _RECORD.match(path)) and record[2] not in RECORD_PARTS[record[1]]:
        raise fault_at(
            f"`$.{record[1]}` of a turn's record has no `{record[2]}`",
            *at,
            hint=f"it has {', '.join(sorted(RECORD_PARTS[record[1]]))}",
        )


def _parse(path: str) -> None:
    try:
        parse(path)
    except (JSONPathError, ValueError, TypeError, RecursionError) as error:
        raise fault_at(f"not a valid JSONPath: {error}", hint="write one such as $.items[0].id") from None

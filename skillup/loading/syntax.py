"""The parser's own errors in our words, at the place that must be changed."""

from __future__ import annotations

import yaml

from skillup.errors import Fault

BAD_CHARACTER = ("an escape that stands for no character", "write the character itself")
_INDENT = "check the indentation, and quote texts that hold quotes or begin with one of [ ] {{ }} , & * ! | > % @ `"

# What libyaml and the pure Python parser say, each by a part of its words; then ours.
_SYNTAX: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("mapping values are not",),
        'a second ": " in one value',
        "quote a text that holds a colon and a blank",
    ),
    (
        ("expected ':'",),
        "a key without a colon",
        "write `key: value`, or indent the line as part of a longer text",
    ),
    (("escape code",), *BAD_CHARACTER),
    (
        ("unknown escape", "hexdecimal", "hexadecimal"),
        "a backslash escape that YAML does not know",
        "in double quotes write two backslashes, or use single quotes",
    ),
    (("unexpected end of stream",), "the quotes that open here are never closed", ""),
    (("sequence entries are not",), "a list cannot begin here", "begin it on a line of its own"),
    (
        ("expected ',' or ']'",),
        "a `,` or `]` is missing in the list from line {line}",
        "quote texts that hold them",
    ),
    (
        ("expected ',' or '}'",),
        "a `,` or `}}` is missing in the mapping from line {line}",
        "quote texts that hold them",
    ),
    (
        ("expected key", "expected '-'", "<block end>"),
        "this does not continue what began in line {line}",
        _INDENT,
    ),
    (
        ("start any token", "node content", "alphabetic or numeric"),
        "the character {found} cannot stand here",
        "quote the text",
    ),
    (
        ("comment or line break", "chomping", "comment or a line break"),
        "after {found} a longer text begins on the next line",
        "quote the text when {found} is its beginning",
    ),
    (("undefined tag handle",), "tags (`!`) are not supported", "quote what is text"),
    (("document start>",), "this follows the end of the document", "one file holds one mapping or list"),
)

_NOTICED_LATE = ("end of stream", "expected ':'", "alphabetic or numeric", "line break", "chomping")
"""Problems whose cause is where the parser's context begins."""


def syntax_fault(error: yaml.MarkedYAMLError, text: str, display: str) -> Fault:
    """The parser's own error, in our words where we know it, at the place that must be changed."""
    problem = error.problem or "unknown problem"
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return Fault(display, 0, 0, "", f"not valid YAML: {problem}")
    if error.context_mark and any(part in problem for part in _NOTICED_LATE):
        mark = error.context_mark
    position = mark.line + 1, mark.column + 1
    found, before = text[mark.index : mark.index + 1], text[mark.index - mark.column : mark.index]
    if found == "\t":
        message = "a tab stands where a blank is needed" if before.strip() else "a tab is used for indentation"
        return Fault(display, *position, "", message, "use spaces")
    if not found and "node content" in problem:
        return Fault(display, *position, "", "the file ends inside a list or mapping", "close every bracket")
    for parts, message, hint in _SYNTAX:
        if any(part in problem for part in parts):
            words = {
                "line": error.context_mark.line + 1 if error.context_mark else mark.line + 1,
                "found": found,
            }
            return Fault(display, *position, "", message.format(**words), hint.format(**words))
    return Fault(display, *position, "", f"not valid YAML: {problem}")

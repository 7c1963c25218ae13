"""Validation errors of pydantic turned into faults: a place in the file, plain words, what to do next.

pydantic says where in terms of its own schema, names of union members included; the file knows only keys and
indexes. So each error is first located in the data, then put into words with what the models know there.

Conventions that models may use: `later`, a frozenset of keys of the format that are recognised and not yet
supported, and `skillup.spec.problems.fault_at` for errors about a place below the validated value.

Longer than most modules: locating, unions, known keys and words all serve the one function at the top.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from skillup.errors import Fault
from skillup.loading.yamlfile import Document, KeyPath
from skillup.spec.problems import quoted

_SHOWN_FAULTS = 50
"""What a person reads in one go; the rest is counted."""

_MAX_ERRORS = 200
"""Of one file: a hostile one can hold a misspelt key in every line, and each takes a search."""

_MAX_MISSPELT_CHARACTERS = 100
"""A longer key or value is no misspelling of ours."""

_SHOWN_CHARACTERS = 200
"""Of a key, a message or a hint: two lines of a terminal."""


def faults_from_validation(
    error: ValidationError, document: Document, model: type[BaseModel], *, at: KeyPath = ()
) -> tuple[Fault, ...]:
    """The faults behind `error`, sorted by place and without duplicates.

    `model` is what the part `at` of the document (default: all of it) was validated as.
    """
    known = _KnownKeys(model, document, at)
    errors = error.errors(include_url=False)[:_MAX_ERRORS]
    located = [known.only_branches(_located(details, document, at)) for details in errors]
    problems = [problem for problem in _without_other_branches(located) if not problem.is_echo]
    missing = {(problem.path, problem.name) for problem in problems if problem.kind == "missing"}
    faults = []
    for problem in problems:
        if problem.kind == "extra_forbidden":
            parent = problem.path[:-1] if problem.path[-1:] == (problem.name,) else problem.path
            # A required key that is written with a mistake is one fault, not an unknown and a missing key.
            if meant := _closest(problem.name, [name for place, name in missing if place == parent]):
                missing.discard((parent, meant))
            message, hint = known.about(parent, problem.name, meant)
            faults.append(document.fault(problem.path, message, hint=hint, on_key=True))
        elif problem.kind != "missing":
            message, hint = _words(problem)
            faults.append(document.fault(problem.path, message, hint=hint, on_key=problem.on_key))
    faults += [document.fault(path, f"{quoted(name)} is required", on_key=True) for path, name in missing]
    return tuple(sorted(set(faults)))


def render_faults(faults: Iterable[Fault]) -> str:
    """One line a fault, `path:line:column: key: message (hint)`, safe to print: no control characters."""
    lines = []
    for fault in faults:
        place = f"{fault.path}:{fault.line}:{fault.column}" if fault.line else fault.path
        parts = (_printable(place), _shown(fault.key), _shown(fault.message))
        lines.append(": ".join(part for part in parts if part) + (f" ({_shown(fault.hint)})" if fault.hint else ""))
    if len(lines) > _SHOWN_FAULTS:
        lines[_SHOWN_FAULTS:] = [f"... and {len(lines) - _SHOWN_FAULTS} more"]
    return "\n".join(lines)


def _shown(text: str) -> str:
    return _printable(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…")


def _printable(text: str) -> str:
    """Without what moves a cursor, reorders a line or cannot be encoded: control, format, lone surrogates."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@dataclass(frozen=True)
class _Problem:
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


def _located(details: ErrorDetails, document: Document, at: KeyPath) -> _Problem:
    kind, location, context = details["type"], details["loc"], details.get("ctx") or {}
    on_key = location[-1:] == ("[key]",)
    name = str(location[-1]) if kind in ("missing", "extra_forbidden") else ""
    path, branches = _walk(document, at, location[:-1] if name or on_key else location)
    if kind == "extra_forbidden":
        path, _ = _walk(document, path, (name,))
    if kind.startswith("union_tag_"):
        path, _ = _walk(document, path, (str(context.get("discriminator", "")).strip("'"),))
    path, _ = _walk(document, path, context.get("at", ()))
    return _Problem(
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


def _without_other_branches(problems: list[_Problem], level: int = 0) -> list[_Problem]:
    """For each union keep the errors of the member that fits best: those of the others are noise."""
    kept = [problem for problem in problems if len(problem.branches) <= level]
    unions: dict[Any, dict[str, list[_Problem]]] = {}
    for problem in problems:
        if len(problem.branches) > level:
            place, label = problem.branches[level]
            unions.setdefault((problem.branches[:level], place), {}).setdefault(label, []).append(problem)
    for (_, place), members in unions.items():
        kept += _without_other_branches(_best_member(place, list(members.values())), level + 1)
    return kept


def _best_member(place: KeyPath, members: list[list[_Problem]]) -> list[_Problem]:
    """The member that came deepest with the fewest errors; if none fits at all, one error for all types."""
    best = max(
        members,
        key=lambda problems: (max(p.depth for p in problems), not problems[0].expected, -len(problems)),
    )
    if len(members) == 1 or not best[0].expected or best[0].depth > len(place):
        return best
    expected = dict.fromkeys(problem.expected for problems in members for problem in problems if problem.expected)
    return [replace(best[0], expected=" or ".join(expected))]


class _KnownKeys:
    """What the models say about the keys at each place of a document."""

    def __init__(self, model: type[BaseModel], document: Document, at: KeyPath) -> None:
        self._model = model
        self._document = document
        self._at = at

    def only_branches(self, problem: _Problem) -> _Problem:
        """The problem without labels that are keys: a validator may have moved a value below another key."""
        branches = tuple(
            (place, label)
            for place, label in problem.branches
            if not any(label in _keys(model) for model in self._models(place))
        )
        return replace(problem, branches=branches)

    def about(self, parent: KeyPath, key: str, meant: str) -> tuple[str, str]:
        """Message and hint for a key that no model at `parent` has; `meant` is a missing one like it."""
        models = self._models(parent)
        if any(key in getattr(model, "later", ()) for model in models):
            return f"{quoted(key)} is part of the format but not supported yet", "remove it"
        written = self._value(parent)
        names = dict.fromkeys(name for model in models for name in _keys(model))
        known = [name for name in names if not isinstance(written, dict) or name not in written]
        meant = meant or _closest(key, known)
        hint = f"did you mean {quoted(meant)}?" if meant else f"known keys: {', '.join(known)}" if known else ""
        return f"unknown key {quoted(key)}", hint

    def _value(self, path: KeyPath) -> Any:
        value = self._document.data
        for part in path:
            value = value[part]
        return value

    def _models(self, path: KeyPath) -> list[type[BaseModel]]:
        """The models that may describe the mapping at `path`."""
        hints: list[Any] = list(_members(self._model))
        for end in range(len(self._at), len(path)):
            likely = _likely(hints, self._value(path[:end]))
            hints = [member for hint in likely for inner in _below(hint, path[end]) for member in _members(inner)]
        return [hint for hint in _likely(hints, self._value(path)) if _is_model(hint)]


def _is_model(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, BaseModel)


def _members(hint: Any) -> Iterator[Any]:
    """The alternatives of a type hint, without the wrappers around them."""
    origin = get_origin(hint)
    if origin is Annotated:
        yield from _members(get_args(hint)[0])
    elif origin in (Union, UnionType):
        for member in get_args(hint):
            yield from _members(member)
    elif hasattr(hint, "__value__"):  # a type alias
        yield from _members(hint.__value__)
    elif _is_model(hint) and "root" in hint.model_fields:
        yield from _members(hint.model_fields["root"].annotation)
    else:
        yield hint


def _below(hint: Any, part: str | int) -> Iterable[Any]:
    """The type hints of what stands under a key or an index."""
    if _is_model(hint):
        return [field.annotation for name, field in hint.model_fields.items() if part in _names(name, field)]
    arguments = get_args(hint)
    if isinstance(part, str):
        return arguments[1:2]
    return arguments[part : part + 1] if get_origin(hint) is tuple and Ellipsis not in arguments else arguments[:1]


def _likely(hints: list[Any], value: Any) -> list[Any]:
    """Of several models, those that know the most keys of the mapping and contradict no constant in it."""
    if not isinstance(value, dict) or len(hints) < 2:
        return hints

    def fit(hint: Any) -> int:
        if not _is_model(hint):
            return -2
        fields = {key: field for name, field in hint.model_fields.items() for key in _names(name, field)}
        for key in fields.keys() & value.keys():
            annotation = fields[key].annotation
            if get_origin(annotation) is Literal and value[key] not in get_args(annotation):
                return -1
        return len(fields.keys() & value.keys())

    best = max(map(fit, hints))
    return [hint for hint in hints if fit(hint) == best]


def _names(name: str, field: FieldInfo) -> list[str]:
    """The keys under which a field may be written."""
    alias = field.validation_alias
    if isinstance(alias, AliasChoices):
        return [choice for choice in alias.choices if isinstance(choice, str)]
    return [alias] if isinstance(alias, str) else [name]


def _keys(model: type[BaseModel]) -> list[str]:
    return [key for name, field in model.model_fields.items() for key in _names(name, field)]


def _closest(key: str, known: Iterable[str]) -> str:
    """The known key that `key` is a misspelling of, or nothing."""
    if len(key) > _MAX_MISSPELT_CHARACTERS:
        return ""
    plain = {name.lower().replace("-", "_"): name for name in known}
    matches = get_close_matches(key.lower().replace("-", "_"), plain, n=1)
    return plain[matches[0]] if matches else ""


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


def _words(problem: _Problem) -> tuple[str, str]:
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


def _choice(listed: str, value: Any) -> tuple[str, str]:
    """Words for a value that is none of those listed, in pydantic's form `'a', 'b' or 3`."""
    options = [text or other for text, other in re.findall(r"'([^']*)'|([^\s,']+)", listed) if other != "or"]
    meant = _closest(value, options) if isinstance(value, str) else ""
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


def _described(problem: _Problem) -> str:
    """The value that is there; in full where its kind alone would not explain the fault."""
    value, expected = problem.value, problem.expected
    if isinstance(value, bool):
        return str(value).lower()
    kind = _KINDS.get(type(value), f"a {type(value).__name__}")
    if "number" in expected or "true" in expected:
        kind = {"text": f"the text {quoted(str(value))}", "a number": f"the number {value}"}.get(kind, kind)
    return kind


def _type_hint(problem: _Problem) -> str:
    value, expected = problem.value, problem.expected
    if expected == "text" and isinstance(value, (bool, int, float)):
        return "put it in quotes"
    if expected == "true or false" and isinstance(value, str) and value.lower() in ("yes", "no", "on", "off"):
        return "write true or false"
    if "number" in expected and isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value):
        return "remove the quotes"
    if expected == "a list" and isinstance(value, (str, int, float)):
        return "write [a, b], or each item on a line of its own after `- `"
    return ""

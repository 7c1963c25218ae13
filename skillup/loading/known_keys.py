"""What the models say about the keys at each place of a document: known, misspelt, or not supported yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo

from skillup.loading.document import Document, KeyPath
from skillup.loading.problem import Problem
from skillup.loading.spelling import closest
from skillup.spec.problems import quoted


class KnownKeys:
    """What the models say about the keys at each place of a document."""

    def __init__(self, model: type[BaseModel], document: Document, at: KeyPath) -> None:
        self._model = model
        self._document = document
        self._at = at

    def only_branches(self, problem: Problem) -> Problem:
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
        if self.is_later_key(parent, key):
            return f"{quoted(key)} is part of the format but not supported yet", "remove it for now"
        written = self._value(parent)
        names = dict.fromkeys(name for model in models for name in _keys(model))
        known = [name for name in names if not isinstance(written, dict) or name not in written]
        meant = meant or closest(key, known)
        hint = f"did you mean {quoted(meant)}?" if meant else f"known keys: {', '.join(known)}" if known else ""
        return f"unknown key {quoted(key)}", hint

    def is_later_key(self, parent: KeyPath, key: str) -> bool:
        """Whether a key is one of the format's that we do not support yet."""
        return any(key in getattr(model, "later", ()) for model in self._models(parent))

    def is_later_value(self, problem: Problem) -> bool:
        """Whether a value that is refused is one of the format's that we do not support yet."""
        if problem.kind != "literal_error":
            return False
        end = max((at for at, part in enumerate(problem.path) if isinstance(part, str)), default=0)
        parent, key = problem.path[:end], problem.path[end] if problem.path else ""
        values = [getattr(model, "later_values", {}).get(key, ()) for model in self._models(parent)]
        return isinstance(problem.value, str) and any(problem.value in later for later in values)

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

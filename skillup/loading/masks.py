"""Texts of checks that are masked where they are judged: every secret reads `[masked]` there, so any other matches.

Gates are asked while the conversation goes on, on the answer itself, and may hold whatever they like.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from skillup.errors import Fault
from skillup.loading.checks import placed_rules
from skillup.loading.document import Document, KeyPath
from skillup.masking import Masker
from skillup.spec.case import Case
from skillup.spec.command_rule import CommandHolds
from skillup.spec.rules import Rule

_MESSAGE = "this looks like a key, and is masked in what is judged: any other one would match, too"
_HINT = "write [masked], which stands for every secret, or use a text that does not look like a key"


def mask_faults(case: Case, document: Document) -> Iterator[Fault]:
    """Faults for expectations of a case that hold what looks like a key."""
    return _faults(_expected(case), document)


def judge_mask_faults(case: Case, document: Document) -> Iterator[Fault]:
    """The same for the rules of its judges; `document` is the file that holds them."""
    return _faults(_judged(case), document)


def masked_checks(case: Case, masker: Masker) -> tuple[KeyPath, ...]:
    """Where checks of a case hold what this masker masks."""
    return _masked((*_expected(case), *_judged(case)), masker)


def _faults(texts: Iterable[tuple[KeyPath, str]], document: Document) -> Iterator[Fault]:
    return (document.fault(place, _MESSAGE, hint=_HINT) for place in _masked(texts, Masker()))


def _masked(texts: Iterable[tuple[KeyPath, str]], masker: Masker) -> tuple[KeyPath, ...]:
    found = (place for place, text in texts if masker.text(text) != text)
    return tuple(dict.fromkeys(tuple(masker.value(place)) for place in found))  # a key of a mapping may be one, too


def _expected(case: Case) -> Iterator[tuple[KeyPath, str]]:
    """The texts of expectations, each with its place in the file of the case."""
    for key, rule in case.expect.rules():
        place = ("expect", key.partition("[")[0])
        yield from ((place, text) for _, text in _texts((), _data(rule)))


def _judged(case: Case) -> Iterator[tuple[KeyPath, str]]:
    for place, rule in placed_rules(case):
        yield from _texts(place, _data(rule))


def _data(rule: Rule) -> dict[str, Any]:
    """A rule as plain data, without the command that it runs: that is compared with nothing."""
    return rule.model_dump(by_alias=True, exclude={"run"} if isinstance(rule, CommandHolds) else None)


def _texts(at: KeyPath, value: Any) -> Iterator[tuple[KeyPath, str]]:
    """Every text in plain data, keys included, with its place."""
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield (*at, key), str(key)
            yield from _texts((*at, key), inner)
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from _texts((*at, index), inner)

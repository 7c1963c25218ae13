"""AgentV's files as documents: what contradicts itself in them, and where their faults stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from skillup.errors import Fault
from skillup.loading.document import Document, KeyPath

_OF_CONVERSATIONS = ("aggregation", "on_turn_failure", "window_size")
"""Keys of a test that say something only with `mode: conversation`."""


@dataclass(frozen=True)
class Translated(Document):
    """A test as a document of the native format: faults of its case are shown where AgentV's file says it."""

    places: Mapping[KeyPath, KeyPath]

    def fault(self, path: KeyPath, message: str, *, hint: str = "", on_key: bool = False) -> Fault:
        """A fault at the key of the file that the native key was made of."""
        return super().fault(self._source(path), message, hint=hint, on_key=on_key)

    def note(self, path: KeyPath, message: str) -> str:
        """A warning at the key of the file that the native key was made of."""
        return super().note(self._source(path), message)

    def _source(self, path: KeyPath) -> KeyPath:
        end = next(end for end in range(len(path), -1, -1) if path[:end] in self.places)
        source = self.places[path[:end]]
        whole = (*source, *path[end:])
        return whole if whole in self.marks else source


def misplaced(document: Document) -> Iterator[Fault]:
    """Keys of tests that contradict each other, also where another key is faulty."""
    tests = document.data["tests"]
    for index, test in enumerate(tests if isinstance(tests, list) else ()):
        if not isinstance(test, dict):
            continue
        at: KeyPath = ("tests", index)
        if "mode" not in test:
            hint = "write `mode: conversation`"
            if "turns" in test:
                yield document.fault((*at, "turns"), "`turns` needs `mode: conversation`", hint=hint, on_key=True)
            else:
                message = "a test without `mode: conversation` is not read here"
                yield document.fault(at, message, hint="write it with `turns`: a prompt is a conversation of one turn")
            for key in (key for key in _OF_CONVERSATIONS if key in test):
                yield document.fault((*at, key), f"`{key}` needs `mode: conversation`", hint=hint, on_key=True)
        elif not test.get("turns"):
            place = (*at, "turns") if "turns" in test else (*at, "mode")
            yield document.fault(place, "a conversation needs `turns`", hint="write at least one, with its `input`")
        if "turns" in test and test.get("expected_output") is not None:
            yield document.fault(
                (*at, "expected_output"),
                "with `turns` there is no one reply that this could be",
                hint="write it below the turn whose reply it is",
                on_key=True,
            )

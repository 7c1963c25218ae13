"""A case's mocked tools, answered here: nothing of what they give back lies where the agent could read it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

from skillup.judging.arguments import difference
from skillup.modelserver.source import JsonObject
from skillup.modelserver.tool_service import ToolAnswer
from skillup.spec.mocks import MockTool


class MockedTools:
    """Answers the calls of one trial. Holds no state but how often each result has been given."""

    def __init__(self, mocks: Sequence[MockTool]) -> None:
        self._mocks = {mock.name: mock for mock in mocks}
        self._given: Counter[tuple[str, int]] = Counter()
        self._lock = threading.Lock()

    @property
    def offers(self) -> tuple[JsonObject, ...]:
        """The tools as the model is told of them."""
        return tuple(
            {"name": mock.name, "description": mock.description, "input_schema": mock.parameters}
            for mock in self._mocks.values()
        )

    def call(self, name: str, arguments: JsonObject) -> ToolAnswer:
        """The first result that is meant for these arguments and not yet used up; else an error as a tool's own."""
        mock = self._mocks.get(name)
        for index, result in enumerate(mock.answers if mock else ()):
            if difference(result.args, dict(arguments)) is None and self._takes(name, index, result.times):
                return ToolAnswer(result.content, result.failed)
        return ToolAnswer(f"{name}: nothing was found for these arguments", failed=True)

    def _takes(self, name: str, index: int, times: int | None) -> bool:
        with self._lock:
            self._given[name, index] += 1
            return times is None or self._given[name, index] <= times

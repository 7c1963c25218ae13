"""What every step has: the plan, the CLI that it plays, its output, and the texts that are filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillup.fakecli.children import BackgroundTask
from skillup.fakecli.dialect import Dialect
from skillup.fakecli.output import Output
from skillup.fakecli.plan import Plan, PlanError, Step, steps_of


class Player:
    """Does one step after the other: a step is the method `do_NAME`. `code` is the exit code that the CLI will have."""

    def __init__(self, plan: Plan, dialect: Dialect, output: Output, prompt: str) -> None:
        self.code = 0
        self._plan, self._dialect, self._output, self._prompt = plan, dialect, output, prompt
        self._tasks: list[BackgroundTask] = []

    @classmethod
    def known(cls) -> frozenset[str]:
        """The names of all steps."""
        return frozenset(name.removeprefix("do_") for name in dir(cls) if name.startswith("do_"))

    def run(self, steps: Sequence[Step]) -> None:
        """Does one step after the other.

        Raises:
            PlanError: an argument is not what the step wants.
        """
        for step in steps:
            ((name, argument),) = step.items()
            try:
                getattr(self, f"do_{name}")(argument)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise PlanError(f"the step {name} cannot do {argument!r}: {type(error).__name__}: {error}") from error

    def _inner(self, steps: object) -> None:
        self.run(steps_of(steps, self.known()))

    def _held(self, steps: object) -> bytes:
        with self._output.held() as printed:
            self._inner(steps)
        return bytes(printed)

    def _text(self, value: object) -> str:
        """A text with what stands in braces filled in; `{text, times}` repeats it."""
        if isinstance(value, Mapping):
            return self._text(value["text"]) * int(value["times"])
        text = str(value)
        for name, filled in self._words.items():
            text = text.replace(f"{{{name}}}", filled)
        return text

    @property
    def _words(self) -> dict[str, str]:
        dialect = self._dialect
        first = dialect.first_prompt
        known = {"prompt": self._prompt, "first_prompt": first, "turn": str(dialect.turn), "cwd": dialect.cwd}
        return {"session": dialect.session_id, **known}

    def _filled(self, value: Any) -> Any:
        """Plain data with every text in it filled in."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {key: self._filled(inner) for key, inner in value.items()}
        return [self._filled(inner) for inner in value] if isinstance(value, list) else value

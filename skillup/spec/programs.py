"""A program that scores: it gets what happened as JSON on stdin, and prints a score."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field, model_validator

from skillup.spec.values import InnerPath, LimitSeconds, Spec, Words

DEFAULT_PROGRAM_SECONDS: Final = 60.0
"""Time limit of a program when nothing says otherwise; AgentV's default."""


class ProgramFile(Spec):
    """A file of the suite that a program is started with; loading fills in its hash."""

    path: InnerPath
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Program(Spec):
    """How a program is started, in the suite's own folder `cwd`; a text is one line for the shell.

    `config`, `criteria` and `expected_output` are handed to it. Loading fills in `files`: those that `command` names.
    What is run when the agent has gone is what was there before it came.
    """

    command: tuple[Words, ...] = Field(min_length=1)
    cwd: InnerPath | None = None
    config: dict[str, Any] = {}
    criteria: str = ""
    expected_output: str = ""
    timeout_seconds: LimitSeconds = None
    files: tuple[ProgramFile, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _one_line(cls, value: Any) -> Any:
        value = {"command": value} if isinstance(value, (str, list)) else value
        if isinstance(value, dict) and isinstance(value.get("command"), str):
            return {**value, "command": ["/bin/sh", "-c", value["command"]]}
        return value

    @property
    def seconds(self) -> float:
        """The time limit."""
        return self.timeout_seconds or DEFAULT_PROGRAM_SECONDS

"""`command`: what a program says of the workspace that the agent left behind."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from skillup.spec.problems import fault_at
from skillup.spec.rules import OutputContains, OutputMatches, Rule
from skillup.spec.values import Seconds, Whole, Words

DEFAULT_COMMAND_SECONDS = 60.0
"""Long enough for the tests of a small project, short enough for a command that waits for input that never comes."""

_ExitCode = Annotated[Whole, Field(ge=0, le=255)]


class CommandHolds(Rule):
    """A shell command, run once on a copy of the last workspace, ends and prints as it should.

    `exit_code` is one code, a list of those that are good, or `any`. `output` and `output_matches` look at what it
    printed on both streams together.
    """

    kind = "command"
    about_files = True
    run: Words
    exit_code: tuple[_ExitCode, ...] | Literal["any"] = (0,)
    output: OutputContains | None = None
    output_matches: OutputMatches | None = None
    timeout_seconds: Seconds = DEFAULT_COMMAND_SECONDS

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"run": value}
        code = value.get("exit_code") if isinstance(value, dict) else None
        if isinstance(code, int) and not isinstance(code, bool):
            return {**value, "exit_code": [code]}
        return value

    @model_validator(mode="after")
    def _meaningful(self) -> Self:
        if self.turn is not None:
            hint = "remove `turn`"
            raise fault_at("a command is run once, when the conversation has ended", "turn", hint=hint)
        for key in ("output", "output_matches"):
            inner = getattr(self, key)
            if inner is not None and inner.turn is not None:
                raise fault_at("this looks at what the command printed, in no turn", key, "turn", hint="remove `turn`")
        if not self.exit_code:
            raise fault_at("no exit code is good: the rule can never be met", "exit_code", hint="give one, or `any`")
        if self.exit_code == "any" and self.output is None and self.output_matches is None:
            raise fault_at("the rule checks nothing", hint="give an `exit_code`, `output` or `output_matches`")
        return self

"""What users write in `requires`: what an agent must have for a case to say anything about it."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from skillup.spec.problems import fault_at, quoted
from skillup.spec.values import Flag, Spec, Words
from skillup.transcript import CanonicalTool


def _command_name(name: str) -> str:
    if "/" in name:
        hint = "a command is a name that is looked for on the PATH; a file of the case belongs in `context`"
        raise fault_at(f"{quoted(name)} is a path", hint=hint)
    return name


class Requires(Spec):
    """What an agent must have; one that has not makes the trial SKIP, before anything of it is started.

    `engines`: it runs on one of these. `tools`: its engine shows calls of all of these. `commands`: all of these are
    on its PATH. `resume`: its engine resumes sessions.
    """

    engines: tuple[Words, ...] = Field((), min_length=1)
    tools: tuple[CanonicalTool, ...] = Field((), min_length=1)
    commands: tuple[Annotated[Words, AfterValidator(_command_name)], ...] = Field((), min_length=1)
    resume: Flag = False

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not (self.engines or self.tools or self.commands or self.resume):
            raise fault_at("this requires nothing", hint="name engines, tools or commands, or write `resume: true`")
        return self

    def joined(self, suite: Requires | None) -> Requires:
        """What a case and its suite require together: an agent must meet both."""
        if suite is None:
            return self
        return self.model_copy(
            update={
                "engines": self.common_engines(suite),
                "tools": tuple(dict.fromkeys((*suite.tools, *self.tools))),
                "commands": tuple(dict.fromkeys((*suite.commands, *self.commands))),
                "resume": suite.resume or self.resume,
            }
        )

    def common_engines(self, suite: Requires) -> tuple[str, ...]:
        """The engines that both allow; where only one of them names any, those."""
        if self.engines and suite.engines:
            return tuple(name for name in self.engines if name in suite.engines)
        return self.engines or suite.engines

    def excludes(self, suite: Requires | None) -> bool:
        """Whether no engine at all could meet both."""
        return suite is not None and bool(self.engines and suite.engines) and not self.common_engines(suite)

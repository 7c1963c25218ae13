"""What users write in an agent profile: engine + model + settings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from skillup.spec.problems import fault_at
from skillup.spec.values import Seconds, Spec, Text

SCRIPTED = "scripted"
"""The model name that means: the case's own script on the loopback model."""

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}\Z")
"""The only form in which a profile may mention the host's variables."""

_CREDENTIAL_NAME = re.compile(r"(?i)key|token|secret|passw|credential|auth")
_CREDENTIAL_VALUE = re.compile(
    r"(?:sk|pk|ghp|gho|xox[abp])[-_][A-Za-z0-9_-]{8,}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,}"
)


def is_secret(name: str, value: str) -> bool:
    """Whether a variable holds a secret, by its name or by the shape of its value."""
    return bool(_CREDENTIAL_NAME.search(name) or _CREDENTIAL_VALUE.search(value))


class ModelChoice(Spec):
    """Which model plays the agent. The word `scripted` alone means the case's script on the loopback model."""

    later = frozenset({"params"})

    provider: Text | None = None
    name: Text | None = None
    base_url: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _word(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _scripted_alone(self) -> Self:
        if self.scripted and self.base_url:
            raise fault_at("a scripted model has an address of its own", "base_url", hint="remove base_url")
        if self.base_url and not self.base_url.startswith(("http://", "https://")):
            raise fault_at("not an http(s) address", "base_url")
        return self

    @property
    def scripted(self) -> bool:
        """Whether the case's script answers."""
        return self.name == SCRIPTED


class Limits(Spec):
    """Limits that hold for every turn of this agent."""

    later = frozenset({"max_cost_usd", "max_tokens", "max_steps", "run_seconds"})

    turn_seconds: Seconds | None = None


class AgentProfile(Spec):
    """One file under `agents/`."""

    engine: Text
    description: str = ""
    model: ModelChoice | None = None
    env: dict[str, str | None] = {}
    settings: dict[str, Any] = {}
    session: Literal["resume"] = "resume"
    session_binding: Literal["isolated"] = "isolated"
    login: Literal["none", "copy"] = "none"
    permissions: Literal["full"] = "full"
    limits: Limits = Field(default_factory=Limits)

    @model_validator(mode="before")
    @classmethod
    def _later_values(cls, value: Any) -> Any:
        if isinstance(value, dict):
            planned = {"session": "live", "session_binding": "shared", "permissions": "workspace"}
            for key, word in planned.items():
                if value.get(key) == word:
                    raise fault_at(f"`{key}: {word}` is not supported yet", key)
            if "fallback" in value:
                raise fault_at("`fallback` is not supported yet", "fallback")
        return value

    @model_validator(mode="after")
    def _no_secret_in_clear(self) -> Self:
        for name, value in self.env.items():
            if value is None or REFERENCE.match(value):
                continue
            if "${" in value:
                raise fault_at("a reference must be the whole value", "env", name, hint=f'write {name}: "${{{name}}}"')
            if is_secret(name, value):
                raise fault_at(
                    "a secret may not stand in a profile",
                    "env",
                    name,
                    hint=f'write {name}: "${{{name}}}" instead',
                )
        return self


@dataclass(frozen=True)
class Agent:
    """A profile as it will be used: defaults, suite and command line applied.

    `env` holds the values to pass (already read from the host); `secrets` are those of them that must never be
    written; `missing` names variables that the profile refers to and the host does not have.
    """

    name: str
    engine: str
    model: ModelChoice
    settings: dict[str, Any]
    env: dict[str, str]
    secrets: tuple[str, ...]
    missing: tuple[str, ...]
    login: Literal["none", "copy"]
    permissions: Literal["full"]
    turn_seconds: float | None
    source: str

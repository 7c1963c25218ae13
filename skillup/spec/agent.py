"""What users write in an agent profile: engine + model + settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from skillup.spec.problems import fault_at, quoted
from skillup.spec.values import LimitSeconds, Spec, Value, Words

SCRIPTED = "scripted"
"""The model name that means: the case's own script on the loopback model."""

LATER_ENGINES = frozenset({"opencode", "qodercli", "qwen_code"})
"""Engines of the format that are not supported yet."""

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}\Z")
"""The only form in which a profile may mention the host's variables."""

_MENTION = re.compile(r"\$\{|\$[A-Za-z_]")

_CREDENTIAL_NAME = re.compile(
    r"(?i)(?:^|_)(?:key|token|secret|credentials?|auth|bearer)(?:_|\Z)|apikey|(?:secret|access|private)_?key|passw|_pat\Z"
)
"""Whole words, so that MAX_OUTPUT_TOKENS and GIT_AUTHOR_NAME are no credentials."""

_CREDENTIAL_VALUE = re.compile(
    r"(?:sk|pk|ghp|gho|xox[abp])[-_][A-Za-z0-9_-]{8,}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,}"
)

_PLAIN_VALUE = re.compile(r"(?i)\d{0,9}|true|false|yes|no|on|off|none")
"""Switches and small numbers: no secret, and to mask them would mask half of every report."""

OWN_VARIABLES = ("HOME", "TMPDIR", "GIT_CONFIG")
"""What every trial sets itself, `GIT_CONFIG_…` included, so that nothing of the host is seen."""


def is_secret(name: str, value: str) -> bool:
    """Whether a variable holds a secret, by its name or by the shape of its value."""
    if _CREDENTIAL_VALUE.search(value):
        return True
    return bool(_CREDENTIAL_NAME.search(name)) and not _PLAIN_VALUE.fullmatch(value)


def _environment_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise fault_at(f"{quoted(name)} cannot name an environment variable", hint="use letters, digits and _")
    if name in OWN_VARIABLES or name.startswith("GIT_CONFIG_"):
        raise fault_at(f"{name} is set by every trial itself, so that it sees nothing of the host", hint="remove it")
    return name


EnvironmentName = Annotated[str, AfterValidator(_environment_name)]
"""The name of an environment variable."""


class ModelChoice(Spec):
    """Which model plays the agent. The word `scripted` alone means the case's script on the loopback model.

    `params` was never honoured by any tool of the format: a suite's are accepted with a warning.
    """

    provider: Words | None = None
    name: Words | None = None
    base_url: Words | None = None
    params: Any = Field(None, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _word(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _scripted_alone(self) -> Self:
        if self.scripted and self.base_url:
            raise fault_at("a scripted model has an address of its own", "base_url", hint="remove base_url")
        if self.base_url and not self.base_url.startswith(("http://", "https://")):
            raise fault_at("not an http(s) address", "base_url", hint="begin it with https:// or http://")
        if self.base_url and "@" in self.base_url.split("/")[2]:
            raise fault_at("a secret may not stand in an address", "base_url", hint="pass it by `env`")
        return self

    @property
    def scripted(self) -> bool:
        """Whether the case's script answers."""
        return self.name == SCRIPTED


class Limits(Spec):
    """Limits that hold for every turn of this agent."""

    later = frozenset({"max_cost_usd", "max_tokens", "max_steps", "run_seconds"})

    turn_seconds: LimitSeconds = None


class AgentProfile(Spec):
    """One file under `agents/`."""

    later = frozenset({"fallback"})
    later_values: ClassVar[Mapping[str, frozenset[str]]] = MappingProxyType(
        {
            "session": frozenset({"live"}),
            "session_binding": frozenset({"shared"}),
            "permissions": frozenset({"workspace"}),
        }
    )

    engine: Words
    description: str = ""
    model: ModelChoice | None = None
    env: dict[EnvironmentName, Value | None] = {}
    settings: dict[str, Any] = {}
    session: Literal["resume"] = "resume"
    session_binding: Literal["isolated"] = "isolated"
    login: Literal["none", "copy"] = "none"
    permissions: Literal["full"] = "full"
    limits: Limits = Field(default_factory=Limits)

    @model_validator(mode="after")
    def _no_parameters(self) -> Self:
        if self.model is not None and self.model.params is not None:
            raise fault_at("parameters of a model are not supported yet", "model", "params", hint="remove it for now")
        return self

    @model_validator(mode="after")
    def _no_secret_in_clear(self) -> Self:
        for name, value in self.env.items():
            if value is None or REFERENCE.match(value):
                continue
            if _MENTION.search(value):
                hint = f'write {name}: "${{{name}}}"; the value is read from the host when the run starts'
                raise fault_at("a reference to a variable must be the whole value", "env", name, hint=hint)
            if is_secret(name, value):
                hint = f'write {name}: "${{{name}}}" and export it where the run starts'
                raise fault_at("a secret may not stand in a profile", "env", name, hint=hint)
        return self


@dataclass(frozen=True)
class Agent:
    """A profile as it will be used: defaults, suite and command line applied.

    `env` holds the values to pass (already read from the host); `secrets` are those of them that must never be
    written; `missing` are variables that cannot be filled, each with the host's variable that it refers to.
    """

    name: str
    engine: str
    model: ModelChoice
    settings: dict[str, Any]
    env: dict[str, str]
    secrets: tuple[str, ...]
    missing: tuple[tuple[str, str], ...]
    login: Literal["none", "copy"]
    permissions: Literal["full"]
    turn_seconds: float | None
    source: str

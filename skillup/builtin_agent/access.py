"""The APIs that the agent speaks, and the way to one: address and key, both from the environment."""

import os
import urllib.parse
from collections.abc import Mapping
from types import MappingProxyType

from skillup.builtin_agent.anthropic import Messages
from skillup.builtin_agent.client import ModelApi
from skillup.builtin_agent.openai_chat import ChatCompletions
from skillup.builtin_agent.remote import RemoteTools

APIS: Mapping[str, ModelApi] = MappingProxyType({"anthropic": Messages(), "openai_chat": ChatCompletions()})

TOOLS_VARIABLE = "BUILTIN_AGENT_TOOLS_URL"
"""The address of tools that somebody else answers."""


class InvocationError(Exception):
    """The agent was called wrongly, nothing was done."""


class MissingKeyError(Exception):
    """There is no usable API key."""

    kind = "auth"


def base_url(api: ModelApi) -> str:
    """The model's address, from the environment.

    Raises:
        InvocationError: it is none.
    """
    url = os.environ.get(api.address_variable, "")
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number, a broken IPv6 address
        usable = False
    # http.client would refuse blanks and control characters only when the request is sent.
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise InvocationError(f"{api.address_variable} must be the http:// or https:// address of a {api.title}")
    return url


def api_key(api: ModelApi) -> str:
    """The key, from the environment.

    Raises:
        MissingKeyError: there is none that could be sent.
    """
    key = os.environ.get(api.key_variable, "")
    if not key:
        raise MissingKeyError(f"{api.key_variable} is not set; give the key of the {api.title} in the environment")
    if not key.isascii() or not key.isprintable():
        raise MissingKeyError(
            f"{api.key_variable} holds a line break or another character that no key has; set it again"
        )
    return key


def without_keys() -> dict[str, str]:
    """The environment for commands: what the model makes up, or is told by a file, cannot carry a key away."""
    kept = {TOOLS_VARIABLE, *(api.key_variable for api in APIS.values())}
    return {name: value for name, value in os.environ.items() if name not in kept}


def remote_tools(idle_seconds: float) -> RemoteTools | None:
    """The tools that somebody else answers, if the environment names their address.

    Raises:
        RemoteToolError: they cannot be had.
    """
    url = os.environ.get(TOOLS_VARIABLE)
    return RemoteTools.listed(url, idle_seconds) if url else None


def hint(api: ModelApi, kind: str) -> str:
    """What to look at after a fault of the model."""
    match kind:
        case "auth":
            return f"; check {api.key_variable}"
        case "network":
            return f"; check {api.address_variable} and that the server is up"
        case "output":
            return f"; check that {api.address_variable} is the address of a {api.title}"
        case _:
            return ""

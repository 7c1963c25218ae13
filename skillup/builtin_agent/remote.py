"""Tools that somebody else answers, over HTTP: `POST <url>/tools` lists them, `POST <url>/tools/call` is one call."""

import http.client
import json
import urllib.parse
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from skillup.builtin_agent.replies import object_of, text_of

ANSWER_BYTES = 16 * 1024 * 1024


class RemoteToolError(Exception):
    """Whoever answers the tools cannot be reached, or says what is no answer: no fault of the model's."""

    kind = "environment"


@dataclass(frozen=True, slots=True)
class RemoteTools:
    """The tools at one address; `url` is a secret, because it is all that a caller needs."""

    url: str = field(repr=False)
    idle_seconds: float
    offers: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def listed(cls, url: str, idle_seconds: float) -> "RemoteTools":
        """The tools that there are now.

        Raises:
            RemoteToolError: they cannot be had.
        """
        tools = cls(url, idle_seconds)
        try:
            offers = tuple(_offer(tool) for tool in tools._ask("/tools", {})["tools"])
        except (LookupError, TypeError) as error:
            raise RemoteToolError(f"the list of tools cannot be understood: {error}") from error
        return cls(url, idle_seconds, offers)

    def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """What one call gave back, and whether it failed.

        Raises:
            RemoteToolError: nobody answered it.
        """
        answer = self._ask("/tools/call", {"name": name, "arguments": arguments})
        try:
            return text_of(answer["content"]), answer["failed"] is True
        except (LookupError, TypeError) as error:
            raise RemoteToolError(f"the answer of the tool {name} cannot be understood: {error}") from error

    def _ask(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        base = urllib.parse.urlsplit(self.url)
        content = json.dumps(body, allow_nan=False).encode("ascii")
        headers = {"connection": "close", "content-type": "application/json"}
        try:
            connection = http.client.HTTPConnection(base.hostname or "", base.port, timeout=self.idle_seconds)
            with closing(connection):
                connection.request("POST", f"{base.path}{path}", content, headers)
                response = connection.getresponse()
                answer = response.read(ANSWER_BYTES)
            if response.status != 200:
                raise RemoteToolError(f"the tools' server answered {response.status}")
            return object_of(answer)
        except (OSError, ValueError, TypeError, RecursionError, http.client.HTTPException) as error:
            raise RemoteToolError(f"the tools' server failed: {str(error) or type(error).__name__}") from error


def _offer(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "name": text_of(tool["name"]),
        "description": text_of(tool["description"]),
        "input_schema": dict(tool["input_schema"]),
    }

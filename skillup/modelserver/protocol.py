"""What the server asks of a wire protocol. One page each beside this one; `server.py` lists them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from skillup.modelserver.source import Conversation, JsonObject, Reply


class BadRequestError(Exception):
    """A request body that the protocol does not allow; the message says what is wrong with it."""


class WireProtocol(Protocol):
    """Pure translation between one provider's JSON and the neutral types. Paths begin below the prefix."""

    name: str

    def serves(self, path: str) -> bool:
        """Whether this protocol knows the path."""

    def side_reply(self, path: str, body: JsonObject) -> JsonObject | None:
        """The answer to a request that asks for no reply of the model (counting tokens); None for any other.

        Raises:
            BadRequestError: the body is not what the protocol says.
        """

    def conversation(self, path: str, body: JsonObject) -> Conversation:
        """The request in neutral terms.

        Raises:
            BadRequestError: the body is not what the protocol says.
        """

    def reply_body(self, conversation: Conversation, reply: Reply) -> JsonObject:
        """The reply as one JSON body."""

    def reply_events(self, conversation: Conversation, reply: Reply) -> Iterator[bytes]:
        """The reply as server-sent events: at least four, the first two without anything of the answer."""

    def endless_events(self, conversation: Conversation) -> Iterator[bytes]:
        """Events of a reply that never ends."""

    def error_body(self, status: int, message: str) -> JsonObject:
        """An error in the provider's shape; an empty message stands for the provider's usual one."""

"""Why the model gave no usable reply: one table from HTTP status to the kind of fault, for every API."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

# Long enough for a provider's JSON error, short enough for one line of a report.
MESSAGE_CHARACTERS = 500


class FaultClass(NamedTuple):
    """What a fault is called: `kind` in the end event, `retry` in retry events (None: it would fail again)."""

    kind: str
    retry: str | None


NETWORK = FaultClass("network", "network")
MALFORMED = FaultClass("output", "malformed")
QUOTA = FaultClass("quota", None)

# Why each status is what it is: 401 and 403 need another key, 402 money, other 4xx another request. 500, 502 and
# 504 are `overloaded`: the provider answered that it cannot serve, and the remedy is to wait. `network` is left
# for faults in which no whole HTTP answer came, `output` for an answer that cannot be understood.
_BY_STATUS: Mapping[int, FaultClass] = MappingProxyType(
    {
        401: FaultClass("auth", None),
        402: QUOTA,
        403: FaultClass("auth", None),
        429: FaultClass("rate_limit", "rate_limit"),
        500: FaultClass("overloaded", "server_error"),
        502: FaultClass("overloaded", "server_error"),
        503: FaultClass("overloaded", "overloaded"),
        504: FaultClass("overloaded", "server_error"),
        529: FaultClass("overloaded", "overloaded"),
    }
)
_OTHER_STATUS = FaultClass("request", None)
_OTHER_5XX = FaultClass("overloaded", "server_error")


class ModelError(Exception):
    """The model gave no usable reply.

    Attributes:
        kind: `auth`, `quota`, `rate_limit`, `overloaded`, `request`, `network` or `output`.
        retry: the word for retry events, None when the same request would fail again.
        status: the HTTP status, None when the fault was not an HTTP status.
        retry_after: seconds that the server asked for, None when it did not.
    """

    def __init__(
        self, fault: FaultClass, message: str, *, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.kind = fault.kind
        self.retry = fault.retry
        self.status = status
        self.retry_after = retry_after


def class_of_status(status: int, error: Mapping[str, Any] | None = None) -> FaultClass:
    """What an HTTP status other than 200 means, with the error object that came with it."""
    if error is not None and "insufficient_quota" in (error.get("code"), error.get("type")):
        return QUOTA  # OpenAI says 429 to this, too, and no waiting helps
    if status < 300:
        return MALFORMED  # a success that is not 200 carries no reply
    return _BY_STATUS.get(status, _OTHER_5XX if status >= 500 else _OTHER_STATUS)

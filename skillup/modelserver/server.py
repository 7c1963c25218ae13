"""The loopback model server: a route for each trial, what came by it, and an end to everything at once."""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from skillup.modelserver.loopback import LoopbackHttp
from skillup.modelserver.route import RecordedRequest, Route
from skillup.modelserver.source import Source
from skillup.modelserver.tool_service import ToolService

_POLL_SECONDS: Final = 0.1
"""How long `close` waits for the accepting thread at most; ten wake-ups a second cost nothing that shows."""

_KEPT_STRAYS: Final = 1_000
"""Strays come from outside, so their number is bounded."""


class ModelServer:
    """Starts with `start()` or as a context manager; all methods may be called from any thread."""

    def __init__(self) -> None:
        self._routes: dict[str, Route] = {}
        self._strays: deque[RecordedRequest] = deque(maxlen=_KEPT_STRAYS)
        self._lock = threading.Lock()
        self._http: LoopbackHttp | None = None

    def start(self) -> Self:
        """Listen on a free port of 127.0.0.1.

        Raises:
            OSError: no port could be had.
            RuntimeError: the server runs already.
        """
        if self._http is not None:
            raise RuntimeError("the model server is running already")
        self._http = LoopbackHttp(self._find_route)
        accepting = threading.Thread(
            target=self._http.serve_forever, args=(_POLL_SECONDS,), name="model-server", daemon=True
        )
        accepting.start()
        return self

    def close(self) -> None:
        """End all routes and connections, whatever they are at; a second call does nothing."""
        http, self._http = self._http, None
        if http is None:
            return
        with self._lock:
            routes = tuple(self._routes.values())
        for route in routes:
            self.close_route(route)
        http.shutdown()
        http.server_close()
        http.end_connections()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def port(self) -> int:
        """The port that the server listens on.

        Raises:
            RuntimeError: the server does not run.
        """
        if self._http is None:
            raise RuntimeError("the model server is not running; call start() first")
        return self._http.server_port

    @property
    def strays(self) -> tuple[RecordedRequest, ...]:
        """Requests that belong to no open route, newest last, without bodies; 1,000 are kept."""
        with self._lock:
            return tuple(self._strays)

    def open_route(self, source: Source, *, workspace: Path) -> Route:
        """A new address, answered by `source`, for an agent that works in `workspace` (an absolute path).

        Raises:
            RuntimeError: the server does not run.
        """
        return self._open(Route(f"http://127.0.0.1:{self.port}", source, workspace))

    def open_tools(self, tools: ToolService, *, workspace: Path) -> Route:
        """A new address at which the agent of a trial finds these tools, and no model.

        Raises:
            RuntimeError: the server does not run.
        """
        return self._open(Route(f"http://127.0.0.1:{self.port}", None, workspace, tools))

    def _open(self, route: Route) -> Route:
        with self._lock:
            self._routes[route.prefix] = route
        return route

    def close_route(self, route: Route) -> None:
        """End the route: running replies break off, later requests are strays. Its record stays readable."""
        with self._lock:
            self._routes.pop(route.prefix, None)
        route.closed.set()

    def _find_route(self, method: str, path: str) -> tuple[Route | None, str]:
        whole = path.partition("?")[0]
        prefix, _, below = whole.removeprefix("/").partition("/")
        with self._lock:
            route = self._routes.get(prefix)
            if route is None:
                self._strays.append(RecordedRequest.now(method, whole, "no such route"))
        return route, "/" + below

"""The way from a sandbox without a network to its model, seen from outside: a Unix socket that leads to one address.

Whoever writes to the socket reaches that address and no other, whatever it asks for. Each connection carries one
request: only its head has to be understood then, to say to whom it is addressed. What comes after is passed on as it
is. TLS begins here, so the process inside needs neither names nor certificates.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

from skillup.environments.address import Address
from skillup.environments.host import CERTIFICATES

_MAX_HEAD: Final = 256 * 1024
"""Bytes of a request's head; no provider takes more."""

_BLOCK: Final = 1 << 16
_CONNECT_SECONDS: Final = 30.0

_REPLACED: Final = (b"host", b"connection", b"keep-alive", b"proxy-connection")


@contextmanager
def open_gate(place: Path | socket.socket, address: Address, host: Mapping[str, str]) -> Iterator[None]:
    """Leads what connects to a Unix socket, or to a socket that listens, to the address, until it is closed.

    No connection stays open.

    Raises:
        OSError: the socket cannot be made: its path may be too long.
    """
    loop = asyncio.new_event_loop()
    gate = _Gate(address, _trusted(host) if address.tls else None)
    try:
        server = loop.run_until_complete(_listen(gate, place))
    except BaseException:
        loop.close()
        raise
    running = threading.Thread(target=loop.run_forever, name="gate", daemon=True)
    running.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(loop.stop)
        running.join()
        server.close()
        loop.run_until_complete(_end_connections())
        loop.close()


async def _listen(gate: _Gate, place: Path | socket.socket) -> asyncio.Server:
    if isinstance(place, Path):
        return await asyncio.start_unix_server(gate.serve, place, limit=_MAX_HEAD)
    return await asyncio.start_server(gate.serve, sock=place, limit=_MAX_HEAD)


async def _end_connections() -> None:
    """Breaks off every connection of this event loop."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _trusted(host: Mapping[str, str]) -> ssl.SSLContext:
    """What the host's programs trust: the system's certificates, and those that the user's variables name."""
    context = ssl.create_default_context()
    for name in CERTIFICATES:
        if host.get(name):
            with suppress(OSError):  # a file that is not there adds nothing
                place = Path(host[name])
                context.load_verify_locations(**{"capath" if place.is_dir() else "cafile": str(place)})
    return context


class _Gate:
    """What every connection of a gate needs."""

    def __init__(self, address: Address, tls: ssl.SSLContext | None) -> None:
        self._address = address
        self._tls = tls

    async def serve(self, client: asyncio.StreamReader, reply: asyncio.StreamWriter) -> None:
        """One connection from inside."""
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            try:
                head = readdressed(await client.readuntil(b"\r\n\r\n"), self._address.name)
                async with self._model() as (answer, model):
                    model.write(head)
                    ways = [asyncio.create_task(_carry(*way)) for way in ((client, model), (answer, reply))]
                    try:
                        # Whoever of the two ends ends both: HTTP needs no connection that is open on one side.
                        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        for way in ways:
                            way.cancel()
            except _RefusedError as error:
                reply.write(_refusal(error.status, str(error)))
                await reply.drain()
            finally:
                reply.close()

    @asynccontextmanager
    async def _model(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        address = self._address
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                answer, model = await asyncio.open_connection(address.host, address.port, ssl=self._tls)
        except OSError as error:  # timeouts and refused certificates are of that kind, too
            reason = str(error) or f"no answer within {_CONNECT_SECONDS:g} s"
            raise _RefusedError("502 Bad Gateway", f"{address.name} cannot be reached: {reason}") from error
        try:
            yield answer, model
        finally:
            model.close()


class _RefusedError(Exception):
    """The request goes nowhere: it is not one, or the model's server is not there, or is not what it should be."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


async def _carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while block := await source.read(_BLOCK):
            sink.write(block)
            await sink.drain()


def readdressed(head: bytes, name: str) -> bytes:
    """The head of a request, addressed to the server that it goes to, and the only one of its connection.

    One server may be the front of many, so nothing in the head may name another to any reader of it: the target is a
    path (an absolute one outranks `Host`, RFC 9112 section 3.2.2), and lines end in one way alone.

    Raises:
        _RefusedError: it is no such head.
    """
    request, *fields = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    words = request.split(b" ")
    broken = any(end in line for line in (request, *fields) for end in (b"\n", b"\r", b"\0"))
    folded = any(line.startswith((b" ", b"\t")) for line in fields)
    if broken or folded or len(words) != 3 or not words[1].startswith(b"/"):
        raise _RefusedError("400 Bad Request", "only a path of the model's own server can be asked for")
    kept = [field for field in fields if field.partition(b":")[0].strip().lower() not in _REPLACED]
    return b"\r\n".join([request, b"Host: " + name.encode(), b"Connection: close", *kept, b"", b""])


def _refusal(status: str, reason: str) -> bytes:
    """The answer that names the reason, so that the CLI's own message does."""
    body = reason.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body

"""The way from a sandbox without a network to its model, seen from inside: a port that leads to a Unix socket."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

_BLOCK = 1 << 16


def forward(port: int, path: str) -> None:
    """Listens on a port of 127.0.0.1 and hands every connection to the Unix socket, as long as this process lives.

    Raises:
        OSError: the port cannot be had.
    """
    listener = socket.create_server(("127.0.0.1", port), backlog=128)
    threading.Thread(target=_accept, args=(listener, path), daemon=True).start()


def _accept(listener: socket.socket, path: str) -> None:
    while True:
        client, _ = listener.accept()
        threading.Thread(target=_join, args=(client, path), daemon=True).start()


def _join(client: socket.socket, path: str) -> None:
    """Carries a connection to its end; when one side closes, so does the other."""
    with client, socket.socket(socket.AF_UNIX) as model, suppress(OSError):
        model.connect(path)
        threading.Thread(target=_carry, args=(client, model), daemon=True).start()
        _carry(model, client)


def _carry(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while block := source.recv(_BLOCK):
            sink.sendall(block)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)

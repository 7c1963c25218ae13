"""The first process of a sandbox: it owns the command that the sandbox is for, and is the way to its model.

The sandbox is started with this as its program and a socket as descriptor 3, at whose other end is the command's
supervisor outside. The command is ended and reported from in here, because only its parent sees how it ended, and only
from in here its daemons can be told from the sandbox itself. When this process ends, the kernel ends all that is left.

It is started for every command, so it imports little: no `typing`, for one. No process of the sandbox may look into it
or stop it: as the first one it gets no signals from them, and it lets nobody trace it.
"""

from __future__ import annotations

import json
import resource
import socket

from skillup.environments.forwarder import forward
from skillup.environments.supervisor import INSIDE_FD, lock_out, own, read_request

_LIMITS = {"file_size_mb": resource.RLIMIT_FSIZE, "memory_mb": resource.RLIMIT_DATA}


def main(text: str) -> None:
    """Runs the command that is asked for on descriptor 3, to the end of all that it starts.

    `text` is JSON: `ways` are pairs of a port of 127.0.0.1 and the Unix socket that stands for it, `limits` the numbers
    of `environment.limits`.
    """
    asked = json.loads(text)
    lock_out()
    for port, path in asked["ways"]:
        forward(port, path)
    with socket.socket(fileno=INSIDE_FD) as sock:
        sock.set_inheritable(False)
        request = read_request(sock)
        for name, number in asked["limits"].items():
            resource.setrlimit(_LIMITS[name], (number << 20, number << 20))
        own(request, sock, subreaper=True)

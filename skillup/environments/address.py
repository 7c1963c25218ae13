"""The server behind a URL."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit


@dataclass(frozen=True)
class Address:
    """Where a model is: the parts of its URL that say which server to speak with, and how."""

    host: str
    port: int
    tls: bool

    @classmethod
    def of(cls, url: str) -> Address:
        """The server of an http(s) URL.

        Raises:
            ValueError: it is none.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url} is no http(s) address")
        tls = parts.scheme == "https"
        return cls(parts.hostname, parts.port or (443 if tls else 80), tls)

    @property
    def name(self) -> str:
        """How requests name it: without the port where it is the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


def at_port(url: str, port: int) -> str:
    """The same URL where a port of 127.0.0.1 stands for its server."""
    return urlunsplit(urlsplit(url)._replace(scheme="http", netloc=f"127.0.0.1:{port}"))

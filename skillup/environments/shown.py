"""What of the host a sandbox shows, as arguments of bubblewrap: the system, and places that something needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

_SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/nix/store", "/gnu/store"),  # the same on systems of that kind
)

_SETTINGS: Final = (
    *("alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version"),
    *("gai.conf", "group", "host.conf", "inputrc", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias"),
    *("localtime", "lsb-release", "mime.types", "nsswitch.conf", "os-release", "passwd", "pki/ca-trust"),
    *(
        "pki/tls/certs",
        "profile",
        "protocols",
        "services",
        "ssl/cert.pem",
        "ssl/certs",
        "ssl/openssl.cnf",
        "terminfo",
        "timezone",
    ),
)
"""What programs look for in /etc. The rest may hold keys and passwords, and root could read them."""


def system() -> Iterator[str]:
    """The system's folders, and what of its settings programs look for."""
    for name in _SYSTEM:
        place = Path(name)
        if place.is_symlink():
            yield from ("--symlink", str(place.readlink()), name)
        elif place.is_dir():
            yield from ("--ro-bind", name, name)
    for name in _SETTINGS:
        yield from from_etc(name)


def from_etc(name: str) -> Iterator[str]:
    """One of the system's settings, if it is there."""
    place = f"/etc/{name}"
    if Path(place).exists():
        yield from ("--ro-bind", place, place)


def outermost(places: Iterable[Path]) -> list[Path]:
    """The places without those that are there already with the system or with a folder before them."""
    kept: list[Path] = []
    folders = [*_SYSTEM]
    for place in dict.fromkeys(places):
        if not within(place, folders):
            kept.append(place)
            folders += [str(place)] if place.is_dir() and not place.is_symlink() else []
    return kept


def read_only(place: Path) -> tuple[str, ...]:
    """A place as it is, a link as a link; nobody can write there."""
    if place.is_symlink():
        return ("--symlink", str(place.readlink()), str(place))
    return ("--ro-bind", str(place), str(place))


def within(place: Path, folders: Sequence[str]) -> bool:
    """Whether a place is one of these folders, or lies below one."""
    return any(place.is_relative_to(folder) for folder in folders)

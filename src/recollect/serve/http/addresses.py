"""Where a server is reached, and under which names: what stands in a Host header, what follows from the address listened on; pure."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
PORT_MAX = 65_535
_PORTS = {"http": 80, "https": 443}
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_][a-z0-9_.-]*)(?::([0-9]{1,5}))?")


def is_loopback(host: str) -> bool:
    """Tell whether an address is reached from this machine alone."""
    given = _numeric(host)
    return host.lower() == "localhost" if given is None else given.is_loopback


def host_of(host: str) -> str:
    """Return the name under which a server that listens on an address is asked, at least from this machine."""
    given = _numeric(host)
    if given is None:
        return host.lower()
    if given.is_unspecified:  # every address of the machine, and itself none to ask
        return "127.0.0.1" if isinstance(given, IPv4Address) else "[::1]"
    return str(given) if isinstance(given, IPv4Address) else f"[{str(given).partition('%')[0]}]"


def names_of(host: str, named: tuple[str, ...]) -> frozenset[str]:
    """Return the names beside those of loopback that a server answers to: those of its settings, and what it listens on.

    A page that a browser loaded from elsewhere cannot make it name an address that the user chose.
    """
    own = host_of(host)
    return frozenset(named) | ({own} if own not in LOOPBACK_HOSTS and authority_of(own) is not None else set())


def authority_of(text: str) -> tuple[str, int | None] | None:
    """Take `name` or `name:port` apart, in small letters; None when it is neither."""
    match = _AUTHORITY.fullmatch(text.lower())
    port = None if match is None or match[2] is None else int(match[2])
    return None if match is None or (port or 0) > PORT_MAX else (match[1], port)


def with_port(authority: tuple[str, int | None], scheme: str) -> tuple[str, int | None]:
    """Return an authority with the port that its scheme has, where it names none."""
    name, port = authority
    return name, _PORTS.get(scheme) if port is None else port


def _numeric(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None

"""Which addresses a call may reach.

A host name is resolved here, every address it has is checked, and the connection goes to the checked address
itself: a second lookup, whose result could differ, never happens.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

Resolver = Callable[[str, int], list[str]]

# Beyond what `ipaddress` itself calls not global.
_REFUSED_V4: tuple[IPv4Network, ...] = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",
        "100.64.0.0/10",  # carrier NAT, and some clouds' metadata service
        "168.63.129.16/32",  # a cloud's host agent on an otherwise public address
        "192.0.0.0/24",  # protocol assignments, one metadata service among them
        "192.88.99.0/24",
        "240.0.0.0/4",
    )
)
_REFUSED_V6: tuple[IPv6Network, ...] = tuple(
    IPv6Network(block)
    for block in (
        "::/96",  # IPv4-compatible, obsolete
        "::ffff:0:0/96",  # IPv4-mapped: another spelling of an address, with no honest use in DNS
        "64:ff9b:1::/48",  # local-use NAT64
        "2001::/32",  # Teredo and 6to4 carry an IPv4 address inside
        "2002::/16",
        "fec0::/10",
    )
)
_NAT64 = ip_network("64:ff9b::/96")


class BlockedAddressError(Exception):
    def __init__(self, host: str, address: str) -> None:
        where = address if host == address else f"{host} ({address})"
        super().__init__(
            f"{where} is a private, local or reserved address. "
            "The operator's settings do not allow calls to such addresses."
        )


def is_public(address: str) -> bool:
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return _is_public_v4(parsed) if isinstance(parsed, IPv4Address) else _is_public_v6(parsed)


def _is_public_v4(address: IPv4Address) -> bool:
    if not address.is_global or address.is_multicast:
        return False
    return not any(address in block for block in _REFUSED_V4)


def _is_public_v6(address: IPv6Address) -> bool:
    if address in _NAT64:
        # Networks without IPv4 reach all of it through this prefix, so the address inside decides.
        return _is_public_v4(IPv4Address(int(address) & 0xFFFFFFFF))
    if not address.is_global or address.is_multicast or address.is_site_local:
        return False
    return not any(address in block for block in _REFUSED_V6)


def resolve(host: str, port: int) -> list[str]:
    """All addresses of a host, in the system's order of preference."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def checked_addresses(host: str, port: int, *, allow_private: bool, resolver: Resolver = resolve) -> list[str]:
    """The addresses to connect to; one bad one spoils the name, for nobody mixes them in good faith."""
    addresses = resolver(host, port)
    if not addresses:
        raise OSError(f"{host} has no address")
    if not allow_private:
        for address in addresses:
            if not is_public(address):
                raise BlockedAddressError(host, address)
    return addresses


def check_base_url(url: str, *, allow_private: bool = True) -> list[str]:
    """Every problem of a base URL as a sentence; none means it can be saved. No name is resolved here."""
    if not url.isprintable() or any(character.isspace() for character in url) or "\\" in url:
        return ["The base URL must not contain spaces, control characters or backslashes."]
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ["The base URL is not a valid address."]
    problems = []
    if parts.scheme not in {"http", "https"}:
        problems.append("The base URL must begin with https:// or http://.")
    if not host:
        problems.append("The base URL has no host name.")
    elif not _is_host(host):
        problems.append("The base URL has a host name that is not valid.")
    elif not allow_private and _is_plainly_private(host):
        problems.append("The base URL is a private or local address; this installation does not allow those.")
    if port == 0:
        problems.append("Port 0 cannot be called.")
    if "@" in parts.netloc:
        problems.append("The base URL must not contain a user name or password; use the key field.")
    if "?" in url:
        problems.append("The base URL must not contain a query (?...).")
    if "#" in url:
        problems.append("The base URL must not contain a fragment (#...).")
    if parts.path.rstrip("/").endswith("/chat/completions"):
        problems.append("Leave out /chat/completions: it is added to the base URL.")
    return problems


def _is_host(host: str) -> bool:
    if ":" in host:
        return _parses(host)
    try:
        ascii_host = host.encode("idna").decode("ascii")
    except UnicodeError:
        return False
    labels = ascii_host.removesuffix(".").split(".")
    return all(label and label.replace("-", "").replace("_", "").isalnum() for label in labels)


def _is_plainly_private(host: str) -> bool:
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith((".localhost", ".local", ".internal")):
        return True
    return _parses(host) and not is_public(host)


def _parses(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True

"""The origin and the destination of a request. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from calve.errors import Forbidden, SettingsInvalid
from calve.settings import AccessSettings

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
_PORTS = {"http": 80, "https": 443}

Headers = Mapping[str, str]
"""The headers of a request by their names in lower case."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Which requests are accepted."""

    is_open: bool
    """Whether no sign-in is required, because only this machine can reach the server."""
    hosts: frozenset[str]
    """The host names of the server."""
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """The proxies that may report the address and the protocol of a request."""
    user_header: str | None = None
    """The header in which these proxies send the name of the user."""

    def source(self, peer: str, headers: Headers) -> str:
        """Return the address of the caller: the last one that is not that of a trusted proxy."""
        hops = [hop.strip() for hop in headers.get("x-forwarded-for", "").split(",") if hop.strip()]
        while self.is_proxy(peer) and hops:
            peer = _without_port(hops.pop())
        return peer

    def is_proxy(self, peer: str) -> bool:
        """Tell whether an address is that of a trusted proxy."""
        address = _address(peer)
        return address is not None and any(address in network for network in self.proxies)

    def is_secure(self, peer: str, scheme: str, headers: Headers) -> bool:
        """Tell whether the request was sent by TLS all the way."""
        return scheme in {"https", "wss"} or (self.is_proxy(peer) and headers.get("x-forwarded-proto") == "https")

    def is_local(self, headers: Headers) -> bool:
        """Tell whether the caller is on this machine; a request from a proxy may have any origin."""
        return self.is_open and not any(name in headers for name in _FORWARDED)

    def check_host(self, headers: Headers) -> None:
        """Refuse a request for another host: a page's host name may resolve to this machine (DNS rebinding).

        Raises:
            Forbidden: the host is not one of the server's.
        """
        name = _host(headers.get("host", ""))
        if name not in self.hosts:
            raise Forbidden(
                "This server does not have that host name.", remedy="If it is yours, add it to access.hosts."
            )

    def check_origin(self, headers: Headers, *, changes: bool) -> None:
        """Refuse a change that a page of another site requests.

        Raises:
            Forbidden: the page is from another site.
        """
        if not changes:
            return
        origin = headers.get("origin")
        is_foreign = headers.get("sec-fetch-site") in {"cross-site", "same-site"}
        if is_foreign or (origin is not None and _netloc(origin) != headers.get("host", "").lower()):
            raise Forbidden("Pages of other sites may not make changes here.")


def rules(access: AccessSettings, host: str) -> Rules:
    """Return the rules for a server that listens on an address.

    Raises:
        SettingsInvalid: other machines could reach it, and the settings do not define how it is protected.
    """
    is_open = is_loopback(host)
    proxies = tuple(ip_network(one, strict=False) for one in access.trusted_proxies)
    if not is_open and not access.hosts:
        raise SettingsInvalid(
            f"The server would be reachable from other machines ({host}), but access.hosts is empty.",
            remedy="Set access.hosts to its host names, or listen on 127.0.0.1.",
        )
    if not is_open and not proxies and not access.plain_http:
        raise SettingsInvalid(
            f"The server would be reachable from other machines ({host}) without TLS.",
            remedy="Use a proxy with TLS and add it to access.trusted_proxies, or set access.plain_http.",
        )
    own = LOOPBACK_NAMES if is_open else frozenset()
    return Rules(
        is_open=is_open and not access.required,
        hosts=own | {name.lower().rstrip(".") for name in access.hosts},
        proxies=proxies,
        user_header=access.user_header.lower() if access.user_header else None,
    )


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached only from this machine."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


@lru_cache(256)
def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _without_port(hop: str) -> str:
    """Return the address that a proxy reports, without the port that some add."""
    address = hop[1:].partition("]")[0] if hop.startswith("[") else hop
    return address.partition(":")[0] if address.count(":") == 1 else address


@lru_cache(256)
def _host(header: str) -> str:
    """Return the name in a Host header, without its port."""
    try:
        return (urlsplit(f"//{header}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _netloc(origin: str) -> str:
    """Return the host and port of an origin, as a Host header has them."""
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return ""
    netloc = parts.netloc.lower()
    return netloc.removesuffix(f":{port}") if port == _PORTS.get(parts.scheme) else netloc

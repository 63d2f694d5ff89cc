"""The allow-list of the settings: which hosts and addresses requests may go to.

A host name must match a name on the list. It must resolve to a public address, or to one that an address or range on
the list covers, so that a name cannot lead into the private network unless the settings allow it. An address in the
place of a host name must be covered too, public or not.
"""

import ipaddress
import socket
from collections.abc import Callable, Iterable

from calve.steps.failures import fatal

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolver = Callable[[str, int], list[str]]
"""Returns the addresses of a host name."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST = ipaddress.IPv6Network("2000::/3")
"""Global unicast, the only IPv6 range from which IANA allocates public addresses."""
SPECIAL: dict[str, str] = {
    # https://www.iana.org/assignments/iana-ipv4-special-registry
    "0.0.0.0/8": "this network",
    "10.0.0.0/8": "private use",
    "100.64.0.0/10": "shared address space",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link local, and the metadata of clouds",
    "172.16.0.0/12": "private use",
    "192.0.0.0/24": "IETF protocol assignments",
    "192.0.2.0/24": "documentation",
    "192.31.196.0/24": "AS112",
    "192.52.193.0/24": "AMT",
    "192.88.99.0/24": "6to4 relay anycast, deprecated",
    "192.168.0.0/16": "private use",
    "192.175.48.0/24": "AS112, direct delegation",
    "198.18.0.0/15": "benchmarking",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "240.0.0.0/4": "reserved, and limited broadcast",
    # https://www.iana.org/assignments/iana-ipv6-special-registry
    "::1/128": "loopback",
    "::/128": "unspecified",
    "::ffff:0:0/96": "IPv4-mapped",
    "64:ff9b:1::/48": "IPv4-IPv6 translation, local use",
    "100::/64": "discard only",
    "100:0:0:1::/64": "dummy prefix",
    "2001::/23": "IETF protocol assignments: Teredo, benchmarking, ORCHID, AS112",
    "2001:db8::/32": "documentation",
    "2002::/16": "6to4",
    "2620:4f:8000::/48": "AS112, direct delegation",
    "3fff::/20": "documentation",
    "5f00::/16": "segment routing",
    "fc00::/7": "unique local",
    "fe80::/10": "link local",
    # From other registries, or no longer in use.
    "224.0.0.0/4": "multicast",
    "ff00::/8": "multicast",
    "fec0::/10": "site local, deprecated",
    "::/96": "IPv4-compatible, deprecated",
    "::ffff:0:0:0/96": "IPv4-translated",
    "3ffe::/16": "6bone, returned",
    "168.63.129.16/32": "the metadata of Azure's machines: public by its number only",
}
"""Address ranges without public hosts, and their purpose.

Ranges that IANA's registries call globally reachable are included, because no web server is there. 64:ff9b::/96 (NAT64)
is not included: such an address is as public as the IPv4 address that is embedded in it.
"""
_SPECIAL = tuple(ipaddress.ip_network(entry) for entry in SPECIAL)


def resolve(host: str, port: int) -> list[str]:
    """Resolve a host name with the system's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class AllowList:
    """The allowed hosts: names, ``*.`` and a domain, ``*`` for every name, addresses and ranges."""

    def __init__(self, entries: Iterable[str]) -> None:
        ranges = {entry: _network(entry) for entry in entries}
        self._names = frozenset(_folded(entry) for entry, network in ranges.items() if network is None)
        self._ranges = tuple(network for network in ranges.values() if network is not None)

    def check_host(self, host: str) -> None:
        """Refuse a host that is not on the list, before its name is resolved.

        Raises:
            StepFailed: the host is not on the list.
        """
        address = _address(host)
        is_listed = self._has_name(_folded(host)) if address is None else self._covers(address)
        if not is_listed:
            raise fatal(
                f"The host {host} is not on the allow-list of the Http step.",
                remedy=f"Add it to the settings: [http] allow = [{host!r}].".replace("'", '"'),
            )

    def check_address(self, host: str, text: str) -> None:
        """Refuse an address of a host name unless it is public or on the list.

        Raises:
            StepFailed: the address is neither.
        """
        address = _plain(ipaddress.ip_address(text.partition("%")[0]))
        if not (self._covers(address) or (_is_public(address) and _address(host) is None)):
            raise fatal(
                f"The host {host} leads to {address}, which is not a public address.",
                remedy=f'If that is intended, add its range to the settings: [http] allow = ["{address}"].',
            )

    def _has_name(self, host: str) -> bool:
        _, *parents = (host[at:] for at in range(len(host)) if at == 0 or host[at - 1] == ".")
        return host in self._names or "*" in self._names or any(f"*.{parent}" in self._names for parent in parents)

    def _covers(self, address: Address) -> bool:
        return any(address in network for network in self._ranges if network.version == address.version)


def _folded(name: str) -> str:
    """Return a host name for comparison: in lower case, without the final dot, and encoded with IDNA."""
    plain = name.casefold().removesuffix(".")
    return plain if plain.isascii() else plain.encode("idna").decode("ascii")


def _network(entry: str) -> Network | None:
    try:
        return ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return None


def _address(host: str) -> Address | None:
    try:
        return _plain(ipaddress.ip_address(host.strip("[]").partition("%")[0]))
    except ValueError:
        return None


def _plain(address: Address) -> Address:
    """Return the IPv4 address that is embedded in an IPv6 address, if any; otherwise the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else address


def _is_public(address: Address) -> bool:
    if any(address in network for network in _SPECIAL if network.version == address.version):
        return False
    return address.version == 4 or address in _UNICAST

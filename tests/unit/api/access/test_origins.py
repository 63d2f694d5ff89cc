"""Where a request comes from, and for whom it is meant."""

from typing import Any

import pytest

from calve.api.access.origins import Rules, is_loopback, rules
from calve.errors import Forbidden, SettingsInvalid
from calve.settings import AccessSettings


def _rules(host: str = "0.0.0.0", **given: Any) -> Rules:  # noqa: S104 - nothing listens
    return rules(AccessSettings(**{"hosts": ("calve.example.com",), "trusted_proxies": ("10.0.0.0/8",), **given}), host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "::ffff:127.0.0.1"])
def test_nobody_has_to_sign_in_at_a_server_on_this_machine(host: str) -> None:
    """Unless the settings want it."""
    assert is_loopback(host)
    assert _rules(host, hosts=(), trusted_proxies=()).is_open
    assert not _rules(host, required=True).is_open


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "calve.example.com", "", "localhost.evil.example"])  # noqa: S104 - the same
def test_a_server_that_others_reach_is_never_open(host: str) -> None:
    """Whatever the settings say."""
    assert not is_loopback(host)
    assert not _rules(host).is_open


def test_a_server_that_others_reach_does_not_start_without_protection() -> None:
    """Its names, and TLS before it, have to be said."""
    with pytest.raises(SettingsInvalid, match=r"access\.hosts is empty"):
        _rules(hosts=())
    with pytest.raises(SettingsInvalid, match="without TLS"):
        _rules(trusted_proxies=())
    assert not _rules(trusted_proxies=(), plain_http=True).is_open


@pytest.mark.parametrize("host", ["calve.example.com", "CALVE.example.com:8080", "calve.example.com."])
def test_our_own_names_are_answered_to(host: str) -> None:
    """With any port, and however they are written."""
    _rules().check_host({"host": host})


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "evil.example", "calve.example.com.evil.example", "", "[", "a@b"]
)
def test_other_names_are_not(host: str) -> None:
    """Those of the machine neither, where others reach it."""
    with pytest.raises(Forbidden):
        _rules().check_host({"host": host})


def test_a_request_without_a_name_is_refused() -> None:
    """HTTP/1.0 has none."""
    with pytest.raises(Forbidden):
        _rules().check_host({})


@pytest.mark.parametrize(
    ("peer", "forwarded", "source"),
    [
        ("203.0.113.9", "", "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
        ("10.0.0.5", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.5", "1.1.1.1, 198.51.100.1", "198.51.100.1"),
        ("10.0.0.5", "1.1.1.1, 198.51.100.1, 10.0.0.7", "198.51.100.1"),
        ("10.0.0.5", "", "10.0.0.5"),
        ("10.0.0.5", " , ", "10.0.0.5"),
        ("::ffff:10.0.0.5", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.5", "not an address", "not an address"),
        ("unknown", "198.51.100.1", "unknown"),
        ("10.0.0.5", "198.51.100.1:51234", "198.51.100.1"),
        ("10.0.0.5", "[2001:db8::1]:51234", "2001:db8::1"),
        ("10.0.0.5", "2001:db8::1", "2001:db8::1"),
        ("10.0.0.5", "198.51.100.1, 10.0.0.7:443", "198.51.100.1"),
    ],
)
def test_only_trusted_proxies_say_where_a_request_comes_from(peer: str, forwarded: str, source: str) -> None:
    """What visitors themselves put before it does not count."""
    assert _rules().source(peer, {"x-forwarded-for": forwarded}) == source


def test_only_trusted_proxies_say_that_there_was_tls() -> None:
    """Else cookies would be sent where they should not be."""
    https = {"x-forwarded-proto": "https"}
    assert _rules().is_secure("10.0.0.5", "http", https)
    assert _rules().is_secure("203.0.113.9", "https", {})
    assert not _rules().is_secure("203.0.113.9", "http", https)
    assert not _rules().is_secure("10.0.0.5", "http", {})


@pytest.mark.parametrize("header", ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"])
def test_what_a_proxy_on_this_machine_passes_on_is_not_taken_for_its_owner(header: str) -> None:
    """It may come from anywhere."""
    assert _rules("127.0.0.1").is_local({})
    assert not _rules("127.0.0.1").is_local({header: "203.0.113.9"})


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "https://calve.example.com"},
        {"origin": "https://calve.example.com:443"},
        {"origin": "https://CALVE.example.com", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
    ],
)
def test_our_own_pages_and_programs_may_change_something(headers: dict[str, str]) -> None:
    """A program has no origin."""
    _rules().check_origin({"host": "calve.example.com", **headers}, changes=True)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "https://calve.example.com.evil.example"},
        {"origin": "https://calve.example.com:8443"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "https://[", "sec-fetch-site": "same-origin"},
        {"origin": "https://calve.example.com:x"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_pages_of_others_may_not(headers: dict[str, str]) -> None:
    """They may look: browsers do not let them see the answer."""
    with pytest.raises(Forbidden):
        _rules().check_origin({"host": "calve.example.com", **headers}, changes=True)
    _rules().check_origin({"host": "calve.example.com", **headers}, changes=False)

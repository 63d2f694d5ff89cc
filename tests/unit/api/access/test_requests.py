"""Requests as the middleware sees them."""

from typing import Any

import pytest

from calve.api.access.cookies import SESSION
from calve.api.access.origins import Rules
from calve.api.access.requests import RequestInfo, request_info

RULES = Rules(is_open=False, hosts=frozenset())


def _info(**given: Any) -> RequestInfo:
    return request_info({"scheme": "http", "path": "/", "headers": [], "client": ("10.1.1.1", 1), **given}, RULES)


def test_a_header_that_is_repeated_is_one() -> None:
    """By its name in small letters, with all that it says."""
    info = _info(headers=[(b"X-Forwarded-For", b"1.1.1.1"), (b"x-forwarded-for", b"2.2.2.2")])
    assert info.headers == {"x-forwarded-for": "1.1.1.1,2.2.2.2"}
    assert info.source == info.peer == "10.1.1.1"


def test_a_path_breaks_no_line() -> None:
    """It stands in the audit log."""
    assert _info(path="/a\r\nb\x1b").path == "/ab"


@pytest.mark.parametrize(("method", "changes"), [("GET", False), ("HEAD", False), ("POST", True), ("QUERY", True)])
def test_what_is_not_known_to_be_safe_changes_something(method: str, *, changes: bool) -> None:
    """Nor is a WebSocket, which has no method."""
    assert _info(method=method).changes is changes
    assert _info().changes


def test_a_session_is_shown_by_a_cookie() -> None:
    """Nothing else is looked at."""
    assert _info(headers=[(b"cookie", f"{SESSION}=secret".encode())]).session == "secret"
    assert _info(client=None).session is None

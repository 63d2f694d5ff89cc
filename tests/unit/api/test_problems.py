"""Errors as answers."""

from collections.abc import Iterator

from calve.api.problems import STATUS, answer, status_name, status_of
from calve.errors import CalveError


def _all(kind: type[CalveError] = CalveError) -> Iterator[type[CalveError]]:
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ == "calve.errors":
            yield from _all(below)


def test_every_error_has_a_status() -> None:
    """By the table; what hangs right below the root is listed itself, so that nothing new is a 500 by accident."""
    for kind in _all():
        assert 400 <= status_of(kind) <= 503
        if CalveError in kind.__bases__:
            assert kind in STATUS, f"{kind.__name__} has no status in calve.api.problems"


def test_an_error_is_written_as_the_caller_likes() -> None:
    """Maestro's names of statuses, RFC 9457's numbers."""
    assert (status_name(404), status_name(500), status_name(422)) == (
        "NOT_FOUND",
        "INTERNAL_ERROR",
        "UNPROCESSABLE_ENTITY",
    )
    assert b'"status": "CONFLICT"' in bytes(answer("*/*", 409, "x", code="conflict").body)
    assert b'"status": 409' in bytes(answer("application/problem+json", 409, "x", code="conflict").body)

"""The composition root: the only module that knows every part."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from calve.capture import CaptureOptions, Captures
from calve.lake import Lake
from calve.settings import Settings, load
from calve.store import open_store

_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"


def new_id() -> str:
    """Return a fresh random name, short enough to type and free of look-alikes."""
    return "".join(secrets.choice(_LETTERS) for _ in range(8))


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)  # noqa: TID251 - the one clock that everything else is handed


@contextmanager
def open_captures(settings: Settings | None = None) -> Iterator[Captures]:
    """Open the lake and the state database of a project, ready to capture.

    >>> with open_captures() as captures:  # doctest: +SKIP
    ...     change = captures.capture(["db.events"], consumer="daily")
    ...     spark.sql(f"INSERT INTO db.target SELECT * FROM {change.tables[0].relation}")
    ...     captures.commit(change.capture_id)
    """
    settings = settings or load()
    lake = Lake(settings)
    try:
        with open_store(settings.store.url) as store:
            options = CaptureOptions(settings.capture.namespace, settings.capture.lease_max_age)
            yield Captures(lake, store.captures, clock=utc_now, new_id=new_id, options=options)
    finally:
        lake.close()

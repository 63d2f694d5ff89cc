"""One store, two databases: every behaviour holds on both."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from calve.store import SqlCaptureState, Store, open_store


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state/calve.db"
    return str(request.getfixturevalue("postgres_database"))


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """Give an open store."""
    with open_store(store_url) as store:
        yield store


@pytest.fixture
def state(store: Store) -> SqlCaptureState:
    """Give the capture state of an open store."""
    return store.captures

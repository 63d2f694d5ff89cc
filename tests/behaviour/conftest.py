"""One store, two databases: contracts and faults hold on both, and with ``make test-all`` everything else does too."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.access_setup import AccessSetup
from tests.engines import Playground
from tests.scope import ALL

from calve.store import SqlCaptureState, SqlEngineState, Store, open_store


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give tests marked ``each_store`` both databases, and others SQLite."""
    if "store_url" in metafunc.fixturenames:
        both = ALL or metafunc.definition.get_closest_marker("each_store") is not None
        metafunc.parametrize("store_url", ["sqlite", "postgres"] if both else ["sqlite"], indirect=True)


@pytest.fixture
def store_url(request: pytest.FixtureRequest) -> str:
    """Give the URL of a state database with nothing in it."""
    return str(request.getfixturevalue(f"{request.param}_state"))


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """Give an open store."""
    with open_store(store_url) as store:
        yield store


@pytest.fixture
def state(store: Store) -> SqlCaptureState:
    """Give the capture state of an open store."""
    return store.captures


@pytest.fixture
def access(store: Store) -> AccessSetup:
    """Give accounts and authentication on the store."""
    return AccessSetup(store.access)


@pytest.fixture
def engine(store: Store) -> SqlEngineState:
    """Give the engine's state of an open store."""
    return store.engine


@pytest.fixture
def playground(store: Store, store_url: str, tmp_path: Path) -> Iterator[Playground]:
    """Give an engine on an open store; when the test is over, nothing may be left behind."""
    playground = Playground(store, store_url, tmp_path / "attempts")
    yield playground
    playground.check()

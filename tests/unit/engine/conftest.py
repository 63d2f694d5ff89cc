"""An engine on a SQLite file."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines import Playground

from calve.store import open_store


@pytest.fixture
def playground(sqlite_state: str, tmp_path: Path) -> Iterator[Playground]:
    """Give an engine; when the test is over, nothing may be left behind."""
    with open_store(sqlite_state) as store:
        playground = Playground(store, sqlite_state, tmp_path / "attempts")
        yield playground
        playground.check()

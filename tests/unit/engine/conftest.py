"""An engine on a SQLite file."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines import Playground

from calve.store import open_store


@pytest.fixture
def playground(tmp_path: Path) -> Iterator[Playground]:
    """Give an engine; when the test is over, nothing may be left behind."""
    url = f"sqlite:///{tmp_path}/calve.db"
    with open_store(url) as store:
        playground = Playground(store, url, tmp_path / "attempts")
        yield playground
        playground.check()

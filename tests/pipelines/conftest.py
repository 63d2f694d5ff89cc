"""A Spark Connect server, for the whole session."""

from collections.abc import Iterator

import pytest
from tests.faults.pipeline_server import connect_server


@pytest.fixture(scope="session")
def connect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of one Spark Connect server, on which each project has a lake of its own."""
    with connect_server(tmp_path_factory.mktemp("connect")) as url:
        yield url

"""Somewhere to deliver to."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.deliveries import Ground


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    """Give a lake and a state database of the test's own."""
    ground = Ground(tmp_path)
    yield ground
    ground.close()

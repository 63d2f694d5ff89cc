"""Expressions that run for long."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture
def untraced() -> Iterator[None]:
    """Count no lines meanwhile: where coverage is measured, each takes ten times as long."""
    tracer = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(tracer)

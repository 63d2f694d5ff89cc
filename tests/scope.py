"""How much is tested: what CI runs, or, with ``make test-all``, the whole matrix."""

import os
from typing import TypeVar

_T = TypeVar("_T")

ALL = "CALVE_TEST_ALL" in os.environ  # noqa: TID251 - how long to go on is up to who runs the tests


def in_ci(value: _T, *, otherwise: _T) -> _T:
    """Choose how many examples, or which cases of a matrix, CI runs; ``make test-all`` runs the others."""
    return otherwise if ALL else value

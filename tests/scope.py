"""How much is tested: what CI runs, or, with ``make test-all``, the whole matrix."""

import os
from typing import TypeVar

from calve.settings import SparkSettings

_T = TypeVar("_T")

ICEBERG = os.environ.get("CALVE_TEST_ICEBERG") or SparkSettings.model_fields["iceberg"].default  # noqa: TID251 - the same
"""The version of Iceberg that tests with Spark use."""

ALL = "CALVE_TEST_ALL" in os.environ  # noqa: TID251 - how long to go on is up to who runs the tests


def in_ci(value: _T, *, otherwise: _T) -> _T:
    """Choose how many examples, or which cases of a matrix, CI runs; ``make test-all`` runs the others."""
    return otherwise if ALL else value

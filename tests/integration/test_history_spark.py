"""Whatever happens to a table that Spark writes, the union of its committed captures is the truth, once."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.integration.tables import quick_session
from tests.scope import in_ci

from calve.settings import Settings, StoreSettings
from calve.testing import SparkWriter, run_histories

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MORE = os.environ.get("CALVE_TEST_HISTORIES")  # noqa: TID251 - a flag of the tests alone
HISTORIES = int(MORE or in_ci(8, otherwise=30))
SEED = None if MORE else 2026
"""A landing is judged by the same histories each time; new ones are looked for with the flag."""


@pytest.fixture
def writers(spark: "SparkSession", lake_settings: Settings, tmp_path: Path) -> Iterator[list[SparkWriter]]:
    """Give writers of v2 and v3, copy-on-write and merge-on-read, and a store for their captures alone."""
    store = StoreSettings(url=f"sqlite:///{tmp_path}/state.db")
    settings = lake_settings.model_copy(update={"store": store})
    quick = quick_session(spark)  # one of their own, as they configure it
    made = [
        SparkWriter(quick, settings, version, mode) for version in (2, 3) for mode in ("copy-on-write", "merge-on-read")
    ]
    yield made
    for writer in made:
        writer.close()


def test_captures_are_the_truth_whatever_the_history(writers: list[SparkWriter]) -> None:
    """Over v2 and v3 tables, the relations' SQL brings a copy of the table from one snapshot to the next."""
    run_histories(*writers, examples=HISTORIES, steps=16, shrink=False, seed=SEED)

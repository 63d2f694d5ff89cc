"""Which tables a step may merge into: those that its workflow's namespace was granted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.steps.contexts import FakeContext
from tests.unit.steps.services import services_in

from calve.engine import State
from calve.errors import StepFailed
from calve.lake import Right, TableRights
from calve.steps.spark import Spark


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[Spark]:
    """Give a runtime where the namespace demo may write to tables of demo alone."""
    with services_in(tmp_path) as services:
        rights = TableRights(
            is_closed=True, patterns={Right.WRITE: {"demo": ["demo.*"]}}, catalogs=services.lake.catalog_names
        )
        made = Spark(services.settings, services.workspace, services.lake, services.deliveries, tables=lambda: rights)
        yield made
        made.close()


@pytest.mark.parametrize(
    "given", [{"into": "demo.t"}, {"into": "lake.demo.t"}, {"into": "t", "namespace": "demo", "catalog": "lake"}]
)
def test_a_step_may_merge_into_a_table_of_its_namespace(spark: Spark, tmp_path: Path, given: dict[str, Any]) -> None:
    """However it is named."""
    spark._check_merge(FakeContext(tmp_path), {"merge": {"into": given["into"]}, **given})


@pytest.mark.parametrize(
    "given",
    [
        {"into": "finance.t"},
        {"into": "lake.finance.t"},
        {"into": "t"},
        {"into": "t", "namespace": "finance"},
        {"into": "demo.t", "catalog": "other"},
        {"into": "`finance`.t"},
        {"into": "finance. t"},
    ],
)
def test_a_step_may_not_merge_into_another(spark: Spark, tmp_path: Path, given: dict[str, Any]) -> None:
    """As if there were none; no session is opened."""
    with pytest.raises(StepFailed):
        spark._check_merge(FakeContext(tmp_path), {"merge": {"into": given["into"]}, **given})


def test_a_merge_is_refused_before_anything_is_started(spark: Spark, tmp_path: Path) -> None:
    """The step fails for good."""
    config = {"merge": {"into": "finance.t", "using": "SELECT 1", "keys": ["id"]}}
    outcome = spark.execute(FakeContext(tmp_path, params={"spark": config}))
    assert outcome.state is State.FATAL_ERROR
    assert "Table lake.finance.t does not exist" in outcome.message

"""A proof of the embedded catalog in which Spark takes part."""

from typing import TYPE_CHECKING

import pytest

from calve.conformance import Outcome, proof_document, prove
from calve.lake import Lake, local_path
from calve.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_spark_writes_reads_and_expires_in_a_proof(spark: "SparkSession", lake_settings: Settings, lake: Lake) -> None:
    """Every check passes, none is skipped, and neither tables nor files are left."""
    proof = prove(lake_settings, "lake")
    found = {result.check: (result.outcome, result.detail) for result in proof.results}
    assert {name for name, (outcome, _) in found.items() if outcome is not Outcome.PASSED} == set(), found
    assert proof.spark_version == spark.version
    assert found["create"][1] == "by Spark"
    assert found["changes"][1] == "exact: 2 new and 4 removed rows"
    assert found["row_lineage"][1].endswith(": 1 new and 2 removed rows")
    assert found["expiry"][1] == "by Spark, with their files"
    assert found["view"][1] == "4 rows"
    assert [name for name in lake.catalog("lake").tables(()) if name.startswith(proof.namespace)] == []
    warehouse = local_path(lake_settings.catalogs["lake"].properties["warehouse"])
    assert warehouse is not None
    assert not (warehouse / proof.namespace).exists()
    assert proof_document(proof, lake_settings)["versions"]["spark"] == spark.version

"""What users need to test their own tables and pipelines: a history fuzzer, and copies kept by captures.

``pip install 'calve[testing]'`` brings hypothesis, which only ``run_histories`` needs.
"""

from calve.testing.histories import run_histories
from calve.testing.pyiceberg_writer import PyIcebergWriter
from calve.testing.replicas import Row, Rows, apply_change
from calve.testing.spark_writer import SparkWriter
from calve.testing.writers import Ability, Record, Writer

__all__ = [
    "Ability",
    "PyIcebergWriter",
    "Record",
    "Row",
    "Rows",
    "SparkWriter",
    "Writer",
    "apply_change",
    "run_histories",
]

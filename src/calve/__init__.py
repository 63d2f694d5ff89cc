"""Incremental processing for data lakes on Apache Iceberg."""

__version__ = "0.1.0"

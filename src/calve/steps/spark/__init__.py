"""Spark steps: a warm Spark Connect server of the worker's own, a session per step; programs through spark-submit."""

from calve.steps.spark.runtime import Spark

__all__ = ["Spark"]

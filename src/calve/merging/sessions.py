"""Sessions of Spark Connect."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def active(spark: "SparkSession") -> Iterator[None]:
    """Make a session of Spark Connect this thread's: a checkpoint belongs to the active one, whosever frame it is."""
    if not type(spark).__module__.startswith("pyspark.sql.connect"):
        yield
        return
    from pyspark.sql.connect.session import SparkSession as Remote

    local: Any = Remote._active_session  # noqa: SLF001 - only what creates a session sets it
    before = getattr(local, "session", None)
    local.session = spark
    try:
        yield
    finally:
        local.session = before

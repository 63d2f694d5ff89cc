"""Sessions of Spark Connect, on a server that has ended."""

import socket
import warnings
from types import SimpleNamespace
from typing import Any

from calve.steps.spark.client import release


def test_a_session_of_a_server_that_has_ended_is_released_quietly() -> None:
    """A second try would be in vain, and PySpark would warn that its retries are exceeded."""
    from pyspark.sql.connect.client import SparkConnectClient

    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]
    session: Any = SimpleNamespace(client=SparkConnectClient(f"sc://localhost:{port}/"))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        release(session)
    assert said == []

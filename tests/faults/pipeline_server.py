"""A Spark Connect server for many workers, started as a worker would start its own."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calve import settings
from calve.steps import Workspace
from calve.steps.spark.connect_server import ConnectServer

_TOML = """
[spark]
master = "local[2]"
driver_memory = "1g"

[spark.conf]
"spark.sql.shuffle.partitions" = 1
"""


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Start a server that lives as long as the block; give its address, token and all.

    As on most servers of others, Spark's own substitution of variables is on.
    """
    (folder / settings.FILE).write_text(_TOML)
    loaded = settings.load(folder)
    on = {**loaded.spark.conf, settings.VARIABLE_SUBSTITUTION: "true"}  # which the settings themselves refuse
    loaded = loaded.model_copy(update={"spark": loaded.spark.model_copy(update={"conf": on})})
    around = Workspace(
        project=folder,
        environment=os.environ,  # noqa: TID251 - handed to the server, never read
        python=sys.executable,
        java_home=loaded.spark.java_home,
    )
    server = ConnectServer(loaded, around)
    server.start(lambda _: None, lambda: False)
    try:
        yield f"sc://localhost:{server.events.port()}/;token={server._token}"
    finally:
        server.stop()

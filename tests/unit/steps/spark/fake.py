"""A Spark that is none: a spark-submit that writes down what it was given, and behaves as a test says."""

from pathlib import Path

import pytest

from calve.lake import jars, java
from calve.steps.spark import connect_server, spark_submit

UP = """
set -e
here=$(sed -n 's/^spark.eventLog.dir=file:\\/\\///p' "$2")
mkdir -p "$here/eventlog_v2_x"
echo "$SPARK_CONNECT_AUTHENTICATE_TOKEN" > "$here/token"
echo $$ > "$here/pid"
kind=org.apache.spark.sql.connect.service.SparkListenerConnectServiceStarted
echo '{"Event":"'$kind'","hostAddress":"h","bindingPort":4711}' > "$here/eventlog_v2_x/events_1_x"
exec sleep 600
"""
"""Comes up as a server does, and stays."""


def install(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a script in the place of spark-submit."""
    binary = folder / "spark-home" / "bin" / "spark-submit"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/bash\n{script}")
    binary.chmod(0o755)
    for module in (connect_server, spark_submit):
        monkeypatch.setattr(module, "spark_home", lambda: folder / "spark-home")
    found = java.Java(folder / "java" / "bin" / "java", "17", 17)
    monkeypatch.setattr(java, "find", lambda _: found)
    monkeypatch.setattr(jars, "provide", lambda _settings, _java: [folder / "iceberg.jar"])

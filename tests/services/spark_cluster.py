"""A standalone Spark cluster on loopback: a master, workers, and a Connect server on it that can be restarted."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.services.process import free_port

from calve.lake import prepare_spark
from calve.settings import Settings
from calve.steps.spark import conf
from calve.steps.spark.connect_server import environment, spark_home

_START_SECONDS = 120
_TOKEN = "calve-of-the-tests"
_SMALL = {
    "spark.executor.memory": "512m",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
}


def wait_for_port(port: int, what: str) -> None:
    """Return when somebody listens on a port.

    Raises:
        AssertionError: nobody does for two minutes.
    """
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("localhost", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline, f"{what} did not start"
            time.sleep(0.1)
        else:
            return


@contextmanager
def spark_cluster(folder: Path, java_home: Path, cores: int = 1, memory: str = "600m") -> Iterator[str]:
    """Start a master and two workers, whose executors write below ``folder``; yield the master's address."""
    port = free_port()
    around = environment(os.environ, sys.executable, java_home) | {"SPARK_DAEMON_MEMORY": "256m"}  # noqa: TID251
    address = f"spark://localhost:{port}"
    small = ["--cores", str(cores), "--memory", memory, "--host", "localhost", "--webui-port", "0"]
    programs = [["master.Master", "--host", "localhost", "--port", str(port), "--webui-port", "0"]] + [
        ["worker.Worker", *small, "--work-dir", str(folder / f"worker{number}"), address] for number in (1, 2)
    ]
    with ExitStack() as stack:
        for name, *words in programs:
            command = [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *words]
            with (folder / f"{name}.log").open("ab") as log:
                program = stack.enter_context(subprocess.Popen(command, env=around, stdout=log, stderr=log))
            stack.callback(program.kill)
        wait_for_port(port, "The master")
        yield address


@dataclass(frozen=True, slots=True)
class ConnectProgram:
    """How to start a Connect server, always at the same address."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    port: int

    @property
    def address(self) -> str:
        """Its address, with its token."""
        return f"sc://localhost:{self.port}/;token={_TOKEN}"


def connect_program(settings: Settings, folder: Path, master: str) -> ConnectProgram:
    """Return how to start a Connect server whose executors are on a cluster."""
    port = free_port()
    spark = settings.spark.model_copy(update={"conf": {**settings.spark.conf, **_SMALL}, "remote": None})
    settings = conf.with_master(settings.model_copy(update={"spark": spark}), master)
    java, jars = prepare_spark(settings)
    events = folder / "events"
    events.mkdir(parents=True)
    given = folder / "spark.properties"
    told = conf.server_conf(settings, jars, events) | {"spark.connect.grpc.binding.port": str(port)}
    given.write_text(conf.properties(told))
    # To optimise the code of a JVM of the tests would take longer than it saves.
    quick = {"SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    around = environment(os.environ | quick, sys.executable, java.home)  # noqa: TID251 - handed on
    argv = (
        *(str(spark_home() / "bin" / "spark-submit"), "--properties-file", str(given)),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--name", "calve", "spark-internal"),
    )
    return ConnectProgram(argv, {**around, "SPARK_CONNECT_AUTHENTICATE_TOKEN": _TOKEN}, port)

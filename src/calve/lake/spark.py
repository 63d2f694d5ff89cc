"""Spark sessions on the lake."""

import hashlib
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from calve.errors import EnvironmentUnfit
from calve.folders import writing
from calve.lake import jars, java
from calve.lake.lake import Lake
from calve.lake.spark_conf import context_conf, launch_conf, session_conf
from calve.settings import Settings, exported

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

Say = Callable[[str], None]
_IDENTITY = "spark.calve.settings"  # tells our own Spark from others'


@dataclass(frozen=True, slots=True)
class SparkProgress:
    """How far Spark's active stages are."""

    stages: int
    tasks_done: int
    tasks: int


def session(settings: Settings, app_name: str, say: Say = lambda _: None) -> "SparkSession":
    """Return a new session: on the configured Spark Connect server, else on a Spark of this process.

    ``say`` is called before anything that takes long. A Spark that other code started in this process is left alone.

    Raises:
        JavaMissing, JarsUnavailable, EnvironmentUnfit.
    """
    if settings.spark.remote:
        say("connecting to Spark")
        return _remote(settings, settings.spark.remote, app_name)
    from pyspark.sql import SparkSession

    # newSession: settings and temporary views of one caller must not be seen by the next.
    context = _context(settings, app_name, say)
    return SparkSession(context).newSession()


def _remote(settings: Settings, url: str, app_name: str) -> "SparkSession":
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    hush()
    address = urlsplit(url)
    try:
        # Spark itself would try for minutes before it says that nobody listens.
        socket.create_connection((address.hostname or "", address.port or 15002), timeout=10).close()
        make_catalogs(settings)
        builder = SparkSession.builder.appName(app_name).remote(url)
        for key, value in session_conf(settings).items():
            builder = builder.config(key, value)
        return cast("SparkSession", builder.create())
    except (PySparkException, OSError) as error:
        raise EnvironmentUnfit(
            f"Spark at {address.hostname} cannot be used: {error}", remedy="Check remote in [spark]."
        ) from error


def prepare_spark(settings: Settings) -> tuple[java.Java, list[Path]]:
    """Return the Java and the jars that a Spark of these settings needs; create the databases of its catalogs.

    Raises:
        EnvironmentUnfit: there is no supported Java, or a jar cannot be fetched.
    """
    found = java.find(settings.spark.java_home)
    files = jars.provide(settings, found)
    make_catalogs(settings)
    return found, files


def _context(settings: Settings, app_name: str, say: Say) -> "SparkContext":
    """Return the Spark context of this process, and start it if needed."""
    from pyspark import SparkConf, SparkContext

    wanted = session_conf(settings) | context_conf(settings)
    identity = hashlib.sha256(repr(sorted(wanted.items())).encode()).hexdigest()
    running = SparkContext._active_spark_context  # noqa: SLF001 - getOrCreate would take over any
    if running is not None:
        if running.getConf().get(_IDENTITY) == identity:
            return running
        raise EnvironmentUnfit(
            "Another Spark session with other settings already runs in this process.",
            remedy="Stop it, use it directly, or start calve in a separate process.",
        )
    found = java.find(settings.spark.java_home)
    if jars.cached(settings) is None:
        say("downloading jars for Spark (only once)")
    files = jars.provide(settings, found)
    say("starting Spark")
    make_catalogs(settings)
    launch = launch_conf(settings, files)
    with exported(JAVA_HOME=str(found.home)):
        gateway = _gateway(launch, settings.home / "spark.log")
        conf = SparkConf(loadDefaults=False).setAll([*(wanted | launch).items(), (_IDENTITY, identity)])
        with _interruptible():
            context = SparkContext(appName=app_name, conf=conf, gateway=gateway)
    context.setLogLevel("ERROR")
    hush()
    return context


@contextmanager
def _interruptible() -> Iterator[None]:
    """Keep our handler of Ctrl-C: Spark's calls the JVM in the middle of another call, and breaks both."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


def _gateway(launch: dict[str, str], log: Path) -> Any:
    """Start the JVM with its output in a file, not on the user's terminal."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:  # noqa: SLF001 - a stopped Spark leaves its JVM
        return SparkContext._gateway  # noqa: SLF001
    with writing("The log of Spark", log, "home"):
        log.parent.mkdir(parents=True, exist_ok=True)
        output = log.open("wb")
    with output:
        try:
            conf = SparkConf(loadDefaults=False).setAll(list(launch.items()))
            return launch_gateway(conf, popen_kwargs={"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
        except PySparkException as error:
            said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise EnvironmentUnfit(
                f"Spark did not start: {said[-1] if said else error}", remedy=f"See {log}.", log=str(log)
            ) from error


def hush() -> None:
    """Keep PySpark and Py4J from logging every error that they raise anyway."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_of_py4j)  # Py4J has a logger, but complains of Ctrl-C to the root


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return record.module != "java_gateway"


def make_catalogs(settings: Settings) -> None:
    """Create the tables of SQL catalogs, in the newer schema, before Spark opens them."""
    lake = Lake(settings)
    for name, catalog in settings.catalogs.items():
        if catalog.kind == "sql":
            lake.catalog(name)
    lake.close()


def progress(spark: "SparkSession") -> SparkProgress:
    """Return what a Spark in this process is working on."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    known = [stage for stage in stages if stage is not None]
    return SparkProgress(
        len(known), sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)
    )


@contextmanager
def watched(spark: "SparkSession", show: Callable[[SparkProgress], None], every: float = 0.2) -> Iterator[None]:
    """Show the progress of a Spark in this process for as long as the block runs; a remote one shows none."""
    if not hasattr(spark, "_jsparkSession"):
        yield
        return
    done = Event()

    def watch() -> None:
        while not done.wait(every):
            show(progress(spark))

    thread = Thread(target=watch, name="calve-spark-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()

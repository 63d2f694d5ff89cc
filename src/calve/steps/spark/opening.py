"""Opens the session of a step: on the worker's own server, or on one that the settings or the step name."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from calve.engine.ports import StepContext
from calve.lake import quoted
from calve.merging.sessions import active
from calve.settings import Settings
from calve.steps.configs import text
from calve.steps.failures import fatal
from calve.steps.spark.conf import remote_conf, sql_conf
from calve.steps.spark.events import Usage
from calve.steps.spark.failing import Hint, cause, translated
from calve.steps.spark.progress import Progress
from calve.steps.spark.scripts import Script
from calve.steps.spark.servers import Server, Servers
from calve.steps.spark.sessions import configure, connect_remote, in_background, release
from calve.steps.surroundings import Surroundings

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_LOOK_SECONDS = 0.1
_SETTLE_SECONDS = 2.0
"""How long to wait for what Spark writes down about an operation that is over."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The session of a step."""

    spark: "SparkSession"
    url: str
    """Where others reach the same session; it holds a token."""
    context: StepContext
    progress: Progress
    server: Server | None
    """None for a server of somebody else's."""

    def used(self) -> Usage | None:
        """Return what the session has read and written so far; None where nobody tells."""
        if self.server is None:
            return None
        operation = self.progress.operation
        return self.server.events.usage(self.spark.session_id, after=operation, seconds=_SETTLE_SECONDS)

    def tables(self) -> frozenset[str]:
        """Return the tables that the session has written to, as far as is known."""
        return frozenset() if self.server is None else self.server.events.tables(self.spark.session_id)

    def read(self) -> frozenset[str]:
        """Return the tables that the session has read, as far as is known."""
        return frozenset() if self.server is None else self.server.events.read(self.spark.session_id)

    def last_words(self, seconds: float = 0.0) -> str | None:
        """Return what the server has printed last, if it is our own and ends within some seconds; else None."""
        return None if self.server is None else self.server.last_words(seconds)

    def script(self, hint: Hint) -> Script:
        """Return what runs SQL in the session."""
        return Script(self.spark, self.context, self.used, self.last_words, hint, self._begin_statement)

    def _begin_statement(self, which: str) -> None:
        self.progress.statement = which


class Opener:
    """Opens sessions."""

    def __init__(self, settings: Settings, surroundings: Surroundings, servers: Servers) -> None:
        self._settings = settings
        self._surroundings = surroundings
        self._servers = servers

    @contextmanager
    def open(self, context: StepContext, config: Mapping[str, Any], branch: str = "") -> Iterator[Opened]:
        """Open a session with the step's settings; an interruption cancels what runs in it, and it is released.

        Raises:
            StepFailed: there is no server, or it does not take the settings.
        """
        opened = self._opened(context, config)
        try:
            with _cancelled_on_interruption(opened), active(cast("Any", opened.spark)):
                with translated(context, "The step's settings", opened.last_words):
                    self._prepare(opened, config, branch)
                yield opened
        finally:
            _give_back(opened)

    def _opened(self, context: StepContext, config: Mapping[str, Any]) -> Opened:
        remote = config.get("remote") or (None if config.get("master") else self._settings.spark.remote)
        if remote:
            session = connect_remote(str(remote))
            return self._watched(session, str(remote), context, None)
        master = str(config.get("master") or self._settings.spark.master)
        server = self._servers.get(master, context.log, context.is_interrupted)
        with translated(context, "A session of Spark", server.last_words):
            session = server.sessions.take()
        return self._watched(session, server.sessions.url, context, server)

    def _watched(self, session: "SparkSession", url: str, context: StepContext, server: Server | None) -> Opened:
        progress = Progress(context.log, lambda: None if server is None else server.events.usage(session.session_id))
        session.registerProgressHandler(progress)  # type: ignore[arg-type]  # it is one by its shape
        separator = "" if url.endswith(";") else ";" if ";" in url else ";" if url.endswith("/") else "/;"
        return Opened(session, f"{url}{separator}session_id={session.session_id}", context, progress, server)

    def _prepare(self, opened: Opened, config: Mapping[str, Any], branch: str) -> None:
        if config.get("packages"):
            raise fatal(
                "spark.packages is for applications and jars: a server that runs cannot load them.",
                remedy="Name them as packages in [spark] of the settings.",
            )
        conf = sql_conf(config, opened.context.key, branch)
        _configure(opened.spark, remote_conf(self._settings, conf) if opened.server is None else conf)
        self._add_files(opened.spark, config)
        if config.get("namespace"):
            parts = [*([str(config["catalog"])] if config.get("catalog") else []), *str(config["namespace"]).split(".")]
            opened.spark.sql(f"USE {quoted(*parts)}")

    def _add_files(self, spark: "SparkSession", config: Mapping[str, Any]) -> None:
        for name, option in (("jars", None), ("py_files", "pyfile"), ("files", "file")):
            paths = [str(self._surroundings.locate(text(item), f"A file of {name}")) for item in config.get(name, ())]
            if paths:
                spark.addArtifacts(*paths, **({option: True} if option else {}))


def _configure(spark: "SparkSession", conf: Mapping[str, str]) -> None:
    from pyspark.errors import AnalysisException

    try:
        configure(spark, conf)
    except AnalysisException as error:
        raise fatal(
            f"spark.conf: {cause(error)}",
            remedy="What a server is started with stands in [spark.conf] of the settings; an application has its own.",
        ) from None


def _give_back(opened: Opened) -> None:
    if opened.server is None:
        in_background(lambda: release(opened.spark))
        return
    opened.server.events.forget(opened.spark.session_id)
    opened.server.sessions.give_back(opened.spark)


@contextmanager
def _cancelled_on_interruption(opened: Opened) -> Iterator[None]:
    """Cancel whatever runs in the session once the step is to end, again and again until it has."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK_SECONDS):
            if opened.context.is_interrupted():
                with suppress(Exception):  # what runs is told by what it raises
                    opened.spark.interruptAll()

    watcher = threading.Thread(target=watch, name="calve-spark-cancel", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()

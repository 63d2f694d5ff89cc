"""Sessions of steps: on the worker's own Spark Connect server, or on one that the settings or the step name."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from calve.engine import StepContext
from calve.lake import make_catalogs
from calve.merging import active_session
from calve.settings import Settings
from calve.steps.config import text
from calve.steps.failures import fatal
from calve.steps.processes import Workspace
from calve.steps.spark.client import configure, connect_remote, in_background, release
from calve.steps.spark.conf import remote_conf, sql_conf
from calve.steps.spark.connect_server import ConnectServer, ConnectServers
from calve.steps.spark.errors import Hint, cause, translated
from calve.steps.spark.event_log import Tables, Usage
from calve.steps.spark.progress import Progress
from calve.steps.spark.sql_script import Script
from calve.texts import quoted

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_LOOK_SECONDS = 0.1
_SETTLE_SECONDS = 2.0
"""How long to wait for the events of an operation that has ended."""


@dataclass(frozen=True, slots=True)
class StepSession:
    """The session of a step."""

    spark: "SparkSession"
    url: str
    """The URL of this session for other processes; it holds a token."""
    context: StepContext
    progress: Progress
    server: ConnectServer | None
    """None for a server that calve did not start."""

    def usage(self) -> Usage | None:
        """Return what the session has read and written so far; None if it is unknown."""
        if self.server is None:
            return None
        operation = self.progress.operation
        return self.server.events.usage(self.spark.session_id, after=operation, seconds=_SETTLE_SECONDS)

    def tables(self) -> Tables:
        """Return the tables that the session has read and written, as far as is known."""
        nothing: Tables = (frozenset(), frozenset())
        return nothing if self.server is None else self.server.events.tables(self.spark.session_id)

    def last_output(self, seconds: float = 0.0) -> str | None:
        """Return the last lines of the worker's server if it ends within some seconds; otherwise None."""
        return None if self.server is None else self.server.last_output(seconds)

    def script(self, hint: Hint) -> Script:
        """Return a script runner for the session."""
        return Script(self.spark, self.context, self.usage, self.last_output, hint, self._begin_statement)

    def _begin_statement(self, which: str) -> None:
        self.progress.statement = which


class StepSessions:
    """Opens sessions."""

    def __init__(self, settings: Settings, workspace: Workspace, servers: ConnectServers) -> None:
        self._settings = settings
        self._workspace = workspace
        self._servers = servers

    @contextmanager
    def open(self, context: StepContext, config: Mapping[str, Any], branch: str = "") -> Iterator[StepSession]:
        """Open a session with the step's configuration; cancel it on interruption, and release it at the end.

        Raises:
            StepFailed: the server cannot be reached, or rejects the configuration.
        """
        opened = self._opened(context, config)
        try:
            with _cancelled_on_interruption(opened), active_session(cast("Any", opened.spark)):
                with translated(context, "The step's settings", opened.last_output):
                    self._prepare(opened, config, branch)
                yield opened
        finally:
            _give_back(opened)

    def _opened(self, context: StepContext, config: Mapping[str, Any]) -> StepSession:
        remote = config.get("remote") or (None if config.get("master") else self._settings.spark.remote)
        if remote:
            make_catalogs(self._settings)
            session = connect_remote(str(remote))
            return self._watched(session, str(remote), context, None)
        master = str(config.get("master") or self._settings.spark.master)
        server = self._servers.get(master, context.log, context.is_interrupted)
        with translated(context, "A session of Spark", server.last_output):
            session = server.sessions.take()
        return self._watched(session, server.sessions.url, context, server)

    def _watched(
        self, session: "SparkSession", url: str, context: StepContext, server: ConnectServer | None
    ) -> StepSession:
        progress = Progress(context.log, lambda: None if server is None else server.events.usage(session.session_id))
        session.registerProgressHandler(progress)  # type: ignore[arg-type]  # it is one by its shape
        separator = "" if url.endswith(";") else ";" if ";" in url else ";" if url.endswith("/") else "/;"
        return StepSession(session, f"{url}{separator}session_id={session.session_id}", context, progress, server)

    def _prepare(self, opened: StepSession, config: Mapping[str, Any], branch: str) -> None:
        if config.get("packages"):
            raise fatal(
                "spark.packages is for applications and jars: a running server cannot load packages.",
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
            paths = [str(self._workspace.locate(text(item), f"A file of {name}")) for item in config.get(name, ())]
            if paths:
                spark.addArtifacts(*paths, **({option: True} if option else {}))


def _configure(spark: "SparkSession", conf: Mapping[str, str]) -> None:
    from pyspark.errors import AnalysisException

    try:
        configure(spark, conf)
    except AnalysisException as error:
        raise fatal(
            f"spark.conf: {cause(error)}",
            remedy="Set what a server starts with in [spark.conf] of the settings; an application may set its own.",
        ) from None


def _give_back(opened: StepSession) -> None:
    if opened.server is None:
        in_background(lambda: release(opened.spark))
        return
    opened.server.events.forget(opened.spark.session_id)
    opened.server.sessions.give_back(opened.spark)


@contextmanager
def _cancelled_on_interruption(opened: StepSession) -> Iterator[None]:
    """Cancel what runs in the session when the step is interrupted, and repeat that until the step ends."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK_SECONDS):
            if opened.context.is_interrupted():
                with suppress(Exception):  # the cancelled operation reports its own error
                    opened.spark.interruptAll()

    watcher = threading.Thread(target=watch, name="calve-spark-cancel", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()

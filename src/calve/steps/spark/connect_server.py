"""Spark Connect servers of the worker: started for the first step that needs one, ended with the worker.

A server runs under a supervisor (``calve.steps.processes.supervisor``), like the programs of steps: when the worker
ends, for whatever reason, the pipe to the supervisor closes and the supervisor kills the server. The server listens on
the loopback interface only, on a port that the system picks, and requires a token that is not on its command line.
"""

import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from calve.environment import PREFIX
from calve.errors import CalveError
from calve.folders import is_refusal
from calve.lake import prepare_spark
from calve.settings import Settings
from calve.steps.failures import failure_of, fatal, interrupted, platform_error
from calve.steps.processes import ProcessFolder, Program, Workspace, supervise
from calve.steps.spark import conf
from calve.steps.spark.client import SessionPool
from calve.steps.spark.event_log import EventLog

Log = Callable[[str], None]
_START_SECONDS = 300.0
_LOOK_SECONDS = 0.05
_FORGET_SECONDS = 86_400.0
_SHOWN_LINES = 5
_FOREIGN = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE", "PYSPARK_DRIVER_PYTHON")
"""Variables that would change how Spark's programs start."""
_LOG_BYTES = 8_000_000
"""A longer log of a server is rotated; one old file is kept."""


def spark_home() -> Path:
    """Return the folder where Spark is installed."""
    import pyspark

    return Path(pyspark.__file__).parent


def environment(variables: Mapping[str, str], python: str, java_home: Path) -> dict[str, str]:
    """Return the environment of one of Spark's programs."""
    kept = {name: value for name, value in variables.items() if name not in _FOREIGN and not name.startswith(PREFIX)}
    own = {"SPARK_HOME": str(spark_home()), "JAVA_HOME": str(java_home)}
    return {"PYSPARK_PYTHON": python, **kept, **own}


class ConnectServer:
    """One Spark Connect server, running or ended."""

    timeout: float | None = None
    """No timeout."""

    def __init__(self, settings: Settings, workspace: Workspace) -> None:
        self._settings = settings
        self._workspace = workspace
        self._token = secrets.token_urlsafe(24)
        self.folder = settings.home / "spark" / f"{os.getpid()}-{secrets.token_hex(4)}"
        self._is_ending = threading.Event()
        self._error: CalveError | None = None
        self._thread = threading.Thread(target=self._run, name="calve-spark-server", daemon=True)
        self._events = self.folder / "events"
        self.events = EventLog(self._events)
        self.sessions = SessionPool()

    def log(self, text: str) -> None:
        """Write what the server prints to its log file."""
        path = self.folder / "server.log"
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
            is_long = file.tell() > _LOG_BYTES
        if is_long:
            path.replace(path.with_name("server.log.1"))

    def mask(self, text: str) -> str:
        """Return the text unchanged: a server has no secrets of steps."""
        return text

    def is_interrupted(self) -> bool:
        """Return whether the server must end."""
        return self._is_ending.is_set()

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._thread.is_alive()

    def start(self, log: Log, is_interrupted: Callable[[], bool]) -> None:
        """Start it; return when it accepts sessions.

        Raises:
            StepFailed: it does not start, or the step is interrupted.
        """
        log(f"-- starting Spark on {self._settings.spark.master}\n")
        began = time.monotonic()
        self._thread.start()
        threading.Thread(target=_import_client, name="calve-spark-import", daemon=True).start()
        try:
            self._await(began + _START_SECONDS, is_interrupted)
        except BaseException:
            self.stop()
            raise
        log(f"-- Spark is up after {time.monotonic() - began:.1f} s\n")

    def stop(self) -> None:
        """Stop it; return when it has ended."""
        self._is_ending.set()
        self.sessions.close()
        if self._thread.is_alive():
            self._thread.join()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True)
            self._events.mkdir()
            folder = ProcessFolder(self.folder / "process")
            folder.path.mkdir(mode=0o700)
            supervise(self, self._workspace, folder, self._program)
        except CalveError as error:
            self._error = error
        except OSError as error:
            is_final = is_refusal(error)
            self._error = (fatal if is_final else platform_error)(f"Spark cannot be started: {error}")

    def _program(self, folder: ProcessFolder) -> Program:
        settings = self._settings
        java, files = prepare_spark(settings)
        given = folder.write("spark.properties", conf.properties(conf.server_conf(settings, files, self._events)))
        argv = (
            *(str(spark_home() / "bin" / "spark-submit"), "--properties-file", str(given)),
            *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
            *("--name", "calve", "spark-internal"),
        )
        token = {"SPARK_CONNECT_AUTHENTICATE_TOKEN": self._token}
        # The server opens the lake for all steps, so it may need credentials from the worker's environment.
        around = self._workspace
        return Program(argv, environment(around.environment, around.python, java.home) | token, self.folder)

    def _await(self, deadline: float, is_interrupted: Callable[[], bool]) -> None:
        while (port := self.events.port()) is None:
            if not self._thread.is_alive():
                raise self._failure()
            if is_interrupted():
                raise interrupted("The start of Spark")
            if time.monotonic() >= deadline:
                raise platform_error(f"Spark did not start within {_START_SECONDS:.0f} s.{self.said()}")
            time.sleep(_LOOK_SECONDS)
        # The client uses TLS for every host that is not named localhost.
        self.sessions.open(f"sc://localhost:{port}/;token={self._token};user_id=calve")

    def _failure(self) -> CalveError:
        if self._error is not None:
            return failure_of(self._error)
        return platform_error(f"Spark ended during its start.{self.said()}")

    def last_output(self, seconds: float) -> str | None:
        """Return the last lines that the server printed if it ends within some seconds; otherwise None."""
        self._thread.join(seconds)
        return None if self._thread.is_alive() else self.said()

    def said(self) -> str:
        """Return the last lines that the server printed."""
        try:
            lines = (self.folder / "server.log").read_text("utf-8", "replace").splitlines()
        except OSError:
            return ""
        telling = [line for line in lines if line.strip() and not line.startswith(("\tat ", "WARNING:", "Using "))]
        return "".join(f"\n{line}" for line in telling[-_SHOWN_LINES:])


class ConnectServers:
    """The servers of a worker, one for each master."""

    def __init__(self, settings: Settings, workspace: Workspace) -> None:
        self._settings = settings
        self._workspace = workspace
        self._lock = threading.Lock()
        self._starting: dict[str, threading.Lock] = {}
        self._running: dict[str, ConnectServer] = {}
        self._is_closed = False

    def get(self, master: str, log: Log, is_interrupted: Callable[[], bool]) -> ConnectServer:
        """Return the server of a master; start one if none runs.

        Raises:
            StepFailed: it cannot be started.
        """
        with self._lock:
            starting = self._starting.setdefault(master, threading.Lock())
        if not starting.acquire(blocking=False):
            log("-- waiting for Spark to start\n")
            while not starting.acquire(timeout=_LOOK_SECONDS):
                if is_interrupted():
                    raise interrupted("The start of Spark")
        try:
            return self._running_or_new(master, log, is_interrupted)
        finally:
            starting.release()

    def close(self) -> None:
        """Stop all servers."""
        with self._lock:
            self._is_closed = True
            running, self._running = list(self._running.values()), {}
        for server in running:
            server.stop()

    def _running_or_new(self, master: str, log: Log, is_interrupted: Callable[[], bool]) -> ConnectServer:
        found = self._running.get(master)
        if found is not None and found.is_alive:
            return found
        if found is not None:
            log(f"-- the Spark of this worker has ended; a new one starts{found.said()}\n")
            found.stop()
        _forget_old(self._settings.home / "spark")
        server = ConnectServer(conf.with_master(self._settings, master), self._workspace)
        server.start(log, is_interrupted)
        with self._lock:
            if not self._is_closed:
                self._running[master] = server
                return server
        server.stop()
        raise interrupted("The start of Spark")


def _forget_old(folder: Path) -> None:
    """Delete the old folders of servers whose workers were killed."""
    for old in folder.iterdir() if folder.is_dir() else ():
        if time.time() - old.stat().st_mtime > _FORGET_SECONDS and not _is_running(old):
            shutil.rmtree(old, ignore_errors=True)


def _is_running(folder: Path) -> bool:
    processes = ProcessFolder(folder / "process").processes()
    return processes is not None and any(process.is_alive() for process in processes)


def _import_client() -> None:
    """Import the Connect client, which takes a second, while the server starts."""
    import pyspark.sql.connect.session  # noqa: F401 - for what it loads

"""Spark Connect servers of the worker's own: started at the first step that wants one, gone when the worker is.

A server runs under a supervisor (see ``calve.steps.supervisor``), as the programs of steps do: when the worker ends,
whatever the cause, the pipe to the supervisor closes and the server is killed. It listens on the loopback alone, on a
port that the system picks, and answers only to whoever knows its token, which nobody can read off a command line.
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
from calve.lake import jars, java
from calve.lake.spark import make_catalogs
from calve.settings import Settings
from calve.steps.failures import fatal, of_error, of_platform, stopped
from calve.steps.places import Place
from calve.steps.processes import Program, supervise
from calve.steps.spark import conf
from calve.steps.spark.events import EventLog
from calve.steps.spark.sessions import Sessions
from calve.steps.surroundings import Surroundings

Log = Callable[[str], None]
_START_SECONDS = 300.0
_LOOK_SECONDS = 0.05
_FORGET_SECONDS = 86_400.0
_SHOWN_LINES = 5
_FOREIGN = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE", "PYSPARK_DRIVER_PYTHON")
"""Variables that would make a program of Spark's something else than it is meant to be."""
_LOG_BYTES = 8_000_000
"""A server's log that is longer is put aside, in place of the one before."""


def spark_home() -> Path:
    """Return the folder of the installed Spark."""
    import pyspark

    return Path(pyspark.__file__).parent


def environment(variables: Mapping[str, str], python: str, java_home: Path) -> dict[str, str]:
    """Return the variables of a program of Spark's, out of those that it may have."""
    kept = {name: value for name, value in variables.items() if name not in _FOREIGN and not name.startswith(PREFIX)}
    own = {"SPARK_HOME": str(spark_home()), "JAVA_HOME": str(java_home)}
    return {"PYSPARK_PYTHON": python, **kept, **own}


class Server:
    """One Spark Connect server, or what is left of it."""

    timeout: float | None = None
    """It has all the time there is, as the owner of a program."""

    def __init__(self, settings: Settings, surroundings: Surroundings) -> None:
        self._settings = settings
        self._surroundings = surroundings
        self._token = secrets.token_urlsafe(24)
        self.folder = settings.home / "spark" / f"{os.getpid()}-{secrets.token_hex(4)}"
        self._is_ending = threading.Event()
        self._error: CalveError | None = None
        self._thread = threading.Thread(target=self._run, name="calve-spark-server", daemon=True)
        self._events = self.folder / "events"
        self.events = EventLog(self._events)
        self.sessions = Sessions()

    def log(self, text: str) -> None:
        """Keep what the server prints in a file."""
        path = self.folder / "server.log"
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
            is_long = file.tell() > _LOG_BYTES
        if is_long:
            path.replace(path.with_name("server.log.1"))

    def mask(self, text: str) -> str:
        """Return the text: a server is given no secret of a step."""
        return text

    def is_interrupted(self) -> bool:
        """Tell whether the server is to end."""
        return self._is_ending.is_set()

    @property
    def is_alive(self) -> bool:
        """Whether it runs, as far as is known."""
        return self._thread.is_alive()

    def start(self, log: Log, is_interrupted: Callable[[], bool]) -> None:
        """Start it, and come back when it can be asked.

        Raises:
            StepFailed: it does not come up, or the step is interrupted meanwhile.
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
        """End it; come back when it is gone."""
        self._is_ending.set()
        self.sessions.close()
        if self._thread.is_alive():
            self._thread.join()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True)
            self._events.mkdir()
            place = Place(self.folder / "process")
            place.folder.mkdir(mode=0o700)
            supervise(self, self._surroundings, place, self._program)
        except CalveError as error:
            self._error = error
        except OSError as error:
            is_final = is_refusal(error)
            self._error = (fatal if is_final else of_platform)(f"Spark cannot be started: {error}")

    def _program(self, place: Place) -> Program:
        settings = self._settings
        found = java.find(settings.spark.java_home)
        files = jars.provide(settings, found)
        make_catalogs(settings)
        given = place.write("spark.properties", conf.properties(conf.server_conf(settings, files, self._events)))
        argv = (
            *(str(spark_home() / "bin" / "spark-submit"), "--properties-file", str(given)),
            *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
            *("--name", "calve", "spark-internal"),
        )
        token = {"SPARK_CONNECT_AUTHENTICATE_TOKEN": self._token}
        # It is the worker's own, and opens the lake for all steps: it may need credentials of the worker's environment.
        around = self._surroundings
        return Program(argv, environment(around.environment, around.python, found.home) | token, self.folder)

    def _await(self, deadline: float, is_interrupted: Callable[[], bool]) -> None:
        while (port := self.events.port()) is None:
            if not self._thread.is_alive():
                raise self._failure()
            if is_interrupted():
                raise stopped("The start of Spark")
            if time.monotonic() >= deadline:
                raise of_platform(f"Spark did not come up in {_START_SECONDS:.0f} s.{self.said()}")
            time.sleep(_LOOK_SECONDS)
        # The client speaks TLS to any host that is not called localhost.
        self.sessions.open(f"sc://localhost:{port}/;token={self._token};user_id=calve")

    def _failure(self) -> CalveError:
        if self._error is not None:
            return of_error(self._error)
        return of_platform(f"Spark ended while it was started.{self.said()}")

    def last_words(self, seconds: float) -> str | None:
        """Return the last lines that the server printed, if it ends within some seconds; else None."""
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


class Servers:
    """The servers of a worker, one for each master."""

    def __init__(self, settings: Settings, surroundings: Surroundings) -> None:
        self._settings = settings
        self._surroundings = surroundings
        self._lock = threading.Lock()
        self._starting: dict[str, threading.Lock] = {}
        self._running: dict[str, Server] = {}
        self._is_closed = False

    def get(self, master: str, log: Log, is_interrupted: Callable[[], bool]) -> Server:
        """Return the server of a master; start it if there is none, or none any more.

        Raises:
            StepFailed: it cannot be started.
        """
        with self._lock:
            starting = self._starting.setdefault(master, threading.Lock())
        if not starting.acquire(blocking=False):
            log("-- waiting for Spark to start\n")
            while not starting.acquire(timeout=_LOOK_SECONDS):
                if is_interrupted():
                    raise stopped("The start of Spark")
        try:
            return self._running_or_new(master, log, is_interrupted)
        finally:
            starting.release()

    def close(self) -> None:
        """End all servers."""
        with self._lock:
            self._is_closed = True
            running, self._running = list(self._running.values()), {}
        for server in running:
            server.stop()

    def _running_or_new(self, master: str, log: Log, is_interrupted: Callable[[], bool]) -> Server:
        found = self._running.get(master)
        if found is not None and found.is_alive:
            return found
        if found is not None:
            log(f"-- the Spark of this worker is gone; it is started anew{found.said()}\n")
            found.stop()
        _forget_old(self._settings.home / "spark")
        server = Server(conf.with_master(self._settings, master), self._surroundings)
        server.start(log, is_interrupted)
        with self._lock:
            if not self._is_closed:
                self._running[master] = server
                return server
        server.stop()
        raise stopped("The start of Spark")


def _forget_old(folder: Path) -> None:
    """Remove what servers left behind whose workers were killed."""
    for old in folder.iterdir() if folder.is_dir() else ():
        if time.time() - old.stat().st_mtime > _FORGET_SECONDS and not _is_running(old):
            shutil.rmtree(old, ignore_errors=True)


def _is_running(folder: Path) -> bool:
    processes = Place(folder / "process").processes()
    return processes is not None and any(process.is_alive() for process in processes)


def _import_client() -> None:
    """Import what talks to the server while it starts: that takes a second."""
    import pyspark.sql.connect.session  # noqa: F401 - for what it loads

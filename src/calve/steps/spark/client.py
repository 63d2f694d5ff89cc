"""The Spark Connect client: connects sessions, keeps a spare one ready, releases them in the background."""

import socket
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from calve.lake import hush
from calve.steps.failures import fatal, infrastructure_error

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_SPARE_SECONDS = 1_200.0
"""An older spare is not used: the server drops sessions that were idle for an hour."""
_CONNECT_SECONDS = 10.0


class SessionPool:
    """The sessions of one of the worker's servers; a spare is connected while a step uses the one before it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._preparing = threading.Lock()
        self._url = ""
        self._spare: tuple[SparkSession, float] | None = None
        self._is_closed = False

    @property
    def url(self) -> str:
        """The server's URL with its token; empty until it runs."""
        return self._url

    def open(self, url: str) -> None:
        """Set the server's URL."""
        self._url = url

    def take(self) -> "SparkSession":
        """Return an unused session, and start to connect the next one."""
        with self._lock:
            spare, self._spare = self._spare, None
        if spare is not None and time.monotonic() - spare[1] >= _SPARE_SECONDS:
            self.give_back(spare[0])
            spare = None
        session = connect(self._url) if spare is None else spare[0]
        in_background(self._prepare)
        return session

    def give_back(self, session: "SparkSession") -> None:
        """Release a session in the background."""
        in_background(lambda: release(session))

    def close(self) -> None:
        """Connect no more sessions."""
        with self._lock:
            self._is_closed, self._spare = True, None

    def _prepare(self) -> None:
        """Connect a spare session and run a query: the first response of a session takes longest."""
        if not self._preparing.acquire(blocking=False):
            return  # another step's call connects it
        try:
            if not self._is_closed and self._spare is None:
                with suppress(Exception):  # the next step connects its own, and reports the error
                    self._keep(connect(self._url))
        finally:
            self._preparing.release()

    def _keep(self, session: "SparkSession") -> None:
        session.sql("SELECT 1").collect()
        with self._lock:
            self._spare = (session, time.monotonic())


def connect(url: str) -> "SparkSession":
    """Connect to one of the worker's servers; if it does not respond soon, it has ended."""
    from pyspark.sql.connect.session import SparkSession

    hush()
    session = _kept_open(SparkSession(url))
    limit_retries(session, tries=4)
    return session


def limit_retries(session: "SparkSession", *, tries: int) -> None:
    """Retry less often: by default, the client retries for ten minutes."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # the error is raised too
    session.client.set_retry_policies([DefaultPolicy(max_retries=tries, max_backoff=1_000)])


def connect_remote(url: str) -> "SparkSession":
    """Connect to a server that calve did not start.

    Raises:
        StepFailed: the server does not respond, or the URL is invalid.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.session import SparkSession

    hush()
    host, port = _address(url)
    try:
        # The client itself would retry for minutes before it reports that the port is closed.
        socket.create_connection((host, port), _CONNECT_SECONDS).close()
    except OSError as error:
        raise infrastructure_error(f"The Spark Connect server at {host}:{port} does not respond: {error}") from None
    try:
        session = _kept_open(SparkSession(url))
    except PySparkException:
        # Its message contains the URL, which may hold a token.
        raise fatal(
            "remote is not a valid URL of a Spark Connect server.",
            remedy="Write sc://host:port/;name=value;name=value, and an = in a value as %3D.",
        ) from None
    limit_retries(session, tries=30)
    return session


def _kept_open(session: "SparkSession") -> "SparkSession":
    """Keep a session from closing its client when it is deleted: closing joins threads that all sessions share.

    The garbage collector may delete a session in a thread that holds a lock which those threads wait for.
    """
    session.client.close = lambda: None  # type: ignore[method-assign]
    return session


def _address(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not url.startswith("sc://"):
        raise fatal("remote is not a valid URL of a Spark Connect server: write sc://host:port.")
    return host, port or 15002


def configure(session: "SparkSession", conf: Mapping[str, str]) -> None:
    """Set the configuration in one request; a key that a session cannot set is an error, not a warning."""
    if conf:
        session.conf._set_all(dict(conf), silent=False)  # noqa: SLF001 - one round trip


def release(session: "SparkSession") -> None:
    """Release a session on its server; close its channel, but not the pool that all sessions share."""
    with suppress(Exception):  # otherwise it ends with its server, or in an hour
        session.client.set_retry_policies([])  # the server may have ended: a second try would only warn about it
        session.client.release_session()
    session.client._closed = True  # noqa: SLF001 - so that its deletion sends no request
    session.client._channel.close()  # noqa: SLF001 - close() would wait for the operations of all sessions


def in_background(work: Callable[[], None]) -> None:
    """Run a function in a daemon thread."""
    threading.Thread(target=work, name="calve-spark-session", daemon=True).start()

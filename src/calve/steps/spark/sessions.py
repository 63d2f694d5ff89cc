"""Sessions of Spark Connect servers: one for each step, with a spare at hand, let go of off the critical path."""

import socket
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from calve.lake.spark import hush
from calve.steps.failures import fatal, of_platform

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_SPARE_SECONDS = 1_200.0
"""A spare that is older is not used: the server lets go of sessions that nobody has used for an hour."""
_CONNECT_SECONDS = 10.0


class Sessions:
    """The sessions of one server of our own. A spare is made while a step works with the one before it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._preparing = threading.Lock()
        self._url = ""
        self._spare: tuple[SparkSession, float] | None = None
        self._is_closed = False

    @property
    def url(self) -> str:
        """Where the server is, with its token; empty until it is up."""
        return self._url

    def open(self, url: str) -> None:
        """Say where the server is."""
        self._url = url

    def take(self) -> "SparkSession":
        """Return a session that nobody else has, and have the next one made."""
        with self._lock:
            spare, self._spare = self._spare, None
        if spare is not None and time.monotonic() - spare[1] >= _SPARE_SECONDS:
            self.give_back(spare[0])
            spare = None
        session = connect(self._url) if spare is None else spare[0]
        in_background(self._prepare)
        return session

    def give_back(self, session: "SparkSession") -> None:
        """Let the server forget a session and all that is in it."""
        in_background(lambda: release(session))

    def close(self) -> None:
        """Make no more."""
        with self._lock:
            self._is_closed, self._spare = True, None

    def _prepare(self) -> None:
        """Make a spare, and have it answer once: the first answer of a session takes longest."""
        if not self._preparing.acquire(blocking=False):
            return  # another step's call makes it
        try:
            if not self._is_closed and self._spare is None:
                with suppress(Exception):  # the next step makes its own, and tells what is wrong
                    self._keep(connect(self._url))
        finally:
            self._preparing.release()

    def _keep(self, session: "SparkSession") -> None:
        session.sql("SELECT 1").collect()
        with self._lock:
            self._spare = (session, time.monotonic())


def connect(url: str) -> "SparkSession":
    """Return a session of a server of our own; one that does not answer at once is gone."""
    from pyspark.sql.connect.session import SparkSession

    hush()
    session = _kept_open(SparkSession(url))
    be_brief(session, tries=4)
    return session


def be_brief(session: "SparkSession", *, tries: int) -> None:
    """Let a server that does not answer be given up soon: Spark itself would try for ten minutes."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # it is raised too
    session.client.set_retry_policies([DefaultPolicy(max_retries=tries, max_backoff=1_000)])


def connect_remote(url: str) -> "SparkSession":
    """Return a session of a server of somebody else's.

    Raises:
        StepFailed: nobody listens there.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.session import SparkSession

    hush()
    host, port = _address(url)
    try:
        # Spark itself would try for minutes before it says that nobody listens.
        socket.create_connection((host, port), _CONNECT_SECONDS).close()
    except OSError as error:
        raise of_platform(f"The Spark Connect server at {host}:{port} does not answer: {error}") from None
    try:
        session = _kept_open(SparkSession(url))
    except PySparkException:
        # What it says holds the address, and that may hold a token.
        raise fatal(
            "remote is no address of a Spark Connect server.",
            remedy="Write sc://host:port/;name=value;name=value, and an = in a value as %3D.",
        ) from None
    be_brief(session, tries=30)
    return session


def _kept_open(session: "SparkSession") -> "SparkSession":
    """Keep a session that is deleted from closing its client: that joins the threads that all sessions share.

    The garbage collector deletes sessions in any thread, one that holds what those threads wait for among them.
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
        raise fatal("remote is no address of a Spark Connect server: it must be of the form sc://host:port.")
    return host, port or 15002


def configure(session: "SparkSession", conf: Mapping[str, str]) -> None:
    """Set all in one request; what cannot be set for a session is an error, not a warning."""
    if conf:
        session.conf._set_all(dict(conf), silent=False)  # noqa: SLF001 - one round trip


def release(session: "SparkSession") -> None:
    """Let a server forget a session; the channel is closed here, but not the pool that all sessions share."""
    with suppress(Exception):  # it is gone with its server otherwise, or in an hour
        session.client.release_session()
    session.client._closed = True  # noqa: SLF001 - so that what is deleted later asks nothing of it
    session.client._channel.close()  # noqa: SLF001 - close() would wait for the operations of all sessions


def in_background(work: Callable[[], None]) -> None:
    """Do something that nobody waits for."""
    threading.Thread(target=work, name="calve-spark-session", daemon=True).start()

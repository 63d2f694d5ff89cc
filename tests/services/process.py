"""Servers of tests: processes on a free port of loopback, each with a folder that is removed after use."""

import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from calve.errors import EnvironmentUnfit

_START, _STOP = 60, 10
_PORTS = (10_240, 32_768)
"""Below those that systems give to connections."""


@contextmanager
def folder_for(name: str) -> Iterator[Path]:
    """Make a folder on disk, and remove it."""
    folder = Path(tempfile.mkdtemp(prefix=f"calve-{name}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def free_port() -> int:
    """Return a port of this machine on which nobody listens.

    Not one that the system would pick: until the server has it, it could become the port of somebody's connection.
    """
    while True:
        port = random.SystemRandom().randrange(*_PORTS)  # tests share the seed of the others
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


@contextmanager
def running(words: Sequence[str], port: int, log: Path, environment: Mapping[str, str] | None = None) -> Iterator[None]:
    """Start a server, in the environment of the tests unless told otherwise; wait until it takes connections; stop it.

    Raises:
        EnvironmentUnfit: it does not start.
    """
    with log.open("wb") as out, subprocess.Popen(words, env=environment, stdout=out, stderr=out) as process:
        try:
            _await(process, port, log)
            yield
        finally:
            process.terminate()
            try:
                process.wait(_STOP)
            except subprocess.TimeoutExpired:
                process.kill()


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + _START
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError as error:
            if process.poll() is not None or time.monotonic() > until:
                raise EnvironmentUnfit(f"{log.parent.name} does not start: {log.read_text()}") from error
            time.sleep(0.05)
        else:
            return

"""A temporary PostgreSQL server on a free port, started from the installed programs and removed after use."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from calve.errors import EnvironmentUnfit
from calve.testing.debian import on_path, program


@dataclass(frozen=True, slots=True)
class Postgres:
    """A running PostgreSQL server."""

    port: int
    folder: Path
    binaries: Path
    user: str | None
    options: str

    @property
    def url(self) -> str:
        """Its address, for SQLAlchemy."""
        return self.url_at(self.port)

    def url_at(self, port: int, database: str = "postgres") -> str:
        """Return the address of one of its databases, through a given port, such as a proxy's."""
        return f"postgresql+psycopg://postgres@127.0.0.1:{port}/{database}"

    def database(self, name: str) -> None:
        """Create an empty database."""
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", name)

    def restart(self) -> None:
        """Crash and restart."""
        self.stop()
        self.start()

    def start(self) -> None:
        """Start it, and wait until it responds."""
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-l", log, "-o", self.options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop it: ``immediate`` is like a power failure, ``fast`` shuts down cleanly."""
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-m", mode, "stop")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.binaries / program), *arguments]
        said = subprocess.run(  # noqa: S603 - PostgreSQL's own programs
            command, user=self.user, cwd=self.folder, capture_output=True, text=True, check=False
        )
        if said.returncode:
            raise EnvironmentUnfit(f"{program} failed: {said.stdout}{said.stderr}")


@contextmanager
def throwaway_postgres(*, is_durable: bool = False, within: Path | None = None) -> Iterator[Postgres]:
    """Start a temporary PostgreSQL server, and remove it in the end.

    Args:
        is_durable: wait for the disk at each commit, as in production; much slower.
        within: the parent of its folder, instead of the system's temporary folder.

    Raises:
        EnvironmentUnfit: its programs are not installed, or it does not start.
    """
    user = "postgres" if os.geteuid() == 0 else None  # PostgreSQL refuses root
    # Not in pytest's temporary folder: only its owner can enter it, and the server may run as another user.
    folder = Path(tempfile.mkdtemp(prefix="calve-postgres-", dir=within))
    if user:
        shutil.chown(folder, user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c max_connections=200"
    server = Postgres(port, folder, _binaries(), user, options if is_durable else f"{options} -c fsync=off")
    data = str(folder / "data")
    try:
        server._run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")  # noqa: SLF001 - its maker
        server.start()
        yield server
        if (folder / "data" / "postmaster.pid").exists():
            server.stop()
    finally:
        shutil.rmtree(folder)


def _binaries() -> Path:
    """Return the folder of PostgreSQL's programs."""
    return program(_initdb, "postgresql").resolve().parent


def _initdb() -> Path | None:
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    return packaged[0] if packaged else on_path("initdb")

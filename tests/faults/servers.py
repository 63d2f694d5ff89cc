"""A PostgreSQL of a test's own, which it may restart as it likes."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Server:
    """A running PostgreSQL."""

    binaries: Path
    folder: Path
    port: int

    @property
    def url(self) -> str:
        """Its address, for SQLAlchemy."""
        return self.url_at(self.port)

    def url_at(self, port: int, database: str = "postgres") -> str:
        """Return the address of a database of it, through some port."""
        return f"postgresql+psycopg://postgres@127.0.0.1:{port}/{database}"

    def database(self, name: str) -> None:
        """Make an empty database."""
        self.run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", name)

    def start(self) -> None:
        """Start it; come back when it answers."""
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=200"
        self.run("pg_ctl", "-D", self._data, "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """Stop it without letting anybody finish: what was not committed is lost."""
        self.run("pg_ctl", "-D", self._data, "-w", "-m", "immediate", "stop")

    def restart(self) -> None:
        """Crash, and come back."""
        self.stop()
        self.start()

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs, as somebody whom it accepts."""
        user = "postgres" if os.geteuid() == 0 else None  # PostgreSQL refuses root
        command = [str(self.binaries / program), *arguments]
        said = subprocess.run(command, user=user, cwd=self.folder, capture_output=True, text=True, check=False)
        assert said.returncode == 0, f"{program}: {said.stdout}{said.stderr}"

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def create(self) -> None:
        """Make its files."""
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
        self.run("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")


@contextmanager
def server(binaries: Path | None = None) -> Iterator[Server]:
    """Give a new PostgreSQL."""
    folder = Path(tempfile.mkdtemp(prefix="calve-postgres-"))
    made = Server(binaries or _installed(), folder, free_port())
    try:
        made.create()
        made.start()
        yield made
        made.stop()
    finally:
        shutil.rmtree(folder)


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _installed() -> Path:
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    on_path = shutil.which("initdb")
    found = [*packaged, *([Path(on_path).resolve()] if on_path else [])]
    if not found:
        raise FileNotFoundError("PostgreSQL's programs are not here: apt-get install postgresql")
    return found[0].parent

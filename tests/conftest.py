"""What all tests share: how examples are made, and a throw-away PostgreSQL."""

import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A landing is judged by the same examples each time, and never by how fast they are made.
# New ones: pytest --hypothesis-profile=explore tests/properties
settings.register_profile(
    "landing", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=False
)
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=1_000)
settings.load_profile("landing")

_INSTALL = ("apt-get", "install", "-y", "--no-install-recommends", "postgresql")


def pytest_configure(config: pytest.Config) -> None:
    """Bear with PySpark, which leaves the socket of every result for Python to close."""
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket.socket:ResourceWarning")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Start a PostgreSQL for this session; yield its address, for SQLAlchemy."""
    binaries = _binaries()
    user = "postgres" if os.geteuid() == 0 else None  # PostgreSQL refuses root
    # Not pytest's own folder: only its owner may enter that.
    folder = Path(tempfile.mkdtemp(prefix="calve-postgres-"))
    if user:
        shutil.chown(folder, user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def run(program: str, *arguments: str) -> None:
        command = [str(binaries / program), *arguments]
        said = subprocess.run(command, user=user, cwd=folder, capture_output=True, text=True, check=False)
        assert said.returncode == 0, f"{program}: {said.stdout}{said.stderr}"

    data = str(folder / "data")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    try:
        run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        run("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        yield f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"
        run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[str]:
    """Yield the address of an empty database of its own for one test."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    server = postgres_url.replace("+psycopg", "")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield postgres_url.rpartition("/")[0] + f"/{name}"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _binaries() -> Path:
    """Return the folder of PostgreSQL's programs, installing it if need and rights be."""
    if _installed() is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update"], capture_output=True, check=False)
        subprocess.run(_INSTALL, capture_output=True, check=False)
    if (found := _installed()) is None:
        pytest.fail(f"PostgreSQL's programs are not here. Install them: {' '.join(_INSTALL)}")
    return found


def _installed() -> Path | None:
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    on_path = shutil.which("initdb")
    found = [*packaged, *([Path(on_path).resolve()] if on_path else [])]
    return found[0].parent if found else None

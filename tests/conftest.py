"""What all tests share: how examples are made, a throw-away PostgreSQL, and a lake on disk."""

import os
import shutil
import signal
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.memory_folders import memory
from tests.scope import ICEBERG, in_ci

from calve.lake import Lake
from calve.lake.jars import AWS, POSTGRES
from calve.settings import FILE, Settings, load
from calve.store import open_store
from calve.testing.postgres import throwaway_postgres

_TOML = f"""
[spark]
master = "local[2]"
driver_memory = "1g"
iceberg = "{ICEBERG}"
packages = ["{POSTGRES}", "{AWS}:{ICEBERG}"]

[spark.conf]
"spark.sql.shuffle.partitions" = 2
"spark.default.parallelism" = 2
"""

# A JVM of the tests runs for minutes, on two cores: to optimise its code would take longer than it saves.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")  # noqa: TID251 - for their Sparks

collect_ignore = ["keycloak"]
"""Other people's servers, which are fetched first: run if they are named, by ``make test-integrations``."""

# A landing is judged by the same examples each time, and never by how fast they are made.
# New ones: pytest --hypothesis-profile=explore tests/properties
settings.register_profile(
    "landing",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=False,
    max_examples=in_ci(40, otherwise=100),
)
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=1_000)
settings.load_profile("landing")


def pytest_configure(config: pytest.Config) -> None:
    """Bear with PySpark, which leaves the socket of every result for Python to close; let Ctrl-C reach programs."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts its background jobs so, and a program cannot trap what was ignored when it was started.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket.socket:ResourceWarning")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Start a PostgreSQL for this session; yield its address, for SQLAlchemy."""
    with throwaway_postgres(within=memory()) as server:
        yield server.url


@contextmanager
def _database(postgres_url: str, template: str = "template1") -> Iterator[str]:
    """Give the name of a database of its own, a copy of another one."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        yield name
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[str]:
    """Yield the address of an empty database of its own for one test."""
    with _database(postgres_url) as name:
        yield _named(postgres_url, name)


# To bring a state database up to date takes longer than most tests that need one: it is done once, and copied.


@pytest.fixture(scope="session")
def _postgres_up_to_date(postgres_url: str) -> Iterator[str]:
    with _database(postgres_url) as name:
        open_store(_named(postgres_url, name)).close()
        yield name


@pytest.fixture
def postgres_state(postgres_url: str, _postgres_up_to_date: str) -> Iterator[str]:
    """Yield the address of a state database of its own for one test, with nothing in it."""
    with _database(postgres_url, _postgres_up_to_date) as name:
        yield _named(postgres_url, name)


@pytest.fixture(scope="session")
def _sqlite_up_to_date(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("state") / "calve.db"
    open_store(f"sqlite:///{file}").close()
    return file


@pytest.fixture
def sqlite_state(tmp_path: Path, _sqlite_up_to_date: Path) -> str:
    """Give the address of a state database of its own for one test, with nothing in it."""
    file = tmp_path / "state" / "calve.db"
    file.parent.mkdir()
    shutil.copy(_sqlite_up_to_date, file)
    return f"sqlite:///{file}"


def _named(postgres_url: str, name: str) -> str:
    return f"{postgres_url.rpartition('/')[0]}/{name}"


@pytest.fixture(scope="session")
def lake_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Return the settings of an embedded lake in a folder of its own."""
    folder = tmp_path_factory.mktemp("lake")
    (folder / FILE).write_text(_TOML)
    return load(folder)


@pytest.fixture(scope="session")
def lake(lake_settings: Settings) -> Iterator[Lake]:
    """Yield the lake, as calve sees it."""
    opened = Lake(lake_settings)
    yield opened
    opened.close()

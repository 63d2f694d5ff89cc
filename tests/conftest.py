"""What all tests share: how examples are made, a throw-away PostgreSQL, and a lake on disk."""

import uuid
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from calve.lake import Lake
from calve.lake.jars import POSTGRES
from calve.settings import FILE, Settings, load
from calve.testing.postgres import throwaway_postgres

_TOML = f"""
[spark]
master = "local[2]"
driver_memory = "1g"
packages = ["{POSTGRES}"]

[spark.conf]
"spark.sql.shuffle.partitions" = 2
"spark.default.parallelism" = 2
"""

collect_ignore = ["integrations"]
"""Other people's servers, which are fetched first: run if they are named, by ``make test-integrations``."""

# A landing is judged by the same examples each time, and never by how fast they are made.
# New ones: pytest --hypothesis-profile=explore tests/properties
settings.register_profile(
    "landing", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=False
)
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=1_000)
settings.load_profile("landing")


def pytest_configure(config: pytest.Config) -> None:
    """Bear with PySpark, which leaves the socket of every result for Python to close."""
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket.socket:ResourceWarning")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Start a PostgreSQL for this session; yield its address, for SQLAlchemy."""
    with throwaway_postgres() as server:
        yield server.url


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

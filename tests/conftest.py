"""What all tests share: how examples are made, and a throw-away PostgreSQL."""

import uuid
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from calve.testing.postgres import throwaway_postgres

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

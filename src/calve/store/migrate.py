"""Brings the schema of the state database up to date, forward only."""

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, String, column, inspect, select, table
from sqlalchemy.exc import OperationalError, ProgrammingError

from calve.errors import StoreSchemaUnknown
from calve.store.database import Database

HEAD = "0009"
"""The newest revision in ``migrations/versions``; a test holds it against Alembic's own answer."""

VERSION_TABLE = "calve_version"
"""Our own, so that another application of Alembic may share the database."""
_REVISION = select(column("version_num", String)).select_from(table(VERSION_TABLE))
SCRIPTS = Path(__file__).parent / "migrations"


def migrate(database: Database) -> None:
    """Make or upgrade the schema, unless it is up to date; who comes second waits and finds it done.

    Raises:
        StoreSchemaUnknown: the database was written by a newer calve.
    """
    if is_at_head(database):
        return
    with database.write("migrate") as connection:
        database.lock_schema(connection)
        is_new = not inspect(connection).has_table(VERSION_TABLE)
        current = None if is_new else connection.scalar(_REVISION)
        if current != HEAD:
            _upgrade(connection, current, database.shown)


def is_at_head(database: Database) -> bool:
    """Tell by a single query whether the schema is up to date; an error says that somebody has to look closer."""
    with database.read() as connection:
        try:
            return connection.scalar(_REVISION) == HEAD
        except (OperationalError, ProgrammingError):
            return False


def _upgrade(connection: Connection, current: str | None, shown: str) -> None:
    # Alembic takes longer to import than everything else here, and is needed once in a database's life.
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(SCRIPTS))
    if current is not None and current not in {script.revision for script in scripts.walk_revisions()}:
        raise StoreSchemaUnknown(
            f"The state database {shown} has schema {current}; this calve knows {HEAD} and older.",
            remedy="Upgrade calve, or point store.url at another database.",
            revision=current,
            known=HEAD,
        )

    def steps(revision: Any, _context: Any) -> Any:
        return scripts._upgrade_revs(HEAD, revision)  # noqa: SLF001 - what alembic.command.upgrade calls too

    with EnvironmentContext(Config(), scripts, fn=steps, destination_rev=HEAD) as environment:
        environment.configure(connection=connection, version_table=VERSION_TABLE)
        environment.run_migrations()

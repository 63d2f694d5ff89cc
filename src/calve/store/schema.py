"""Creates the schema of the state database from the tables, and upgrades it, forward only.

A new database gets the current tables and the newest revision. Alembic is imported only to upgrade an older one.
"""

from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, MetaData, String, Table, delete, insert, inspect, select
from sqlalchemy.exc import OperationalError, ProgrammingError

from calve.errors import StoreSchemaUnknown
from calve.store.database import Database

FIRST = "0009"
"""The last revision before the first release, where the first migration starts; earlier ones cannot be upgraded."""
HEAD = "0010"
"""The newest revision in ``migrations/versions``; a test compares it with Alembic's answer."""
VERSION_TABLE = "calve_version"
"""A name specific to calve, so that another application of Alembic can share the database."""
SCRIPTS = Path(__file__).parent / "migrations"
_version = Table(VERSION_TABLE, MetaData(), Column("version_num", String(32), primary_key=True))
_REVISION = select(_version.c.version_num)


def migrate(database: Database) -> None:
    """Create or upgrade the schema unless it is current; of several processes, one does it and the others wait.

    Raises:
        StoreSchemaUnknown: the database was written by a newer calve, or long before the first release.
    """
    if is_at_head(database):
        return
    with database.write("migrate") as connection:
        database.lock_schema(connection)
        is_new = not inspect(connection).has_table(VERSION_TABLE)
        current = None if is_new else connection.scalar(_REVISION)
        if current is None:
            _create(connection, has_version=not is_new)
        elif current != HEAD:
            _check(current, database)
            if current == FIRST:  # for Alembic, the first migration starts from nothing
                connection.execute(delete(_version))
            _upgrade(connection)


def is_at_head(database: Database) -> bool:
    """Tell by a single query whether the schema is current; an error means that ``migrate`` must check it."""
    with database.read() as connection:
        try:
            return connection.scalar(_REVISION) == HEAD
        except (OperationalError, ProgrammingError):
            return False


def _create(connection: Connection, *, has_version: bool) -> None:
    from calve.store.tables import metadata

    metadata.create_all(connection, checkfirst=False)
    _version.metadata.create_all(connection, checkfirst=has_version)
    connection.execute(insert(_version).values(version_num=HEAD))


def _check(current: str, database: Database) -> None:
    """Refuse a schema that cannot be upgraded.

    Raises:
        StoreSchemaUnknown: it is newer, or older than ``FIRST``.
    """
    if current > HEAD:
        raise StoreSchemaUnknown(
            f"The state database {database.shown} has schema {current}; this calve knows {HEAD} and older.",
            remedy="Upgrade calve, or point store.url at another database.",
            revision=current,
            known=HEAD,
        )
    if current < FIRST:
        old = f"drop the tables of {database.shown}" if database.file is None else f"move {database.file} away"
        raise StoreSchemaUnknown(
            f"The state database {database.shown} has schema {current} of an unreleased calve; "
            f"this version can upgrade {FIRST} and later.",
            remedy=f"Point store.url at another database, or {old}, and push the workflows again: "
            "captures continue from what their targets hold.",
            revision=current,
            known=HEAD,
        )


def _upgrade(connection: Connection) -> None:
    # Alembic takes longer to import than everything else here.
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(SCRIPTS))

    def steps(revision: Any, _context: Any) -> Any:
        return scripts._upgrade_revs(HEAD, revision)  # noqa: SLF001 - what alembic.command.upgrade calls too

    with EnvironmentContext(Config(), scripts, fn=steps, destination_rev=HEAD) as environment:
        environment.configure(connection=connection, version_table=VERSION_TABLE)
        environment.run_migrations()

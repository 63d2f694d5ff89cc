"""Catalogs in an SQL database: the tables that Iceberg's JDBC catalog and PyIceberg's ``SqlCatalog`` share.

A table's pointer is one row, and a commit is one compare-and-set on it.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Executable,
    MetaData,
    Select,
    String,
    Table,
    create_engine,
    delete,
    event,
    insert,
    inspect,
    make_url,
    select,
    true,
    update,
)
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError
from sqlalchemy.sql.elements import ColumnElement

from calve.errors import LakeError, LakeUnavailable, NotSupportedByCatalog, SettingsInvalid
from calve.folders import is_refusal, not_writable
from calve.lake import metadata as raw
from calve.lake.catalogs import LoadedTable, wall_clock_ms
from calve.lake.metadata_checks import MAX_METADATA_BYTES, decoding
from calve.lake.pointer_catalog import PointerCatalog, taken
from calve.lake.table_name import TableName

_SCHEMA = MetaData()
_TABLES = Table(
    "iceberg_tables",
    _SCHEMA,
    Column("catalog_name", String(255), primary_key=True),
    Column("table_namespace", String(255), primary_key=True),
    Column("table_name", String(255), primary_key=True),
    Column("metadata_location", String(1000)),
    Column("previous_metadata_location", String(1000)),
    Column("iceberg_type", String(5)),
)
_NAMESPACES = Table(
    "iceberg_namespace_properties",
    _SCHEMA,
    Column("catalog_name", String(255), primary_key=True),
    Column("namespace", String(255), primary_key=True),
    Column("property_key", String(255), primary_key=True),
    Column("property_value", String(1000)),
)
_NAMES = 5_000
"""How many names one query asks for; databases limit what a statement may hold."""


class SqlCatalog(PointerCatalog):
    """A catalog in SQLite or PostgreSQL."""

    finds_many_at_once = True

    def __init__(
        self,
        name: str,
        properties: Mapping[str, str],
        *,
        location: str | None = None,
        max_bytes: int = MAX_METADATA_BYTES,
        now_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        """Connect to the database, and create its tables if they are missing."""
        super().__init__(name, properties, location=location, max_bytes=max_bytes, now_ms=now_ms)
        with self._reached():
            url = _patient(make_url(self.properties.get("uri", "")))
            self.properties["uri"] = url.render_as_string(hide_password=False)
            self._engine = _open(url)
            self._has_types = _prepare(self._engine)

    def pointer(self, table: TableName) -> str:
        """Return the location of a table's current metadata."""
        with self._connection() as connection:
            location = connection.scalar(select(_TABLES.c.metadata_location).where(self._row(table, "TABLE")))
        if location is None:
            raise self._view_or_missing(table)
        return str(location)

    def exists(self, table: TableName) -> bool:
        """Tell whether a table exists."""
        return self._exists(table, "TABLE")

    def locations(self, tables: Sequence[TableName]) -> dict[TableName, str]:
        """Return the location of each table's current metadata: one query for thousands of tables."""
        by_row = {(".".join(table.namespace), table.name): table for table in tables}
        namespaces = sorted({namespace for namespace, _ in by_row})
        names = sorted({name for _, name in by_row})
        found: dict[TableName, str] = {}
        with self._connection() as connection:
            for part in (names[start : start + _NAMES] for start in range(0, len(names), _NAMES)):
                for namespace, name, location in connection.execute(self._locations(namespaces, part)):
                    if (table := by_row.get((namespace, name))) is not None:
                        found[table] = location
        return found

    def _locations(self, namespaces: list[str], names: list[str]) -> Select[Any]:
        return select(_TABLES.c.table_namespace, _TABLES.c.table_name, _TABLES.c.metadata_location).where(
            _TABLES.c.catalog_name == self.name,
            _TABLES.c.table_namespace.in_(namespaces),
            _TABLES.c.table_name.in_(names),
            self._typed("TABLE"),
        )

    def register(self, table: TableName, metadata_location: str) -> None:
        """Register a table with existing metadata: one insert, refused by the primary key if the name is taken."""
        self._insert(table, metadata_location, "TABLE")

    def drop(self, table: TableName) -> bool:
        """Remove a table from the catalog, keeping all its files."""
        return self._execute(delete(_TABLES).where(self._row(table, "TABLE"))) > 0

    def register_view(
        self, view: TableName, sql: str, schema: Mapping[str, Any], properties: Mapping[str, str]
    ) -> None:
        """Create a view in Spark's dialect: one small file, one row."""
        if not self._has_types:
            raise NotSupportedByCatalog(
                f"The catalog {self.name} has the old schema (V0), which does not support views.",
                remedy="Open it once in Spark with jdbc.schema-version=V1.",
                catalog=self.name,
            )
        if self._exists(view, "VIEW") or self._exists(view, "TABLE"):
            raise taken(view)
        metadata = raw.view(
            sql=sql,
            schema=schema,
            properties=properties,
            location=self.location_for(view),
            catalog=self.name,
            namespace=view.namespace,
            unique=str(uuid.uuid4()),
            now_ms=self._now_ms(),
        )
        self.files.write(self.view_file(view), raw.encode(metadata))
        self._insert(view, self.view_file(view), "VIEW")

    def drop_view(self, view: TableName) -> bool:
        """Remove a view from the catalog, keeping its file."""
        return self._has_types and self._execute(delete(_TABLES).where(self._row(view, "VIEW"))) > 0

    def namespace_location(self, namespace: tuple[str, ...]) -> str | None:
        """Return the ``location`` property of a namespace."""
        where = self._namespace(namespace) & (_NAMESPACES.c.property_key == "location")
        with self._connection() as connection:
            return connection.scalar(select(_NAMESPACES.c.property_value).where(where))

    def namespaces(self) -> list[tuple[str, ...]]:
        """Return the namespaces that hold tables."""
        query = select(_TABLES.c.table_namespace).where(_TABLES.c.catalog_name == self.name).distinct()
        with self._connection() as connection:
            return [tuple(namespace.split(".")) for namespace in connection.scalars(query)]

    def tables(self, namespace: tuple[str, ...] = ()) -> list[str]:  # noqa: ARG002 - all cost the same
        """Return the names of all tables."""
        query = select(_TABLES.c.table_namespace, _TABLES.c.table_name).where(
            _TABLES.c.catalog_name == self.name, self._typed("TABLE")
        )
        with self._connection() as connection:
            return [f"{namespace}.{name}" for namespace, name in connection.execute(query)]

    def close(self) -> None:
        """Close the connections."""
        super().close()
        self._engine.dispose()

    def swap(self, base: LoadedTable, edited: raw.Metadata, location: str) -> bool:  # noqa: ARG002 - a row has no more
        """Compare and set: one update of one row."""
        old = base.metadata_location
        where = (self._row(base.name, "TABLE"), _TABLES.c.metadata_location == old)
        new = {"metadata_location": location, "previous_metadata_location": old}
        return self._execute(update(_TABLES).where(*where).values(new)) > 0

    def _insert(self, table: TableName, metadata_location: str, kind: str) -> None:
        namespace = {"catalog_name": self.name, "namespace": ".".join(table.namespace)}
        row = {
            "catalog_name": self.name,
            "table_namespace": namespace["namespace"],
            "table_name": table.name,
            "metadata_location": metadata_location,
        }
        with self._connection() as connection:
            known = connection.scalar(select(true()).where(self._namespace(table.namespace)).limit(1))
        if not known:
            # A namespace is there if it has any property; Java and PyIceberg use this one for an empty namespace.
            made = insert(_NAMESPACES).values(**namespace, property_key="exists", property_value="true")
            with suppress(IntegrityError):  # another process created it meanwhile
                self._execute(made)
        try:
            self._execute(insert(_TABLES).values(row | ({"iceberg_type": kind} if self._has_types else {})))
        except IntegrityError as error:
            raise taken(table) from error

    def _view_or_missing(self, table: TableName) -> LakeError:
        """Return the error for a view where a table was expected, or for a missing table."""
        if not self._has_types or not self._exists(table, "VIEW"):
            return self._missing(table)
        with self._connection() as connection:
            location = connection.scalar(select(_TABLES.c.metadata_location).where(self._row(table, "VIEW")))
        try:
            content = self.files.read(str(location))
            with decoding(str(location)):
                document = raw.parse(content, self.files.max_bytes)
                shown = [each for version in document.get("versions", ()) for each in version["representations"]]
                return self._is_view(table, str(shown[-1].get("sql", "")) if shown else "")
        except LakeError:
            return self._is_view(table)

    def _exists(self, table: TableName, kind: str) -> bool:
        with self._connection() as connection:
            return bool(connection.scalar(select(true()).where(self._row(table, kind))))

    def _row(self, table: TableName, kind: str) -> ColumnElement[bool]:
        return (
            (_TABLES.c.catalog_name == self.name)
            & (_TABLES.c.table_namespace == ".".join(table.namespace))
            & (_TABLES.c.table_name == table.name)
            & self._typed(kind)
        )

    def _typed(self, kind: str) -> ColumnElement[bool]:
        if not self._has_types:
            return true()
        is_kind = _TABLES.c.iceberg_type == kind
        # Rows of clients that still write schema V0 have no type: they are tables.
        return is_kind | _TABLES.c.iceberg_type.is_(None) if kind == "TABLE" else is_kind

    def _namespace(self, namespace: tuple[str, ...]) -> ColumnElement[bool]:
        return (_NAMESPACES.c.catalog_name == self.name) & (_NAMESPACES.c.namespace == ".".join(namespace))

    def _execute(self, statement: Executable) -> int:
        with self._connection() as connection:
            return connection.execute(statement).rowcount

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        with self._reached(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Turn errors of the database into errors that name the catalog."""
        try:
            yield
        except IntegrityError:
            raise
        except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
            raise SettingsInvalid(
                f"The uri of the catalog {self.name} cannot be used: {error}", catalog=self.name
            ) from error
        except (DBAPIError, OSError) as error:
            cause = getattr(error, "orig", error)
            name = str(getattr(cause, "sqlite_errorname", ""))
            if is_refusal(error) or name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
                refused = error if isinstance(error, OSError) else OSError(None, str(cause))
                where = refused.filename or str(_sqlite_file(make_url(self.properties["uri"])))
                raise not_writable(f"The catalog {self.name}", where, refused, f"catalogs.{self.name}.uri") from error
            raise LakeUnavailable(f"The catalog {self.name} cannot be reached: {cause}", catalog=self.name) from error


def _patient(url: URL) -> URL:
    """Let SQLite wait 30 s for locks, unless the address says how long."""
    if url.get_backend_name() != "sqlite" or "timeout" in url.query:
        return url
    return url.update_query_dict({"timeout": "30"})


def _open(url: URL) -> Engine:
    """Return an engine; in SQLite, readers do not wait for writers (WAL)."""
    file = _sqlite_file(url)
    if file is None:
        return create_engine(url, pool_pre_ping=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url)

    @event.listens_for(engine, "connect")
    def use_wal(connection: Any, _: object) -> None:
        connection.execute("PRAGMA journal_mode=WAL").close()

    return engine


def _sqlite_file(url: URL) -> Path | None:
    is_file = url.get_backend_name() == "sqlite" and url.database not in {None, "", ":memory:"}
    return Path(str(url.database)) if is_file else None


def _prepare(engine: Engine) -> bool:
    """Create the tables if they are missing; tell whether rows have a type (schema V1)."""
    try:
        columns = inspect(engine).get_columns(_TABLES.name) if inspect(engine).has_table(_TABLES.name) else None
        if columns is None:
            _SCHEMA.create_all(engine)
    except DBAPIError:
        if not inspect(engine).has_table(_TABLES.name):
            raise
        columns = None  # another process created them meanwhile
    return columns is None or any(column["name"] == "iceberg_type" for column in columns)

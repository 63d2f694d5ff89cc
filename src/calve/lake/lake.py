"""The lake: every catalog that the settings name."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from threading import Lock

from calve.errors import CalveError, CatalogUnknown
from calve.lake.catalogs import Catalog, LoadedTable
from calve.lake.table_name import TableName
from calve.settings import Settings


class Lake:
    """Opens catalogs on first use; safe for several threads."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._open: dict[str, Catalog] = {}
        self._lock = Lock()

    @property
    def default_catalog(self) -> str:
        """The catalog of names without one."""
        return self.settings.default_catalog

    @cached_property
    def catalog_names(self) -> tuple[str, ...]:
        """All catalogs, the default one first."""
        others = (name for name in self.settings.catalogs if name != self.default_catalog)
        return (self.default_catalog, *others)

    def parse(self, text: str) -> TableName:
        """Read ``table``, ``namespace.table`` or ``catalog.namespace.table``."""
        return TableName.parse(text, self.catalog_names, self.settings.default_namespace)

    def catalog(self, name: str) -> Catalog:
        """Return a catalog by its name.

        Raises:
            CatalogUnknown: the settings have none of that name.
        """
        with self._lock:
            if name not in self._open:
                self._open[name] = self._opened(name)
                self._open[name].catalogs = self.catalog_names
            return self._open[name]

    def load_all(self, tables: Iterable[TableName]) -> Iterator[tuple[TableName, LoadedTable | CalveError]]:
        """Yield the current metadata of tables, or the error of those that cannot be loaded, a few at a time."""
        for name, some in groupby(sorted(set(tables)), key=attrgetter("catalog")):
            names = list(some)
            try:
                catalog = self.catalog(name)
            except CalveError as error:
                yield from ((table, error) for table in names)
            else:
                yield from catalog.load_all(names)

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            while self._open:
                self._open.popitem()[1].close()

    def _opened(self, name: str) -> Catalog:
        if name not in self.settings.catalogs:
            raise CatalogUnknown(
                f"There is no catalog {name}.",
                remedy=f"The settings define these catalogs: {', '.join(self.catalog_names)}.",
                catalog=name,
            )
        definition = self.settings.catalogs[name]
        location, max_bytes = self.settings.capture.location, self.settings.lake.max_metadata_bytes
        match definition.kind:
            case "sql":
                from calve.lake.sql_catalog import SqlCatalog

                return SqlCatalog(name, definition.properties, location=location, max_bytes=max_bytes)
            case "rest":
                from calve.lake.rest_catalog import RestCatalog

                own = self.settings.capture.namespace
                return RestCatalog(name, definition.properties, location=location, namespace=own, max_bytes=max_bytes)
            case "hive":
                from calve.lake.hive_catalog import HiveCatalog

                return HiveCatalog(name, definition.properties, location=location, max_bytes=max_bytes)
            case "glue":
                from calve.lake.glue_catalog import GlueCatalog

                return GlueCatalog(name, definition.properties, location=location, max_bytes=max_bytes)
            case other:  # the settings refuse it
                raise AssertionError(other)

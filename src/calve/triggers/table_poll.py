"""Polling of tables for changes, from metadata only: its location changes with every commit."""

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping

from calve.errors import CalveError, LakeError
from calve.lake import Lake, TableName

log = logging.getLogger(__name__)
Locations = Mapping[TableName, str | None]


def keep_polling(poll: Callable[[], object], interval: float, stop: threading.Event) -> None:
    """Poll at an interval until ``stop`` is set; a failure is logged, and the next poll tries again."""
    while not stop.is_set():
        try:
            poll()
        except CalveError as error:
            log.warning("%s", error.message)
        except Exception:
            log.exception("tables cannot be checked")
        stop.wait(interval)


def locations_of(lake: Lake, tables: set[TableName]) -> Locations:
    """Return the metadata locations of tables, None for missing ones; tables of unreachable catalogs are left out."""
    by_catalog: defaultdict[str, list[TableName]] = defaultdict(list)
    for table in sorted(tables):
        by_catalog[table.catalog].append(table)
    found: dict[TableName, str | None] = {}
    for catalog, names in by_catalog.items():
        try:
            known = lake.catalog(catalog).locations(names)
        except LakeError as error:
            log.warning("%s", error.message)
            continue
        found |= {name: known.get(name) for name in names}
    return found

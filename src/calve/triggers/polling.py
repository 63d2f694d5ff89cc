"""Looking at tables again and again, from metadata only: where it lies moves with every commit."""

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping

from calve.errors import CalveError, LakeError
from calve.lake import Lake, TableName

log = logging.getLogger(__name__)

Locations = Mapping[TableName, str | None]


def keep_polling(poll: Callable[[], object], interval: float, stop: threading.Event) -> None:
    """Poll every so many seconds until ``stop`` is set; a poll that fails is told, and the next one comes."""
    while not stop.is_set():
        try:
            poll()
        except CalveError as error:
            log.warning("%s", error.message)
        except Exception:
            log.exception("tables cannot be looked at")
        stop.wait(interval)


def locations_of(lake: Lake, tables: set[TableName]) -> Locations:
    """Return where tables' metadata lies, None for those that are not there; without catalogs that are away."""
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

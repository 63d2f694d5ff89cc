"""Services for tests of runtimes, on a project of their own."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.no_deliveries import NoDeliveries

from calve.app import captures_on, open_lake
from calve.settings import load
from calve.steps import Services, Workspace
from calve.store import open_store


@contextmanager
def services_in(folder: Path) -> Iterator[Services]:
    """Open the lake and the state database of a project, and return what runtimes are given there."""
    settings = load(folder, {})
    with open_lake(settings) as lake, open_store(settings.store.url) as store:
        yield Services(
            clock=lambda: 0,
            workspace=Workspace(folder, {}, sys.executable),
            settings=settings,
            lake=lake,
            captures=captures_on(lake, store),
            deliveries=NoDeliveries(),
        )

"""Captures and deliveries: a lake, and the store that keeps how far they have come."""

from contextlib import contextmanager
from typing import TYPE_CHECKING

from calve.app.clocks import utc_now
from calve.app.ids import new_id
from calve.errors import RequestInvalid
from calve.folders import close_to_others
from calve.namespaces import ROOT, namespace_of
from calve.settings import Settings, load
from calve.store import Store, open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calve.capture import Captures
    from calve.delivery import Deliveries
    from calve.lake import CurrentRights, Lake


@contextmanager
def open_captures(settings: Settings | None = None) -> "Iterator[Captures]":
    """Open the lake and the state database of a project, ready to capture.

    >>> with open_captures() as captures:  # doctest: +SKIP
    ...     change = captures.capture(["db.events"], consumer="daily")
    ...     spark.sql(f"INSERT INTO db.target SELECT * FROM {change.tables[0].relation}")
    ...     captures.commit(change.capture_id)
    """
    settings = settings or load()
    with open_lake(settings) as lake, open_store(settings.store.url) as store:
        yield captures_on(lake, store)


@contextmanager
def open_deliveries(settings: Settings) -> "Iterator[Deliveries]":
    """Open the lake and the state database of a project, ready to deliver."""
    with open_lake(settings) as lake, open_store(settings.store.url) as store:
        yield deliveries_on(lake, store)


@contextmanager
def open_lake(settings: Settings) -> "Iterator[Lake]":
    """Open the lake of a project; its catalogs are opened when they are first asked for."""
    from calve.lake import Lake

    _close_home(settings)
    lake = Lake(settings)
    try:
        yield lake
    finally:
        lake.close()
        _close_home(settings)  # it may have been made meanwhile, with the first table


def _close_home(settings: Settings) -> None:
    """Let nobody but the owner into the folder for state, unless the project itself lies in it, and read the key.

    Programs that run as other users have to pass through it, to the folders of their attempts.
    """
    home = settings.home.resolve()
    if not settings.project.resolve().is_relative_to(home):
        close_to_others(home, but=0o011 if settings.worker.run_as else 0)
    close_to_others(settings.secret_store.key_file)


def captures_on(lake: "Lake", store: Store) -> "Captures":
    """Return what captures changes of a lake, and keeps its checkpoints in a store."""
    from calve.capture import CaptureOptions, Captures

    options = CaptureOptions(lake.settings.capture.namespace, lake.settings.capture.lease_max_age)
    tables = table_rights_on(lake, store)
    return Captures(lake, store.captures, clock=utc_now, new_id=new_id, options=options, tables=tables)


def deliveries_on(lake: "Lake", store: Store) -> "Deliveries":
    """Return what delivers to the tables of a lake exactly once."""
    from calve.delivery import Deliveries

    tables = table_rights_on(lake, store)
    return Deliveries(lake, store.deliveries, store.captures, clock=utc_now, new_id=new_id, tables=tables)


def table_rights_on(lake: "Lake", store: Store) -> "CurrentRights":
    """Return what tells which namespace may use which tables now."""
    from calve.lake import Right, TableRights

    given = lake.settings.access.tables
    rights = TableRights(
        is_closed=True,
        patterns={Right.READ: given.read, Right.CAPTURE: given.capture, Right.WRITE: given.write},
        catalogs=lake.catalog_names,
    )
    return lambda: rights if has_closed_tables(store, lake.settings) else TableRights()


def has_closed_tables(store: Store | None, settings: Settings) -> bool:
    """Tell whether a namespace may use the tables that it is granted only."""
    policy = settings.access.tables.policy
    return policy == "closed" or (policy == "auto" and has_namespaces(store, settings))


def has_namespaces(store: Store | None, settings: Settings) -> bool:
    """Tell whether somebody has a role in a namespace only, so that namespaces are of different people.

    Where there is no state yet, only an identity provider can have named anybody.
    """
    is_known = store is not None and store.access.has_namespaces()
    return is_known or any("@" in roles for roles in settings.access.oidc.roles.values())


def may_read(lake: "Lake", rights: "CurrentRights", workflow_id: str, table: str) -> bool:
    """Tell whether a workflow may read a table; a name that is none is for those who may read all."""
    from calve.lake import Right

    held, namespace = rights(), namespace_of(workflow_id)
    try:
        name = lake.parse(table)
    except RequestInvalid:
        return namespace == ROOT or not held.is_closed
    return held.allow(namespace, Right.READ, name)

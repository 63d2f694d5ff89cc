"""Captures and deliveries of a lake, with their state in a store."""

from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from calve.app.host import new_id, utc_now
from calve.errors import RequestInvalid
from calve.folders import close_to_others
from calve.imports import take_turns
from calve.namespaces import ROOT, namespace_of
from calve.settings import Settings, load
from calve.store import Store, open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calve.capture import Captures
    from calve.capture.inspection import Tables
    from calve.delivery import Deliveries
    from calve.lake import CurrentRights, Lake, TableName


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
def open_lake(settings: Settings) -> "Iterator[Lake]":
    """Open the lake of a project; each catalog is opened when it is first used."""
    from calve.lake import Lake

    take_turns()  # here, since whatever starts threads has opened a lake before
    _close_home(settings)
    lake = Lake(settings)
    try:
        yield lake
    finally:
        lake.close()
        _close_home(settings)  # the first table may have created it


def _close_home(settings: Settings) -> None:
    """Deny other users access to the key, and to the state folder unless the project is inside of that folder.

    With ``worker.run_as``, other users may still pass through the state folder to their working folders.
    """
    home = settings.home.resolve()
    if not settings.project.resolve().is_relative_to(home):
        close_to_others(home, but=0o011 if settings.worker.run_as else 0)
    close_to_others(settings.secret_store.key_file)


def captures_on(lake: "Lake", store: Store) -> "Captures":
    """Return the captures of a lake, with their checkpoints in a store."""
    from calve.capture import CaptureOptions, Captures

    options = CaptureOptions(lake.settings.capture.namespace, lake.settings.capture.lease_max_age)
    tables = table_rights_on(lake, store)
    return Captures(lake, store.captures, clock=utc_now, new_id=new_id, options=options, tables=tables)


def tables_on(lake: "Lake", store: Store) -> "Tables":
    """Return the tables of a lake: their history, and who reads and writes them."""
    from calve.capture.inspection import Tables, TableServices

    rights, watches = table_rights_on(lake, store), partial(_watches, lake, store)
    return Tables(TableServices(lake, store.captures, store.deliveries, watches, store.lag_samples, utc_now, rights))


def _watches(lake: "Lake", store: Store) -> "Iterator[tuple[str, TableName]]":
    """Yield each workflow with a table that one of its triggers watches."""
    from calve.triggers import TriggerType, all_triggers

    for trigger in all_triggers(store.triggers, TriggerType.INCREMENTAL):
        for text in trigger.definition.get("source_tables", ()):
            with suppress(RequestInvalid):  # the trigger itself reports an invalid name
                yield trigger.workflow_id, lake.parse(text)


def deliveries_on(lake: "Lake", store: Store) -> "Deliveries":
    """Return the deliveries to tables of a lake."""
    from calve.delivery import Deliveries

    tables = table_rights_on(lake, store)
    return Deliveries(lake, store.deliveries, store.captures, clock=utc_now, new_id=new_id, tables=tables)


def table_rights_on(lake: "Lake", store: Store) -> "CurrentRights":
    """Return a function that returns the current rights of namespaces to tables."""
    from calve.lake import Right, TableRights

    given = lake.settings.access.tables
    rights = TableRights(
        is_closed=True,
        patterns={Right.READ: given.read, Right.CAPTURE: given.capture, Right.WRITE: given.write},
        catalogs=lake.catalog_names,
    )
    return lambda: rights if has_closed_tables(store, lake.settings) else TableRights()


def has_closed_tables(store: Store | None, settings: Settings) -> bool:
    """Tell whether namespaces may use only the tables that the settings grant them."""
    policy = settings.access.tables.policy
    return policy == "closed" or (policy == "auto" and has_namespaces(store, settings))


def has_namespaces(store: Store | None, settings: Settings) -> bool:
    """Tell whether a user may have a role that is limited to a namespace, so that namespaces separate people.

    Without a state database, only an identity provider can have such users.
    """
    is_known = store is not None and store.access.has_namespaces()
    return is_known or any("@" in roles for roles in settings.access.oidc.roles.values())


def may_read(lake: "Lake", rights: "CurrentRights", workflow_id: str, table: str) -> bool:
    """Tell whether a workflow may read a table; an invalid name requires the right to read all tables."""
    from calve.lake import Right

    held, namespace = rights(), namespace_of(workflow_id)
    try:
        name = lake.parse(table)
    except RequestInvalid:
        return namespace == ROOT or not held.is_closed
    return held.allow(namespace, Right.READ, name)

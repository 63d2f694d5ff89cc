"""From a change to the tables that hold it: which to make, what they are called, and the SQL to read them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from calve.capture import relations
from calve.capture.changes import TableChange
from calve.capture.icdc import NewTable, Site, clone, equality_keys, removed_rows
from calve.capture.model import Exactness, Mode, Operation
from calve.capture.report import DeleteKeys, Names
from calve.capture.selection import Placed
from calve.errors import RequestInvalid
from calve.lake import TableName


@dataclass(frozen=True, slots=True)
class Maker:
    """Says where new tables of one catalog go."""

    base: TableName
    """The name of the ICDC table; those beside it get a suffix."""
    location: str
    properties: Mapping[str, str]
    now_ms: int
    default_catalog: str

    def site(self, suffix: str = "") -> Site:
        """Return the place of the ICDC table, or of one beside it."""
        name = TableName(self.base.catalog, self.base.namespace, self.base.name + suffix)
        return Site(name, self.location + suffix, self.properties, self.now_ms)

    def called(self, table: NewTable) -> str:
        """Return what a user of the default catalog calls a table, in SQL and elsewhere."""
        return table.name.short(self.default_catalog)


DELETES, CARRIED, KEYS = "_deletes", "_carried", "_keys"


def make(change: TableChange, maker: Maker) -> tuple[list[NewTable], Names]:
    """Return the tables of a change, unwritten, and their names."""
    source, net = change.source, change.net
    upserts = clone(source, maker.site(), change.data, change.deletes)
    name = maker.called(upserts)
    if net is None or change.start is None:
        return [upserts], Names(name, relation=name, metadata_location=upserts.metadata_location)
    tables = [upserts]
    carried = removed = None
    if net.carried:
        carried = clone(source, maker.site(CARRIED), net.carried, net.carried_deletes)
        tables.append(carried)
    if net.removed:
        removed = removed_rows(source, maker.site(DELETES), net.removed, net.removed_deletes)
        tables.append(removed)
    keys: list[DeleteKeys] = []
    for number, (ids, deletes) in enumerate(_by_key(net.equality_deletes)):
        made = equality_keys(source, maker.site(f"{KEYS}{number or ''}"), ids, deletes)
        columns = tuple(field["name"] for field in source.schema["fields"] if field["id"] in ids)
        keys.append(DeleteKeys(maker.called(made), columns))
        tables.append(made)
    deletes_name = maker.called(removed) if removed else None
    carried_name = maker.called(carried) if carried else None
    names = Names(
        icdc_table=name,
        relation=_relation(change, name, deletes_name),
        filter=relations.changed_since(change.start.sequence_number)
        if change.exactness is Exactness.EXACT_WITH_FILTER
        else None,
        deletes_table=deletes_name,
        deletes_relation=_deletes_relation(change, name, deletes_name, carried_name, keys),
        carried_table=carried_name,
        delete_keys=tuple(keys),
        metadata_location=upserts.metadata_location,
    )
    return tables, names


def by_path(tables: Sequence[NewTable], names: Names, default_catalog: str) -> Names:
    """Return names with the path of each table's metadata in place of what no catalog will know."""
    paths = {table.name.short(default_catalog): table.metadata_location for table in tables}
    return replace(
        names,
        icdc_table=names.metadata_location,
        relation=None,
        deletes_table=paths.get(names.deletes_table or ""),
        deletes_relation=None,
        carried_table=paths.get(names.carried_table or ""),
        delete_keys=tuple(replace(keys, table=paths[keys.table]) for keys in names.delete_keys),
    )


def _by_key(deletes: tuple[Placed, ...]) -> list[tuple[list[int], list[Placed]]]:
    """Return equality deletes grouped by the columns they compare."""

    def key(placed: Placed) -> list[int]:
        return sorted(placed[1].equality_ids or ())

    return [(ids, list(group)) for ids, group in groupby(sorted(deletes, key=key), key=key)]


def _relation(change: TableChange, upserts: str, deletes: str | None) -> str:
    """Return what gives exactly the new and changed rows."""
    start = change.start.sequence_number if change.start else 0
    match change.exactness:
        case Exactness.EXACT:
            return upserts
        case Exactness.EXACT_WITH_FILTER:
            return relations.filtered(upserts, relations.changed_since(start))
        case Exactness.EXCEPT_ALL:
            if deletes is None or not change.files:
                return upserts
            return relations.difference(change.source.schema, upserts, [deletes], change.source.name)


def _deletes_relation(
    change: TableChange, upserts: str, deletes: str | None, carried: str | None, keys: list[DeleteKeys]
) -> str | None:
    """Return what gives exactly the rows that left; None where nothing left, or where only keys are known."""
    if change.net is None or change.start is None:
        return None
    schema, name = change.source.schema, change.source.name
    if keys:
        if change.exactness is not Exactness.EXACT or not _keys_tell_rows(change):
            return None
        before = f"(SELECT * FROM {name.sql()} VERSION AS OF {change.start.snapshot_id})"
        return relations.left_by_keys(schema, before, deletes, {key.table: key.columns for key in keys})
    if deletes is None:
        return None
    others = [table for table in (upserts, carried) if table]
    match change.exactness:
        case Exactness.EXACT:
            return deletes
        case Exactness.EXACT_WITH_FILTER if change.net.row_ids_hold:
            return relations.left_by_row_id(schema, deletes, others, change.start.sequence_number)
        case _:
            return relations.difference(schema, deletes, others, name)


def _keys_tell_rows(change: TableChange) -> bool:
    """Tell whether the rows that left are just those of the start, as it can be read, that have one of the keys.

    A key deletes only in its own partition, unless that follows from the key, or the table has none.
    """
    source, net, start = change.source, change.net, change.start
    if net is None or start is None or start.snapshot_id not in source.snapshots:
        return False
    if source.snapshots[start.snapshot_id].get("schema-id") != source.schema_id:  # read with the schema of then
        return False
    for manifest, entry in net.equality_deletes:
        by = {field["source-id"] for field in source.specs[manifest.file.partition_spec_id]}
        if by and not (len(source.specs) == 1 and by <= set(entry.equality_ids or ())):
            return False
    return True


def view_sql(change: TableChange) -> str:
    """Return the query of a view over the source that shows the change; it references no file at all.

    Raises:
        RequestInvalid: the change is more than whole appends, which such a view would show wrongly.
    """
    name = change.source.name
    plain = all(step.operation in {Operation.APPEND, Operation.REPLACE} for step in change.steps if change.start)
    if not plain or change.to.pending is not None or (change.start and change.start.pending):
        raise RequestInvalid(
            f"{name}: mode {Mode.VIEW} shows whole append snapshots only, and this change is more.",
            remedy="Use mode table.",
            table=str(name),
        )
    columns = relations.columns(change.source.schema)
    if change.to.snapshot_id is None or (change.start and change.start.snapshot_id == change.to.snapshot_id):
        return f"SELECT {columns} FROM {name.sql()} WHERE false"
    if change.start is None:
        return f"SELECT {columns} FROM {name.sql()} VERSION AS OF {change.to.snapshot_id}"
    start = f"`start-snapshot-id`='{change.start.snapshot_id}', " if change.start.snapshot_id else ""
    return f"SELECT {columns} FROM {name.sql()} WITH ({start}`end-snapshot-id`='{change.to.snapshot_id}')"

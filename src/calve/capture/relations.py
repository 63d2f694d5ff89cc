"""Spark SQL for exactly the rows that changed: what goes after FROM or USING. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from calve.capture.appends import Placed
from calve.capture.changes import TableChange
from calve.capture.icdc import NewTable, Site, clone, equality_keys, removed_rows
from calve.capture.model import Exactness, Mode, Operation
from calve.capture.report import DeleteKeys, Names
from calve.errors import ChangeUnsupported, RequestInvalid
from calve.lake import TableName
from calve.texts import quoted

LINEAGE = "_last_updated_sequence_number"


def columns(schema: Mapping[str, Any]) -> str:
    """Return the columns of a schema, quoted."""
    return ", ".join(quoted(field["name"]) for field in schema["fields"])


def changed_since(sequence_number: int) -> str:
    """Return the predicate for rows that came or changed after a sequence number."""
    return f"{LINEAGE} > {sequence_number}"


def filtered(table: str, predicate: str) -> str:
    """Return the rows of a table for which a predicate holds."""
    return f"(SELECT * FROM {table} WHERE {predicate})"


def difference(schema: Mapping[str, Any], minuend: str, subtrahends: Sequence[str], source: TableName) -> str:
    """Return the rows of one table that are not in others, duplicates counted."""
    comparable, restored = _comparable(schema, source)
    others = " UNION ALL ".join(f"SELECT {comparable} FROM {table}" for table in subtrahends)
    # ALL: rows may be duplicates, and each copy counts.
    return f"(SELECT {restored} FROM (SELECT {comparable} FROM {minuend} EXCEPT ALL ({others})))"


def left_by_row_id(schema: Mapping[str, Any], removed: str, carried: Sequence[str], sequence_number: int) -> str:
    """Return the removed rows that no file of ``carried`` holds unchanged."""
    held = " UNION ALL ".join(
        f"SELECT _row_id AS calve_held FROM {table} WHERE {LINEAGE} <= {sequence_number}" for table in carried
    )
    return (
        f"(SELECT {columns(schema)} FROM (SELECT *, _row_id AS calve_row FROM {removed}) "
        f"LEFT ANTI JOIN ({held}) ON calve_row = calve_held)"
    )


def left_by_keys(schema: Mapping[str, Any], start: str, removed: str | None, keys: Mapping[str, Sequence[str]]) -> str:
    """Return the rows of the start that match a key of any table of keys, and the other removed rows."""
    names = columns(schema)

    def equal(named: Sequence[str]) -> str:
        # <=>, null-safe: an equality delete with null in its key deletes the rows with null there (Iceberg spec,
        # "Equality delete files").
        return " AND ".join(f"t.{quoted(name)} <=> k.{quoted(name)}" for name in named)

    matches = " OR ".join(f"EXISTS (SELECT 1 FROM {table} k WHERE {equal(named)})" for table, named in keys.items())
    parts = [f"SELECT {names} FROM {start} t WHERE {matches}"]
    if removed is not None:
        parts.append(f"SELECT {names} FROM {removed} t WHERE NOT ({matches})")
    return f"({' UNION ALL '.join(parts)})"


def _comparable(schema: Mapping[str, Any], source: TableName) -> tuple[str, str]:
    """Return the columns in a form that can be compared, and back: Spark cannot compare maps, so they become arrays."""
    there, back = [], []
    for field in schema["fields"]:
        name, kind = quoted(field["name"]), field["type"]
        if (
            isinstance(kind, dict)
            and kind["type"] == "map"
            and not _has_map(kind["key"])
            and not _has_map(kind["value"])
        ):
            there.append(f"array_sort(map_entries({name})) AS {name}")
            back.append(f"map_from_entries({name}) AS {name}")
        elif _has_map(kind):
            raise ChangeUnsupported(
                f"{source}: {field['name']} holds a map or a variant inside another value, and rows with it cannot be "
                "compared, which an exact change needs here.",
                remedy="Write the table merge-on-read, or upgrade it to format v3.",
                table=str(source),
                column=field["name"],
            )
        else:
            there.append(name)
            back.append(name)
    return ", ".join(there), ", ".join(back)


def _has_map(kind: Any) -> bool:
    if isinstance(kind, str):
        return kind.startswith(("variant", "geometry", "geography"))
    match kind["type"]:
        case "map":
            return True
        case "list":
            return _has_map(kind["element"])
        case _:
            return any(_has_map(field["type"]) for field in kind["fields"])


@dataclass(frozen=True, slots=True)
class Maker:
    """Names the new tables of a change and places them."""

    base: TableName
    """The name of the ICDC table; those beside it get a suffix."""
    location: str
    properties: Mapping[str, str]
    now_ms: int
    default_catalog: str

    def site(self, suffix: str = "") -> Site:
        """Return where the ICDC table goes, or one beside it."""
        name = TableName(self.base.catalog, self.base.namespace, self.base.name + suffix)
        return Site(name, self.location + suffix, self.properties, self.now_ms)

    def called(self, table: NewTable) -> str:
        """Return the name of a table for users of the default catalog."""
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
        filter=changed_since(change.start.sequence_number) if change.exactness is Exactness.EXACT_WITH_FILTER else None,
        deletes_table=deletes_name,
        deletes_relation=_deletes_relation(change, name, deletes_name, carried_name, keys),
        carried_table=carried_name,
        delete_keys=tuple(keys),
        metadata_location=upserts.metadata_location,
    )
    return tables, names


def by_path(tables: Sequence[NewTable], names: Names, default_catalog: str) -> Names:
    """Return names with the path of each table's metadata, for tables that no catalog knows."""
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
    """Return the relation of exactly the new and changed rows."""
    start = change.start.sequence_number if change.start else 0
    match change.exactness:
        case Exactness.EXACT:
            return upserts
        case Exactness.EXACT_WITH_FILTER:
            return filtered(upserts, changed_since(start))
        case Exactness.EXCEPT_ALL:
            if deletes is None or not change.files:
                return upserts
            return difference(change.source.schema, upserts, [deletes], change.source.name)


def _deletes_relation(
    change: TableChange, upserts: str, deletes: str | None, carried: str | None, keys: list[DeleteKeys]
) -> str | None:
    """Return the relation of exactly the rows that left; None if none left, or if only keys are known."""
    if change.net is None or change.start is None:
        return None
    schema, name = change.source.schema, change.source.name
    if keys:
        if change.exactness is not Exactness.EXACT or not _keys_tell_rows(change):
            return None
        before = f"(SELECT * FROM {name.sql()} VERSION AS OF {change.start.snapshot_id})"
        return left_by_keys(schema, before, deletes, {key.table: key.columns for key in keys})
    if deletes is None:
        return None
    others = [table for table in (upserts, carried) if table]
    match change.exactness:
        case Exactness.EXACT:
            return deletes
        # Iceberg 1.11.0 changes every _row_id when it rewrites manifests: then only whole rows can be compared.
        case Exactness.EXACT_WITH_FILTER if change.net.row_ids_hold:
            return left_by_row_id(schema, deletes, others, change.start.sequence_number)
        case _:
            return difference(schema, deletes, others, name)


def _keys_tell_rows(change: TableChange) -> bool:
    """Tell whether the rows that left are exactly those of the start, as it can be read now, that have one of the keys.

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
    selected = columns(change.source.schema)
    if change.to.snapshot_id is None or (change.start and change.start.snapshot_id == change.to.snapshot_id):
        return f"SELECT {selected} FROM {name.sql()} WHERE false"
    if change.start is None:
        return f"SELECT {selected} FROM {name.sql()} VERSION AS OF {change.to.snapshot_id}"
    start = f"`start-snapshot-id`='{change.start.snapshot_id}', " if change.start.snapshot_id else ""
    return f"SELECT {selected} FROM {name.sql()} WITH ({start}`end-snapshot-id`='{change.to.snapshot_id}')"

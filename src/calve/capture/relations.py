"""Spark SQL for exactly the rows that changed, for use after FROM or USING. Pure."""

from collections.abc import Callable, Mapping, Sequence
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
    """Return the predicate for rows that were added or changed after a sequence number."""
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
    """Return the removed rows that no file of ``carried`` contains unchanged."""
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


def check_comparable(change: TableChange) -> None:
    """Refuse a change whose rows would have to be compared, but cannot be; ``make`` would refuse it too.

    Raises:
        ChangeUnsupported: the message names the column.
    """
    if change.exactness is Exactness.EXCEPT_ALL and change.removed:
        _comparable(change.source.schema, change.source.name)


def _comparable(schema: Mapping[str, Any], source: TableName) -> tuple[str, str]:
    """Return the columns in a form that can be compared, and back: Spark cannot compare maps, so they become arrays."""
    there, back = [], []
    for field in schema["fields"]:
        name, kind = quoted(field["name"]), field["type"]
        if (found := _incomparable(kind)) is not None:
            raise ChangeUnsupported(
                f"{source}: {field['name']} contains a {found}, and rows with one cannot be compared, which an exact "
                "change needs here.",
                remedy="Upgrade the table to format v3, whose row lineage needs no comparison, or write it "
                "merge-on-read; ranges of the change (mode range) are exact without it.",
                table=str(source),
                column=field["name"],
            )
        there.append(f"{_entries(kind, name)} AS {name}" if _has_map(kind) else name)
        back.append(f"{_maps(kind, name)} AS {name}" if _has_map(kind) else name)
    return ", ".join(there), ", ".join(back)


def _incomparable(kind: Any) -> str | None:
    """Return the type inside a type that cannot be made comparable; None if there is none."""
    if isinstance(kind, str):
        return next((name for name in ("variant", "geometry", "geography") if kind.startswith(name)), None)
    return next((found for part in _parts(kind) if (found := _incomparable(part)) is not None), None)


def _has_map(kind: Any) -> bool:
    return not isinstance(kind, str) and (kind["type"] == "map" or any(map(_has_map, _parts(kind))))


def _parts(kind: Mapping[str, Any]) -> list[Any]:
    """Return the types that a nested type consists of."""
    match kind["type"]:
        case "map":
            return [kind["key"], kind["value"]]
        case "list":
            return [kind["element"]]
        case _:
            return [field["type"] for field in kind["fields"]]


def _entries(kind: Any, value: str, depth: int = 0) -> str:
    """Return an expression that turns the maps inside a value into sorted arrays of their entries."""
    if not _has_map(kind):
        return value
    if kind["type"] == "map":
        # Keys contain no maps: Spark refuses such types.
        return f"array_sort({_with_values(kind, f'map_entries({value})', depth, _entries)})"
    return _rebuilt(kind, value, depth, _entries)


def _maps(kind: Any, value: str, depth: int = 0) -> str:
    """Return an expression that reverses ``_entries``."""
    if not _has_map(kind):
        return value
    if kind["type"] == "map":
        return f"map_from_entries({_with_values(kind, value, depth, _maps)})"
    return _rebuilt(kind, value, depth, _maps)


_Change = Callable[[Any, str, int], str]


def _with_values(kind: Mapping[str, Any], entries: str, depth: int, change: _Change) -> str:
    """Return an expression that changes the values among a map's entries."""
    if not _has_map(kind["value"]):
        return entries
    one = f"e{depth}"
    return (
        f"transform({entries}, {one} -> struct({one}.key, {change(kind['value'], f'{one}.value', depth + 1)} AS value))"
    )


def _rebuilt(kind: Mapping[str, Any], value: str, depth: int, change: _Change) -> str:
    """Return an expression for a list or struct with its parts changed."""
    if kind["type"] == "list":
        one = f"e{depth}"
        return f"transform({value}, {one} -> {change(kind['element'], one, depth + 1)})"
    names = [quoted(field["name"]) for field in kind["fields"]]
    parts = [
        f"{change(field['type'], f'{value}.{name}', depth)} AS {name}"
        for name, field in zip(names, kind["fields"], strict=True)
    ]
    # struct() is never null: a null struct must stay one, and not become a struct of nulls.
    return f"IF({value} IS NULL, NULL, struct({', '.join(parts)}))"


@dataclass(frozen=True, slots=True)
class Maker:
    """Chooses the names and locations of the new tables of a change."""

    base: TableName
    """The name of the ICDC table; the other tables get a suffix."""
    location: str
    properties: Mapping[str, str]
    now_ms: int
    default_catalog: str

    def site(self, suffix: str = "") -> Site:
        """Return the name, location and properties of the ICDC table, or of another table of the change."""
        name = TableName(self.base.catalog, self.base.namespace, self.base.name + suffix)
        return Site(name, self.location + suffix, self.properties, self.now_ms)

    def called(self, table: NewTable) -> str:
        """Return the name of a table for users of the default catalog."""
        return table.name.short(self.default_catalog)


DELETES, CARRIED, KEYS = "_deletes", "_carried", "_keys"


def make(change: TableChange, maker: Maker) -> tuple[list[NewTable], Names]:
    """Return the tables of a change, not yet written, and their names."""
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
    """Return names with the path of each table's metadata, for tables that are not in a catalog."""
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
    """Return the relation of exactly the removed rows; None if there are none, or if only keys are known."""
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
    """Tell whether the removed rows are exactly those of the start, as it can be read now, with one of the keys.

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
        RequestInvalid: the change contains more than whole appends, so a view would show wrong rows.
    """
    name = change.source.name
    plain = all(step.operation in {Operation.APPEND, Operation.REPLACE} for step in change.steps if change.start)
    if not plain or change.to.pending is not None or (change.start and change.start.pending):
        raise RequestInvalid(
            f"{name}: mode {Mode.VIEW} can only show whole append snapshots, and this change contains others.",
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

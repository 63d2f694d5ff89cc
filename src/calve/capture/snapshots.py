"""Decisions about a table's history: which snapshots are between a checkpoint and an end, and what each did. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from calve.capture.model import Checkpoint, Operation
from calve.capture.source import SnapshotJson, Source
from calve.errors import (
    ChangeUnsupported,
    HistoryExpired,
    NotAnAncestor,
    SchemaChanged,
    SnapshotUnknown,
    TableRecreated,
)

CONSUMER = "CONSUMER"
"""Placeholder for the consumer in remedies, until it is known."""


@dataclass(frozen=True, slots=True)
class RangeSnapshot:
    """One snapshot of a range."""

    snapshot_id: int
    operation: Operation | None
    """None if the writer did not record it."""
    summary: Mapping[str, str]
    has_row_ids: bool
    timestamp_ms: int

    def count(self, key: str) -> int | None:
        """Return a number of the snapshot's summary; None if the writer did not record it."""
        # total-data-files is in every summary of a writer that counts, so a missing key can be told from a zero.
        if "total-data-files" not in self.summary:
            return None
        return int(self.summary.get(key, 0))  # a writer that counts leaves out what is zero

    def may_carry_rows(self) -> bool:
        """Tell whether files that this snapshot added may contain rows that were in the table before."""
        if self.operation is Operation.APPEND:
            return False
        removed, added = self.count("deleted-data-files"), self.count("added-data-files")
        return removed != 0 and added != 0


def step_of(snapshot: SnapshotJson) -> RangeSnapshot:
    """Read a snapshot's summary."""
    summary = snapshot.get("summary") or {}
    operation = summary.get("operation")
    known = {member.value for member in Operation}
    return RangeSnapshot(
        snapshot_id=snapshot["snapshot-id"],
        operation=Operation(operation) if operation in known else None,
        summary=summary,
        has_row_ids=snapshot.get("first-row-id") is not None,
        timestamp_ms=snapshot["timestamp-ms"],
    )


def ancestors(source: Source, snapshot_id: int | None) -> Iterator[SnapshotJson]:
    """Yield a snapshot and its ancestors, newest first, until the first one that has expired."""
    while snapshot_id is not None and snapshot_id in source.snapshots:
        snapshot = source.snapshots[snapshot_id]
        yield snapshot
        snapshot_id = snapshot.get("parent-snapshot-id")


def steps_between(source: Source, start: Checkpoint | None, end: int | None) -> list[RangeSnapshot]:
    """Return the snapshots after ``start`` up to ``end``, oldest first.

    Raises:
        TableRecreated, HistoryExpired, NotAnAncestor: the history from one to the other is not complete.
    """
    if start is not None and start.table_uuid != source.uuid:
        raise TableRecreated(
            f"{source.name} is another table than the one of the checkpoint: it was dropped and created again.",
            remedy=f"To start with the new table: `calve checkpoint reset {source.name} --consumer {CONSUMER} "
            "--reason recreated`.",
            table=str(source.name),
            checkpoint_uuid=start.table_uuid,
            table_uuid=source.uuid,
        )
    goal = None if start is None else start.snapshot_id
    # Pending files are counted in the snapshot's own manifest list, which is gone with it.
    if start is not None and start.pending is not None and goal not in source.snapshots:
        raise HistoryExpired(
            f"{source.name}: snapshot {goal} has been expired, and a part of it is still pending.",
            remedy=_gap_remedy(source, start),
            table=str(source.name),
            checkpoint_snapshot_id=goal,
        )
    walked: list[SnapshotJson] = []
    for snapshot in ancestors(source, end):
        if snapshot["snapshot-id"] == goal:
            return [step_of(found) for found in reversed(walked)]
        walked.append(snapshot)
    oldest = walked[-1].get("parent-snapshot-id") if walked else None
    is_whole = oldest is None and (not walked or _is_first(walked[-1]))
    if oldest == goal and (goal is not None or is_whole):
        # the checkpoint itself may be gone as long as its successor is there; or: all of history
        return [step_of(found) for found in reversed(walked)]
    if start is not None and goal is not None and (is_whole or _is_past(source, start, walked[-1])):
        raise _not_an_ancestor(source, goal, end)
    raise HistoryExpired(
        f"{source.name}: the snapshots after {goal or 'its creation'} have been expired; "
        f"the oldest one kept is {walked[-1]['snapshot-id'] if walked else 'none'}.",
        remedy=_gap_remedy(source, start),
        table=str(source.name),
        checkpoint_snapshot_id=goal,
        oldest_snapshot_id=walked[-1]["snapshot-id"] if walked else None,
    )


def check_start_is_kept(source: Source, start: Checkpoint, steps: Sequence[RangeSnapshot]) -> None:
    """Refuse a range that starts by removing files if its start has expired: their rows can no longer be read.

    Raises:
        HistoryExpired: expiry deleted files that only the start referenced.
    """
    is_net = any(step.operation not in {Operation.APPEND, Operation.REPLACE} for step in steps)
    is_needed = is_net and steps[0].count("deleted-data-files") != 0  # what later ones took is kept by the first
    if is_needed and start.snapshot_id is not None and start.snapshot_id not in source.snapshots:
        raise HistoryExpired(
            f"{source.name}: snapshot {start.snapshot_id} has been expired, and with it the files of rows that were "
            "changed or deleted since.",
            remedy=_gap_remedy(source, start),
            table=str(source.name),
            checkpoint_snapshot_id=start.snapshot_id,
        )


def _is_first(snapshot: SnapshotJson) -> bool:
    """Tell whether a snapshot without a parent is the first one: PyIceberg drops references to expired parents."""
    summary = snapshot.get("summary") or {}
    is_all_new = summary.get("total-data-files") == summary.get("added-data-files", "0") and not int(
        summary.get("deleted-data-files", 0)
    )
    return (snapshot.get("sequence-number") or 0) <= 1 and (is_all_new or "total-data-files" not in summary)


def _is_past(source: Source, start: Checkpoint, oldest: SnapshotJson) -> bool:
    """Tell whether a checkpoint that was not found before ``oldest`` cannot be further back, whatever has expired.

    It is newer; or it is older, but nothing between the two has expired.
    """
    number = oldest.get("sequence-number") or 0
    if (start.sequence_number, start.timestamp_ms) > (number, oldest["timestamp-ms"]):
        return True
    if oldest.get("parent-snapshot-id") is None and start.snapshot_id not in source.snapshots:
        return False  # whoever expired the parent also cleared the pointer; it may have been the checkpoint itself
    kept = {snapshot.get("sequence-number") for snapshot in source.snapshots.values()}
    between = range(start.sequence_number + 1, number)
    return start.sequence_number > 0 and len(between) <= len(kept) and kept.issuperset(between)


def _not_an_ancestor(source: Source, goal: int, end: int | None) -> NotAnAncestor:
    kept = [snapshot["snapshot-id"] for snapshot in ancestors(source, end)]
    common = next((s["snapshot-id"] for s in ancestors(source, goal) if s["snapshot-id"] in set(kept)), None)
    where = f"the last snapshot that both share is {common}" if common else "they share no snapshot that is kept"
    return NotAnAncestor(
        f"{source.name}: the checkpoint's snapshot {goal} is not in the history of {end}: the table was rolled back, "
        f"replaced, or {end} is on another branch; {where}.",
        remedy="What was captured after that point cannot be undone: repair the target if needed, then "
        + (
            f"`calve checkpoint set {source.name} --consumer {CONSUMER} --to {common} --reason 'rolled back'`."
            if common
            else f"`calve checkpoint reset {source.name} --consumer {CONSUMER} --reason 'rolled back'`."
        ),
        table=str(source.name),
        checkpoint_snapshot_id=goal,
        to_snapshot_id=end,
        common_ancestor=common,
    )


def can_go_on_by_sequence_number(source: Source, start: Checkpoint | None) -> bool:
    """Tell whether row lineage can stand in for expired history: new and changed rows only, deletes are lost."""
    return source.format_version > 2 and start is not None and start.next_row_id is not None and start.pending is None


def _gap_remedy(source: Source, start: Checkpoint | None) -> str:
    full = "`--on-gap full` captures the whole table as it is now"
    if can_go_on_by_sequence_number(source, start):
        return f"`--on-gap upserts` continues by row lineage (new and changed rows; deletes are lost); {full}."
    return f"{full}; next time keep history longer, or take captures with --lease."


def check_operations(source: Source, steps: Iterable[RangeSnapshot], allowed: frozenset[Operation]) -> None:
    """Refuse a range with operations that were not requested.

    Raises:
        ChangeUnsupported: there are some; the message names every such snapshot.
    """
    strangers = [s for s in steps if s.operation is not Operation.REPLACE and s.operation not in allowed]
    if not strangers:
        return
    names = [f"{step.snapshot_id} ({step.operation or 'no operation named'})" for step in strangers]
    wanted = sorted({step.operation.value for step in strangers if step.operation} | {o.value for o in allowed})
    raise ChangeUnsupported(
        f"{source.name}: snapshots that are not {' or '.join(sorted(allowed))}: {', '.join(names)}.",
        remedy=f"Capture them with `--operations {','.join(wanted)}` (in a step, data_operations), or move past them: "
        f"`calve checkpoint set {source.name} --consumer {CONSUMER} --to {strangers[-1].snapshot_id} --reason WHY`.",
        table=str(source.name),
        snapshots=[{"snapshot_id": s.snapshot_id, "operation": s.operation and s.operation.value} for s in strangers],
    )


def check_schema(source: Source, start: Checkpoint | None) -> None:
    """Refuse a range over which the schema changed.

    Raises:
        SchemaChanged: it did; the message names the columns that differ.
    """
    if start is None or start.schema_id == source.schema_id:
        return
    before, after = (_columns(source.schemas.get(sid)) for sid in (start.schema_id, source.schema_id))
    changes = [f"{after[fid]} added" for fid in after.keys() - before.keys()]
    changes += [f"{before[fid]} dropped" for fid in before.keys() - after.keys()]
    changes += [
        f"{before[fid]} is now {after[fid]}" for fid in before.keys() & after.keys() if before[fid] != after[fid]
    ]
    raise SchemaChanged(
        f"{source.name}: the schema changed since the checkpoint: {'; '.join(sorted(changes)) or 'columns reordered'}.",
        remedy="`--on-schema-change evolve` reads the change by column id, with the current schema.",
        table=str(source.name),
        checkpoint_schema_id=start.schema_id,
        schema_id=source.schema_id,
    )


def _columns(schema: Mapping[str, Any] | None) -> dict[int, str]:
    if schema is None:
        return {}
    return {field["id"]: f"{field['name']} {_type_name(field['type'])}" for field in schema["fields"]}


def _type_name(kind: Any) -> str:
    if isinstance(kind, str):
        return kind
    match kind["type"]:
        case "struct":
            parts = [f"{part['name']} {_type_name(part['type'])}" for part in kind["fields"]]
            return f"struct<{', '.join(parts)}>"
        case "list":
            return f"list<{_type_name(kind['element'])}>"
        case _:
            return f"map<{_type_name(kind['key'])}, {_type_name(kind['value'])}>"


def resolve(source: Source, text: str) -> int | None:
    """Return the snapshot that a user means by a snapshot id, a tag, a branch, ``latest`` or a time.

    Raises:
        SnapshotUnknown: it is none of these, or has been expired.
    """
    if text == "latest":
        return source.head
    refs = source.metadata.get("refs") or {}
    if text in refs:
        return int(refs[text]["snapshot-id"])
    # Refs first: a tag may be called 42.
    if text.isdigit() and int(text) in source.snapshots:
        return int(text)
    moment = _moment(text)
    if moment is None:
        raise SnapshotUnknown(
            f"{source.name} has no snapshot, tag or branch {text!r}, and it is not a time.",
            remedy=f"Known: {_some([*refs, *source.snapshots])}; a time looks like 2026-01-31T12:00:00Z.",
            table=str(source.name),
            asked=text,
        )
    for snapshot in ancestors(source, source.head):
        if snapshot["timestamp-ms"] <= moment:
            return int(snapshot["snapshot-id"])
    raise SnapshotUnknown(
        f"{source.name} had no snapshot at {text}, or it has been expired.",
        remedy="Name a later time, or a snapshot.",
        table=str(source.name),
        asked=text,
    )


def _moment(text: str) -> int | None:
    """Return the milliseconds of an ISO time; in UTC if it has no zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _some(names: Sequence[Any]) -> str:
    shown = ", ".join(str(name) for name in names[:6])
    return shown + (", …" if len(names) > 6 else "") if names else "none"

"""The fuzzer's model of a table's history: every snapshot there ever was, including expired ones. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from calve.errors import CalveError, HistoryExpired, NotAnAncestor, TableRecreated


@dataclass(frozen=True, slots=True)
class Way:
    """The way of a capture from a checkpoint to a snapshot: the snapshots in between, or the correct errors."""

    steps: tuple[int, ...] = ()
    errors: tuple[type[CalveError], ...] = ()
    is_sure: bool = True
    """Whether the rest of an expired history cannot be mistaken for a complete history."""


@dataclass(slots=True)
class Timeline:
    """The snapshots of one table, as they were when they were committed."""

    uuid: str = ""
    version: int = 0
    head: int | None = None
    parents: dict[int, int | None] = field(default_factory=dict)
    """Every snapshot's parent, oldest snapshot first."""
    operations: dict[int, str] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    """Sequence numbers; 0 in format v1."""
    links: dict[int, int | None] = field(default_factory=dict)
    """The parents in the current metadata: some writers clear the parent of a snapshot when they expire it."""
    refs: dict[str, int] = field(default_factory=dict)
    columns: dict[str, tuple[int, str]] = field(default_factory=dict)
    """The current columns: id and type by name."""

    def see(self, metadata: Mapping[str, Any]) -> list[int]:
        """Read the table's metadata; return the new snapshots."""
        if metadata["table-uuid"] != self.uuid:
            self.parents, self.operations, self.numbers = {}, {}, {}
        snapshots = metadata.get("snapshots", ())
        head = metadata.get("current-snapshot-id")
        self.uuid, self.version = metadata["table-uuid"], metadata["format-version"]
        self.head = None if head in {None, -1} else head
        self.links = {snapshot["snapshot-id"]: snapshot.get("parent-snapshot-id") for snapshot in snapshots}
        self.refs = {name: ref["snapshot-id"] for name, ref in (metadata.get("refs") or {}).items()}
        self.columns = _columns(metadata)
        new = [snapshot for snapshot in snapshots if snapshot["snapshot-id"] not in self.parents]
        for snapshot in new:
            self.parents[snapshot["snapshot-id"]] = snapshot.get("parent-snapshot-id")
            self.operations[snapshot["snapshot-id"]] = snapshot["summary"]["operation"]
            self.numbers[snapshot["snapshot-id"]] = snapshot.get("sequence-number", 0)
        return [snapshot["snapshot-id"] for snapshot in new]

    def called(self, snapshot_id: int | None) -> str:
        """Return a short name for a snapshot: s1 is the table's first."""
        return "s0" if snapshot_id is None else f"s{[*self.parents].index(snapshot_id) + 1}"

    def ancestors(self, snapshot_id: int | None) -> Iterator[int]:
        """Yield a snapshot and all before it, expired or not, newest first."""
        while snapshot_id is not None:
            yield snapshot_id
            snapshot_id = self.parents[snapshot_id]

    def way(self, uuid: str, start: int | None, end: int | None) -> Way:
        """Return the way from a checkpoint to a kept snapshot, or the correct errors."""
        if uuid != self.uuid:
            return Way(errors=(TableRecreated,))
        whole = list(self.ancestors(end))
        kept = self._kept(whole)
        if start is None or start in whole:
            steps = whole[: whole.index(start)] if start is not None else whole
            if kept[: len(steps)] == steps:
                return Way(tuple(reversed(steps)))
            rest = whole[len(kept)]  # where the kept part ends
            if rest in self.links and self.numbers[rest] <= 1:  # it may pass for the first snapshot
                return Way(errors=(HistoryExpired, NotAnAncestor), is_sure=False)
            return Way(errors=(HistoryExpired,))
        is_newer = bool(kept) and self.numbers[start] > self.numbers[kept[-1]]
        if kept == whole or is_newer:  # no expired snapshot could make it an ancestor
            return Way(errors=(NotAnAncestor,))
        return Way(errors=(NotAnAncestor, HistoryExpired))

    def _kept(self, steps: list[int]) -> list[int]:
        """Return the newest part of some steps that is still kept, each with its true parent."""
        kept = []
        for step in steps:
            if step not in self.links or self.links[step] != self.parents[step]:
                break
            kept.append(step)
        return kept


def _columns(metadata: Mapping[str, Any]) -> dict[str, tuple[int, str]]:
    current = metadata.get("current-schema-id", 0)
    schemas = metadata.get("schemas") or [metadata["schema"]]
    schema = next(schema for schema in schemas if schema.get("schema-id", 0) == current)
    return {column["name"]: (column["id"], str(column["type"]).replace(" ", "")) for column in schema["fields"]}

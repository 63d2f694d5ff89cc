"""The commits that calve sends to REST catalogs, as JSON. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calve.lake import metadata as raw


@dataclass(frozen=True, slots=True)
class RestCommit:
    """One commit to one table."""

    requirements: Sequence[dict[str, Any]]
    updates: Sequence[dict[str, Any]]
    happened: Callable[[raw.Metadata], bool]
    """Tells from a table's metadata whether the commit was carried out."""

    def is_late(self, metadata: raw.Metadata) -> bool:
        """Tell whether the table has moved on, so that no copy of this commit can be carried out any more."""
        return any(not _holds(need, metadata) for need in self.requirements) or any(
            _is_late(update["snapshot"], metadata) for update in self.updates if update["action"] == "add-snapshot"
        )

    def as_json(self, namespace: Sequence[str], name: str) -> dict[str, Any]:
        """Return the body of the request."""
        table = {"namespace": list(namespace), "name": name}
        return {"identifier": table, "requirements": list(self.requirements), "updates": list(self.updates)}


def tag_commit(metadata: raw.Metadata, tag: str, snapshot_id: int, max_age_ms: int) -> RestCommit | None:
    """Return the commit that tags a snapshot; None if the tag exists already.

    Raises:
        SnapshotUnknown: the table has no such snapshot.
        LakeError: the name is taken.
    """
    if raw.with_tag(metadata, tag, snapshot_id, max_age_ms) is metadata:
        return None
    wanted = {"type": "tag", "snapshot-id": snapshot_id, "max-ref-age-ms": max_age_ms}
    return RestCommit(
        # The tag's own old value makes this a compare-and-set: two captures cannot overwrite each other's lease.
        (_same_table(metadata), _ref_at(tag, raw.branch_head(metadata, tag))),
        ({"action": "set-snapshot-ref", "ref-name": tag, **wanted},),
        lambda now: wanted.items() <= raw.refs(now).get(tag, {}).items(),
    )


def untag_commit(metadata: raw.Metadata, tag: str) -> RestCommit | None:
    """Return the commit that removes a tag; None if there is none."""
    if raw.without_tag(metadata, tag) is metadata:
        return None
    return RestCommit((_same_table(metadata),), (_removed(tag),), lambda now: tag not in raw.refs(now))


def change_commit(metadata: raw.Metadata, change: raw.TableCommit) -> RestCommit:
    """Return the commit that changes snapshots, branches and properties."""
    # main in any case: the change was decided from metadata as a whole, and refs are all that REST can compare
    # (decision 0014).
    branches = dict.fromkeys((raw.MAIN_BRANCH, *change.branches, *change.dropped))
    return RestCommit(
        (_same_table(metadata), *(_ref_at(name, raw.branch_head(metadata, name)) for name in branches)),
        _updates(metadata, change),
        lambda now: _has(now, change),
    )


def _updates(metadata: raw.Metadata, change: raw.TableCommit) -> list[dict[str, Any]]:
    updates: list[dict[str, Any]] = []
    if change.snapshot is not None:
        updates.append({"action": "add-snapshot", "snapshot": dict(change.snapshot)})
    known = raw.refs(metadata)
    for name, snapshot_id in change.branches.items():
        # A branch that exists keeps its retention.
        kept = {key: value for key, value in known.get(name, {}).items() if value is not None}
        age = {} if change.branch_age_ms is None or name in known else {"max-ref-age-ms": change.branch_age_ms}
        place = {"ref-name": name, "type": "branch", "snapshot-id": snapshot_id}
        updates.append({"action": "set-snapshot-ref", **kept, **age, **place})
    updates += [_removed(name) for name in change.dropped if name in known]
    if change.properties:
        updates.append({"action": "set-properties", "updates": dict(change.properties)})
    return updates


def _has(metadata: raw.Metadata, change: raw.TableCommit) -> bool:
    """Tell whether a table has everything that a change puts there."""
    if change.snapshot is not None:  # its id is random, so nobody else has added it
        return change.snapshot["snapshot-id"] in raw.snapshots_by_id(metadata)
    known, properties = raw.refs(metadata), metadata.get("properties", {})
    return (
        all(known.get(name, {}).get("snapshot-id") == at for name, at in change.branches.items())
        and not any(name in known for name in change.dropped)
        and change.properties.items() <= properties.items()
    )


def _holds(need: Mapping[str, Any], metadata: raw.Metadata) -> bool:
    if need["type"] == "assert-table-uuid":
        return bool(need["uuid"] == metadata["table-uuid"])
    return bool(need["snapshot-id"] == raw.branch_head(metadata, need["ref"]))


def _is_late(snapshot: Mapping[str, Any], metadata: raw.Metadata) -> bool:
    """Tell whether a snapshot has a number that a later one has taken."""
    return bool(
        snapshot.get("sequence-number", 1) <= metadata.get("last-sequence-number", 0)
        or snapshot.get("first-row-id", 0) < (metadata.get("next-row-id", 0) if "first-row-id" in snapshot else 0)
    )


def _same_table(metadata: raw.Metadata) -> dict[str, Any]:
    return {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]}


def _ref_at(name: str, snapshot_id: int | None) -> dict[str, Any]:
    return {"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": snapshot_id}


def _removed(name: str) -> dict[str, Any]:
    return {"action": "remove-snapshot-ref", "ref-name": name}

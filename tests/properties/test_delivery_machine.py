"""Whatever attempts, zombies, other writers and expiry do: every captured row reaches main once, and in order."""

import shutil
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.deliveries import TARGET, Ground
from tests.memory_folders import new_folder
from tests.scope import in_ci
from tests.unit.capture.tables import entry_schema, manifest_file, write_entries

from calve.capture import ADDED, Manifest, Source
from calve.capture.manifests import DELETED
from calve.delivery import Staging, commits, preconditions, record, snapshots
from calve.errors import CaptureClosed, DeliverySuperseded, LakeError, TargetMoved
from calve.lake import metadata as raw


class RawGround(Ground):
    """A ground whose rows are the paths of files that nobody reads, so that every format version is fast."""

    def write(self, rows: list[int], branch: str = raw.MAIN_BRANCH, operation: str = "append") -> None:
        """Add rows to a branch, in one snapshot."""

        def decide(metadata: raw.Metadata) -> raw.TableCommit:
            source = self._source(metadata)
            new = snapshots.append_snapshot(
                source, raw.branch_head(metadata, branch), [self._manifest(rows)], self._now_ms, {}
            )
            for path, content in new.files.items():
                source.files.write(path, content)
            snapshot = {**new.snapshot, "summary": {**new.snapshot["summary"], "operation": operation}}
            return raw.TableCommit(snapshot=snapshot, branches={branch: snapshot["snapshot-id"]})

        self.catalog.change(self.lake.parse(TARGET), decide)

    def live(self) -> Counter[int]:
        """Return the rows of main, each as often as it is there."""
        source = self._source(self.metadata())
        manifests = [] if source.head is None else source.read(source.manifest_list(source.head))
        entries = [entry for manifest in manifests for entry in manifest.entries()]
        return Counter(int(entry.file_path) for entry in entries if entry.status != DELETED)

    def expire(self, keep: int) -> None:
        """Forget all but the newest snapshots, and those that branches point to."""

        def edit(metadata: raw.Metadata) -> raw.Metadata:
            held = {ref["snapshot-id"] for ref in raw.refs(metadata).values()}
            newest = {snapshot["snapshot-id"] for snapshot in metadata["snapshots"][-keep:]}
            kept = [known for known in metadata["snapshots"] if known["snapshot-id"] in held | newest]
            ids = {known["snapshot-id"] for known in kept}
            log = [entry for entry in metadata["snapshot-log"] if entry["snapshot-id"] in ids]
            return metadata | {"snapshots": kept, "snapshot-log": log}

        self.catalog.commit(self.lake.parse(TARGET), edit)

    def upgrade(self, version: int) -> None:
        """Turn the empty table to a format version."""
        more = {"format-version": version, "next-row-id": 0}
        self.catalog.commit(self.lake.parse(TARGET), lambda metadata: metadata | more)

    def _source(self, metadata: raw.Metadata) -> Source:
        loaded = self.catalog.load(self.lake.parse(TARGET))
        return Source(type(loaded)(loaded.name, metadata, "", loaded.files))

    @property
    def _now_ms(self) -> int:
        return int(self.now.timestamp() * 1000)

    def _manifest(self, rows: list[int]) -> Manifest:
        head = {"status": ADDED, "snapshot_id": None, "sequence_number": None, "file_sequence_number": None}
        file = {"content": 0, "file_format": "PARQUET", "partition": {}, "record_count": 1, "file_size_in_bytes": 1}
        record = [{**head, "data_file": {**file, "file_path": str(row), "first_row_id": None}} for row in rows]
        return Manifest(manifest_file(), write_entries(record, entry_schema(row_ids=True)))


@dataclass
class Attempt:
    """One attempt; it may be asleep for as long as it likes."""

    capture_id: str
    staging: Staging


class Machine(RuleBasedStateMachine):
    """Rows of the source are 1, 2, 3 …; those of other writers are negative."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = new_folder()
        self.ground = RawGround(self.folder)
        self.attempts: list[Attempt] = []
        self.rows: dict[str, list[int]] = {}
        """The rows of every capture."""
        self.last = self.committed = self.foreign = 0
        self.open: str | None = None
        self.is_delivered = False
        """Someone has been told that the open capture was delivered."""

    def teardown(self) -> None:
        """Remove the lake."""
        self.ground.close()
        shutil.rmtree(self.folder)

    @initialize(version=st.sampled_from([1, 2, 3]), is_empty=st.booleans())
    def create(self, version: int, *, is_empty: bool) -> None:
        """Make the target, with a row of someone else or none."""
        self.ground.create(version=min(version, 2))
        if version == 3:
            self.ground.upgrade(3)
        if not is_empty:
            self.write_elsewhere()

    @precondition(lambda self: self.open is not None)
    @rule(odds=st.integers(1, 3))
    def supersede(self, odds: int) -> None:
        """Let another instance take over: it goes on with what was delivered, and gives up anything else."""
        assert self.open is not None
        if odds == 1 and not self.ground.deliveries.delivered(self.open):
            self.ground.store.captures.abandon(self.open, self.ground.now)
            self.open = None

    @rule(is_append=st.booleans(), splits=st.booleans(), is_disturbed=st.booleans(), more=st.integers(1, 3))
    def attempt(self, *, is_append: bool, splits: bool, is_disturbed: bool, more: int) -> None:
        """Stage what is captured, or what has come since, and write it in one statement or several, while others do."""
        if self.open is None:
            self.capture(more)
        assert self.open is not None
        staging = self.ground.stage(self.open)
        self.attempts.append(Attempt(self.open, staging))
        self.is_delivered |= staging.is_delivered
        if staging.is_delivered:
            return
        rows = self.rows[self.open]
        for part in [[row] for row in rows] if splits else [rows]:
            self.ground.write(part, staging.branch, "append" if is_append else "overwrite")
        if is_disturbed:
            self.write_elsewhere()

    def capture(self, more: int) -> None:
        """Capture everything after the checkpoint, and some new rows."""
        self.last += more
        self.open = self.ground.capture()
        self.rows[self.open] = list(range(self.committed + 1, self.last + 1))
        self.is_delivered = False

    @precondition(lambda self: self.attempts)
    @rule()
    def publish_newest(self) -> None:
        """Publish the attempt that is the right one, as a rule."""
        self._publish(self.attempts[-1], "comes")

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), reply=st.sampled_from(["comes", "comes", "is lost", "never asked"]))
    def publish(self, data: st.DataObject, reply: str) -> None:
        """Publish any attempt there ever was, old and new ones."""
        self._publish(data.draw(st.sampled_from(self.attempts[-4:])), reply)

    def _publish(self, attempt: Attempt, reply: str) -> None:
        real: Any = self.ground.catalog._replace
        if reply != "comes":
            self.ground.catalog._replace = _cut(real, does_it=reply == "is lost")  # type: ignore[method-assign]
        try:
            self.ground.deliveries.publish(attempt.staging)
        except (TargetMoved, DeliverySuperseded, CaptureClosed):
            return
        except LakeError:
            assert reply == "never asked"
            return
        finally:
            self.ground.catalog._replace = real  # type: ignore[method-assign]
        assert attempt.capture_id == self.open or self.rows[attempt.capture_id][-1] <= self.committed
        self.is_delivered |= attempt.capture_id == self.open

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        """Give an attempt up, and never hear of it again."""
        attempt = data.draw(st.sampled_from(self.attempts))
        self.ground.deliveries.discard(attempt.staging)
        self.attempts.remove(attempt)

    @precondition(lambda self: self.open is not None and self.is_delivered)
    @rule()
    def commit(self) -> None:
        """Move the checkpoint, once someone knows that the capture was delivered."""
        assert self.open is not None
        self.ground.commit(self.open)
        self.committed, self.open = self.rows[self.open][-1], None

    @rule()
    def write_elsewhere(self) -> None:
        """Let someone else append to the target."""
        self.foreign += 1
        self.ground.write([-self.foreign])

    @rule(keep=st.integers(1, 3))
    def expire(self, keep: int) -> None:
        """Expire the target's snapshots."""
        self.ground.expire(keep)

    @invariant()
    def every_row_is_there_once_and_in_order(self) -> None:
        """Main holds the source's rows up to some point at or after the checkpoint, and all of everybody else's."""
        if not self.ground.catalog.exists(self.ground.lake.parse(TARGET)):
            return
        live = self.ground.live()
        ours = Counter({row: times for row, times in live.items() if row > 0})
        assert ours == Counter(range(1, len(ours) + 1))
        assert len(ours) >= self.committed
        assert live - ours == Counter(-row for row in range(1, self.foreign + 1))


def _cut(real: Any, *, does_it: bool) -> Any:
    def replace(*args: Any) -> bool:
        if does_it:
            real(*args)
        raise LakeError("The catalog lake cannot be reached: gone")

    return replace


def test_every_row_is_delivered_once_and_in_order() -> None:
    """The protocol holds over all format versions, lost replies, zombies, expiry and other writers."""
    run_state_machine_as_test(Machine, settings=settings(max_examples=in_ci(12, otherwise=25), stateful_step_count=20))


# The machine itself: each of these mistakes must be found.


def _check_no_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(preconditions, "_check_order", lambda *_: None)
    patch.setattr(record.DeliveryRecord, "has", lambda *_: False)


def _ignore_other_writers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(snapshots, "appended_since", lambda *_: [])


def _forget_the_property(patch: pytest.MonkeyPatch) -> None:
    real = commits.PublishCommit._change

    def change(self: Any, *args: Any) -> raw.TableCommit:
        made = real(self, *args)
        return raw.TableCommit(made.snapshot, made.branches, dropped=made.dropped)

    patch.setattr(commits.PublishCommit, "_change", change)


def _play() -> None:
    """Play one history by hand: two attempts of each capture, disturbed by others, publish one after the other."""
    machine = Machine()
    try:
        machine.create(2, is_empty=False)
        for _ in range(2):
            for is_disturbed in (True, False):
                machine.attempt(is_append=True, splits=True, is_disturbed=is_disturbed, more=2)
            for attempt in list(machine.attempts):
                machine._publish(attempt, "comes")
                machine.every_row_is_there_once_and_in_order()
            machine.commit()
            machine.every_row_is_there_once_and_in_order()
    finally:
        machine.teardown()


def test_a_history_by_hand() -> None:
    """Nothing is wrong with it."""
    _play()


@pytest.mark.parametrize("mistake", [_check_no_order, _ignore_other_writers, _forget_the_property])
def test_a_protocol_with_a_hole_is_found_out_by_the_same_history(mistake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a protocol with a hole in it, the same history is wrong."""
    mistake(monkeypatch)
    with pytest.raises(AssertionError):
        _play()

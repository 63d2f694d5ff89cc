"""The commits of delivery: each change is decided from the metadata that its commit replaces."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from calve.capture import Source
from calve.delivery import snapshots
from calve.delivery.model import Published, StagedTarget
from calve.delivery.preconditions import DeliveryRequest, TargetState, check_target
from calve.errors import BranchLost, CalveError, TargetMoved
from calve.failpoints import reach
from calve.lake import MAIN_BRANCH, Files, LoadedTable, Metadata, TableCommit, branch_head

WAP_ENABLED = "write.wap.enabled"


@dataclass(slots=True)
class PublishCommit:
    """Decides the commit that publishes one target, again after each conflict with another writer."""

    ask: Callable[[], DeliveryRequest]
    """Returns the delivery request with the current state of the database."""
    target: StagedTarget
    branch: str
    files: Files
    now_ms: int
    published: Published | None = None
    """The result of the last decision, if its commit succeeds."""
    _written: list[str] = field(default_factory=list)

    def decide(self, metadata: Metadata) -> TableCommit | None:
        """Return the change that publishes the branch; None if it was delivered already.

        Raises:
            TargetMoved: others wrote to the table, and the branch does more than append.
            BranchLost: the branch does not exist anymore.
            DeliveryError: the delivery is not allowed.
        """
        # Called again after each conflict: nothing references what was written for the attempt before.
        self.clean_up()
        # Not once for all attempts: the capture may have been abandoned while this commit waited for its turn.
        question = self.ask()
        state = check_target(question, metadata)
        if state.is_delivered:
            self.published = Published(self.target.name, state.delivered.snapshot_id, is_repeated=True)
            return None
        end = branch_head(metadata, self.branch)
        if end is None:
            raise BranchLost(
                f"The branch {self.branch} of {self.target.name}, which the job wrote to, is gone.",
                target=str(self.target.name),
                branch=self.branch,
            )
        main = branch_head(metadata)
        has_moved = main != self.target.base_snapshot_id
        if not has_moved and end != main:
            self.published = Published(self.target.name, end)
            return self._change(question, state, end, None)
        # The job wrote nothing, or others wrote. main has to move in any case: a REST catalog compares refs only, so
        # this is what refuses a late worker (decision 0014).
        new = self._new_head(metadata, main, end)
        self.published = Published(self.target.name, new["snapshot-id"], is_reappended=has_moved)
        return self._change(question, state, new["snapshot-id"], new)

    def clean_up(self) -> None:
        """Delete files that were written for a decision whose commit failed."""
        while self._written:
            with suppress(CalveError):  # an orphan of a few kilobytes
                self.files.delete(self._written.pop())

    def _change(
        self, question: DeliveryRequest, state: TargetState, snapshot_id: int, new: Metadata | None
    ) -> TableCommit:
        record = state.delivered.with_delivery(question.delivery, question.capture, snapshot_id)
        return TableCommit(
            snapshot=new,
            branches={MAIN_BRANCH: snapshot_id},
            # In the same commit, so no branch is left behind by a crash.
            dropped=(self.branch,),
            properties={question.delivery.property_name: record.encode()},
        )

    def _new_head(self, metadata: Metadata, main: int | None, end: int) -> Metadata:
        """Write a snapshot that appends the branch's files, if any, to the current ``main``."""
        source = Source(LoadedTable(self.target.name, metadata, "", self.files))
        added = snapshots.appended_since(source, self.target.branch_snapshot_id, end)
        if added is None:
            raise TargetMoved(
                f"Others wrote to {self.target.name} while the job ran: main is at snapshot {main}, no longer at "
                f"{self.target.base_snapshot_id}, where the job's branch starts.",
                target=str(self.target.name),
                branch=self.branch,
            )
        summary = source.snapshots[end].get("summary", {})
        # The job's own marks on its snapshot, such as the capture id, would be lost with the branch.
        said = {key: value for key, value in summary.items() if key.startswith("calve.")} if added else {}
        head = snapshots.append_snapshot(source, main, added, self.now_ms, said)
        for path, content in head.files.items():
            self._written.append(path)
            self.files.write(path, content)
        reach("delivery.written")
        return dict(head.snapshot)


@dataclass(slots=True)
class BranchCommit:
    """Decides the commit that creates the branch of one target."""

    question: DeliveryRequest
    branch: str
    branch_age_ms: int
    files: Files
    now_ms: int
    target: StagedTarget | None = None
    """The result of the last decision, if its commit succeeds."""

    def decide(self, metadata: Metadata) -> TableCommit:
        """Return the change that creates the branch at the current ``main``.

        An empty table has no ``main``, so the branch starts with an empty snapshot: a branch that is missing later was
        lost, not just never written to.
        """
        state = check_target(self.question, metadata)
        main = branch_head(metadata)
        new = None
        start = main
        # Spark treats a branch that does not exist as one to be created at main, and would hide that it was dropped.
        if start is None:
            new = self._empty_head(metadata)
            start = int(new["snapshot-id"])
        name, uuid = self.question.target, metadata["table-uuid"]
        self.target = StagedTarget(name, uuid, main, start, is_delivered=state.is_delivered)
        # Spark honours spark.wap.branch only for tables with this property.
        enabled = str(metadata.get("properties", {}).get(WAP_ENABLED, "")).lower() == "true"
        return TableCommit(
            snapshot=new,
            branches={self.branch: start},
            branch_age_ms=self.branch_age_ms,
            properties={} if enabled else {WAP_ENABLED: "true"},
        )

    def _empty_head(self, metadata: Metadata) -> Metadata:
        source = Source(LoadedTable(self.question.target, metadata, "", self.files))
        head = snapshots.append_snapshot(source, None, (), self.now_ms, {})
        for path, content in head.files.items():
            self.files.write(path, content)
        return dict(head.snapshot)

"""The use cases of delivery: stage, publish, hold, discard, and collect branches that were left behind."""

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from calve.capture import (
    CaptureState,
    Clock,
    ConsumerRight,
    DeliveredUpTo,
    NewId,
    OfWorkflow,
    Status,
    StoredCapture,
    no_capture,
    superseded_by,
)
from calve.delivery.commits import BranchCommit, PublishCommit
from calve.delivery.model import BranchStatus, Delivery, DeliveryState, Published, StagedTarget, Staging, StoredBranch
from calve.delivery.preconditions import DeliveryRequest, check_target, delivered_by, is_rolled_back
from calve.delivery.record import DeliveredCapture, agreed
from calve.errors import (
    CalveError,
    CaptureError,
    CaptureMissing,
    DeliveryError,
    RequestInvalid,
    TableMissing,
)
from calve.failpoints import reach
from calve.lake import CurrentRights, Lake, Metadata, Right, TableCommit, TableName, all_open, branch_head
from calve.namespaces import namespace_of, workflow_of

logger = logging.getLogger(__name__)

BRANCH_AGE = timedelta(days=7)
"""After this time, Iceberg's expiry may drop a branch that calve did not drop."""
_AT_MOST = 8
"""How many characters of the attempt's key go into a branch's name."""


class Deliveries:
    """Delivers what jobs write to tables, exactly once and in order."""

    def __init__(
        self,
        lake: Lake,
        state: DeliveryState,
        captures: CaptureState,
        *,
        clock: Clock,
        new_id: NewId,
        tables: CurrentRights = all_open,
    ) -> None:
        self._lake = lake
        self._state = state
        self._captures = captures
        self._clock = clock
        self._new_id = new_id
        self._tables = tables

    def stage(self, targets: Sequence[str], delivery: Delivery, attempt: str) -> Staging:
        """Check that the targets may be delivered to, and create a branch on each for the job to write to.

        If all hold the delivery already, no branch is created and the job need not run. If only some do, they get a
        branch too, which is dropped later.

        Raises:
            DeliverySuperseded, TargetAhead, TargetRolledBack, TargetRecreated: a target may not be delivered to.
            CaptureClosed: the capture was abandoned.
            NotSupportedByCatalog: a target's catalog lacks an operation that exactly-once delivery needs.
            TableMissing, CaptureMissing: a target or the capture does not exist, or the stream may not use it.
        """
        names = [self._lake.parse(target) for target in targets]
        if not names or len(set(names)) != len(names):
            raise RequestInvalid("A delivery needs at least one target, and each once.", targets=list(targets))
        self._require(delivery, names)
        # A new id for each staging: a late worker of an earlier attempt must not write into this one's branch.
        branch = f"calve_{re.sub(r'[^A-Za-z0-9]', '', attempt)[-_AT_MOST:]}_{self._new_id()}"
        staging = Staging(delivery, attempt, branch, tuple(self._looked_at(name, delivery) for name in names))
        if staging.is_delivered:
            for target in staging.targets:
                self._note(staging, target)
            return staging
        # Before any branch exists, so that ``collect`` finds those that a crash leaves.
        self._state.stage(branch, delivery, attempt, names, self._clock())
        reach("delivery.recorded")
        return replace(staging, targets=tuple(self._branched(name, staging) for name in names))

    def publish(self, staging: Staging) -> list[Published]:
        """Move every target's ``main`` to what the job wrote and record the delivery, in one commit each.

        A target that holds the delivery already, from this attempt or another, does not change.

        Raises:
            TargetMoved: others wrote to a target, and the job did more than append: run it again on a new staging.
            BranchLost: the job's branch is gone: the same.
            DeliveryError: the delivery came too late; see ``stage``.
            TableMissing, CaptureMissing: see ``stage``.
        """
        self._require(staging.delivery, [target.name for target in staging.targets])
        return [self._published(staging, target) for target in staging.targets]

    def hold(self, staging: Staging) -> None:
        """Keep what the job wrote for ``publish_held``; it replaces what an earlier attempt held."""
        if staging.is_delivered:
            return
        self._state.hold(staging, self._clock())
        reach("delivery.held")

    def publish_held(self, capture_id: str) -> list[Published]:
        """Publish everything that is held for a capture; call it before the capture is committed.

        Raises:
            TargetMoved, BranchLost: the step that writes has to be restarted.
        """
        published = []
        for branch in self._state.held(capture_id):
            staging = Staging(branch.delivery, branch.attempt, branch.staging, (branch.target,))
            try:
                published += self.publish(staging)
            except DeliveryError as error:
                step = branch.delivery.stream
                error.remedy = f"Restart the step that writes ({step}), then commit. {error.remedy}".strip()
                raise
        return published

    def delivered(self, capture_id: str) -> bool:
        """Return whether anything of a capture has been published; if so, no other capture may replace it."""
        branches = self._state.branches(capture_id)
        capture = self._captures.capture(capture_id)
        return any(branch.status is BranchStatus.PUBLISHED or self._holds(branch, capture) for branch in branches)

    def delivered_up_to(self, declared: Sequence[tuple[str, str]], consumer: str) -> DeliveredUpTo | None:
        """Return the last capture of a consumer that all targets hold, according to their delivery records.

        None if the records differ, or a target holds only a part, was rolled back, re-created or dropped: then it is
        unknown whether all of it was delivered.

        Args:
            declared: every stream of the workflow, with each of its targets.
            consumer: whose capture.
        """
        lasts = [self._last(stream, self._lake.parse(target), consumer) for stream, target in declared]
        found = agreed(lasts)
        return None if found is None else DeliveredUpTo(found.capture_id, found.versions, found.ends)

    def _last(self, stream: str, target: TableName, consumer: str) -> DeliveredCapture | None:
        try:
            metadata = self._lake.catalog(target.catalog).load(target).metadata
        except TableMissing:
            return None
        delivered = delivered_by(Delivery(stream, None, ""), metadata)
        known = self._state.delivered_uuid(stream, target)
        is_another = known not in {None, metadata["table-uuid"]}
        is_unclear = delivered.is_accepted or is_another or is_rolled_back(delivered, metadata)
        return None if is_unclear else delivered.consumers.get(consumer)

    def discard(self, staging: Staging) -> None:
        """Drop the branches of an attempt that failed; ``collect`` drops what cannot be dropped now."""
        if staging.is_delivered:
            return
        # Recorded first: what cannot be dropped now, or is cut off by a crash, is left to ``collect``.
        self._state.discard(staging.branch, self._clock())
        reach("delivery.discarded")
        for target in staging.targets:
            self._try_to_drop(target.name, staging.branch)

    def collect(self, grace: timedelta = timedelta(hours=1)) -> list[str]:
        """Drop branches that did not change for longer than ``grace``; return those that were dropped.

        This concerns closed captures, which cannot be delivered anymore. The attempt of any other branch may still
        run, so its branch stays for a week. What is held for an open capture stays.
        """
        now, dropped = self._clock(), []
        for branch in self._state.leftovers(now - grace):
            is_closed = self._is_closed(branch)
            is_alive = branch.status is BranchStatus.HELD or branch.changed_at > now - BRANCH_AGE
            if is_alive and not is_closed:
                continue
            was_there = self._try_to_drop(branch.target.name, branch.staging)
            # The records of an open capture answer ``delivered``: they stay until it is closed.
            if was_there is not None and (is_closed or branch.delivery.capture_id is None):
                self._state.forget(branch.staging, branch.target.name)  # of an open capture, all records stay
            if was_there:
                dropped.append(f"{branch.target.name} {branch.staging}")
        return dropped

    def _require(self, delivery: Delivery, targets: Iterable[TableName]) -> None:
        """Refuse targets that the workflow may not write to, and captures of a consumer that it may not run.

        A target that holds a capture counts as its delivery, so its consumer would never get the rows.
        """
        rights, workflow_id = self._tables(), workflow_of(delivery.stream)
        if not rights.is_closed:
            return
        for target in targets:
            rights.require(namespace_of(workflow_id), Right.WRITE, target)
        capture = self._capture(delivery.capture_id)
        if capture is not None and not OfWorkflow(workflow_id).may(ConsumerRight.RUN, capture.consumer):
            raise no_capture(capture.capture_id)

    def _looked_at(self, name: TableName, delivery: Delivery) -> StagedTarget:
        metadata = self._lake.catalog(name.catalog).load(name).metadata
        state = check_target(self._question(name, delivery), metadata)
        head = branch_head(metadata)
        return StagedTarget(name, metadata["table-uuid"], head, head, is_delivered=state.is_delivered)

    def _branched(self, name: TableName, staging: Staging) -> StagedTarget:
        catalog = self._lake.catalog(name.catalog)
        age = int(BRANCH_AGE.total_seconds() * 1000)
        question = self._question(name, staging.delivery)
        staged = BranchCommit(question, staging.branch, age, catalog.load(name).files, self._now_ms())
        catalog.change(name, staged.decide)
        reach("delivery.staged")
        assert staged.target is not None  # noqa: S101 - decide has been called
        return staged.target

    def _published(self, staging: Staging, target: StagedTarget) -> Published:
        catalog = self._lake.catalog(target.name.catalog)
        ask = partial(self._question, target.name, staging.delivery)
        commits = PublishCommit(ask, target, staging.branch, catalog.load(target.name).files, self._now_ms())
        reach("delivery.ready")
        try:
            catalog.change(target.name, commits.decide)
        # Refused by ``decide``: nothing was committed, so its files can go. After any other error the commit may have
        # happened, and the files must stay.
        except (DeliveryError, CaptureError):
            commits.clean_up()
            raise
        except Exception:
            published = self._settled(staging, target)
            if published is None:
                raise
        else:
            assert commits.published is not None  # noqa: S101 - decide has been called
            published = commits.published
        reach("delivery.published")
        self._note(staging, target)
        reach("delivery.noted")
        # The commit that published dropped its own branch only; this attempt's is still there.
        if published.is_repeated and not staging.is_delivered:
            self._try_to_drop(target.name, staging.branch)
        return published

    def _settled(self, staging: Staging, target: StagedTarget) -> Published | None:
        """Return the result of a commit without a response, from the delivery record; None if it did not happen."""
        metadata = self._lake.catalog(target.name.catalog).load(target.name).metadata
        state = check_target(self._question(target.name, staging.delivery), metadata)
        return Published(target.name, state.delivered.snapshot_id) if state.is_delivered else None

    def _note(self, staging: Staging, target: StagedTarget) -> None:
        self._state.note(staging, target.name, target.uuid, self._clock())

    def _question(self, name: TableName, delivery: Delivery) -> DeliveryRequest:
        capture = self._capture(delivery.capture_id)
        found = None
        if capture is not None and capture.status is Status.ABANDONED:
            found = superseded_by(capture, self._captures.captures(capture.consumer))
        return DeliveryRequest(delivery, capture, name, self._state.delivered_uuid(delivery.stream, name), found)

    def _capture(self, capture_id: str | None) -> StoredCapture | None:
        return None if capture_id is None else self._captures.capture(capture_id)

    def _holds(self, branch: StoredBranch, capture: StoredCapture) -> bool:
        """Return whether a target's delivery record contains anything of a capture."""
        name = branch.target.name
        try:
            metadata = self._lake.catalog(name.catalog).load(name).metadata
        except TableMissing:
            return False
        last = delivered_by(branch.delivery, metadata).consumers.get(capture.consumer)
        return last is not None and last.capture_id == capture.capture_id

    def _is_closed(self, branch: StoredBranch) -> bool:
        try:
            capture = self._capture(branch.delivery.capture_id)
        except CaptureMissing:
            return True
        return capture is not None and capture.status in {Status.COMMITTED, Status.ABANDONED}

    def _try_to_drop(self, name: TableName, branch: str) -> bool | None:
        """Drop a branch; return whether it existed, None if that is unknown."""

        def decide(metadata: Metadata) -> TableCommit | None:
            return None if branch_head(metadata, branch) is None else TableCommit(dropped=(branch,))

        try:
            return self._lake.catalog(name.catalog).change(name, decide)
        except TableMissing:
            return False
        except CalveError as error:
            logger.warning("The branch %s of %s is left behind: %s", branch, name, error.message)
            return None

    def _now_ms(self) -> int:
        return int(self._clock().timestamp() * 1000)

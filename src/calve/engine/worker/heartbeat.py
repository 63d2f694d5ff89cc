"""The heartbeat of a worker, which also takes over the tasks of dead workers."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from calve.engine.instances import Tools
from calve.engine.model import Changes, NewTask, TaskKind, WorkerRecord
from calve.engine.worker.claims import ClaimedTasks
from calve.engine.worker.clock import AnchoredClock
from calve.engine.worker.executor import Executor

log = logging.getLogger(__name__)

IsGone = Callable[[WorkerRecord], bool]
"""Tells whether the process of a worker has certainly ended."""


@dataclass(slots=True)
class Heartbeat:
    """Registers a worker and keeps its lease; each heartbeat also handles dead workers and runs that have timed out."""

    tools: Tools
    clock: AnchoredClock
    executor: Executor
    claimed: ClaimedTasks
    identity: WorkerRecord
    is_gone: IsGone
    lease_ms: int

    @property
    def uuid(self) -> str:
        """The uuid under which the worker is registered."""
        return self.identity.uuid

    def register(self) -> None:
        """Register the worker under a new uuid, and free the tasks of dead workers."""
        now = self.tools.state.now()
        # The database's clock, not this machine's: the leases of all workers are compared by one clock.
        self.clock.anchor(now)
        self.identity = replace(self.identity, uuid=self.tools.new_id(), started_at=now, heartbeat_at=now)
        self.tools.state.register(self.identity)
        self.claimed.owner = self.uuid
        self._reap()

    def beat(self, *, is_draining: bool) -> None:
        """Send a heartbeat; interrupt steps on which an action was requested; wake runs that have timed out."""
        state = self.tools.state
        reply = state.heartbeat(self.uuid, is_draining=is_draining)
        if not reply.is_alive:
            log.warning("this worker missed its heartbeats and was considered dead; it registers again")
            # Its tasks belong to others now: whatever it still does would be refused at the end.
            self.executor.interrupt_all()
            self.register()
            return
        self.clock.anchor(reply.now)
        self.executor.interrupt(reply.interrupted)
        state.release(self.claimed.missed(reply.owned))
        self._reap()
        late = state.overdue(self.clock())
        if late:
            # Several workers may find the same run late: a second task for it is the same row (decision 0013).
            state.commit(Changes(tasks=[NewTask(TaskKind.RUN, run_uuid) for run_uuid in late]))

    def _reap(self) -> None:
        for dead in self.tools.state.reap(self.lease_ms, is_gone=self.is_gone):
            log.warning("worker %s is gone; other workers take over its tasks", dead)

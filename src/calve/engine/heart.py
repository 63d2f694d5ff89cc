"""What keeps a worker alive in the eyes of the others, and looks after those that are not."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from calve.engine.clocks import AnchoredClock
from calve.engine.executing import Executor
from calve.engine.hands import Hands
from calve.engine.model import Changes, NewTask, TaskKind, WorkerRecord
from calve.engine.work import Tools

log = logging.getLogger(__name__)

IsGone = Callable[[WorkerRecord], bool]
"""Tells of a worker whether its process is gone for sure."""


@dataclass(slots=True)
class Heart:
    """Says that a worker lives, and does what has to be done now and then."""

    tools: Tools
    clock: AnchoredClock
    executor: Executor
    hands: Hands
    identity: WorkerRecord
    is_gone: IsGone
    lease_ms: int

    @property
    def uuid(self) -> str:
        """Under which name the worker is known now."""
        return self.identity.uuid

    def register(self) -> None:
        """Make the worker known, under a new name, and take from the dead what they held."""
        now = self.tools.state.now()
        self.clock.anchor(now)
        self.identity = replace(self.identity, uuid=self.tools.new_id(), started_at=now, heartbeat_at=now)
        self.tools.state.register(self.identity)
        self._reap()

    def beat(self, *, is_draining: bool) -> None:
        """Say that the worker lives; hear what was asked of its steps; wake runs whose time is up."""
        state = self.tools.state
        beat = state.heartbeat(self.uuid, is_draining=is_draining)
        if not beat.is_alive:
            log.warning("this worker was silent too long and taken for dead; it begins anew")
            self.executor.interrupt_all()
            self.register()
            return
        self.clock.anchor(beat.now)
        self.executor.interrupt(beat.interrupted)
        state.release(self.hands.missed(beat.owned))
        self._reap()
        late = state.overdue(self.clock())
        if late:
            state.commit(Changes(tasks=[NewTask(TaskKind.RUN, run_uuid) for run_uuid in late]))

    def _reap(self) -> None:
        for dead in self.tools.state.reap(self.lease_ms, is_gone=self.is_gone):
            log.warning("worker %s is gone; others take over what it held", dead)

"""The life cycle of an attempt: its creation, its status changes, its timeline."""

from dataclasses import replace
from typing import Any

from calve.engine.instances import RunState, UnitOfWork, is_leaf, type_of, with_timeline_entry
from calve.engine.model import Attempt, StepStatus

MOMENTS = {
    StepStatus.CREATED: "create",
    StepStatus.INITIALIZED: "initialize",
    StepStatus.PAUSED: "pause",
    StepStatus.WAITING_FOR_SIGNALS: "wait_signal",
    StepStatus.EVALUATING_PARAMS: "evaluate_param",
    StepStatus.WAITING_FOR_PERMITS: "wait_permit",
    StepStatus.STARTING: "start",
    StepStatus.RUNNING: "execute",
    StepStatus.FINISHING: "finish",
}
"""The key in ``Attempt.times`` for each status; any other status is recorded as ``end``."""


def new_attempt(work: UnitOfWork, state: RunState, step_id: str) -> Attempt:
    """Return the first attempt of a step in a run."""
    step = state.blueprint.steps[step_id]
    return Attempt(
        uuid=work.tools.new_id(),
        run_uuid=state.run.uuid,
        root_uuid=state.run.root_uuid,
        step_id=step_id,
        step_instance_id=state.blueprint.ordinals[step_id],
        attempt_id=1,
        type=type_of(step),
        is_leaf=is_leaf(step),
        tags=tuple(tag.name for tag in step.tags),
        times={"create": work.now},
    )


def next_attempt(work: UnitOfWork, state: RunState, before: Attempt, retries: dict[str, int]) -> Attempt:
    """Return the attempt that replaces another one in the same run, and mark that one as superseded."""
    work.set_old_attempt(state, replace(before, is_superseded=True, due_at=None))
    fresh = new_attempt(work, state, before.step_id)
    return replace(fresh, attempt_id=before.attempt_id + 1, retries=retries, dependencies=before.dependencies)


def with_status(attempt: Attempt, status: StepStatus, now: int, **changes: Any) -> Attempt:
    """Return an attempt in another status, with the time of the change."""
    moment = MOMENTS.get(status, "end")
    if moment == "end":
        changes = {"ended_at": now, "due_at": None, "timeout_at": None, "action": None, **changes}
    return replace(attempt, status=status, times={**attempt.times, moment: now}, **changes)


def with_message(attempt: Attempt, now: int, message: str, level: str = "INFO") -> Attempt:
    """Return an attempt with one more timeline entry; unchanged if the message is empty."""
    return replace(attempt, timeline=with_timeline_entry(attempt.timeline, now, message, level)) if message else attempt


def with_message_before_last(attempt: Attempt, now: int, message: str) -> Attempt:
    """Return an attempt with a new timeline entry before the last one, which stays the last."""
    before, last = attempt.timeline[:-1], attempt.timeline[-1:]
    return replace(attempt, timeline=(*with_timeline_entry(before, now, message), *last))

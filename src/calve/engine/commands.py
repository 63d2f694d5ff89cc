"""What people do to instances and steps that exist: stop, kill, skip, resume, approve."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from calve.engine.attempts import status_by_action
from calve.engine.control_steps import with_decision
from calve.engine.instances import APPROVAL, Address, Found, Tools, find, not_begun
from calve.engine.model import (
    RUN_ACTIONS,
    STEP_ACTIONS,
    Action,
    Attempt,
    Changes,
    Json,
    NewTask,
    Pending,
    Run,
    RunStatus,
    StepStatus,
    TaskKind,
    action_refused,
)
from calve.engine.params import params_from_stored
from calve.errors import ActionRefused, Conflict
from calve.texts import check_text

AGAIN = 20
"""How often an action is tried while the instance keeps changing."""
_DECISIONS = (Action.APPROVE, Action.REJECT)


def act(
    tools: Tools, address: Address, action: Action, *, by: str = "", reason: str = "", params: Json | None = None
) -> Run:
    """Request an action on an instance, or on the step that the address names; return its run.

    Raises:
        WorkflowMissing: the instance or the step does not exist.
        ActionRefused: its status does not allow the action.
        RequestInvalid: the reason or a param is not valid text.
    """
    check_text({"by": by, "reason": reason, **(params or {})})
    for _ in range(AGAIN):
        found = find(tools.state, address)
        pending = Pending(action, by, tools.clock(), reason, params=params or {})
        try:
            changes = _of_step(address, found, pending) if address.path else _of_run(address, found.run, pending)
            tools.state.commit(changes)
        except Conflict:
            continue
        return found.run
    raise Conflict(f"{address} keeps changing.")


def _of_run(address: Address, run: Run, pending: Pending) -> Changes:
    possible = RUN_ACTIONS[run.status]
    if pending.action not in possible:
        raise action_refused(str(address), pending.action, run.status, possible)
    if pending.action is Action.UNBLOCK:
        return Changes(runs=[replace(run, is_blocking=False)])
    if run.action is not None and run.action.action is Action.KILL:  # nothing is harsher
        return Changes(tasks=[_task(run)])
    return Changes(runs=[replace(run, action=pending)], tasks=[_task(run)])


def _of_step(address: Address, found: Found, pending: Pending) -> Changes:
    attempt = found.attempt
    if attempt is None:
        raise not_begun(address)
    possible = possible_for(attempt)
    if pending.action not in possible or found.run.status.is_terminal:
        raise action_refused(str(address), pending.action, attempt.status, possible)
    if pending.action in _DECISIONS:
        _check_approver(address, attempt, pending)
        asked = with_decision(attempt, pending)  # in addition to decisions that the engine has not processed yet
    else:
        asked = replace(attempt, action=pending)
    return Changes(runs=[found.run], attempts=[asked], tasks=[_task(found.run)])


def possible_for(attempt: Attempt) -> tuple[Action, ...]:
    """Return the actions that an attempt allows in its state."""
    is_asking = attempt.type == APPROVAL and attempt.status is StepStatus.RUNNING
    possible = (*STEP_ACTIONS[attempt.status], *(_DECISIONS if is_asking else ()))
    is_ending = attempt.action is not None and status_by_action(attempt.action.action) is not None
    return tuple(action for action in possible if status_by_action(action) is not None) if is_ending else possible


def _check_approver(address: Address, attempt: Attempt, pending: Pending) -> None:
    asked = params_from_stored(attempt.params)["approval"].result.get("approvers") or []
    if asked and pending.by not in asked:
        raise ActionRefused(
            f"{pending.by or 'You'} may not decide about {address}.", remedy=f"Ask one of: {', '.join(asked)}."
        )


def _task(run: Run) -> NewTask:
    return NewTask(TaskKind.RUN, run.uuid, priority=run.priority)


def for_all(tools: Tools, workflow_id: str, do: Callable[[Address], Run]) -> list[Run]:
    """Apply an action to every unfinished instance of a workflow; leave out those that end meanwhile."""
    live = [status for status in RunStatus if not status.is_terminal]
    done: list[Run] = []
    for run in each(tools, workflow_id, live):
        with suppress(ActionRefused):
            done.append(do(Address(workflow_id, run.instance_id)))
    return done


def each(tools: Tools, workflow_id: str, statuses: Sequence[RunStatus]) -> Iterator[Run]:
    """Yield the instances of a workflow that are in one of these states."""
    before: tuple[int, str] | None = None
    while page := tools.state.instances(workflow_id=workflow_id, statuses=statuses, before=before):
        yield from page
        before = (page[-1].created_at, page[-1].uuid)

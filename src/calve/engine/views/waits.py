"""Why steps of a run wait, at any depth: for people, a retry, signals, permits, or at a breakpoint."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from calve.definition.model import TypedStep
from calve.definition.params import parse_retry_policy, shown, values_of
from calve.engine.attempts import PENDING, retry_reason
from calve.engine.control_steps import APPROVAL_KEY
from calve.engine.instances import APPROVAL, Address, Tools
from calve.engine.model import Attempt, Json, PermitUse, Run, StepStatus
from calve.engine.params import params_from_stored
from calve.engine.ports import PROGRESS, EngineState
from calve.engine.views.sources import MayRead, reads_all

Runs = Mapping[str, Run]
"""Runs by uuid, each with the runs that contain it."""


class WaitReason(StrEnum):
    """The reason why a step waits."""

    APPROVAL = "APPROVAL"
    RETRY = "RETRY"
    SIGNALS = "SIGNALS"
    PERMITS = "PERMITS"
    BREAKPOINT = "BREAKPOINT"


@dataclass(frozen=True, slots=True)
class Wait:
    """A step that waits."""

    path: tuple[str, ...]
    """Its path in the run."""
    attempt: Attempt
    reason: WaitReason
    max_attempts: int | None = None
    """RETRY: the number of attempts if all of them fail like this one."""
    permits: tuple[PermitUse, ...] = ()
    """PERMITS: the missing permits."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a running step."""

    path: tuple[str, ...]
    attempt: Attempt
    message: str


@dataclass(frozen=True, slots=True)
class Question:
    """The question of an Approval step."""

    message: str
    approvers: tuple[str, ...]
    """Who may decide; if empty, anyone who may run the workflow."""
    min_approvals: int
    decisions: tuple[Json, ...]
    on_timeout: str
    """The result if it times out: approve or reject."""


@dataclass(frozen=True, slots=True)
class Approval:
    """An Approval step that waits for people, with its path."""

    address: Address
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Live:
    """The unfinished steps of a run: the first few of each kind."""

    waits: tuple[Wait, ...] = ()
    waiting: int = 0
    """The number of waiting steps, including those that are not listed."""
    progress: tuple[Progress, ...] = ()


def live_of(tools: Tools, run: Run, may_read: MayRead = reads_all) -> Live:
    """Return the waiting steps of a run, and the progress of the running ones.

    Those of subworkflows that the caller may not read are counted only.
    """
    if run.status.is_terminal:
        return Live()
    state = tools.state
    steps = state.live_steps(run.uuid)
    waiting = (*steps.asking, *steps.retrying, *steps.held)
    said = _progress(state, steps.running)
    told = [attempt for attempt in (*waiting, *steps.running) if attempt in waiting or attempt.uuid in said]
    runs = state.ancestry(sorted({attempt.run_uuid for attempt in told}))
    permits = _permits(state, steps.held)
    return Live(
        waits=tuple(
            Wait(
                path_to(runs, attempt, run.uuid),
                attempt,
                reason,
                max_attempts=_max_attempts(tools, runs, attempt) if reason is WaitReason.RETRY else None,
                permits=tuple(permits.get(attempt.uuid, ())),
            )
            for attempt in waiting
            if may_read(runs[attempt.run_uuid].owner_workflow)
            if (reason := wait_reason(attempt)) is not None
        ),
        waiting=steps.waiting,
        progress=tuple(
            Progress(path_to(runs, attempt, run.uuid), attempt, said[attempt.uuid])
            for attempt in steps.running
            if attempt.uuid in said and may_read(runs[attempt.run_uuid].owner_workflow)
        ),
    )


def approvals_of(state: EngineState, attempts: Iterable[Attempt]) -> list[Approval]:
    """Return Approval steps with their addresses in the instances of the workflows that define them."""
    attempts = list(attempts)
    runs = state.ancestry(sorted({attempt.run_uuid for attempt in attempts}))
    known = [attempt for attempt in attempts if attempt.run_uuid in runs]  # the others have been deleted
    return [Approval(_address(runs, attempt), attempt) for attempt in known]


def wait_reason(attempt: Attempt) -> WaitReason | None:
    """Return why an attempt waits; None if it does not wait, or only runs."""
    if attempt.status.is_retryable:
        return None if attempt.is_superseded or attempt.due_at is None else WaitReason.RETRY
    if attempt.type == APPROVAL and attempt.status is StepStatus.RUNNING:
        return WaitReason.APPROVAL
    return _HOLDS.get(attempt.status)


_HOLDS = {
    StepStatus.PAUSED: WaitReason.BREAKPOINT,
    StepStatus.WAITING_FOR_SIGNALS: WaitReason.SIGNALS,
    StepStatus.WAITING_FOR_PERMITS: WaitReason.PERMITS,
}


def question_of(attempt: Attempt) -> Question:
    """Return the question of an Approval step, without secrets."""
    config: Mapping[str, Any] = shown(params_from_stored(attempt.params)["approval"].result)
    return Question(
        message=str(config.get("message", "")),
        approvers=tuple(config.get("approvers") or ()),
        min_approvals=int(config.get("min_approvals", 1)),
        decisions=tuple(attempt.artifacts.get(APPROVAL_KEY, {}).get("decisions", ())),
        on_timeout=str(config.get("on_timeout", "reject")),
    )


def pending_signals(attempt: Attempt) -> list[Json]:
    """Return the signals that an attempt still waits for: their names, and what their params must match."""
    return [
        {"name": each["name"], "match_params": each.get("match_params", {})}
        for each in attempt.dependencies
        if each.get("status") == PENDING
    ]


def path_to(runs: Runs, attempt: Attempt, top: str) -> tuple[str, ...]:
    """Return the path of an attempt's step from the run ``top`` down, such as parts, 3, load."""
    parts = [attempt.step_id]
    run = runs[attempt.run_uuid]
    while run.uuid != top and run.parent is not None:
        parts += [str(run.instance_id), run.parent.step_id] if run.is_inline else [run.parent.step_id]
        run = runs[run.parent.run_uuid]
    return tuple(reversed(parts))


def _address(runs: Runs, attempt: Attempt) -> Address:
    run = runs[attempt.run_uuid]
    while run.is_inline and run.parent is not None:
        run = runs[run.parent.run_uuid]
    return Address(run.workflow_id, run.instance_id, path=path_to(runs, attempt, run.uuid))


def _max_attempts(tools: Tools, runs: Runs, attempt: Attempt) -> int:
    run = runs[attempt.run_uuid]
    step = tools.blueprints.get(run.owner_workflow, run.version_id, run.inline_step).steps[attempt.step_id]
    policy = step.retry_policy if isinstance(step, TypedStep) else None
    reason = retry_reason(attempt.status)
    limit = parse_retry_policy(policy, _values(runs, run) if policy else {}).of(reason).limit
    return attempt.attempt_id + limit - attempt.retries.get(reason, 0)


def _values(runs: Runs, run: Run) -> dict[str, Any]:
    """Return the params of a run; for an iteration, with those of the run around it."""
    around = _values(runs, runs[run.parent.run_uuid]) if run.is_inline and run.parent else {}
    return {**around, **values_of(params_from_stored(run.params))}


def _permits(state: EngineState, held: Iterable[Attempt]) -> Mapping[str, list[PermitUse]]:
    waiting = [attempt.uuid for attempt in held if attempt.status is StepStatus.WAITING_FOR_PERMITS]
    return state.awaited_permits(waiting) if waiting else {}


def _progress(state: EngineState, running: Iterable[Attempt]) -> dict[str, str]:
    """Return the last progress line in the log of each attempt that has one."""
    uuids = [attempt.uuid for attempt in running]
    ends = state.last_lines(uuids) if uuids else {}
    lines = {uuid: [line for line in end.splitlines() if line.startswith(PROGRESS)] for uuid, end in ends.items()}
    return {uuid: found[-1].removeprefix(PROGRESS) for uuid, found in lines.items() if found}

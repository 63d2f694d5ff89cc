"""Sets aside a run that the engine cannot advance: it fails, and the other runs continue."""

from dataclasses import replace

from calve.engine.attempts import with_message, with_status
from calve.engine.instances import Tools, ended_run, run_event, step_event, with_timeline_entry
from calve.engine.model import (
    RUN_EVENT,
    Action,
    Changes,
    NewTask,
    PassDown,
    Pending,
    Run,
    RunStatus,
    StepStatus,
    Task,
    TaskKind,
)

SET_ASIDE = "Set aside: "
"""The prefix of the message of a run that was set aside."""


def set_aside_message(run: Run, why: str) -> str:
    """Return why a run was set aside, and how to try it again."""
    # An iteration cannot be restarted by itself, only the instance around its loop, which shows the failed step.
    again = "" if run.is_inline else f" with: calve restart {run.workflow_id} {run.instance_id}"
    return f"{SET_ASIDE}{why}. See the logs of the workers. When the cause is fixed, restart it{again}"


def is_set_aside(run: Run) -> bool:
    """Tell whether a run was set aside."""
    return run.status is RunStatus.FAILED and run.message.startswith(SET_ASIDE)


def quarantine(tools: Tools, task: Task, why: str) -> Changes:
    """Return the changes that set a run aside: its unfinished steps are INTERNALLY_FAILED, and it is FAILED.

    The child runs of its steps are killed.
    """
    # Do not use a UnitOfWork here: deciding about this run is what fails, or kills the worker.
    now = tools.clock()
    tools.cache.drop(task.run_uuid)
    found = tools.state.load(task.run_uuid)
    changes = Changes(done=[task])
    if found is None or found.run.status.is_terminal:
        return changes
    run = found.run
    reason = set_aside_message(run, why)
    for attempt in found.attempts:
        # A restarted run also has attempts that it carried over from earlier runs: those have ended.
        if attempt.run_uuid == run.uuid and not attempt.status.is_final:
            failed = with_status(with_message(attempt, now, reason, "ERROR"), StepStatus.INTERNALLY_FAILED, now)
            changes.attempts.append(failed)
            changes.events.append(step_event(run, failed, attempt.status, now))
            if not attempt.is_leaf:
                ended = Pending(Action.KILL, at=now, reason=reason, is_upstream=True)
                changes.passed_down.append(PassDown(attempt.uuid, ended))
    changes.runs.append(
        replace(
            ended_run(run, RunStatus.FAILED, RunStatus.FAILED, now),
            message=reason,
            timeline=with_timeline_entry(run.timeline, now, reason, "ERROR"),
        )
    )
    changes.events.append(run_event(run, RUN_EVENT, now, before=run.status, after=RunStatus.FAILED))
    if run.parent is not None:
        changes.tasks.append(NewTask(TaskKind.RUN, run.parent.run_uuid, priority=run.priority))
    return changes

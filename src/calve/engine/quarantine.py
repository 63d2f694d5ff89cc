"""What happens to a run that cannot be moved: it is set aside as failed, and the others go on."""

from dataclasses import replace

from calve.engine.actions import Action
from calve.engine.attempts import moved, told
from calve.engine.launching import over
from calve.engine.model import RUN_EVENT, Changes, NewTask, PassDown, Pending, Task, TaskKind
from calve.engine.statuses import RunStatus, StepStatus
from calve.engine.work import Tools, event_of, noted, step_event


def quarantine(tools: Tools, task: Task, reason: str) -> Changes:
    """Return the changes that set a run aside: its unfinished steps are INTERNALLY_FAILED, and it is FAILED.

    What runs inside its steps is killed.
    """
    now = tools.clock()
    tools.cache.drop(task.run_uuid)
    found = tools.state.load(task.run_uuid)
    changes = Changes(done=[task])
    if found is None or found.run.status.is_terminal:
        return changes
    run = found.run
    for attempt in found.attempts:
        if attempt.run_uuid == run.uuid and not attempt.status.is_final:
            failed = moved(told(attempt, now, reason, "ERROR"), StepStatus.INTERNALLY_FAILED, now)
            changes.attempts.append(failed)
            changes.events.append(step_event(run, failed, attempt.status, now))
            if not attempt.is_leaf:
                ended = Pending(Action.KILL, at=now, reason=reason, is_upstream=True)
                changes.passed_down.append(PassDown(attempt.uuid, ended))
    changes.runs.append(
        replace(
            over(run, RunStatus.FAILED, RunStatus.FAILED, now),
            message=reason,
            timeline=noted(run.timeline, now, reason, "ERROR"),
        )
    )
    changes.events.append(event_of(run, RUN_EVENT, now, before=run.status, after=RunStatus.FAILED))
    if run.parent is not None:
        changes.tasks.append(NewTask(TaskKind.RUN, run.parent.run_uuid, priority=run.priority))
    return changes

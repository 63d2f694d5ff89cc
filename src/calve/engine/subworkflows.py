"""Subworkflow: a step that starts an instance of another workflow, and usually waits for its end."""

from dataclasses import replace

from calve.definition.model.steps import SubworkflowStep
from calve.definition.params import InitiatorType, subworkflow_params
from calve.engine.children import check_depth, outcome_of, replaced_by
from calve.engine.ending import end
from calve.engine.evaluating import written
from calve.engine.facts import params_of, run_params
from calve.engine.launching import again, new_run
from calve.engine.model import Attempt, Initiator, Parent, Restart, Run, RunPolicy, Start
from calve.engine.ports import Outcome, State
from calve.engine.states import RunState
from calve.engine.statuses import RunStatus
from calve.engine.work import Work
from calve.errors import CalveError

KEY = "maestro_subworkflow"


def progress(work: Work, state: RunState, step: SubworkflowStep, attempt: Attempt) -> Attempt:
    """Start the child if it has not been started, and end the step when it is over."""
    if KEY not in attempt.artifacts:
        try:
            start = _start(work, state, step, attempt)
        except CalveError as error:
            return end(work, state, attempt, Outcome(State.FATAL_ERROR, message=error.message))
        work.start(start)
        artifact = {"subworkflow_id": start.run.workflow_id, "subworkflow_version_id": start.run.version_id}
        attempt = replace(attempt, artifacts={**attempt.artifacts, KEY: artifact})
        if step.sync is False:
            return end(work, state, attempt, Outcome(State.DONE, message="Started; it is not waited for."))
        return work.set_attempt(state, attempt)
    found = work.tools.state.child_runs(attempt.uuid, limit=1)
    if not found or not found[0].status.is_terminal:
        return attempt
    child = found[0]
    shown = f"{child.workflow_id} instance {child.instance_id} run {child.run_id}"
    return end(work, state, attempt, outcome_of(child.status, f"{shown}: {child.status}."))


def _start(work: Work, state: RunState, step: SubworkflowStep, attempt: Attempt) -> Start:
    check_depth(state)
    own = params_of(state, attempt)
    workflow_id, version = str(own["subworkflow_id"].result), str(own["subworkflow_version"].result)
    parent = Parent(state.run.uuid, step.id, attempt.uuid)
    before = _before(work, state, attempt, workflow_id)
    if before is not None:
        return Start(_again(work, state, before, parent), is_restart=True)
    defined = {name: param for name, param in own.items() if name in step.params}
    given = subworkflow_params(workflow=run_params(state), step=defined, explicit=bool(step.explicit_params))
    initiator = Initiator(InitiatorType.SUBWORKFLOW, state.run.initiator.user, state.run.initiator.timezone)
    child = new_run(work.tools, workflow_id, version, run_params=written(given), initiator=initiator, now=work.now)
    tree = state.run.properties.get("instance_step_concurrency")
    return Start(
        replace(
            child,
            root_uuid=state.run.root_uuid,
            parent=parent,
            depth=state.run.depth + 1,
            priority=state.run.priority,
            properties={**child.properties, "instance_step_concurrency": tree} if tree else child.properties,
            request_id=attempt.uuid,
        )
    )


def _before(work: Work, state: RunState, attempt: Attempt, workflow_id: str) -> Run | None:
    """Return the child of an earlier run that is to be restarted, rather than a new one started."""
    run, replaced = state.run, replaced_by(work, state, attempt)
    is_meant = run.restart.step_path[:1] == (attempt.step_id,) and len(run.restart.step_path) > 1
    if replaced is None or not (is_meant or run.policy is RunPolicy.RESTART_FROM_INCOMPLETE):
        return None
    children = work.tools.state.child_runs(replaced.uuid, limit=1)
    latest = work.tools.state.run(workflow_id, children[0].instance_id) if children else None
    if latest is None or not latest.status.is_terminal:
        return None
    return latest if is_meant or latest.status is not RunStatus.SUCCEEDED else None


def _again(work: Work, state: RunState, before: Run, parent: Parent) -> Run:
    restart = state.run.restart
    path = restart.step_path[1:]
    return again(
        before,
        uuid=work.tools.new_id(),
        policy=state.run.policy if path else RunPolicy.RESTART_FROM_INCOMPLETE,
        run_params={},
        restart=Restart(
            step_path=path, iterations=restart.iterations, step_params=restart.step_params, skip=restart.skip
        ),
        now=work.now,
        root_uuid=state.run.root_uuid,
        parent=parent,
        request_id=parent.attempt_uuid,
    )

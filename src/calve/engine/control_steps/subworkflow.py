"""Subworkflow: a step that starts an instance of another workflow, and usually waits for its end."""

from dataclasses import replace
from functools import partial

from calve.definition import Definition, endless_cycle, subworkflow_of
from calve.definition.model import SubworkflowStep
from calve.definition.params import InitiatorType, subworkflow_params
from calve.engine.attempts import record_outcome
from calve.engine.control_steps.child_runs import check_depth, outcome_of
from calve.engine.instances import RunState, Tools, UnitOfWork, find_workflow, new_run, restarted_run, version_number
from calve.engine.model import Attempt, Initiator, Json, Parent, Restart, Run, RunPolicy, Start, strategy_of
from calve.engine.params import params_of, run_params, written
from calve.engine.ports import Outcome, State
from calve.engine.restarts import policy_inside, replaced_by
from calve.errors import OF_THE_WORKFLOW, DefinitionInvalid, Forbidden, RequestInvalid
from calve.namespaces import covers, namespace_of

SUBWORKFLOW_KEY = "maestro_subworkflow"


def progress_subworkflow(work: UnitOfWork, state: RunState, step: SubworkflowStep, attempt: Attempt) -> Attempt:
    """Start the child instance if it has not been started, and end the step when the child has ended."""
    if SUBWORKFLOW_KEY not in attempt.artifacts:
        try:
            start = _start(work, state, step, attempt)
        except (*OF_THE_WORKFLOW, Forbidden) as error:
            return record_outcome(work, state, attempt, Outcome(State.FATAL_ERROR, message=error.message))
        work.start(start)
        artifact = {"subworkflow_id": start.run.workflow_id, "subworkflow_version_id": start.run.version_id}
        attempt = replace(attempt, artifacts={**attempt.artifacts, SUBWORKFLOW_KEY: artifact})
        if step.sync is False:
            return record_outcome(
                work, state, attempt, Outcome(State.DONE, message="Started, without waiting for its end.")
            )
        return work.set_attempt(state, attempt)
    found = work.tools.state.child_runs(attempt.uuid, limit=1)
    if not found or not found[0].status.is_terminal:
        return attempt
    child = found[0]
    number = {"subworkflow_instance_id": child.instance_id, "subworkflow_run_id": child.run_id}
    artifact = {**attempt.artifacts[SUBWORKFLOW_KEY], **number, "subworkflow_uuid": child.uuid}
    message = f"{_shown(child)}: {child.status}. {_said(work, state, child)}".rstrip()
    return record_outcome(work, state, attempt, outcome_of(child.status, message, **{SUBWORKFLOW_KEY: artifact}))


def _start(work: UnitOfWork, state: RunState, step: SubworkflowStep, attempt: Attempt) -> Start:
    check_depth(state)
    own = params_of(state, attempt)
    defined = {name: param for name, param in own.items() if name in step.params}
    given = written(subworkflow_params(workflow=run_params(state), step=defined, explicit=bool(step.explicit_params)))
    workflow_id, version = str(own["subworkflow_id"].result), str(own["subworkflow_version"].result)
    _check_right(state.run.initiator, step, workflow_id)
    parent = Parent(state.run.uuid, step.id, attempt.uuid)
    replaced = replaced_by(work, state, attempt)
    policy = policy_inside(work, state, step, attempt, replaced)
    before = _before(work, replaced, workflow_id, policy)
    if before is None:
        return Start(_first(work, state, workflow_id, version, given, parent))
    run = _again(work, state, before, policy, given, parent)
    if state.run.restart.is_latest:
        number = version_number(work.tools, workflow_id, version)
        run = replace(run, version_id=number, restart=Restart(is_latest=True))
    return Start(run, is_restart=True)


def _before(work: UnitOfWork, replaced: Attempt | None, workflow_id: str, policy: RunPolicy) -> Run | None:
    """Return the child instance of the replaced attempt, to be restarted; None if a new one is to be started.

    Raises:
        RequestInvalid: the child instance has not ended.
    """
    children = work.tools.state.child_runs(replaced.uuid, limit=1) if replaced else []
    if not children or children[0].workflow_id != workflow_id:
        return None
    child = children[0]
    if child.status.is_terminal:
        return child
    if policy is RunPolicy.RESTART_FROM_BEGINNING:
        return None
    raise RequestInvalid(f"{_shown(child)} has not ended.", remedy="Wait until it ends, or stop it.")


def _first(work: UnitOfWork, state: RunState, workflow_id: str, version: str, given: Json, parent: Parent) -> Run:
    run = state.run
    by = run.initiator
    initiator = Initiator(InitiatorType.SUBWORKFLOW, by.user, by.timezone, within=by.within)
    child = new_run(work.tools, workflow_id, version, run_params=given, initiator=initiator, now=work.now)
    of_tree = run.properties.get("instance_step_concurrency")
    return replace(
        child,
        root_uuid=run.root_uuid,
        parent=parent,
        depth=run.depth + 1,
        priority=run.priority,
        properties={**child.properties, "instance_step_concurrency": of_tree} if of_tree else child.properties,
        request_id=parent.attempt_uuid,
    )


def _again(work: UnitOfWork, state: RunState, before: Run, policy: RunPolicy, given: Json, parent: Parent) -> Run:
    """Return the run that restarts a child instance; the restart's steps apply only if their path leads into it."""
    restart = state.run.restart
    is_aim = policy is RunPolicy.RESTART_FROM_SPECIFIC
    return restarted_run(
        before,
        uuid=work.tools.new_id(),
        policy=policy,
        run_params=given,
        restart=replace(restart, step_path=restart.step_path[1:], replaced={}) if is_aim else Restart(),
        now=work.now,
        root_uuid=state.run.root_uuid,
        parent=parent,
        request_id=parent.attempt_uuid,
        initiator=replace(before.initiator, within=state.run.initiator.within),
    )


def check_cycle(tools: Tools, definition: Definition) -> None:
    """Refuse a definition that would make a workflow wait for itself, judged by the stored definitions.

    Raises:
        DefinitionInvalid: the workflow would wait for itself.
    """
    given, workflow = definition.properties.run_strategy, definition.workflow

    def is_exclusive(workflow_id: str) -> bool:
        if workflow_id == workflow.id and given is not None:
            return given.concurrency == 1
        return strategy_of(tools.state.workflow(workflow_id)).concurrency == 1

    cycle = endless_cycle(workflow, partial(find_workflow, tools), is_exclusive)
    if cycle:
        raise DefinitionInvalid(
            f"The workflow would wait for itself: {' → '.join(cycle)}. Only one instance of {cycle[0]} runs at a time, "
            "so that the inner one waits for the outer one, and the outer one for the inner one.",
            remedy=f"Give {cycle[0]} the run strategy PARALLEL, or set sync: false in one of the subworkflow steps.",
            cycle=list(cycle),
        )


def _check_right(by: Initiator, step: SubworkflowStep, workflow_id: str) -> None:
    """Refuse a workflow id that comes from params, if the initiator may not start that workflow.

    Raises:
        Forbidden: the initiator lacks the permission.
    """
    if workflow_id != subworkflow_of(step).workflow_id and not by.may_name(workflow_id):
        raise Forbidden(f"{by.user or 'The initiator of this run'} may not run {workflow_id}.", workflow=workflow_id)


def _said(work: UnitOfWork, state: RunState, child: Run) -> str:
    """Return why the child ended; nothing if it belongs to another namespace, which readers may lack access to."""
    is_own = covers(namespace_of(state.run.owner_workflow), namespace_of(child.workflow_id))
    return child.message if not child.message or is_own or not work.tools.has_namespaces() else ""


def _shown(run: Run) -> str:
    return f"{run.workflow_id} instance {run.instance_id} run {run.run_id}"

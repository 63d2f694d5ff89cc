"""Actions on instances and steps: stop, kill, skip, pause, resume, unblock, bypass, approve, reject; and delete."""

from collections.abc import Sequence
from typing import Any

import click

from calve.cli.command import argument, command, option
from calve.cli.output import print_json
from calve.cli.session import Document, Session
from calve.cli.state import State
from calve.errors import RequestInvalid

_RUN = (
    "workflow_id",
    "workflow_version_id",
    "workflow_instance_id",
    "workflow_run_id",
    "workflow_uuid",
    "status",
)
"""The fields of a run that ``--json`` prints."""

_SOME = {
    "instance_id": argument(required=False),
    "step_id": option("--step", metavar="PATH", default=None, help="Only this step: job, loop/3/job."),
}
"""The spelling of the instance and the step, for actions that may also concern the whole workflow."""


def _action(path: str, help_text: str, **spellings: Any) -> click.Command:
    """Return a command for an action, with the parameters of the operation on a step or an instance."""
    name = path.partition(".")[2].rpartition("_")[0]

    def act(
        state: State, /, workflow_id: str, instance_id: int | None, step_id: str | None = None, **said: str
    ) -> None:
        if instance_id is None and step_id is not None:
            raise click.UsageError("--step needs an INSTANCE.")
        with state.connect() as session:
            given = {key: text for key, text in said.items() if text}
            answer = session.operations.act(name, workflow_id, instance_id, step_id, is_blocking=False, **given)
            runs = answer["instances"] if instance_id is None else [_run(session, workflow_id, instance_id)]
            _print_runs(state, session, name, runs)

    act.__doc__ = help_text
    return command(path, name, **spellings)(act)


stop = _action(
    "Breakpoints.stop_step",
    """Stop a step, an instance, or all instances of a workflow; they end as STOPPED.

    \b
      calve stop demo.pipeline 3
      calve stop demo.pipeline 3 --step load
      calve stop demo.pipeline

    Without an INSTANCE, it stops all instances of the workflow that have not ended.
    """,
    blocking=None,
    **_SOME,
)
kill = _action(
    "Breakpoints.kill_step",
    """Fail a step, an instance, or all instances of a workflow; they end as FAILED.

    \b
      calve kill demo.pipeline 3 --step load --reason "wrong day"
    """,
    blocking=None,
    **_SOME,
)
skip = _action(
    "Breakpoints.skip_step",
    """Skip a step, so that the steps after it continue; in an instance that has ended, by a restart.

    \b
      calve skip demo.pipeline 3 check
    """,
    blocking=None,
)
unblock = _action(
    "Controls.unblock_instance",
    """Let a STRICT_SEQUENTIAL workflow continue despite a failed instance.

    \b
      calve unblock demo.pipeline 3
    """,
)
bypass = _action(
    "Breakpoints.bypass_step",
    """Let a step continue without the signals that it waits for.

    \b
      calve bypass demo.pipeline 3 load
    """,
    blocking=None,
)
approve = _action(
    "Breakpoints.approve_step",
    """Approve what an Approval step asks.

    \b
      calve approve demo.pipeline 3 publish --comment "numbers look right"
    """,
    blocking=None,
)
reject = _action(
    "Breakpoints.reject_step",
    """Reject what an Approval step asks; the step fails.

    \b
      calve reject demo.pipeline 3 publish --comment "two days are missing"
    """,
    blocking=None,
)


@command(
    "Breakpoints.add_breakpoint",
    workflow_instance_id=option("--instance", metavar="N", default=None),
    workflow_version_id=None,
    workflow_run_id=None,
    step_attempt_id=None,
)
def pause(state: State, workflow_id: str, step_id: str, workflow_instance_id: int | None) -> None:
    r"""Set a breakpoint: the step pauses before it starts, until calve resume.

    \b
      calve pause demo.pipeline load
    """
    with state.operations() as operations:
        operations.pause(workflow_id, step_id, workflow_instance_id)
    if state.json:
        where = {"workflow_id": workflow_id, "step_id": step_id, "workflow_instance_id": workflow_instance_id}
        print_json({"action": "pause", **where})
    else:
        click.echo(f"{step_id} of {workflow_id} pauses from now on. To continue: calve resume {workflow_id} {step_id}")


@command("Breakpoints.resume_workflow", step_id=argument())
@click.option("--instance", type=int, metavar="N", help="Only let the step of this instance continue.")
def resume(state: State, workflow_id: str, step_id: str | None, instance: int | None) -> None:
    r"""Remove breakpoints, and let the steps continue that they have paused.

    \b
      calve resume demo.pipeline              all breakpoints of the workflow
      calve resume demo.pipeline load
      calve resume demo.pipeline load --instance 3
    """
    if instance is not None and step_id is None:
        raise click.UsageError("--instance needs a STEP.")
    with state.connect() as session:
        runs = session.operations.resume(workflow_id, step_id, instance)
        _print_runs(state, session, "resume", runs if instance is None else [_run(session, workflow_id, instance)])


@command("Workflows.delete")
@click.option("--yes", is_flag=True, help="Confirm it: it cannot be undone.")
def delete(state: State, workflow_id: str, *, yes: bool) -> None:
    r"""Delete a workflow with its versions, instances and logs.

    \b
      calve delete demo.pipeline --yes
    """
    if not yes:
        raise RequestInvalid(
            f"This deletes {workflow_id} with all its versions, instances and logs.", remedy="Confirm it with --yes."
        )
    with state.operations() as operations:
        operations.delete(workflow_id)
    if state.json:
        print_json({"action": "delete", "workflow_id": workflow_id})
    else:
        click.echo(f"{workflow_id} is deleted")


def _run(session: Session, workflow: str, instance: int) -> Document:
    """Return the newest run of an instance."""
    return session.operations.runs(workflow, instance)[0]


def _print_runs(state: State, session: Session, name: str, runs: Sequence[Document]) -> None:
    """Print which runs an action concerns, and warn if no worker will carry it out."""
    if state.json:
        print_json({"action": name, "instances": [{key: run[key] for key in _RUN} for run in runs]})
    else:
        for run in runs:
            click.echo(f"{name}: {run['workflow_id']} {run['workflow_instance_id']}")
        if not runs:
            click.echo(f"{name}: there is no instance to act on")
    if runs and name != "unblock":
        session.warn_without_worker()

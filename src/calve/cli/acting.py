"""What people do to instances and steps: stop, kill, skip, pause, resume, unblock, bypass, approve, reject, delete."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from calve.cli.desk import Desk, Document
from calve.cli.given import address
from calve.cli.hands import tell_if_nobody_works
from calve.cli.output import print_json
from calve.cli.state import State, json_option
from calve.errors import RequestInvalid

if TYPE_CHECKING:
    from calve.engine import Address

Act = Callable[[Desk], list[Document]]
"""Asks something, and returns the instances that it concerns."""

_reason_option = click.option("--reason", default="", help="Why; it is kept in the timeline.")
_comment_option = click.option("--comment", default="", help="What to say with it; the step gives it as an output.")
_step_option = click.option("--step", metavar="PATH", help="Only this step: job, loop/3/job.")


@click.command()
@click.argument("workflow")
@click.argument("instance", required=False, type=int)
@_step_option
@_reason_option
@json_option
@click.pass_obj
def stop(state: State, workflow: str, instance: int | None, step: str | None, reason: str) -> None:
    r"""Stop a step, an instance, or all instances of a workflow; they end as STOPPED.

    \b
      calve stop demo.pipeline 3
      calve stop demo.pipeline 3 --step load
      calve stop demo.pipeline             all of its instances that are not over
    """
    if (where := _place(workflow, instance, step)) is None:
        _do(state, "stop", lambda desk: desk.act_on_all("stop", workflow, reason=reason))
    else:
        _do(state, "stop", lambda desk: [desk.act("stop", where, reason=reason)])


@click.command()
@click.argument("workflow")
@click.argument("instance", required=False, type=int)
@_step_option
@_reason_option
@json_option
@click.pass_obj
def kill(state: State, workflow: str, instance: int | None, step: str | None, reason: str) -> None:
    r"""Fail a step, an instance, or all instances of a workflow; they end as FAILED.

    \b
      calve kill demo.pipeline 3 --step load --reason "wrong day"
    """
    if (where := _place(workflow, instance, step)) is None:
        _do(state, "kill", lambda desk: desk.act_on_all("kill", workflow, reason=reason))
    else:
        _do(state, "kill", lambda desk: [desk.act("kill", where, reason=reason)])


@click.command()
@click.argument("workflow")
@click.argument("instance", type=int)
@click.argument("step")
@json_option
@click.pass_obj
def skip(state: State, workflow: str, instance: int, step: str) -> None:
    r"""Skip a step, so that the steps after it go on; in an instance that is over, by a restart.

    \b
      calve skip demo.pipeline 3 check
    """
    where = address(workflow, instance, step)
    _do(state, "skip", lambda desk: [desk.act("skip", where)])


@click.command()
@click.argument("workflow")
@click.argument("instance", type=int)
@json_option
@click.pass_obj
def unblock(state: State, workflow: str, instance: int) -> None:
    r"""Let a STRICT_SEQUENTIAL workflow go on in spite of a failed instance.

    \b
      calve unblock demo.pipeline 3
    """
    where = address(workflow, instance)
    _do(state, "unblock", lambda desk: [desk.act("unblock", where)])


@click.command()
@click.argument("workflow")
@click.argument("instance", type=int)
@click.argument("step")
@json_option
@click.pass_obj
def bypass(state: State, workflow: str, instance: int, step: str) -> None:
    r"""Let a step go on without the signals that it waits for.

    \b
      calve bypass demo.pipeline 3 load
    """
    where = address(workflow, instance, step)
    _do(state, "bypass", lambda desk: [desk.act("bypass", where)])


@click.command()
@click.argument("workflow")
@click.argument("instance", type=int)
@click.argument("step")
@_comment_option
@json_option
@click.pass_obj
def approve(state: State, workflow: str, instance: int, step: str, comment: str) -> None:
    r"""Agree to what an Approval step asks.

    \b
      calve approve demo.pipeline 3 publish --comment "numbers look right"
    """
    where = address(workflow, instance, step)
    _do(state, "approve", lambda desk: [desk.act("approve", where, comment=comment)])


@click.command()
@click.argument("workflow")
@click.argument("instance", type=int)
@click.argument("step")
@_comment_option
@json_option
@click.pass_obj
def reject(state: State, workflow: str, instance: int, step: str, comment: str) -> None:
    r"""Refuse what an Approval step asks; the step fails.

    \b
      calve reject demo.pipeline 3 publish --comment "two days are missing"
    """
    where = address(workflow, instance, step)
    _do(state, "reject", lambda desk: [desk.act("reject", where, comment=comment)])


@click.command()
@click.argument("workflow")
@click.argument("step")
@click.option("--instance", type=int, metavar="N", help="Only in this instance.")
@json_option
@click.pass_obj
def pause(state: State, workflow: str, step: str, instance: int | None) -> None:
    r"""Set a breakpoint: the step pauses before it begins, until calve resume.

    \b
      calve pause demo.pipeline load
    """
    with state.desk() as desk:
        desk.pause(workflow, step, instance)
    if state.json:
        print_json({"action": "pause", "workflow_id": workflow, "step_id": step, "workflow_instance_id": instance})
    else:
        click.echo(f"{step} of {workflow} pauses from now on. To go on: calve resume {workflow} {step}")


@click.command()
@click.argument("workflow")
@click.argument("step", required=False)
@click.option("--instance", type=int, metavar="N", help="Only let the step of this instance go on.")
@json_option
@click.pass_obj
def resume(state: State, workflow: str, step: str | None, instance: int | None) -> None:
    r"""Take breakpoints away, and let the steps go on that they have paused.

    \b
      calve resume demo.pipeline              all breakpoints of the workflow
      calve resume demo.pipeline load
      calve resume demo.pipeline load --instance 3
    """
    if instance is not None and step is None:
        raise click.UsageError("Name the STEP, too.")
    where = None if instance is None else address(workflow, instance, step)
    _do(state, "resume", lambda desk: desk.resume(workflow, step, where))


@click.command()
@click.argument("workflow")
@click.option("--yes", is_flag=True, help="Do it: nothing of it can be brought back.")
@json_option
@click.pass_obj
def delete(state: State, workflow: str, *, yes: bool) -> None:
    r"""Forget a workflow: its versions, instances and logs.

    \b
      calve delete demo.pipeline --yes
    """
    if not yes:
        raise RequestInvalid(f"{workflow} would be gone with everything it has done.", remedy="Say so with --yes.")
    with state.desk() as desk:
        desk.delete(workflow)
    if state.json:
        print_json({"action": "delete", "workflow_id": workflow})
    else:
        click.echo(f"{workflow} is deleted")


def _place(workflow: str, instance: int | None, step: str | None) -> "Address | None":
    """Return which instance or step is meant; None for all instances."""
    if instance is not None:
        return address(workflow, instance, step)
    if step is not None:
        raise click.UsageError("A step is of an INSTANCE: name that, too.")
    return None


def _do(state: State, name: str, act: Act) -> None:
    """Ask something, and say of which instances it was asked."""
    with state.desk() as desk:
        found = act(desk)
        if state.json:
            print_json({"action": name, "instances": found})
        else:
            for run in found:
                click.echo(f"{name}: {run['workflow_id']} {run['workflow_instance_id']}")
            if not found:
                click.echo(f"{name}: no instance is concerned")
        if found and name != "unblock":
            tell_if_nobody_works(desk)

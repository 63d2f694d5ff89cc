"""``calve status``, ``calve instances`` and ``calve approvals``."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import click

from calve.cli.command import argument, command, option
from calve.cli.live_views import follow, print_restart, shown
from calve.cli.output import print_json, print_table
from calve.cli.session import Document, Session
from calve.cli.state import State, json_option
from calve.cli.views import STEP_COLUMNS, details, headline, is_over, print_approvals, print_runs, step_rows

_FEW = 10


@click.command()
@click.argument("workflow", required=False)
@click.argument("instance", required=False, type=int)
@click.option("--run", "run_id", type=int, metavar="N", help="Show this run of the instance, not the latest.")
@click.option("--watch", is_flag=True, help="Follow the instance until it ends.")
@json_option
@click.pass_obj
def status(state: State, workflow: str | None, instance: int | None, run_id: int | None, *, watch: bool) -> None:
    r"""Show the status of instances and their steps.

    \b
      calve status                       running instances, and the last ones that ended
      calve status demo.pipeline         the same for one workflow
      calve status demo.pipeline 3       one instance with its steps
      calve status demo.pipeline 3 --watch
    """
    if instance is None and (watch or run_id is not None):
        raise click.UsageError("WORKFLOW and INSTANCE are required.")
    with state.connect() as session:
        if workflow is None or instance is None:
            _print_list(state, session, _recent(session, workflow))
            return
        run = session.operations.instance(workflow, instance, run_id)
        if watch:
            with shown(session, is_quiet=state.json) as show:
                run = follow(session, run, show, each=lambda: None)
            run = session.operations.instance(workflow, instance, run["workflow_run_id"])
        _print_one(state, session, run, is_latest=run_id is None)


@command("Instances.list_instances", workflow_id=argument(), statuses=option("--status"), limit=50)
def instances(state: State, workflow_id: str | None, statuses: tuple[str, ...], limit: int, **filters: Any) -> None:
    r"""List instances, newest first.

    \b
      calve instances demo.pipeline --status FAILED
      calve instances --since 2026-03-01 --initiator TIME
    """
    with state.connect() as session:
        _print_list(state, session, _instances(session, workflow_id, statuses, limit, **filters))


@command("Breakpoints.list_approvals", workflow_id=argument(), limit=50)
def approvals(state: State, workflow_id: str | None, limit: int) -> None:
    r"""List the Approval steps that wait for a decision, oldest first, and how to decide.

    \b
      calve approvals
      calve approvals demo.pipeline
    """
    with state.connect() as session:
        if workflow_id is not None:
            session.operations.workflow(workflow_id)
        found = list(islice(session.operations.approvals(workflow_id), limit))
        now = session.now()
    if state.json:
        print_json(found)
    elif found:
        print_approvals(found, now)
    else:
        click.echo("No step waits for approval.", err=True)


def _instances(
    session: Session, workflow: str | None, statuses: Sequence[str] = (), limit: int = 1_000, **filters: Any
) -> list[Document]:
    """Return instances, newest first.

    Raises:
        WorkflowMissing: there is no such workflow.
    """
    if workflow is not None:
        session.operations.workflow(workflow)
    chosen = {name: list(value) if isinstance(value, tuple) else value for name, value in filters.items() if value}
    return list(session.operations.instances(workflow, statuses=statuses, limit=limit, **chosen))


def _recent(session: Session, workflow: str | None) -> list[Document]:
    """Return the instances that have not ended, and the newest ones that have ended."""
    from calve.engine import RunStatus

    live = [status for status in RunStatus if not status.is_terminal]
    last = _instances(session, workflow, limit=_FEW)
    return _instances(session, workflow, live) + [run for run in last if is_over(run)]


def _print_list(state: State, session: Session, runs: list[Document]) -> None:
    if state.json:
        print_json(runs)
    elif runs:
        print_runs(runs, session.now())
    else:
        click.echo("There are no instances. To start one: calve run WORKFLOW", err=True)


def _print_one(state: State, session: Session, run: Document, *, is_latest: bool) -> None:
    if state.json:
        print_json(run)
        return
    now = session.now()
    click.echo(f"{headline(run, now)}\n")
    print_table(STEP_COLUMNS, step_rows(run, now), numbers=False)
    for line in details(run, now):
        click.echo(line)
    if is_latest and is_over(run) and run["failures"]:
        print_restart(session, run)

"""``calve status``, ``calve instances`` and ``calve logs``."""

import time
from typing import TYPE_CHECKING, Any

import click

from calve.cli.following import follow, shown
from calve.cli.output import print_json, print_table
from calve.cli.running import address
from calve.cli.showing import STEP_COLUMNS, headline, print_runs, step_rows
from calve.cli.state import State, json_option
from calve.errors import WorkflowMissing

if TYPE_CHECKING:
    from calve.engine import Engine
    from calve.engine.model import Attempt, Run

_STATUSES = ("CREATED", "IN_PROGRESS", "PAUSED", "SUCCEEDED", "FAILED", "STOPPED", "TIMED_OUT")
_FEW = 10
_OFTEN = 0.2


@click.command()
@click.argument("workflow", required=False)
@click.argument("instance", required=False, type=int)
@click.option("--run", "run_id", type=int, metavar="N", help="Show this run of the instance, not the latest.")
@click.option("--watch", is_flag=True, help="Follow the instance until it is over.")
@json_option
@click.pass_obj
def status(state: State, workflow: str | None, instance: int | None, run_id: int | None, *, watch: bool) -> None:
    r"""Show how instances go.

    \b
      calve status                       what is not over, and what was last
      calve status demo.pipeline         the same of one workflow
      calve status demo.pipeline 3       one instance with its steps
      calve status demo.pipeline 3 --watch
    """
    if instance is None and (watch or run_id is not None):
        raise click.UsageError("Name the WORKFLOW and the INSTANCE, too.")
    with state.workplace() as workplace:
        engine = workplace.engine
        if workflow is None or instance is None:
            _print_list(state, engine, _recent(engine, workflow))
            return
        run = _found(engine, workflow, instance, run_id)
        if watch:
            with shown(engine, is_quiet=state.json) as show:
                run = follow(engine, run, show, each=lambda: None)
        _print_one(state, engine, run)


@click.command()
@click.argument("workflow", required=False)
@click.option("--status", "statuses", multiple=True, type=click.Choice(_STATUSES, case_sensitive=False), help="Only.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=1), help="How many at most.")
@json_option
@click.pass_obj
def instances(state: State, workflow: str | None, statuses: tuple[str, ...], limit: int) -> None:
    r"""List instances, newest first.

    \b
      calve instances demo.pipeline --status FAILED
    """
    from calve.engine import RunStatus

    with state.workplace() as workplace:
        engine = workplace.engine
        _check_known(engine, workflow)
        chosen = [RunStatus(name) for name in statuses]
        _print_list(state, engine, engine.state.instances(workflow_id=workflow, statuses=chosen, limit=limit))


@click.command()
@click.argument("workflow")
@click.argument("instance", type=int)
@click.argument("step")
@click.option("-f", "--follow", "is_followed", is_flag=True, help="Go on until the attempt has ended.")
@click.option("--attempt", "attempt_id", type=int, metavar="N", help="An earlier attempt; default: the newest.")
@json_option
@click.pass_obj
def logs(state: State, workflow: str, instance: int, step: str, attempt_id: int | None, *, is_followed: bool) -> None:
    r"""Print what a step has written.

    \b
      calve logs demo.pipeline 3 load -f
      calve logs demo.pipeline 3 loop/7/load --attempt 1
    """
    from calve.engine.views import attempt_json

    with state.workplace() as workplace:
        engine = workplace.engine
        run, attempt = _attempt(engine, workflow, instance, step, attempt_id)
        text = _printed(engine, attempt, is_followed=is_followed, is_quiet=state.json)
        if state.json:
            print_json({**attempt_json(run, engine.state.attempt(attempt.uuid) or attempt), "log": text})
        elif not text:
            click.echo(f"{step} has written nothing.", err=True)
        elif not text.endswith("\n"):
            click.echo()


def _recent(engine: "Engine", workflow: str | None) -> "list[Run]":
    """Return what is not over, and some of what was last."""
    from calve.engine import RunStatus

    _check_known(engine, workflow)
    live = [status for status in RunStatus if not status.is_terminal]
    going = engine.state.instances(workflow_id=workflow, statuses=live)
    last = engine.state.instances(workflow_id=workflow, limit=_FEW)
    return going + [run for run in last if run.status.is_terminal]


def _check_known(engine: "Engine", workflow: str | None) -> None:
    if workflow is not None:
        engine.workflow(workflow)


def _found(engine: "Engine", workflow: str, instance: int, run_id: int | None) -> "Run":
    from calve.engine.addresses import find_run

    return find_run(engine.state, address(workflow, instance, run_id=run_id))


def _print_list(state: State, engine: "Engine", runs: "list[Run]") -> None:
    from calve.engine.views import instance_json

    if state.json:
        print_json([instance_json(run) for run in runs])
    elif runs:
        print_runs(runs, engine.tools.clock())
    else:
        click.echo("There are none. To start one: calve run WORKFLOW", err=True)


def _print_one(state: State, engine: "Engine", run: "Run") -> None:
    from calve.engine.views import overview_json, overview_of

    overview = overview_of(engine.tools, run)
    if state.json:
        print_json(overview_json(overview))
        return
    now = engine.tools.clock()
    click.echo(f"{headline(overview.run, now)}\n")
    print_table(STEP_COLUMNS, step_rows(overview, now), numbers=False)


def _attempt(
    engine: "Engine", workflow: str, instance: int, step: str, attempt_id: int | None
) -> "tuple[Run, Attempt]":
    """Return an attempt of a step, and the run that holds the step."""
    from calve.engine.addresses import find

    where = address(workflow, instance, step)
    found = find(engine.state, where)
    if found.attempt is None:
        raise WorkflowMissing(f"{where} has not begun.")
    if attempt_id is None:
        return found.run, found.attempt
    known = {attempt.attempt_id: attempt for attempt in engine.state.attempts(found.attempt.run_uuid, found.step_id)}
    if attempt_id not in known:
        numbers = ", ".join(str(number) for number in known)
        raise WorkflowMissing(f"{where} has no attempt {attempt_id}.", remedy=f"It has {numbers}.")
    return found.run, known[attempt_id]


def _printed(engine: "Engine", attempt: "Attempt", *, is_followed: bool, is_quiet: bool) -> str:
    """Print an attempt's log as it comes; return all of it."""
    last, text = -1, ""
    while True:
        now: Any = engine.state.attempt(attempt.uuid) if is_followed else None
        for chunk in engine.state.log(attempt.uuid, after=last):
            last, text = chunk.number, text + chunk.text
            if not is_quiet:
                click.echo(chunk.text, nl=False)
        if now is None or now.status.is_terminal:
            return text
        time.sleep(_OFTEN)

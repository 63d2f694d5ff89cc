"""``calve status``, ``calve instances`` and ``calve logs``."""

import click

from calve.cli.desk import Desk, Document
from calve.cli.following import follow, place_of, shown
from calve.cli.given import address
from calve.cli.output import print_json, print_table
from calve.cli.showing import OVER, STEP_COLUMNS, headline, last_message, print_runs, step_rows
from calve.cli.state import State, json_option

_STATUSES = ("CREATED", "IN_PROGRESS", "PAUSED", "SUCCEEDED", "FAILED", "STOPPED", "TIMED_OUT")
_FEW = 10


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
    with state.desk() as desk:
        if workflow is None or instance is None:
            _print_list(state, desk, _recent(desk, workflow))
            return
        run = desk.instance(address(workflow, instance, run_id=run_id))
        if watch:
            with shown(desk, is_quiet=state.json) as show:
                run = follow(desk, run, show, each=lambda: None)
        _print_one(state, desk, run)


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
    with state.desk() as desk:
        _print_list(state, desk, desk.instances(workflow, statuses=statuses, limit=limit))


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
    where = address(workflow, instance, step)
    with state.desk() as desk:
        attempt = desk.attempt(where, attempt_id)
        text = ""
        for piece in desk.log(where, attempt, is_followed=is_followed):
            text += piece
            if not state.json:
                click.echo(piece, nl=False)
        if state.json:
            print_json({**desk.attempt(where, attempt["step_attempt_id"]), "log": text})
        elif not text:
            click.echo(f"{step} has written nothing. {last_message(attempt)}".rstrip(), err=True)
        elif not text.endswith("\n"):
            click.echo()


def _recent(desk: Desk, workflow: str | None) -> list[Document]:
    """Return what is not over, and some of what was last."""
    live = [status for status in _STATUSES if status not in OVER]
    going = desk.instances(workflow, statuses=live)
    last = desk.instances(workflow, limit=_FEW)
    return going + [run for run in last if run["status"] in OVER]


def _print_list(state: State, desk: Desk, runs: list[Document]) -> None:
    if state.json:
        print_json(runs)
    elif runs:
        print_runs(runs, desk.now())
    else:
        click.echo("There are none. To start one: calve run WORKFLOW", err=True)


def _print_one(state: State, desk: Desk, run: Document) -> None:
    run = desk.overview(place_of(run))
    if state.json:
        print_json(run)
        return
    now = desk.now()
    click.echo(f"{headline(run, now)}\n")
    print_table(STEP_COLUMNS, step_rows(run, now), numbers=False)

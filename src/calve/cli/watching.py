"""``calve status``, ``calve instances``, ``calve approvals`` and ``calve logs``."""

from collections.abc import Mapping
from typing import Any

import click

from calve.cli.desk import Desk, Document, Which
from calve.cli.following import follow, place_of, print_restart, shown
from calve.cli.given import address
from calve.cli.output import print_json, print_table
from calve.cli.showing import OVER, STEP_COLUMNS, details, headline, print_approvals, print_runs, step_rows
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
        _print_one(state, desk, run, is_latest=run_id is None)


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
@click.argument("workflow", required=False)
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=1), help="How many at most.")
@json_option
@click.pass_obj
def approvals(state: State, workflow: str | None, limit: int) -> None:
    r"""List the Approval steps that wait for people, oldest first, and how to answer them.

    \b
      calve approvals
      calve approvals demo.pipeline
    """
    with state.desk() as desk:
        found = desk.approvals(workflow, limit)
        now = desk.now()
    if state.json:
        print_json(found)
    elif found:
        print_approvals(found, now)
    else:
        click.echo("No step waits for approval.", err=True)


@click.command()
@click.argument("workflow")
@click.argument("instance", type=int)
@click.argument("step")
@click.option("-f", "--follow", "is_followed", is_flag=True, help="Go on until the attempt has ended.")
@click.option("--attempt", "attempt_id", type=int, metavar="N", help="An earlier attempt; default: the newest.")
@click.option("--tail", type=click.IntRange(1, 100_000), metavar="N", help="Only the last N lines.")
@click.option("--offset", type=int, metavar="N", help="Begin at byte N; below 0, so many bytes before the end.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N bytes; with --find, N lines.")
@click.option("--find", "text", metavar="TEXT", help="Only the lines that hold this text, with their numbers.")
@click.option("-i", "--ignore-case", is_flag=True, help="With --find: small and capital letters alike.")
@json_option
@click.pass_obj
def logs(state: State, /, workflow: str, instance: int, step: str, attempt_id: int | None, **options: Any) -> None:
    r"""Print what a step has written.

    \b
      calve logs demo.pipeline 3 load -f
      calve logs demo.pipeline 3 load --tail 100
      calve logs demo.pipeline 3 load --find error -i
      calve logs demo.pipeline 3 load --offset 1000000 --limit 5000
      calve logs demo.pipeline 3 loop/7/load --attempt 1

    Of a long log the first and the last megabytes are kept, and a line says how much is left out between them, unless
    whole logs are kept: see logs.location in the settings. An offset counts all bytes, kept or not.
    """
    where = address(workflow, instance, step)
    which = Which(options["offset"], options["limit"], options["tail"])
    _check_options(which, options)
    with state.desk() as desk:
        attempt = desk.attempt(where, attempt_id)
        if options["text"] is not None:
            found = desk.find(where, attempt, options["text"], which, ignore_case=options["ignore_case"])
            _print_found(state, found)
            return
        text = ""
        for piece in desk.log(where, attempt, which, is_followed=options["is_followed"]):
            if state.json:
                text += piece
            else:
                text = piece or text
                click.echo(piece, nl=False)
        if state.json:
            print_json({**desk.attempt(where, attempt["step_attempt_id"]), "log": text})
        elif not text:
            click.echo(f"{step} has written nothing. {attempt.get('message', '')}".rstrip(), err=True)
        elif not text.endswith("\n"):
            click.echo()


def _check_options(which: Which, options: Mapping[str, Any]) -> None:
    if which.tail is not None and (which.offset is not None or which.limit is not None or options["text"] is not None):
        raise click.UsageError("Give --tail without --offset, --limit and --find.")
    if options["is_followed"] and (which.limit is not None or options["text"] is not None):
        raise click.UsageError("Give --follow without --limit and --find.")


def _print_found(state: State, found: Document) -> None:
    if state.json:
        print_json(found)
        return
    for match in found["matches"]:
        click.echo(f"{match['line'] or '?'}: {match['text']}")
    if found["next_offset"] is not None:
        click.echo(f"There is more to look through: --offset {found['next_offset']}", err=True)
    elif not found["matches"]:
        click.echo("No line holds that text.", err=True)
    if found["left_out"]:
        click.echo(f"{found['left_out']:,} bytes of the log are not kept, and were not looked through.", err=True)


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


def _print_one(state: State, desk: Desk, run: Document, *, is_latest: bool) -> None:
    run = desk.overview(place_of(run))
    if state.json:
        print_json(run)
        return
    now = desk.now()
    click.echo(f"{headline(run, now)}\n")
    print_table(STEP_COLUMNS, step_rows(run, now), numbers=False)
    for line in details(run, now):
        click.echo(line)
    if is_latest and run["status"] in OVER and run["failures"]:
        print_restart(desk, run)

"""``calve worker``, ``calve scheduler`` and ``calve up``: the processes that run a project's workflows."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from calve.app import WorkerThread
from calve.cli.commands.server import host_option, port_option, served
from calve.cli.interrupts import WITHIN, counted, within
from calve.cli.output import print_json
from calve.cli.state import State, json_option
from calve.cli.threads import scheduler_threads
from calve.errors import RequestInvalid

if TYPE_CHECKING:
    from calve.engine import Event, Transaction, WorkerOptions
    from calve.settings import Settings
    from calve.triggers import SchedulerRound

_OFTEN = 0.2
_HEARTBEAT = 2.0


def _seconds(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    from calve.settings import parse_duration

    try:
        return None if value is None else parse_duration(value).total_seconds()
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


slots_option = click.option(
    "--slots", type=click.IntRange(min=1), metavar="N", help="How many steps to run at once. Default: worker.slots."
)


@click.command()
@slots_option
@click.option(
    "--lease",
    callback=_seconds,
    metavar="DURATION",
    help="How long it may be silent before others take over its steps, for example 10s. Default: worker.lease.",
)
@click.option("--parent", type=int, metavar="PID", help="End when this parent process is gone.")
@json_option
@click.pass_obj
def worker(state: State, slots: int | None, lease: float | None, parent: int | None) -> None:
    r"""Run the steps of workflows until SIGINT or SIGTERM.

    \b
      calve worker --slots 16

    The first signal lets running steps finish, the second one quits immediately: another worker takes over. With the
    state in PostgreSQL, any number of workers share the work; on SQLite there is one.
    """
    _work(state, _options(state.settings, slots, lease), parent, f"worker {os.getpid()} is ready")


@click.command()
@json_option
@click.pass_obj
def scheduler(state: State) -> None:
    r"""Start workflows when their triggers fire, until SIGINT or SIGTERM; workers run them.

    \b
      calve scheduler

    With the state in PostgreSQL, any number of schedulers may run: each trigger fires once. On SQLite, one process does
    everything: calve up.
    """
    with (
        state.open_project(waits=True) as project,
        counted(within=WITHIN) as signals,
        project.store.hold_scheduler(),
    ):
        check_store = project.store.watch()  # from before anybody is told that it is ready
        _say(state, f"scheduler {os.getpid()} is ready", event="up", pid=os.getpid())  # before the first round prints
        with scheduler_threads(project, lambda turn: _tell_started(state, turn)) as schedulers:
            while not signals():
                check_store()
                schedulers.check()
                time.sleep(_OFTEN)
            _say(state, "Ending.", event="end")


@click.command()
@slots_option
@click.option(
    "--processes", type=click.IntRange(min=1), metavar="N", help="Start N worker processes (PostgreSQL only)."
)
@host_option
@port_option
@json_option
@click.pass_obj
def up(state: State, slots: int | None, processes: int | None, host: str | None, port: int | None) -> None:
    r"""Run calve: server, scheduler and workers of this project until SIGINT or SIGTERM.

    \b
      calve up
      calve up --processes 4             with the state in PostgreSQL

    Steps that were running when an earlier process died continue within seconds. The first signal lets running steps
    finish, the second one quits immediately.
    """
    if processes is None:
        _work(state, _options(state.settings, slots, None), None, "", is_up=True, host=host, port=port)
        return
    if state.settings.store.url.startswith("sqlite"):
        raise RequestInvalid(
            "On SQLite, only one worker process can run.",
            remedy="Use --slots instead of --processes, or keep the state in PostgreSQL.",
        )
    from calve.cli.processes import WorkerProcesses

    workers = WorkerProcesses(state, processes, ("--slots", str(slots)) if slots else ())
    with (
        state.open_project(waits=True) as project,
        served(project, host, port) as serving,
        scheduler_threads(project, served=serving.url) as schedulers,
    ):
        workers.run(lambda: _say(state, _hint(state, serving.url), event="up", url=serving.url), schedulers.check)


def _hint(state: State, url: str) -> str:
    """Return what to do next."""
    return (
        f"calve is up at {url}; its state is in {_address(state.settings)}.\n"
        "To start a workflow: calve run WORKFLOW --no-wait, or calve run FILE. Press Ctrl-C to quit."
    )


def _work(
    state: State,
    options: "WorkerOptions",
    parent: int | None,
    greeting: str,
    *,
    is_up: bool = False,
    host: str | None = None,
    port: int | None = None,
) -> None:
    with (
        state.open_project(waits=True) as project,
        counted(within=within(state.settings)) as signals,
        WorkerThread(project, options=options, listener=lambda turn: _tell(state, turn)) as worker,
    ):
        worker.take()
        with (
            served(project, host, port) if is_up else nullcontext() as serving,
            scheduler_threads(project, served=serving.url) if serving else nullcontext() as schedulers,
        ):
            url = {} if serving is None else {"url": serving.url}
            hint = greeting if serving is None else _hint(state, serving.url)
            _say(state, hint, event="up", pid=os.getpid(), slots=options.slots, **url)
            is_asked = _asked(signals, parent)
            while not is_asked() and not worker.is_over:
                worker.changed.wait(_OFTEN)
                worker.changed.clear()
                worker.check()
                if schedulers is not None:
                    schedulers.check()
            worker.end()  # before the server ends, so that steps and requests finish at the same time
        worker.check()
        count = worker.under_way
        _say(state, f"Ending. Steps still running: {count}.", event="end", steps=count)


def _asked(signals: Callable[[], int], parent: int | None) -> Callable[[], bool]:
    return lambda: signals() > 0 or (parent is not None and os.getppid() != parent)


def _options(settings: "Settings", slots: int | None, lease: float | None) -> "WorkerOptions":
    from calve.engine import WorkerOptions

    lease = lease or settings.worker.lease.total_seconds()
    return WorkerOptions(
        slots=slots or settings.worker.slots,
        lease=lease,
        heartbeat=min(_HEARTBEAT, lease / 5),
        drain=settings.worker.drain.total_seconds(),
        tries=settings.worker.tries,
    )


def _address(settings: "Settings") -> str:
    """Return the URL of the state database, without its password."""
    from sqlalchemy import make_url

    return make_url(settings.store.url).render_as_string(hide_password=True)


def _tell(state: State, turn: "Transaction") -> None:
    """Print which instances started or ended in a turn."""
    from calve.engine import RUN_EVENT

    outer = {run.uuid for run in (*turn.changes.new_runs, *turn.changes.runs) if not run.is_inline}
    for event in turn.changes.events:
        if event.kind == RUN_EVENT and event.run_uuid in outer:
            _say(state, f"{event.workflow_id} {event.instance_id} {event.after}", **_as_json(event))


def _tell_started(state: State, turn: "SchedulerRound") -> None:
    """Print which instances triggers have started."""
    for each in turn.started:
        run, trigger_id = each.run, each.run.initiator.trigger.get("trigger_id")
        values = {"event": "started", "workflow_id": run.workflow_id, "workflow_instance_id": run.instance_id}
        _say(state, f"{run.workflow_id} {run.instance_id} started by {trigger_id}", **values, trigger_id=trigger_id)


def _as_json(event: "Event") -> dict[str, Any]:
    return {
        "event": "instance",
        "workflow_id": event.workflow_id,
        "workflow_instance_id": event.instance_id,
        "workflow_run_id": event.run_id,
        "status": event.after,
    }


def _say(state: State, text: str, **values: Any) -> None:
    if state.json:
        print_json(values)
        sys.stdout.flush()  # a program that reads our output waits for this line
    else:
        click.echo(text)

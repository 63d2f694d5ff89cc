"""``calve worker``, ``calve scheduler`` and ``calve up``: processes that start and carry out a project's workflows."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from calve.cli.companions import accompanied
from calve.cli.hands import Hands
from calve.cli.output import print_json
from calve.cli.serving import host_option, port_option, served
from calve.cli.signals import WITHIN, counted, within
from calve.cli.state import State, json_option
from calve.cli.team import Team
from calve.errors import RequestInvalid

if TYPE_CHECKING:
    from calve.engine import Turn, WorkerOptions
    from calve.engine.model import Event
    from calve.settings import Settings
    from calve.triggers import Turn as ScheduledTurn

_OFTEN = 0.2
_HEARTBEAT = 2.0


def _seconds(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    from calve.settings import parse_duration

    try:
        return None if value is None else parse_duration(value).total_seconds()
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


slots_option = click.option("--slots", type=click.IntRange(min=1), metavar="N", help="How many steps to run at once.")


@click.command()
@slots_option
@click.option("--lease", callback=_seconds, metavar="DURATION", help="After which silence it counts as dead, e.g. 10s.")
@click.option("--parent", type=int, metavar="PID", help="End when this process, which has started it, is gone.")
@json_option
@click.pass_obj
def worker(state: State, slots: int | None, lease: float | None, parent: int | None) -> None:
    r"""Carry out workflows until SIGINT or SIGTERM.

    \b
      calve worker --slots 16

    The first signal lets the steps under way come to their end, the second one leaves at once: others take over. With
    the state in PostgreSQL any number of workers share the work; on SQLite there is one.
    """
    _work(state, _options(state.settings, slots, lease), parent, f"worker {os.getpid()} is ready")


@click.command()
@json_option
@click.pass_obj
def scheduler(state: State) -> None:
    r"""Start workflows when their triggers fire, until SIGINT or SIGTERM; workers carry them out.

    \b
      calve scheduler

    With the state in PostgreSQL any number of schedulers may run, each firing happens once. On SQLite one process does
    everything: calve up.
    """
    with (
        state.workplace(waits=True) as workplace,
        counted(within=WITHIN) as signals,
        accompanied(workplace, lambda turn: _tell_started(state, turn), is_alone=True) as companions,
    ):
        _say(state, f"scheduler {os.getpid()} is ready", event="up", pid=os.getpid())
        check_store = workplace.store.watch()
        while not signals():
            check_store()
            companions.check()
            time.sleep(_OFTEN)
        _say(state, "Ending.", event="end")


@click.command()
@slots_option
@click.option("--processes", type=click.IntRange(min=1), metavar="N", help="Start N workers (PostgreSQL only).")
@host_option
@port_option
@json_option
@click.pass_obj
def up(state: State, slots: int | None, processes: int | None, host: str | None, port: int | None) -> None:
    r"""Run calve: server, scheduler and workers of this project until SIGINT or SIGTERM.

    \b
      calve up
      calve up --processes 4             with the state in PostgreSQL

    What was under way when an earlier process died goes on within seconds. The first signal lets the steps under way
    come to their end, the second one leaves at once.
    """
    if processes is None:
        _work(state, _options(state.settings, slots, None), None, "", is_up=True, host=host, port=port)
        return
    if state.settings.store.url.startswith("sqlite"):
        raise RequestInvalid(
            "On SQLite one process carries out the workflows.",
            remedy="Leave --processes out and set --slots, or keep the state in PostgreSQL.",
        )
    team = Team(state, processes, ("--slots", str(slots)) if slots else ())
    with (
        state.workplace(waits=True) as workplace,
        served(workplace, host, port) as serving,
        accompanied(workplace) as companions,
    ):
        team.run(lambda: _say(state, _hint(state, serving.url), event="up", url=serving.url), companions.check)


def _hint(state: State, url: str) -> str:
    """Say where to look."""
    return (
        f"calve is up. It answers at {url}, its state is in {_address(state.settings)}.\n"
        "To start something: calve run WORKFLOW --no-wait, or calve run FILE. To end: Ctrl-C."
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
        state.workplace(waits=True) as workplace,
        counted(within=within(state.settings)) as signals,
        Hands(workplace, options=options, listener=lambda turn: _tell(state, turn)) as hands,
    ):
        hands.take()
        with (
            served(workplace, host, port) if is_up else nullcontext() as serving,
            accompanied(workplace) if is_up else nullcontext() as companions,
        ):
            url = {} if serving is None else {"url": serving.url}
            hint = greeting if serving is None else _hint(state, serving.url)
            _say(state, hint, event="up", pid=os.getpid(), slots=options.slots, **url)
            is_asked = _asked(signals, parent)
            while not is_asked() and not hands.is_over:
                hands.changed.wait(_OFTEN)
                hands.changed.clear()
                hands.check()
                if companions is not None:
                    companions.check()
            hands.end()  # first: steps and requests come to their ends side by side
        hands.check()
        count = hands.under_way
        _say(state, f"Ending. Steps still under way: {count}.", event="end", steps=count)


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
    """Return where state lives, without a password."""
    from sqlalchemy import make_url

    return make_url(settings.store.url).render_as_string(hide_password=True)


def _tell(state: State, turn: "Turn") -> None:
    """Say which instances have begun or ended in a turn."""
    from calve.engine.model import RUN_EVENT

    outer = {run.uuid for run in (*turn.changes.new_runs, *turn.changes.runs) if not run.is_inline}
    for event in turn.changes.events:
        if event.kind == RUN_EVENT and event.run_uuid in outer:
            _say(state, f"{event.workflow_id} {event.instance_id} {event.after}", **_as_json(event))


def _tell_started(state: State, turn: "ScheduledTurn") -> None:
    """Say which instances triggers have started."""
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
        sys.stdout.flush()  # whoever reads along is not to wait for more
    else:
        click.echo(text)

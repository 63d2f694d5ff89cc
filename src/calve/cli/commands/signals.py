"""``calve signal``: announce signals, and show what they started."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from calve.cli.command import argument, command, option, performs
from calve.cli.options import parse_param
from calve.cli.output import moment, print_json, print_table
from calve.cli.session import Document
from calve.cli.state import State
from calve.errors import RequestInvalid


@click.group()
def signal() -> None:
    """Announce signals, and show which workflows they started and which steps they released."""


@command(
    "Signals.announce_signal",
    below=signal,
    name=argument(),
    params=argument(type=str, nargs=-1, metavar="[KEY=VALUE]…"),
    request_id=option(metavar="ID"),
)
@click.option(
    "--payload", multiple=True, metavar="KEY=VALUE", help="Data that is passed on, and not matched; repeatable."
)
def announce(
    state: State, name: str, params: tuple[str, ...], request_id: str | None, payload: tuple[str, ...]
) -> None:
    r"""Announce a signal: workflows that wait for it start, and steps continue.

    \b
      calve signal announce warehouse/orders day=2026-01-31
      calve signal announce vtts/db.events through=1767225600000
      calve signal announce nightly --request-id "$BUILD_ID"

    A VALUE that is a whole number is read as one; write '"5"' for the text. Announcing the same name and params again
    changes nothing; with --request-id, that name decides instead.
    """
    given, more = dict(map(parse_param, params)), dict(map(parse_param, payload))
    for key, value in given.items():
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise RequestInvalid(f"The param {key} of a signal must be a text or a whole number, not {value!r}.")
    with state.operations() as operations:
        announced = operations.announce(name, given, payload=more, request_id=request_id)
    if state.json:
        print_json(announced)
        return
    known = "" if announced["status"] == "CREATED" else ": announced before"
    click.echo(f"{announced['name']} {announced['seq_id']}{known}")


def _number(_: click.Context, __: click.Parameter, given: str) -> str:
    if given != "latest" and not given.isdecimal():
        raise click.BadParameter(f"{given!r} is not a number, and not latest", param_hint="N")
    return given


@performs("Signals.lineage", below=signal, number=argument(metavar="[N|latest]", callback=_number))
def show(lineage: Document) -> None:
    r"""Show a signal: its sender, and what it started or released.

    \b
      calve signal show warehouse/orders
      calve signal show warehouse/orders 7
    """
    found, sender = lineage["signal"], lineage.get("sent_by")
    click.echo(f"{found['name']} {found['seq_id']}, announced {moment(found['create_time'])}")
    for title in ("params", "payload"):
        if found[title]:
            click.echo(f"  {title}: {_params(found[title])}")
    click.echo(f"  sent by: {_names([] if sender is None else [sender]) or 'a user or program'}")
    click.echo(f"  started: {_names(lineage['started']) or 'nothing'}")
    click.echo(f"  released: {_names(lineage['released']) or 'nothing'}")


@performs("Maintenance.set_valid_through", below=signal)
def valid_through(announced: Document, table: str) -> None:
    r"""Declare up to which TIME a TABLE is complete: steps and workflows that wait for it continue.

    \b
      calve signal valid-through db.events 2026-01-31T00:00:00Z
      calve signal valid-through db.events 1767225600000

    TIME is in milliseconds, or a time with its zone. It is stored in the table property calve.valid-through, which jobs
    may also set themselves, and announced as the signal vtts/TABLE.
    """
    click.echo(f"{table} is complete through {moment(announced['params']['through'])}")


@performs("Signals.list_signals", "list", below=signal, name=argument(), limit=20)
def list_signals(found: list[Document]) -> None:
    r"""List all signals, or those with a name, newest first.

    \b
      calve signal list
      calve signal list warehouse/orders --limit 5
    """
    if found:
        print_table(("signal", "n", "params", "announced"), [_row(each) for each in found])
    else:
        click.echo("No signal was announced yet. To announce one: calve signal announce NAME", err=True)


def _row(signal: Document) -> tuple[str, int, str, str]:
    return signal["name"], signal["seq_id"], _params(signal["params"]), moment(signal["create_time"])


def _params(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _names(parties: Iterable[Document]) -> str:
    names = ("workflow_id", "workflow_instance_id", "step_id")
    return ", ".join("/".join(str(party[name]) for name in names if name in party) for party in parties)

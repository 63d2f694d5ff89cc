"""``calve signal``: announce signals, and see what came of them."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from calve.cli.desk import Document
from calve.cli.given import parse_param
from calve.cli.output import moment, print_json, print_table
from calve.cli.state import State, json_option


@click.group()
def signal() -> None:
    """Announce signals, and see which workflows they started and which steps they released."""


@signal.command()
@click.argument("name")
@click.argument("params", nargs=-1, metavar="[KEY=VALUE]…")
@click.option("--request-id", metavar="ID", help="Announce a request once, whatever its params.")
@click.option("--payload", multiple=True, metavar="KEY=VALUE", help="What goes with it, and is matched with nothing.")
@json_option
@click.pass_obj
def announce(
    state: State, name: str, params: tuple[str, ...], request_id: str | None, payload: tuple[str, ...]
) -> None:
    r"""Announce a signal: workflows and steps that wait for it go on.

    \b
      calve signal announce warehouse/orders day=2026-01-31
      calve signal announce vtts/db.events through=1767225600000
      calve signal announce nightly --request-id "$BUILD_ID"

    A VALUE that reads as a whole number is one; write '"5"' for the text. The same name and params are one signal,
    however often they are announced; a --request-id tells announcements apart instead.
    """
    given, more = dict(map(parse_param, params)), dict(map(parse_param, payload))
    with state.desk() as desk:
        announced = desk.announce(name, given, more, request_id)
    if state.json:
        print_json(announced)
        return
    known = "" if announced["status"] == "CREATED" else ": it was announced before"
    click.echo(f"{announced['name']} {announced['seq_id']}{known}")


@signal.command()
@click.argument("name")
@click.argument("number", required=False, default="latest", metavar="[N|latest]")
@json_option
@click.pass_obj
def show(state: State, name: str, number: str) -> None:
    r"""Show a signal: who sent it, and what it started or released.

    \b
      calve signal show warehouse/orders
      calve signal show warehouse/orders 7
    """
    if number != "latest" and not number.isdecimal():
        raise click.BadParameter(f"{number!r} is neither a number nor latest", param_hint="N")
    with state.desk() as desk:
        lineage = desk.signal_lineage(name, None if number == "latest" else int(number))
    if state.json:
        print_json(lineage)
        return
    found, sender = lineage["signal"], lineage.get("sent_by")
    click.echo(f"{found['name']} {found['seq_id']}, announced {moment(found['create_time'])}")
    for title in ("params", "payload"):
        if found[title]:
            click.echo(f"  {title}: {_params(found[title])}")
    click.echo(f"  sent by: {_names([] if sender is None else [sender]) or 'somebody outside'}")
    click.echo(f"  started: {_names(lineage['started']) or 'nothing'}")
    click.echo(f"  released: {_names(lineage['released']) or 'nothing'}")


@signal.command(name="valid-through")
@click.argument("table")
@click.argument("time")
@json_option
@click.pass_obj
def valid_through(state: State, table: str, time: str) -> None:
    r"""Say through which TIME a TABLE is complete: steps and workflows that wait for that go on.

    \b
      calve signal valid-through db.events 2026-01-31T00:00:00Z
      calve signal valid-through db.events 1767225600000

    TIME is milliseconds, or a time with its zone. It is written into the table's property calve.valid-through, which
    jobs may set themselves, and announced as the signal vtts/TABLE.
    """
    from calve.triggers.signals import announced_json, set_valid_through

    with state.workplace() as workplace:
        through = set_valid_through(workplace.lake, table, time)
        announced = workplace.signals.announce(f"vtts/{table}", {"through": through}, payload={"table": table})
    if state.json:
        print_json(announced_json(announced))
    else:
        click.echo(f"{table} is complete through {moment(through)}")


@signal.command(name="list")
@click.argument("name", required=False)
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Show so many.")
@json_option
@click.pass_obj
def list_signals(state: State, name: str | None, limit: int) -> None:
    r"""List signals, newest first: of one name, or all.

    \b
      calve signal list
      calve signal list warehouse/orders --limit 5
    """
    with state.desk() as desk:
        found = desk.signals(name, limit)
    if state.json:
        print_json(found)
    elif found:
        print_table(("signal", "n", "params", "announced"), [_row(each) for each in found])
    else:
        click.echo("No signal was announced yet. Start: calve signal announce NAME", err=True)


def _row(signal: Document) -> tuple[str, int, str, str]:
    return signal["name"], signal["seq_id"], _params(signal["params"]), moment(signal["create_time"])


def _params(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _names(parties: Iterable[Document]) -> str:
    names = ("workflow_id", "workflow_instance_id", "step_id")
    return ", ".join("/".join(str(party[name]) for name in names if name in party) for party in parties)

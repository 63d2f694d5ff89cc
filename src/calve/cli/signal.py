"""``calve signal``: announce signals, and see what came of them."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from calve.cli.given import parse_param
from calve.cli.output import print_json, print_table
from calve.cli.state import State, json_option

if TYPE_CHECKING:
    from collections.abc import Iterable

    from calve.engine.signals import Party, Signal


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
    from calve.triggers.signals import announced_json

    given, more = dict(map(parse_param, params)), dict(map(parse_param, payload))
    with state.workplace() as workplace:
        announced = workplace.signals.announce(name, given, payload=more, request_id=request_id)
    if state.json:
        print_json(announced_json(announced))
        return
    known = "" if announced.status.value == "CREATED" else ": it was announced before"
    click.echo(f"{announced.signal.name} {announced.signal.seq}{known}")


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
    from calve.triggers.signals import lineage_json

    if number != "latest" and not number.isdecimal():
        raise click.BadParameter(f"{number!r} is neither a number nor latest", param_hint="N")
    with state.workplace() as workplace:
        lineage = workplace.signals.lineage(name, None if number == "latest" else int(number))
    if state.json:
        print_json(lineage_json(lineage))
        return
    found = lineage.signal
    click.echo(f"{found.name} {found.seq}, announced {_time(found.announced_at)}")
    for title, values in (("params", found.params), ("payload", found.payload)):
        if values:
            click.echo(f"  {title}: {_params(values)}")
    click.echo(f"  sent by: {_names([] if lineage.sent_by is None else [lineage.sent_by]) or 'somebody outside'}")
    click.echo(f"  started: {_names(lineage.started) or 'nothing'}")
    click.echo(f"  released: {_names(lineage.released) or 'nothing'}")


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
        moment = set_valid_through(workplace.lake, table, time)
        announced = workplace.signals.announce(f"vtts/{table}", {"through": moment}, payload={"table": table})
    if state.json:
        print_json(announced_json(announced))
    else:
        click.echo(f"{table} is complete through {_time(moment)}")


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
    from calve.triggers.signals import signal_json

    with state.workplace() as workplace:
        found = workplace.signals.list(name=name, limit=limit)
    if state.json:
        print_json([signal_json(each) for each in found])
    elif found:
        print_table(("signal", "n", "params", "announced"), [_row(each) for each in found])
    else:
        click.echo("No signal was announced yet. Start: calve signal announce NAME", err=True)


def _row(signal: "Signal") -> tuple[str, int, str, str]:
    return signal.name, signal.seq, _params(signal.params), _time(signal.announced_at)


def _params(values: Any) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _names(parties: "Iterable[Party]") -> str:
    return ", ".join(
        "/".join(str(part) for part in (party.workflow_id, party.instance_id, party.step_id) if part is not None)
        for party in parties
    )


def _time(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000, UTC).isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")

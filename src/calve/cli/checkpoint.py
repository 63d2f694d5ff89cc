"""``calve checkpoint``: inspect and mend."""

from datetime import datetime
from typing import TYPE_CHECKING

import click

from calve.cli.output import moment, print_json, print_table
from calve.cli.state import State, json_option

if TYPE_CHECKING:
    from calve.cli.ledger import Document


@click.group()
def checkpoint() -> None:
    """Show where consumers stand, and move them by hand."""


@checkpoint.command(name="show")
@click.option("--consumer", "-c", help="Only this consumer's.")
@click.option("--log", is_flag=True, help="Show every move, and why.")
@json_option
@click.pass_obj
def show_checkpoints(state: State, consumer: str | None, *, log: bool) -> None:
    """Show the checkpoints of all consumers."""
    with state.ledger() as ledger:
        found = ledger.moves(consumer) if log else ledger.checkpoints(consumer)
    if state.json:
        print_json(found)
    elif log:
        print_table(("at", "consumer", "table", "from", "to", "why"), [_moved(move) for move in found], numbers=False)
    else:
        columns = ("consumer", "table", "snapshot", "pending", "moved", "by")
        print_table(columns, [_standing(one) for one in found], numbers=False)


def _moved(move: "Document") -> tuple[object, ...]:
    places = (_at(move["before"]), _at(move["after"]))
    return (datetime.fromisoformat(move["at"]), move["consumer"], move["table"], *places, move["reason"])


def _at(raw: dict[str, object] | None) -> object:
    return raw["snapshot_id"] if raw else "–"


def _standing(one: "Document") -> tuple[object, ...]:
    pending = f"all but {one['pending']['taken']} files" if one["pending"] else "–"
    return one["consumer"], one["table"], one["snapshot_id"], pending, moment(one["moved_at"]), one["moved_by"]


@checkpoint.command(name="set")
@click.argument("table", metavar="TABLE")
@click.option("--consumer", "-c", required=True)
@click.option("--to", required=True, metavar="latest|SNAPSHOT|TAG|BRANCH|TIMESTAMP", help="Up to here counts as done.")
@click.option("--reason", required=True, help="Why; it is recorded.")
@json_option
@click.pass_obj
def set_checkpoint(state: State, table: str, consumer: str, to: str, reason: str) -> None:
    """Move a consumer's checkpoint by hand."""
    with state.ledger() as ledger:
        stored = ledger.set_checkpoint(table, consumer, to, reason)
    if state.json:
        print_json(stored)
    else:
        print(f"{consumer} now stands at {stored['snapshot_id'] or 'the beginning'} of {table}")


@checkpoint.command(name="reset")
@click.argument("table", metavar="TABLE")
@click.option("--consumer", "-c", required=True)
@click.option("--reason", required=True, help="Why; it is recorded.")
@json_option
@click.pass_obj
def reset_checkpoint(state: State, table: str, consumer: str, reason: str) -> None:
    """Forget a consumer's checkpoint: its next capture is a first one."""
    with state.ledger() as ledger:
        ledger.reset_checkpoint(table, consumer, reason)
    if state.json:
        print_json({"consumer": consumer, "table": table, "reset": True})
    else:
        print(f"{consumer} has no checkpoint for {table} any more")

"""``calve checkpoint``: inspect and mend."""

from typing import TYPE_CHECKING

import click

from calve.cli.output import print_json, print_table
from calve.cli.state import State, json_option

if TYPE_CHECKING:
    from calve.capture import StoredCheckpoint


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
    with state.captures() as captures:
        moves = captures.checkpoint_log(consumer) if log else []
        stored = captures.checkpoints(consumer)
    if log and state.json:
        print_json(moves)
    elif log:
        rows = [(m["at"], m["consumer"], m["table"], _at(m["before"]), _at(m["after"]), m["reason"]) for m in moves]
        print_table(("at", "consumer", "table", "from", "to", "why"), rows, numbers=False)
    elif state.json:
        print_json([as_json(item, state.settings.default_catalog) for item in stored])
    else:
        print_table(
            ("consumer", "table", "snapshot", "pending", "moved", "by"),
            [
                (
                    item.consumer,
                    item.table.short(state.settings.default_catalog),
                    item.checkpoint.snapshot_id,
                    f"all but {item.checkpoint.pending.taken} files" if item.checkpoint.pending else "–",
                    f"{item.moved_at:%Y-%m-%d %H:%M:%SZ}",
                    item.moved_by,
                )
                for item in stored
            ],
            numbers=False,
        )


def _at(raw: dict[str, object] | None) -> object:
    return raw["snapshot_id"] if raw else "–"


def as_json(stored: "StoredCheckpoint", default_catalog: str) -> dict[str, object]:
    """Return a checkpoint as ``--json`` prints it."""
    return {
        "consumer": stored.consumer,
        "table": stored.table.short(default_catalog),
        **stored.checkpoint.as_json(),
        "version": stored.version,
        "moved_at": stored.moved_at,
        "moved_by": stored.moved_by,
    }


@checkpoint.command(name="set")
@click.argument("table", metavar="TABLE")
@click.option("--consumer", "-c", required=True)
@click.option("--to", required=True, metavar="latest|SNAPSHOT|TAG|BRANCH|TIMESTAMP", help="Up to here counts as done.")
@click.option("--reason", required=True, help="Why; it is recorded.")
@json_option
@click.pass_obj
def set_checkpoint(state: State, table: str, consumer: str, to: str, reason: str) -> None:
    """Move a consumer's checkpoint by hand."""
    with state.captures() as captures:
        stored = captures.set_checkpoint(table, consumer, to, reason)
    if state.json:
        print_json(as_json(stored, state.settings.default_catalog))
    else:
        print(f"{consumer} now stands at {stored.checkpoint.snapshot_id or 'the beginning'} of {table}")


@checkpoint.command(name="reset")
@click.argument("table", metavar="TABLE")
@click.option("--consumer", "-c", required=True)
@click.option("--reason", required=True, help="Why; it is recorded.")
@json_option
@click.pass_obj
def reset_checkpoint(state: State, table: str, consumer: str, reason: str) -> None:
    """Forget a consumer's checkpoint: its next capture is a first one."""
    with state.captures() as captures:
        captures.reset_checkpoint(table, consumer, reason)
    if state.json:
        print_json({"consumer": consumer, "table": table, "reset": True})
    else:
        print(f"{consumer} has no checkpoint for {table} any more")

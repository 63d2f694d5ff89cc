"""``calve checkpoint`` and ``calve lag``: how far consumers have come, and how far they are behind."""

from datetime import datetime

import click

from calve.cli.command import command, option, performs
from calve.cli.output import duration, moment, print_json, print_table, size
from calve.cli.session import Document
from calve.cli.state import State


@click.group()
def checkpoint() -> None:
    """Show the checkpoints of consumers, and move them by hand."""


@command("Captures.list_checkpoints", "show", below=checkpoint, consumer=option("-c"))
@click.option("--log", is_flag=True, help="Show every move with its reason, oldest first.")
def show_checkpoints(state: State, consumer: str | None, *, log: bool) -> None:
    """Show the checkpoints of all consumers."""
    with state.topic("Captures") as captures:
        found = captures.checkpoint_moves(consumer=consumer)[::-1] if log else captures.checkpoints(consumer=consumer)
    if state.json:
        print_json(found)
    elif log:
        print_table(("at", "consumer", "table", "from", "to", "why"), [_moved(move) for move in found], numbers=False)
    else:
        columns = ("consumer", "table", "snapshot", "pending", "moved", "by")
        print_table(columns, [_standing(one) for one in found], numbers=False)


def _moved(move: Document) -> tuple[object, ...]:
    places = (_at(move["before"]), _at(move["after"]))
    return (datetime.fromisoformat(move["at"]), move["consumer"], move["table"], *places, move["reason"])


def _at(raw: dict[str, object] | None) -> object:
    return raw["snapshot_id"] if raw else "–"


def _standing(one: Document) -> tuple[object, ...]:
    pending = f"all but {one['pending']['taken']} files" if one["pending"] else "–"
    return one["consumer"], one["table"], one["snapshot_id"], pending, moment(one["moved_at"]), one["moved_by"]


@performs(
    "Captures.set_checkpoint",
    "set",
    below=checkpoint,
    consumer=option("-c"),
    to=option(metavar="latest|SNAPSHOT|TAG|BRANCH|TIMESTAMP"),
)
def _set(stored: Document, consumer: str, table: str) -> None:
    print(f"{consumer} is now at {stored['snapshot_id'] or 'the beginning'} of {table}")


@performs("Captures.reset_checkpoint", "reset", below=checkpoint, consumer=option("-c"))
def _reset(done: Document) -> None:
    print(f"{done['consumer']} no longer has a checkpoint for {done['table']}")


@performs("Captures.list_lag", consumer=option("-c"))
def lag(found: list[Document]) -> None:
    """Show how far each consumer is behind its tables, and how long the history that it needs is kept."""
    columns = ("consumer", "table", "commits", "files", "rows", "size", "age", "history safe for")
    print_table(columns, [_behind(row) for row in found])


def _behind(row: Document) -> tuple[object, ...]:
    if row["error"]:
        return row["consumer"], row["table"], row["error"], "", "", "", "", ""
    return (
        row["consumer"],
        row["table"],
        row["pending_commits"],
        row["pending_files"],
        row["pending_records"],
        size(row["pending_bytes"] or 0),
        "–" if row["age_seconds"] is None else duration(row["age_seconds"]),
        _safe_for(row["expires_in_seconds"]),
    )


def _safe_for(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return duration(seconds) if seconds > 0 else "expires any time"

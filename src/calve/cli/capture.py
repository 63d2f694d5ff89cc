"""``calve plan``, ``capture``, ``commit``, ``abandon``, ``captures`` and ``show``."""

from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from calve.cli.output import duration, moment, print_json, print_table, size
from calve.cli.state import State, json_option

if TYPE_CHECKING:
    from calve.capture import CaptureReport, TableReport
    from calve.cli.ledger import Document

_OPERATIONS = ("append", "overwrite", "delete")


def _operations(_: click.Context, __: click.Parameter, value: str) -> list[str]:
    """Split a comma-separated list, and name what is not in it."""
    names = [name.strip() for name in value.split(",") if name.strip()]
    strange = [name for name in names if name not in _OPERATIONS]
    if strange or not names:
        raise click.BadParameter(f"{', '.join(strange) or 'nothing'} is not among {', '.join(_OPERATIONS)}.")
    return names


def wanted_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say what to capture."""
    options = [
        click.argument("tables", metavar="TABLE…", nargs=-1, required=True),
        click.option("--consumer", "-c", required=True, help="Whoever keeps the checkpoint, e.g. a workflow's name."),
        click.option(
            "--operations",
            default="append",
            show_default=True,
            callback=_operations,
            help="Which kinds of snapshots to capture: append,overwrite,delete. Others in the range are an error.",
        ),
        click.option(
            "--mode",
            type=click.Choice(["table", "range", "path", "view"]),
            default="table",
            show_default=True,
            help="table: an ICDC table; range: the ranges only; path: metadata by its path; view: a Spark view.",
        ),
        click.option("--range", "ranges", multiple=True, metavar="COLUMN", help="Report which values of it changed."),
        click.option("--max-files", type=click.IntRange(min=1), help="Take at most so many files of each table."),
        click.option("--max-bytes", type=click.IntRange(min=1), help="Take at most so many bytes of each table."),
        click.option(
            "--from",
            "start",
            metavar="latest|SNAPSHOT|TAG|TIMESTAMP",
            help="Where to begin without a checkpoint. Default: with everything in the table.",
        ),
        click.option("--to", "end", metavar="SNAPSHOT|TAG|BRANCH|TIMESTAMP", help="Where to stop. Default: now."),
        click.option(
            "--on-gap",
            type=click.Choice(["fail", "upserts", "full"]),
            default="fail",
            show_default=True,
            help="If history was expired: fail; go on by row lineage (v3, deletes are lost); take the whole table.",
        ),
        click.option(
            "--on-schema-change",
            type=click.Choice(["evolve", "fail"]),
            default="evolve",
            show_default=True,
            help="If the schema changed since the checkpoint: read by column id with the new one; fail.",
        ),
        json_option,
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@wanted_options
@click.pass_obj
def plan(state: State, /, tables: tuple[str, ...], consumer: str, **options: Any) -> None:
    """Show what the next capture would contain. Writes nothing, starts no JVM."""
    with state.ledger() as ledger:
        _show(state, ledger.plan(tables, consumer, options))


@click.command()
@wanted_options
@click.option("--key", help="Names this request: repeated, it gets the same capture back.")
@click.option("--lease", is_flag=True, help="Tag the captured snapshots until the commit, so expiry keeps their files.")
@click.option("--supersede", is_flag=True, help="Abandon the capture that the consumer has open.")
@click.pass_obj
def capture(
    state: State,
    /,
    tables: tuple[str, ...],
    consumer: str,
    key: str | None,
    *,
    lease: bool,
    supersede: bool,
    **options: Any,
) -> None:
    """Capture what changed in TABLEs since the consumer's last commit.

    Nothing is copied: the ICDC table references the source's own files. Read the change from it with any engine, then
    `calve commit` the capture to move the checkpoint.
    """
    from calve.cli.ledger import wanted

    with state.captures() as captures:
        report = captures.capture(tables, consumer, wanted(options), key=key, lease=lease, supersede=supersede)
        _show(state, report)


@click.command()
@click.argument("capture_id", metavar="CAPTURE")
@json_option
@click.pass_obj
def commit(state: State, capture_id: str) -> None:
    """Move the checkpoint past a capture that has been processed."""
    with state.ledger() as ledger:
        _closed(state, ledger.commit(capture_id))


@click.command()
@click.argument("capture_id", metavar="CAPTURE")
@json_option
@click.pass_obj
def abandon(state: State, capture_id: str) -> None:
    """Give a capture up; the next one starts from the same checkpoint."""
    with state.ledger() as ledger:
        _closed(state, ledger.abandon(capture_id))


def _closed(state: State, report: "CaptureReport") -> None:
    if state.json:
        print_json(report.as_json())
        return
    print(f"{report.capture_id} {report.status}")
    for table in report.tables if report.status == "committed" else ():
        print(f"  {table.source_table}: {_place(table.from_snapshot_id)} → {_place(table.to_snapshot_id)}")


@click.command(name="captures")
@click.option("--consumer", "-c", help="Only this consumer's.")
@json_option
@click.pass_obj
def list_captures(state: State, consumer: str | None) -> None:
    """List captures, newest first."""
    with state.ledger() as ledger:
        found = ledger.captures(consumer)
    if state.json:
        print_json(found)
        return
    rows = [
        (
            one["capture_id"],
            one["consumer"],
            one["status"],
            moment(one["created_at"]),
            ", ".join(one["tables"]),
            one["files"],
            one["records"],
        )
        for one in found
    ]
    print_table(("capture", "consumer", "status", "taken", "tables", "files", "records"), rows)


@click.command()
@click.argument("capture_id", metavar="CAPTURE")
@click.option("--check", is_flag=True, help="Look whether every file is still there.")
@json_option
@click.pass_obj
def show(state: State, capture_id: str, *, check: bool) -> None:
    """Show one capture in full, down to its files."""
    with state.ledger() as ledger:
        report = ledger.capture(capture_id)
        files = ledger.files(capture_id, check=check)
    if state.json:
        print_json({**report.as_json(), "files": files})
        return
    _show(state, report)
    for table, listed in files.items():
        print(f"\n{table}")
        rows = [(file["path"], file["content"], file["records"], size(file["bytes"])) for file in listed]
        print_table(("file", "content", "records", "size"), rows)


def _show(state: State, report: "CaptureReport") -> None:
    if state.json:
        print_json(report.as_json())
        return
    if report.capture_id:
        print(f"capture {report.capture_id} of {report.consumer}: {report.status}")
    for table in report.tables:
        _show_table(table)
    if len(report.tables) > 1:
        _show_ranges("ranges over all tables", report.ranges)
    if report.capture_id and report.status == "open":
        print(f"\nWhen it is processed: calve commit {report.capture_id}")


def _show_table(table: "TableReport") -> None:
    print(f"\n{table.source_table}  {_place(table.from_snapshot_id)} → {_place(table.to_snapshot_id)}")
    if not table.changed:
        print("  nothing changed")
    else:
        gone = f", {table.deleted_records} rows gone" if table.deletes_table else ""
        print(f"  {table.files} files, {table.records} rows, {size(table.bytes)}{gone} ({table.exactness})")
    if table.pending:
        print("  more is pending: capture again after the commit")
    if table.snapshots:
        rows = [
            (s["snapshot_id"], s["operation"], "yes" if s["included"] else "no", s["reason"]) for s in table.snapshots
        ]
        print_table(("snapshot", "operation", "included", "why"), rows, numbers=False)
    _show_ranges("ranges", table.ranges)
    if table.partitions:
        shown = [" ".join(f"{key}={value}" for key, value in p["values"].items()) for p in table.partitions]
        more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
        print(f"  partitions: {', '.join(shown[:8])}{more}")
    for label, value in (
        ("read", table.relation),
        ("deleted", table.deletes_relation),
        ("table", table.icdc_table),
    ):
        if value:
            print(f"  {label}: {value}")


def _show_ranges(title: str, ranges: dict[str, dict[str, Any]]) -> None:
    for column, found in ranges.items():
        lower, upper = (("unbounded" if found[side] is None else found[side]) for side in ("lower", "upper"))
        span = "no value" if found["empty"] else f"{lower} … {upper}"
        notes = [note for note, holds in (("nulls", found["has_nulls"]), ("not exact", not found["exact"])) if holds]
        print(f"  {title}: {column} {span}{' (' + ', '.join(notes) + ')' if notes else ''}")


def _place(snapshot_id: int | None) -> str:
    return "the beginning" if snapshot_id is None else str(snapshot_id)


@click.command()
@click.option("--consumer", "-c", help="Only this consumer's.")
@json_option
@click.pass_obj
def lag(state: State, consumer: str | None) -> None:
    """Show how far every consumer is behind its tables, and how long their history is safe."""
    with state.ledger() as ledger:
        found = ledger.lag(consumer)
    if state.json:
        print_json(found)
        return
    columns = ("consumer", "table", "commits", "files", "rows", "size", "age", "history safe for")
    print_table(columns, [_behind(row) for row in found])


def _behind(row: "Document") -> tuple[object, ...]:
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


def _grace(_: click.Context, __: click.Parameter, value: str) -> timedelta:
    from calve.settings import parse_duration

    try:
        return parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.option(
    "--grace",
    default="1h",
    show_default=True,
    callback=_grace,
    help="Leave unfinished captures alone that were begun so recently: they may still be written.",
)
@json_option
@click.pass_obj
def gc(state: State, grace: timedelta) -> None:
    """Drop what closed and crashed captures left behind. Never touches a file of a source table.

    Branches that jobs left in their target tables are dropped too; where a job may still run, after a week.
    """
    with state.captures() as captures:
        collected = captures.collect_garbage(grace)
    with state.deliveries() as deliveries:
        branches = deliveries.collect(grace)
    if state.json:
        print_json([asdict(item) for item in collected])
    else:
        for item in collected:
            print(f"{item.capture_id}: {len(item.tables)} tables, {item.files} metadata files, {item.tags} leases")
            for problem in item.problems:
                print(f"  left behind: {problem}")
        for branch in branches:
            print(f"branch dropped: {branch}")
        print(f"{len(collected)} captures cleaned up")
    if any(item.problems for item in collected):
        raise click.exceptions.Exit(1)

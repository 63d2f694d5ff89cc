"""``calve plan``, ``capture``, ``commit``, ``abandon``, ``captures`` and ``show``."""

from typing import Any

import click

from calve.cli.command import argument, command, option, performs
from calve.cli.output import moment, print_json, print_table, size
from calve.cli.session import Document
from calve.cli.state import State


def _operations(_: click.Context, __: click.Parameter, value: str) -> list[str]:
    """Split a comma-separated list, and refuse unknown operations."""
    from calve.capture import CHANGES

    names = [name.strip() for name in value.split(",") if name.strip()]
    strange = [name for name in names if name not in CHANGES]
    if strange or not names:
        raise click.BadParameter(f"{', '.join(strange) or 'nothing'} is not among {', '.join(CHANGES)}.")
    return names


_WANTED = {
    "tables": argument(metavar="TABLE…"),
    "consumer": option("-c"),
    "operations": option(
        type=str,
        multiple=False,
        default="append",
        show_default=True,
        callback=_operations,
        help="The kinds of snapshots to capture: append,overwrite,delete. Other kinds are an error.",
    ),
    "ranges": option("--range", metavar="COLUMN"),
    "start": option("--from", metavar="latest|SNAPSHOT|TAG|TIMESTAMP"),
    "end": option("--to", metavar="SNAPSHOT|TAG|BRANCH|TIMESTAMP"),
}
"""The spelling of the parameters that define a capture."""


@performs("Captures.plan_capture", **_WANTED)
def plan(report: Document) -> None:
    """Show what the next capture would contain, without writing anything or starting a JVM."""
    _show(report)


@performs("Captures.capture_changes", **_WANTED)
def capture(report: Document) -> None:
    """Capture what changed in TABLEs since the consumer's last commit.

    Nothing is copied: the ICDC table references the source's own files. Read the change from it with any engine, then
    `calve commit` the capture to move the checkpoint.
    """
    _show(report)


@performs("Captures.commit_capture")
def commit(report: Document) -> None:
    """Move the checkpoint past a capture that has been processed."""
    _closed(report)


@performs("Captures.abandon_capture")
def abandon(report: Document) -> None:
    """Abandon a capture; the next one starts from the same checkpoint."""
    _closed(report)


def _closed(report: Document) -> None:
    print(f"{report['capture_id']} {report['status']}")
    for table in report["tables"] if report["status"] == "committed" else ():
        print(f"  {table['source_table']}: {_place(table['from_snapshot_id'])} → {_place(table['to_snapshot_id'])}")


@performs("Captures.list_captures", "captures", consumer=option("-c"))
def list_captures(found: list[Document]) -> None:
    """List captures, newest first."""
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


@command("Captures.capture_files", is_checked=option("--check"))
def show(state: State, capture_id: str, *, is_checked: bool) -> None:
    """Show a capture with its files."""
    with state.topic("Captures") as captures:
        report = captures.capture(capture_id)
        files = captures.capture_files(capture_id, is_checked=is_checked)
    if state.json:
        print_json({**report, "files": files})
        return
    _show(report)
    for table, listed in files.items():
        print(f"\n{table}")
        rows = [(file["path"], file["content"], file["records"], size(file["bytes"])) for file in listed]
        print_table(("file", "content", "records", "size"), rows)


def _show(report: Document) -> None:
    if report["capture_id"]:
        print(f"capture {report['capture_id']} of {report['consumer']}: {report['status']}")
    for table in report["tables"]:
        _show_table(table)
    if len(report["tables"]) > 1:
        _show_ranges("ranges over all tables", report["ranges"])
    if report["capture_id"] and report["status"] == "open":
        print(f"\nWhen it is processed: calve commit {report['capture_id']}")


def _show_table(table: Document) -> None:
    print(f"\n{table['source_table']}  {_place(table['from_snapshot_id'])} → {_place(table['to_snapshot_id'])}")
    if not table["changed"]:
        print("  nothing changed")
    else:
        gone = f", {table['deleted_records']} rows gone" if table["deletes_table"] else ""
        print(f"  {table['files']} files, {table['records']} rows, {size(table['bytes'])}{gone} ({table['exactness']})")
    if table["pending"]:
        print("  more is pending: capture again after the commit")
    if table["snapshots"]:
        rows = [
            (s["snapshot_id"], s["operation"], "yes" if s["included"] else "no", s["reason"])
            for s in table["snapshots"]
        ]
        print_table(("snapshot", "operation", "included", "why"), rows, numbers=False)
    _show_ranges("ranges", table["ranges"])
    if table["partitions"]:
        shown = [" ".join(f"{key}={value}" for key, value in p["values"].items()) for p in table["partitions"]]
        more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
        print(f"  partitions: {', '.join(shown[:8])}{more}")
    for label, value in (
        ("read", table["relation"]),
        ("deleted", table["deletes_relation"]),
        ("table", table["icdc_table"]),
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

"""``calve prune`` and ``calve gc``: delete old records, and what captures left behind."""

import click

from calve.cli.command import command, option, performs
from calve.cli.output import duration, print_json, print_table
from calve.cli.session import Document
from calve.cli.state import State


@performs("Maintenance.prune")
def prune(pruned: Document, *, dry_run: bool) -> None:
    r"""Delete records older than their retention: instances, logs, events, signals, alerts, audit lines, tokens.

    \b
      calve prune --dry-run
      calve prune

    The section [retention] of the settings defines how long each kind is kept. The scheduler prunes automatically, in
    small portions. Records that are still needed are kept: see the how-to "Clean up". The working folders of steps on
    this machine are deleted too (worker.keep_files); workers also do that automatically.
    """
    rows = [(one["kind"], duration(one["older_than_seconds"]), one["rows"]) for one in pruned["kinds"]]
    kept = duration(pruned["attempt_folders_older_than_seconds"])
    rows.append(("attempt folders", kept, pruned["attempt_folders"]))
    print_table(("kind", "older than", "to delete" if dry_run else "deleted"), rows)


def _duration(_: click.Context, __: click.Parameter, value: str) -> str:
    from calve.settings import parse_duration

    try:
        parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return value


@command("Maintenance.collect_garbage", grace=option(callback=_duration))
def gc(state: State, grace: str) -> None:
    """Drop the tables and files that closed and crashed captures left behind, never a file of a source table.

    Branches that jobs left in their target tables are dropped too; after a week, if the job may still be running.
    """
    with state.topic("Maintenance") as maintenance:
        answer = maintenance.collect_garbage(grace=grace)
    collected = answer["captures"]
    if state.json:
        print_json(collected)
    else:
        for item in collected:
            counts = f"{len(item['tables'])} tables, {item['files']} metadata files, {item['tags']} leases"
            print(f"{item['capture_id']}: {counts}")
            for problem in item["problems"]:
                print(f"  left behind: {problem}")
        for branch in answer["branches"]:
            print(f"branch dropped: {branch}")
        print(f"{len(collected)} captures cleaned up")
    if any(item["problems"] for item in collected):
        raise click.exceptions.Exit(1)

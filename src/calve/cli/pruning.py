"""``calve prune``: takes away what has been kept for long enough, or tells what would go."""

from datetime import timedelta

import click

from calve.cli.output import duration, print_json, print_table
from calve.cli.state import State, json_option


@click.command()
@click.option("--dry-run", is_flag=True, help="Only tell what would go.")
@json_option
@click.pass_obj
def prune(state: State, *, dry_run: bool) -> None:
    r"""Delete what has been kept for long enough: instances, logs, events, signals, alerts, audit lines, tokens.

    \b
      calve prune --dry-run
      calve prune

    The settings say for how long, [retention]. Where the scheduler runs, this happens by itself, a little at a time.
    What something may still come of stays: see the how-to "Clean up". The folders in which steps have run on this
    machine go too (worker.keep_files); workers remove them by themselves.
    """
    with state.workplace() as workplace:
        pruner = workplace.pruner()
        found = pruner.survey() if dry_run else pruner.prune()
        ages = pruner.ages.used
        folders = workplace.attempt_folders()
        removed = sum(1 for _ in folders.old()) if dry_run else folders.sweep()
    if state.json:
        rows = [{"kind": kind, "older_than_seconds": ages[kind] // 1_000, "rows": rows} for kind, rows in found.items()]
        print_json({"is_dry_run": dry_run, "kinds": rows, "attempt_folders": removed})
    else:
        shown = [(str(kind), duration(timedelta(milliseconds=ages[kind])), rows) for kind, rows in found.items()]
        shown.append(("attempt folders", duration(folders.keep_seconds), removed))
        print_table(("kind", "older than", "may go" if dry_run else "gone"), shown)

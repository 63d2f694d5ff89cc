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
    r"""Take away what has been kept for long enough: signals, alerts, audit lines, tokens, events, logs.

    \b
      calve prune --dry-run
      calve prune

    The settings say for how long, [retention]. Where the scheduler runs, this happens by itself, a little at a time.
    What something may still come of stays: see the how-to "Clean up".
    """
    with state.workplace() as workplace:
        pruner = workplace.pruner()
        found = pruner.survey() if dry_run else pruner.prune()
        ages = pruner.ages.used
    if state.json:
        rows = [{"kind": kind, "older_than_seconds": ages[kind] // 1_000, "rows": rows} for kind, rows in found.items()]
        print_json({"is_dry_run": dry_run, "kinds": rows})
    else:
        shown = [(kind, duration(timedelta(milliseconds=ages[kind])), rows) for kind, rows in found.items()]
        print_table(("kind", "older than", "may go" if dry_run else "gone"), shown)

"""``calve triggers``, ``activate`` and ``deactivate``: what starts workflows automatically."""

from typing import Any

import click

from calve.cli.command import argument, command, option
from calve.cli.output import moment, print_json, print_table
from calve.cli.session import Document
from calve.cli.state import State

_ABSENT = {"next_time": None, "last_time": None, "latency_ms": None, "error": ""}
"""The values of fields that the document of a trigger leaves out."""


@command("Triggers.list_triggers", workflow_id=argument())
def triggers(state: State, workflow_id: str | None) -> None:
    r"""Show the triggers of workflows: when they fire next, when they fired last, and their errors.

    \b
      calve triggers
      calve triggers demo.pipeline

    Only active versions have triggers. A scheduler (calve up, or calve scheduler) sets them up when it sees one.
    """
    with state.operations() as operations:
        if workflow_id is not None:
            operations.workflow(workflow_id)
        found = [{**_ABSENT, **trigger} for trigger in operations.triggers(workflow_id)]
        waiting = operations.waiting_triggers(workflow_id)
    if state.json:
        print_json(found)
    elif found:
        columns = ("workflow", "trigger", "what", "next", "last", "error")
        print_table(columns, [_row(trigger) for trigger in found], numbers=False)
    elif not waiting:
        click.echo("No active workflow has a trigger.", err=True)
    if waiting:
        names = ", ".join(waiting[:3]) + (" …" if len(waiting) > len(waiting[:3]) else "")
        click.echo(f"No scheduler has set up the triggers of {names} yet. To start one: calve up", err=True)


@command("Controls.activate", version=option(metavar="V", help="A number, or latest."))
def activate(state: State, workflow_id: str, version: str) -> None:
    r"""Make a version of a workflow the active one: its triggers fire from now on.

    \b
      calve activate demo.pipeline
      calve activate demo.pipeline --version 3
    """
    with state.operations() as operations:
        active = operations.activate(workflow_id, version)["workflow_version_id"]
    _tell(state, workflow_id, active)


@command("Controls.deactivate")
def deactivate(state: State, workflow_id: str) -> None:
    r"""Deactivate a workflow: its triggers no longer fire.

    \b
      calve deactivate demo.pipeline

    Running instances continue. When it is active again, missed starts are not made up for.
    """
    with state.operations() as operations:
        operations.deactivate(workflow_id)
    _tell(state, workflow_id, None)


def _tell(state: State, workflow: str, version: int | None) -> None:
    if state.json:
        print_json({"workflow_id": workflow, "active_version": version})
    else:
        click.echo(
            f"{workflow}: no version is active" if version is None else f"{workflow}: version {version} is active"
        )


def _row(trigger: Document) -> tuple[str, ...]:
    return (
        trigger["workflow_id"],
        trigger["trigger_id"],
        _what(trigger["definition"]),
        moment(trigger["next_time"]),
        _last(trigger),
        trigger["error"] or _set_aside(trigger["state"]),
    )


def _set_aside(state: Any) -> str:
    """Return the newest signals that a trigger could not evaluate, and the error."""
    failed = state.get("failed") or ()
    if not failed:
        return ""
    newest = failed[-1]
    signals = ", ".join(f"{name} {number}" for name, number in newest["signal_ids"].items())
    return f"set aside {signals}: {newest['error']}"


def _last(trigger: Document) -> str:
    """Return when a trigger fired last; for a table trigger, also how long after the newest commit."""
    latency = trigger["latency_ms"]
    after = "" if latency is None else f" ({latency / 1_000:.1f} s after the commit)"
    return f"{moment(trigger['last_time'])}{after}"


def _what(definition: Any) -> str:
    """Return the definition of a trigger in a few words."""
    for key in ("cron", "expression", "interval"):
        if key in definition:
            zone = definition.get("timezone")
            return f"{definition[key]} {zone}" if zone else str(definition[key])
    named = definition.get("source_tables") or definition.get("definitions") or ()
    return ", ".join(named)

"""``calve triggers``, ``activate`` and ``deactivate``: what starts workflows by itself."""

from typing import TYPE_CHECKING, Any

import click

from calve.cli.output import moment, print_json, print_table
from calve.cli.state import State, json_option

if TYPE_CHECKING:
    from calve.triggers import Trigger, TriggerState

_PAGE = 500


@click.command()
@click.argument("workflow", required=False)
@json_option
@click.pass_obj
def triggers(state: State, workflow: str | None) -> None:
    r"""Show what starts workflows by itself: when next, when last, and what is wrong.

    \b
      calve triggers
      calve triggers demo.pipeline

    Triggers are those of active versions. They are there once a scheduler has seen the version: calve up, or calve
    scheduler.
    """
    with state.workplace() as workplace:
        if workflow is not None:
            workplace.engine.workflow(workflow)
        found = list(_all(workplace.store.triggers, workflow))
        waiting = [name for name, _ in workplace.store.triggers.unsynced() if workflow in {None, name}]
    if state.json:
        print_json([_as_json(trigger) for trigger in found])
    elif found:
        columns = ("workflow", "trigger", "what", "next", "last", "error")
        print_table(columns, [_row(trigger) for trigger in found], numbers=False)
    elif not waiting:
        click.echo("No active workflow has a trigger.", err=True)
    if waiting:
        names = ", ".join(waiting[:3]) + (" …" if len(waiting) > len(waiting[:3]) else "")
        click.echo(f"No scheduler has taken over the newest version of {names} yet. Start: calve up", err=True)


@click.command()
@click.argument("workflow")
@click.option("--version", default="latest", show_default=True, metavar="V", help="A number, or latest.")
@json_option
@click.pass_obj
def activate(state: State, workflow: str, version: str) -> None:
    r"""Make a version of a workflow the active one: its triggers fire from now on.

    \b
      calve activate demo.pipeline
      calve activate demo.pipeline --version 3
    """
    with state.desk() as desk:
        active = desk.activate(workflow, version)
    _tell(state, workflow, active)


@click.command()
@click.argument("workflow")
@json_option
@click.pass_obj
def deactivate(state: State, workflow: str) -> None:
    r"""Leave a workflow without an active version: its triggers no longer fire.

    \b
      calve deactivate demo.pipeline

    Instances under way go on. What its triggers would have started meanwhile is not made up for when it is active
    again.
    """
    with state.desk() as desk:
        desk.deactivate(workflow)
    _tell(state, workflow, None)


def _all(kept: "TriggerState", workflow: str | None) -> "list[Trigger]":
    found: list[Trigger] = []
    while page := kept.triggers(workflow_id=workflow, after=_place(found), limit=_PAGE):
        found += page
    return found


def _place(found: "list[Trigger]") -> tuple[str, str]:
    return (found[-1].workflow_id, found[-1].trigger_id) if found else ("", "")


def _tell(state: State, workflow: str, version: int | None) -> None:
    if state.json:
        print_json({"workflow_id": workflow, "active_version": version})
    else:
        click.echo(
            f"{workflow}: no version is active" if version is None else f"{workflow}: version {version} is active"
        )


def _row(trigger: "Trigger") -> tuple[str, ...]:
    return (
        trigger.workflow_id,
        trigger.trigger_id,
        _what(trigger.definition),
        moment(trigger.due_at),
        _last(trigger),
        trigger.error or _set_aside(trigger.state),
    )


def _set_aside(state: Any) -> str:
    """Return why the newest signals that a trigger could not judge have started nothing."""
    failed = state.get("failed") or ()
    if not failed:
        return ""
    newest = failed[-1]
    signals = ", ".join(f"{name} {number}" for name, number in newest["signal_ids"].items())
    return f"set aside {signals}: {newest['error']}"


def _last(trigger: "Trigger") -> str:
    """Return when a trigger last fired; by tables, also how long after the newest commit."""
    latency = _latency(trigger)
    after = "" if latency is None else f" ({latency / 1_000:.1f} s after the commit)"
    return f"{moment(trigger.fired_at)}{after}"


def _latency(trigger: "Trigger") -> int | None:
    from calve.triggers.tables import latest_latency

    return latest_latency(trigger)


def _what(definition: Any) -> str:
    """Return what a trigger says, in a few words."""
    for key in ("cron", "expression", "interval"):
        if key in definition:
            zone = definition.get("timezone")
            return f"{definition[key]} {zone}" if zone else str(definition[key])
    named = definition.get("source_tables") or definition.get("definitions") or ()
    return ", ".join(named)


def _as_json(trigger: "Trigger") -> dict[str, Any]:
    return {
        "workflow_id": trigger.workflow_id,
        "trigger_id": trigger.trigger_id,
        "trigger_uuid": trigger.uuid,
        "type": trigger.kind,
        "version_id": trigger.version_id,
        "definition": trigger.definition,
        "next_time": trigger.due_at,
        "last_time": trigger.fired_at,
        "latency_ms": _latency(trigger),
        "active_since": trigger.made_at,
        "error": trigger.error,
        "failures": trigger.failures,
        "state": trigger.state,
    }

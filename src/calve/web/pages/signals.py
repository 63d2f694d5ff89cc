"""Signals, with what they started and released, and triggers."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Path, Query

from calve.api import Call, Paged
from calve.operations import READ_SOMEWHERE, Operations
from calve.web.page import Page, Pages

pages = Pages("signals", is_slow=True)
_EVERY = 2.0
_HOUR = 3_600_000
_Name = Annotated[str, Query(max_length=256)]
_Number = Annotated[str, Path(pattern="^(?i:latest|[0-9]{1,18})$")]


@pages.get("/signals", "signals_page", READ_SOMEWHERE, live=True, every=_EVERY)
def signals(call: Call, page: Paged, name: _Name = "") -> Page:
    """List signals, newest first."""
    document = Operations(call).list_signals(page, name or None)
    values = {"name": name, "address": f"/signals?{urlencode({'name': name} if name else {})}"}
    return Page("signals/signals.html", "Signals", document, values, here="more", regions=("signals",))


@pages.get("/signals/{name:path}/instances/{number}", "signal_page", READ_SOMEWHERE)
def signal(call: Call, name: str, number: _Number) -> Page:
    """Show a signal: who sent it, and what it started or released."""
    document = Operations(call).lineage(name, number)
    return Page("signals/signal.html", f"{name} {document['signal']['seq_id']}", document, here="more")


@pages.get("/triggers", "triggers_page", READ_SOMEWHERE, live=True, every=_EVERY)
def triggers(call: Call, page: Paged, workflow_id: _Name = "", view: _Name = "") -> Page:
    """List triggers with their next firing and what they wait for; or show the starts of the next day as a calendar."""
    views = [("", "/triggers", "List"), ("calendar", "/triggers?view=calendar", "Next 24 hours")]
    if view == "calendar":
        document = Operations(call).all_upcoming_starts()
        hours = {"view": view, "views": views, "hours": by_hour(document["elements"])}
        return Page("signals/triggers.html", "Triggers", document, hours, here="more", regions=("calendar",))
    document = Operations(call).list_triggers(page, workflow_id or None)
    values = {
        "view": "",
        "views": views,
        "workflow_id": workflow_id,
        "address": f"/triggers?{urlencode({'workflow_id': workflow_id} if workflow_id else {})}",
        "waits_for": waits_for,
    }
    return Page("signals/triggers.html", "Triggers", document, values, here="more", regions=("triggers",))


def by_hour(starts: Iterable[Mapping[str, Any]]) -> list[tuple[int, list[tuple[str, list[int]]]]]:
    """Group starts by hour: return each hour with its workflows, and the times at which they start."""
    hours: dict[int, dict[str, list[int]]] = {}
    for one in starts:
        hours.setdefault(one["at"] - one["at"] % _HOUR, {}).setdefault(one["workflow_id"], []).append(one["at"])
    return [(hour, list(workflows.items())) for hour, workflows in hours.items()]


def waits_for(trigger: Mapping[str, Any]) -> str:
    """Return what a trigger waits for, in a few words."""
    definition = trigger["definition"]
    match trigger["type"]:
        case "time":
            when = next(
                (definition[key] for key in ("cron", "expression", "interval") if definition.get(key)), "a time"
            )
            return " ".join(str(part) for part in (when, definition.get("timezone")) if part)
        case "signal":
            arrived = trigger["state"].get("waiting", {})
            names = [f"{name} (has come)" if arrived.get(name) else name for name in definition.get("definitions", {})]
            return ", ".join(names)
        case _:
            return "changes of " + ", ".join(definition.get("source_tables", ()))

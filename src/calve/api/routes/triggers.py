"""What starts workflows by itself."""

from typing import Annotated, Any

from fastapi import Path, Query
from starlette.responses import Response

from calve.access import Permission
from calve.api import shapes
from calve.api.answers import Document
from calve.api.callers import Call
from calve.api.documents import present
from calve.api.paging import Paged, bad_cursor, page_json
from calve.api.policy import READ_SOMEWHERE, RUN_SOMEWHERE
from calve.api.routing import Routes
from calve.triggers import Trigger

routes = Routes("triggers")
Table = Annotated[str, Path(pattern=r"^[^\x00-\x1f\x7f/]{1,512}$", description="The table.", examples=["db.events"])]


@routes.get("/triggers", "list_triggers", READ_SOMEWHERE, shapes.Page)
def list_triggers(
    call: Call, page: Paged, workflow_id: Annotated[str | None, Query(max_length=128)] = None
) -> Response:
    """List the triggers of active versions: when next, when last, and what is wrong."""
    page = page.forward()
    after = _place(page.cursor) if page.cursor else ("", "")
    found: list[Trigger] = []
    while len(found) <= page.limit:
        part = call.triggers.triggers(workflow_id=workflow_id, after=after, limit=page.limit + 1)
        found += [trigger for trigger in part if call.may(Permission.READ, trigger.workflow_id)]
        if len(part) <= page.limit:
            break
        after = (part[-1].workflow_id, part[-1].trigger_id)
    return Document(page_json(found, page, _trigger_json, lambda one: f"{one.workflow_id} {one.trigger_id}"))


def _place(cursor: str) -> tuple[str, str]:
    workflow_id, space, trigger_id = cursor.partition(" ")
    if not space:
        raise bad_cursor(cursor)
    return workflow_id, trigger_id


def _trigger_json(trigger: Trigger) -> dict[str, Any]:
    return present(
        workflow_id=trigger.workflow_id,
        trigger_id=trigger.trigger_id,
        trigger_uuid=trigger.uuid,
        type=trigger.kind.value,
        version_id=trigger.version_id,
        definition=dict(trigger.definition),
        next_time=trigger.due_at,
        last_time=trigger.fired_at,
        error=trigger.error or None,
    )


@routes.post("/tables/{table}/changed", "table_changed", RUN_SOMEWHERE)
def changed(call: Call, table: Table) -> Response:
    """Let a table be looked at now, because it has changed: what a catalog's webhook calls."""
    return Document({"table": table, "triggers": call.changed(table)})

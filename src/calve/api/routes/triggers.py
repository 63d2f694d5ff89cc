"""What starts workflows by itself."""

from typing import Annotated, Any

from fastapi import Path, Query
from starlette.responses import Response

from calve.access import Permission
from calve.api import shapes
from calve.api.answers import Document
from calve.api.callers import Call
from calve.api.documents import present
from calve.api.paging import LIMIT, Paged, bad_cursor, look_through, page_json
from calve.api.policy import READ_SOMEWHERE, RUN_SOMEWHERE
from calve.api.routing import Routes
from calve.triggers import Trigger

routes = Routes("triggers")
_PART = LIMIT + 1
Table = Annotated[str, Path(pattern=r"^[^\x00-\x1f\x7f/]{1,512}$", description="The table.", examples=["db.events"])]


@routes.get("/triggers", "list_triggers", READ_SOMEWHERE, shapes.Page, is_slow=True)
def list_triggers(
    call: Call, page: Paged, workflow_id: Annotated[str | None, Query(max_length=128)] = None
) -> Response:
    """List the triggers of active versions: when next, when last, and what is wrong."""
    page = page.forward()

    def look(cursor: str | None) -> tuple[list[Trigger], str | None]:
        after = _place(cursor) if cursor else ("", "")
        part = call.triggers.triggers(workflow_id=workflow_id, after=after, limit=_PART)
        seen = [trigger for trigger in part if call.may(Permission.READ, trigger.workflow_id)]
        return seen, _cursor(part[-1]) if len(part) == _PART else None

    found, onward = look_through(page, page.cursor, look)
    return Document(page_json(found, page, _trigger_json, _cursor, onward))


def _cursor(trigger: Trigger) -> str:
    return f"{trigger.workflow_id} {trigger.trigger_id}"


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
    """Let the caller's triggers look at a table now, because it has changed: what a catalog's webhook calls."""
    return Document({"table": table, "triggers": call.changed(table)})

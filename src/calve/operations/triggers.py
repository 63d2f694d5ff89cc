"""Triggers, which start workflows automatically."""

from collections.abc import Iterator
from typing import Annotated

from calve.access import Permission, namespaces
from calve.errors import CalveError
from calve.operations import shapes
from calve.operations.arguments import OfWorkflow, WorkflowId
from calve.operations.declaration import Argument, Document, Topic, operation
from calve.operations.documents import present
from calve.operations.pages import FIRST, LIMIT, Page, bad_cursor, look_through, page_json
from calve.operations.policy import READ, READ_SOMEWHERE, RUN_SOMEWHERE
from calve.triggers import Trigger, TriggerType, upcoming
from calve.triggers.tables import latest_latency

_PART = LIMIT + 1
_CALENDAR = 200
"""Maximum number of triggers in a list of next starts: those that fire first."""
_FIRES = 200
"""Maximum number of starts by each trigger in such a list."""
Table = Annotated[str, Argument("The table.", pattern=r"^[^\x00-\x1f\x7f/]{1,512}$", examples=["db.events"])]


class Triggers(Topic):
    """Lists triggers, and lets the triggers of a table check it."""

    __slots__ = ()
    tag = "triggers"

    def triggers(self, workflow_id: str | None = None) -> Iterator[Document]:
        """Yield the triggers of active versions: of a workflow, or of all of them."""
        return self.pages(self.list_triggers, workflow_id=workflow_id)

    @operation("GET /triggers", READ_SOMEWHERE, answer=shapes.Page, is_slow=True)
    def list_triggers(self, page: Page = FIRST, workflow_id: OfWorkflow = None) -> Document:
        """List the triggers of active versions, with their next and last firing and their errors."""
        page, call = page.forward(), self.call

        def look(cursor: str | None) -> tuple[list[Trigger], str | None]:
            after = _place(cursor) if cursor else ("", "")
            part = call.triggers.triggers(workflow_id=workflow_id, after=after, limit=_PART)
            seen = [trigger for trigger in part if call.may(Permission.READ, trigger.workflow_id)]
            return seen, _cursor(part[-1]) if len(part) == _PART else None

        found, onward = look_through(page, page.cursor, look)
        return page_json(found, page, trigger_json, _cursor, onward)

    @operation("GET /workflows/{workflow_id}/upcoming", READ, id="list_upcoming_starts", is_slow=True)
    def upcoming_starts(
        self,
        workflow_id: WorkflowId,
        count: Annotated[int, Argument("Maximum number of times.", ge=1, le=100)] = 10,
    ) -> Document:
        """List the next times at which time triggers start a workflow; none if they are disabled."""
        if self._is_disabled(workflow_id):
            return {"elements": []}
        now = self.call.engine.tools.clock()
        triggers = self.call.triggers.triggers(workflow_id=workflow_id, kind=TriggerType.TIME)
        found = sorted((at, one.trigger_id) for one in triggers for at in _upcoming(one, now, count))
        return {"elements": [{"at": at, "trigger_id": trigger_id} for at, trigger_id in found[:count]]}

    @operation("GET /triggers/upcoming", READ_SOMEWHERE, id="list_all_upcoming_starts", is_slow=True)
    def all_upcoming_starts(
        self, hours: Annotated[int, Argument("How many hours ahead.", ge=1, le=168)] = 24
    ) -> Document:
        """List when time triggers start workflows in the next hours; not those of workflows that disable them."""
        now, granted = self.call.engine.tools.clock(), namespaces(self.call.principal, Permission.READ)
        until = now + hours * 3_600_000
        due = self.call.triggers.overdue(until, limit=_CALENDAR + 1, namespaces=granted)
        seen = [one for one in due[:_CALENDAR] if not self._is_disabled(one.workflow_id)]
        times = [(one, _upcoming(one, now, _FIRES)) for one in seen]
        found = sorted((at, one.workflow_id, one.trigger_id) for one, every in times for at in every if at <= until)
        return {
            "until": until,
            "has_more": len(due) > _CALENDAR or any(len(every) == _FIRES and every[-1] <= until for _, every in times),
            "elements": [{"at": at, "workflow_id": name, "trigger_id": trigger} for at, name, trigger in found],
        }

    def _is_disabled(self, workflow_id: str) -> bool:
        return bool(self.call.engine.workflow(workflow_id).properties.get("time_trigger_disabled", False))

    @operation("GET /triggers/waiting", READ_SOMEWHERE, id="list_waiting_triggers", is_slow=True)
    def waiting_triggers(self, workflow_id: OfWorkflow = None) -> list[str]:
        """Return the workflows whose newest triggers are not yet known to a scheduler."""
        found = (name for name, _ in self.call.triggers.unsynced() if workflow_id in {None, name})
        return [name for name in found if self.call.may(Permission.READ, name)]

    @operation("POST /tables/{table}/changed", RUN_SOMEWHERE)
    def table_changed(self, table: Table) -> Document:
        """Report that a table has changed: the caller's triggers check it now. For webhooks of catalogs."""
        return {"table": table, "triggers": self.call.changed(table)}


def _upcoming(trigger: Trigger, now: int, count: int) -> list[int]:
    """Return when a trigger fires next; nothing if it is invalid, which its error describes."""
    try:
        return upcoming(trigger, now, count)
    except CalveError:
        return []


def _cursor(trigger: Trigger) -> str:
    return f"{trigger.workflow_id} {trigger.trigger_id}"


def _place(cursor: str) -> tuple[str, str]:
    workflow_id, space, trigger_id = cursor.partition(" ")
    if not space:
        raise bad_cursor(cursor)
    return workflow_id, trigger_id


def trigger_json(trigger: Trigger) -> Document:
    """Return a trigger with its progress."""
    return present(
        workflow_id=trigger.workflow_id,
        trigger_id=trigger.trigger_id,
        trigger_uuid=trigger.uuid,
        type=trigger.kind.value,
        version_id=trigger.version_id,
        definition=dict(trigger.definition),
        next_time=trigger.due_at,
        last_time=trigger.fired_at,
        latency_ms=latest_latency(trigger),
        active_since=trigger.made_at,
        error=trigger.error or None,
        failures=trigger.failures,
        state=dict(trigger.state),
    )

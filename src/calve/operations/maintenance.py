"""Maintenance of a project: alerts, retention, garbage collection, and the state of workers."""

from dataclasses import asdict
from typing import Annotated, Literal

from calve.access import Permission, allows, namespaces
from calve.alerts import MessageStatus, StoredMessage
from calve.engine import SET_ASIDE, Workload
from calve.errors import RequestInvalid
from calve.namespaces import ROOT
from calve.operations import shapes
from calve.operations.arguments import Word
from calve.operations.caller import Caller
from calve.operations.declaration import Argument, Document, Topic, jsonable, operation
from calve.operations.documents import present, recent_run_json
from calve.operations.overviews import GRACE
from calve.operations.policy import ADMINISTER, EDIT_EVERYWHERE, READ_EVERYWHERE, READ_SOMEWHERE
from calve.operations.triggers import Table
from calve.settings import parse_duration
from calve.triggers import SILENT
from calve.triggers.signals import announced_json

_SHOWN = 50


class Maintenance(Topic):
    """Maintains a project: its alerts, its old records, what captures left behind."""

    __slots__ = ()
    tag = "maintenance"

    @operation("GET /alerts", READ_EVERYWHERE, id="list_alerts")
    def alerts(
        self,
        status: Annotated[
            Literal["waiting", "sent", "given_up"] | None, Argument("Only alerts with this status.")
        ] = None,
        limit: Annotated[int, Argument("Maximum number of alerts.", ge=1, le=1_000)] = 50,
    ) -> list[Document]:
        """List alerts, sent, waiting and failed, newest first."""
        wanted = None if status is None else MessageStatus(status)
        return [_alert_json(stored) for stored in self.call.administration.alerts(wanted, limit)]

    @operation("POST /alerts/channels/{channel}/actions/test", ADMINISTER, is_slow=True)
    def test_channel(
        self,
        channel: Word,
        to: Annotated[
            list[str] | None, Argument("E-mail addresses or Slack channels, instead of the channel's own.")
        ] = None,
    ) -> Document:
        """Send a test message on an alert channel, immediately."""
        return {"channel": channel, "id": self.call.administration.test_channel(channel, to or ()), "status": "sent"}

    @operation("POST /actions/prune", ADMINISTER, is_slow=True)
    def prune(
        self, *, dry_run: Annotated[bool, Argument("Only report what would be deleted.", is_query=True)] = False
    ) -> Document:
        """Delete records older than their retention; return how many, by kind."""
        return self.call.administration.prune(is_dry_run=dry_run)

    @operation("POST /actions/collect-garbage", EDIT_EVERYWHERE, is_slow=True)
    def collect_garbage(
        self,
        *,
        grace: Annotated[
            str,
            Argument(
                "Keep unfinished captures that started within this time: they may still be in progress.",
                is_query=True,
                max_length=20,
            ),
        ] = "1h",
    ) -> Document:
        """Delete tables and files that closed and crashed captures left behind, and leftover branches of jobs."""
        try:
            collected, branches = self.call.administration.collect_garbage(parse_duration(grace))
        except ValueError as error:
            raise RequestInvalid(str(error)) from error
        return {"captures": jsonable([asdict(item) for item in collected]), "branches": [str(one) for one in branches]}

    @operation("PUT /tables/{table}/valid-through", EDIT_EVERYWHERE, is_slow=True, is_repeatable=True)
    def set_valid_through(
        self, table: Table, time: Annotated[str, Argument("Milliseconds, or a time with a time zone.", max_length=64)]
    ) -> Document:
        """Declare up to which time a table is complete: steps and workflows that wait for it continue."""
        through = self.call.administration.set_valid_through(table, time)
        announced = self.call.signals.announce(f"vtts/{table}", {"through": through}, payload={"table": table})
        return announced_json(announced)

    @operation("GET /workers", READ_SOMEWHERE, id="list_workers", answer=shapes.Workers)
    def workers(self) -> Document:
        """Return the workers: whether each is alive, how many tasks it can run, and which it is running."""
        now, loads = self.call.engine.state.now(), self.call.engine.state.workloads()
        alive = [load for load in loads if not load.is_dead]
        return {
            "alive": len(alive),
            "slots": sum(load.worker.slots for load in alive),
            "running": sum(load.held for load in alive),
            "last_heartbeat": max((load.worker.heartbeat_at for load in alive), default=None),
            "now": now,
            "scheduler": _scheduler_json(self.call, now),
            "elements": [_worker_json(self.call, load) for load in loads],
        }

    @operation("GET /queue", READ_SOMEWHERE, id="get_queue", answer=shapes.Queue)
    def queue(self) -> Document:
        """Return how many tasks are ready, scheduled, or claimed by workers, by kind, and what was set aside."""
        engine = self.call.engine
        states = engine.state.queue_states(engine.tools.clock())
        granted = namespaces(self.call.principal, Permission.READ)
        aside = engine.state.failed_runs(namespaces=granted, saying=SET_ASIDE)
        return {
            "tasks": {kind.value: asdict(state) for kind, state in states.items()},
            "set_aside": {
                "count": len(aside),
                "elements": [
                    {"workflow_id": one.run.workflow_id, **recent_run_json(one.run), "message": one.message}
                    for one in aside[:_SHOWN]
                ],
            },
        }

    @operation("GET /project", READ_SOMEWHERE, id="get_project")
    def project(self) -> Document:
        """Return the retention of instances in seconds (null: forever), and whether a worker is alive."""
        administration = self.call.services.administration
        if administration is None:
            return {"instances_kept": None, "is_worked": True}
        return {"instances_kept": administration.instances_kept, "is_worked": administration.is_worked}

    def instances_kept(self) -> int | None:
        """Return how many seconds instances are kept after their end; None: forever."""
        kept: int | None = self.project()["instances_kept"]
        return kept

    def is_worked(self) -> bool:
        """Tell whether a worker is alive, so that started instances run."""
        return bool(self.project()["is_worked"])


def _worker_json(call: Caller, load: Workload) -> Document:
    """Return a worker, with those of its tasks that the caller may read."""
    worker = load.worker
    seen = [task for task in load.tasks if all(call.may_read(one) for one in (task.workflow_id, task.owner_workflow))]
    # Only those who may read the whole project see where it runs.
    where = {"host": worker.host, "pid": worker.pid} if allows(call.principal, Permission.READ, ROOT) else {}
    return {
        "uuid": worker.uuid,
        **where,
        "version": worker.version,
        "is_alive": not load.is_dead,
        "is_draining": worker.is_draining,
        "start_time": worker.started_at,
        "last_heartbeat": worker.heartbeat_at,
        "slots": worker.slots,
        "running": load.held,
        "tasks": [
            present(
                kind=task.kind.value,
                workflow_id=task.workflow_id,
                workflow_instance_id=task.instance_id,
                step_id=task.step_id,
            )
            for task in seen
        ],
    }


def _scheduler_json(call: Caller, now: int) -> Document:
    """Return whether a scheduler is alive, and since when a time trigger is late: one may be alive and stuck."""
    state = call.services.triggers
    last = None if state is None else state.last_beat()
    late = [] if state is None else state.overdue(call.engine.tools.clock() - GRACE, limit=1)
    return {
        "late_since": late[0].due_at if late else None,
        "last_heartbeat": last,
        "is_silent": last is not None and now - last > SILENT,
    }


def _alert_json(stored: StoredMessage) -> Document:
    return {
        "id": stored.message.id,
        "status": stored.status.value,
        "channel": stored.message.route.channel,
        "to": list(stored.message.route.to),
        "alert": stored.message.alert.as_json(),
        "tries": stored.tries,
        "error": stored.error,
        "made_at": stored.made_at,
        "sent_at": stored.sent_at,
    }

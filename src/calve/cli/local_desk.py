"""The engine of this project, as commands ask it."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from calve.cli.desk import FOUND, PAGE, Action, Again, Document, Which
from calve.errors import RequestInvalid, StoreBusy

if TYPE_CHECKING:
    from calve.app import Workplace
    from calve.definition import Definition, JobTemplate
    from calve.engine import Address
    from calve.engine.model import Run

_OFTEN = 0.2


@dataclass(frozen=True, slots=True)
class LocalDesk:
    """Asks the engine, on behalf of whoever runs the command."""

    workplace: "Workplace"
    user: str

    def push(self, definition: "Definition") -> Document:
        """Keep a definition as the next version of its workflow."""
        record = self.workplace.engine.push(definition, author=self.user)
        return {
            "workflow_id": record.workflow_id,
            "workflow_version_id": record.version_id,
            "is_active": bool(record.definition.get("is_active", True)),
            "create_time": record.created_at,
            "author": record.author,
        }

    def instances_kept(self) -> int | None:
        """Return how many seconds instances are kept after their end."""
        kept = self.workplace.settings.retention.instances
        return None if kept is None else int(kept.total_seconds())

    def templates(self) -> "list[JobTemplate]":
        """Return the job templates that were pushed."""
        return self.workplace.engine.state.templates()

    def delete(self, workflow: str) -> None:
        """Forget a workflow and everything that it has done."""
        self.workplace.engine.delete(workflow)

    def start(
        self, workflow: str, *, version: str | int, params: Mapping[str, Any], request_id: str | None
    ) -> Document:
        """Start an instance."""
        from calve.engine import Initiator
        from calve.engine.views import started_json

        started = self.workplace.engine.start(
            workflow,
            version=version,
            params=params,
            request_id=request_id,
            initiator=Initiator(user=self.user),
            refuse_unknown_params=True,
        )
        return started_json(started)

    def restart(self, place: "Address", again: Again) -> Document:
        """Run an instance again, or a step of it."""
        from calve.engine.views import started_json

        return started_json(self.workplace.engine.restart(place, **self._asked(again)))

    def plan_restart(self, place: "Address", again: Again) -> Document:
        """Return what a restart would keep and what it would run again."""
        from calve.engine.views import restart_plan_json

        return restart_plan_json(self.workplace.engine.plan_restart(place, **self._asked(again)))

    def _asked(self, again: Again) -> dict[str, Any]:
        from calve.engine import Initiator, RunPolicy

        policy = RunPolicy.RESTART_FROM_BEGINNING if again.is_from_beginning else RunPolicy.RESTART_FROM_INCOMPLETE
        return {
            "policy": policy,
            "params": again.params,
            "step_params": again.step_params,
            "skip": again.skip,
            "is_latest": again.is_latest,
            "keep": again.keep,
            "refuse_unknown_params": True,
            "initiator": Initiator(user=self.user),
        }

    def act(self, action: Action, place: "Address", **said: str) -> Document:
        """Do something with an instance or a step."""
        from calve.engine.views import run_json

        run: Run = getattr(self.workplace.engine, action)(place, by=self.user, **said)
        return run_json(run)

    def act_on_all(self, action: Literal["stop", "kill"], workflow: str, *, reason: str) -> list[Document]:
        """Stop or kill all instances of a workflow that are not over."""
        from calve.engine.views import run_json

        engine = self.workplace.engine
        do = engine.stop_all if action == "stop" else engine.kill_all
        return [run_json(run) for run in do(workflow, by=self.user, reason=reason)]

    def pause(self, workflow: str, step: str, instance: int | None) -> None:
        """Set a breakpoint."""
        from calve.engine import Breakpoint

        self.workplace.engine.pause(Breakpoint(workflow, step, instance_id=instance or 0, created_by=self.user))

    def resume(self, workflow: str, step: str | None, place: "Address | None") -> list[Document]:
        """Take breakpoints away, and let go on what they have paused."""
        from calve.engine import Breakpoint
        from calve.engine.views import run_json

        engine = self.workplace.engine
        if place is not None:
            engine.remove_breakpoint(Breakpoint(workflow, place.steps[-1], instance_id=place.instance_id))
            return [run_json(engine.resume(place, by=self.user))]
        points = [point for point in engine.state.breakpoints(workflow) if step in {None, point.step_id}]
        if not points:
            where = f"step {step} of {workflow}" if step else workflow
            raise RequestInvalid(f"There is no breakpoint at {where}.", remedy="To set one: calve pause WORKFLOW STEP.")
        return [run_json(run) for point in points for run in engine.unpause(point, by=self.user)]

    def activate(self, workflow: str, version: str) -> int | None:
        """Make a version the active one."""
        return self.workplace.engine.activate(workflow, version).active_version

    def deactivate(self, workflow: str) -> None:
        """Leave a workflow without an active version."""
        self.workplace.engine.deactivate(workflow)

    def announce(
        self, name: str, params: Mapping[str, Any], payload: Mapping[str, Any], request_id: str | None
    ) -> Document:
        """Announce a signal."""
        from calve.triggers.signals import announced_json

        return announced_json(self.workplace.signals.announce(name, params, payload=payload, request_id=request_id))

    def signals(self, name: str | None, limit: int) -> list[Document]:
        """Return signals, newest first."""
        from calve.triggers.signals import signal_json

        return [signal_json(each) for each in self.workplace.signals.list(name=name, limit=limit)]

    def signal_lineage(self, name: str, seq: int | None) -> Document:
        """Return a signal, who sent it, and what it did."""
        from calve.triggers.signals import lineage_json

        return lineage_json(self.workplace.signals.lineage(name, seq))

    def instances(self, workflow: str | None, *, statuses: Sequence[str] = (), limit: int = 1_000) -> list[Document]:
        """Return instances, newest first."""
        from calve.engine import RunStatus
        from calve.engine.views import instance_json

        engine = self.workplace.engine
        if workflow is not None:
            engine.workflow(workflow)
        chosen = [RunStatus(name) for name in statuses]
        return [
            instance_json(run) for run in engine.state.instances(workflow_id=workflow, statuses=chosen, limit=limit)
        ]

    def instance(self, place: "Address") -> Document:
        """Return an instance without its steps."""
        from calve.engine.addresses import find_run
        from calve.engine.views import instance_json

        return instance_json(find_run(self.workplace.engine.state, place))

    def overview(self, place: "Address") -> Document:
        """Return an instance with its steps."""
        from calve.engine.addresses import find_run
        from calve.engine.views import overview_json, overview_of

        engine = self.workplace.engine
        return overview_json(overview_of(engine.tools, find_run(engine.state, place)))

    def events(self, run: Document, after: int) -> list[Document]:
        """Return some events of a run in order."""
        return [
            {
                "seq": event.seq,
                "at": event.at,
                "after": event.after,
                "step_id": event.step_id,
                "step_attempt_id": event.attempt_id,
            }
            for event in self._state.events(after=after, run_uuid=run["workflow_uuid"])
        ]

    def told(self, run: Document, step_id: str, attempt_id: int) -> str:
        """Return what was said about an attempt of a step."""
        from calve.engine.views.overview import last_message

        attempts = self._state.attempts(run["workflow_uuid"], step_id)
        meant = [attempt for attempt in attempts if attempt.attempt_id == attempt_id]
        return "".join(last_message(attempt) for attempt in meant)

    def approvals(self, workflow: str | None, limit: int) -> list[Document]:
        """Return the Approval steps that wait for people, oldest first."""
        from calve.engine.views import approval_json

        engine = self.workplace.engine
        if workflow is not None:
            engine.workflow(workflow)
        return [approval_json(one) for one in engine.approvals(workflow_id=workflow, limit=limit)]

    def attempt(self, place: "Address", attempt_id: int | None) -> Document:
        """Return an attempt of a step, the newest if none is named."""
        from calve.engine.addresses import find_attempt
        from calve.engine.views import attempt_json, step_source

        run, attempt = find_attempt(self._state, place, attempt_id)
        return attempt_json(run, attempt, step_source(self.workplace.engine.tools, run, attempt))

    def log(self, place: "Address", attempt: Document, which: Which, *, is_followed: bool) -> Iterator[str]:
        """Yield what an attempt has written."""
        del place
        uuid = attempt["step_instance_uuid"]
        reader = self.workplace.engine.log_reader(uuid)
        offset = reader.tail(which.tail).offset if which.tail else reader.place(which.offset or 0)
        left = which.limit
        while True:
            now = self._state.attempt(uuid) if is_followed else None
            while left != 0 and (not (page := reader.page(offset, min(PAGE, left or PAGE))).is_last or page.text):
                offset = page.next_offset
                left = None if left is None else max(0, left - (offset - page.offset))
                yield page.shown()
            if now is None or now.status.is_terminal:
                return
            time.sleep(_OFTEN)
            reader = self.workplace.engine.log_reader(uuid)

    def find(self, place: "Address", attempt: Document, text: str, which: Which, *, ignore_case: bool) -> Document:
        """Return the lines of a log that hold a text."""
        del place
        reader = self.workplace.engine.log_reader(attempt["step_instance_uuid"])
        found = reader.find(text, ignore_case=ignore_case, offset=which.offset or 0, limit=which.limit or FOUND)
        return asdict(found)

    def permits(self) -> list[Document]:
        """Return the limits of tags."""
        return [asdict(permit) for permit in self._state.tag_permits()]

    def limit_tag(self, tag: str, number: int | None) -> None:
        """Limit how many steps of a tag run at once, or lift the limit."""
        if number is not None:
            self.workplace.engine.limit_tag(tag, number)
        elif not self._state.delete_tag_permit(tag):
            raise RequestInvalid(f"The tag {tag} has no limit.")

    def now(self) -> int:
        """Return the time."""
        return self.workplace.engine.tools.clock()

    def is_worked(self) -> bool:
        """Tell whether a process carries out the workflows of this project."""
        if not self.workplace.settings.store.url.startswith("sqlite"):
            return bool(self._state.workers())
        try:
            with self.workplace.store.hold_scheduler():
                return False
        except StoreBusy:
            return True

    def view(self, run: Document) -> str | None:
        """Return nothing: a page is a server's."""
        del run
        return None

    @property
    def _state(self) -> Any:
        return self.workplace.engine.state

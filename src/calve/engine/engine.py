"""The interface of the engine to the rest of calve: all operations on workflows and their instances."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calve.definition import Definition, JobTemplate
from calve.engine import commands, starts
from calve.engine.control_steps import check_cycle
from calve.engine.instances import Address, Tools, UnitOfWork, find, known_workflow
from calve.engine.logs import LogReader
from calve.engine.model import Action, Attempt, Breakpoint, Json, Run, RunStatus, Started, VersionRecord, WorkflowRecord
from calve.engine.params import put_outputs
from calve.engine.ports import EngineState
from calve.engine.restarts import RestartPlan, plan_restart, restart
from calve.engine.views import Approval, approvals_of
from calve.engine.workflows import PropertyChange, delete_template, push_template, with_changes, with_tag, without_tag
from calve.errors import ActionRefused, RequestInvalid, WorkflowMissing
from calve.texts import check_text

LIMIT = 1_000
"""The highest limit that a tag may have."""
BATCH = 10
"""How many instances can be started together."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Push, start, stop, restart and watch workflows; a ``Worker`` executes them."""

    tools: Tools

    @property
    def state(self) -> EngineState:
        """The stored state, for reading."""
        return self.tools.state

    def log_reader(self, attempt_uuid: str) -> LogReader:
        """Return a reader of the log of an attempt, as stored now."""
        return LogReader(self.tools.state, attempt_uuid, self.tools.log_files)

    def push(self, definition: Definition, *, author: str = "") -> VersionRecord:
        """Store a definition as the next version of its workflow.

        Raises:
            RequestInvalid: its run strategy contradicts unfinished instances, or a text in it is invalid.
            DefinitionInvalid: the workflow would wait for itself.
        """
        check_cycle(self.tools, definition)
        written = definition.as_json()
        check_text(written)
        return self.tools.state.push(
            definition.workflow.id,
            written,
            written.get("properties", {}),
            is_active=definition.is_active,
            author=author,
            now=self.tools.clock(),
        )

    def push_template(self, template: JobTemplate, *, author: str = "") -> JobTemplate:
        """Store a job template in place of the one of the same type and version; return it with its author and time."""
        return push_template(self.tools, template, author)

    def delete_template(self, job_type: str, version: str | None = None) -> int:
        """Delete a job template in one version, or in all; return how many were deleted.

        Raises:
            RequestInvalid: the template is built in, or something uses it.
        """
        return delete_template(self.tools, job_type, version)

    def workflow(self, workflow_id: str) -> WorkflowRecord:
        """Return a workflow.

        Raises:
            WorkflowMissing: it does not exist.
        """
        return known_workflow(self.tools, workflow_id)

    def delete(self, workflow_id: str) -> None:
        """Delete a workflow with its versions, instances and logs.

        Raises:
            WorkflowMissing: the workflow does not exist.
            RequestInvalid: an instance of it has not ended.
        """
        self.workflow(workflow_id)
        self.tools.state.delete_workflow(workflow_id, self.tools.clock())

    def activate(self, workflow_id: str, version: str | int) -> WorkflowRecord:
        """Activate a version: a number, latest or default.

        Raises:
            WorkflowMissing: the workflow or the version does not exist.
        """
        self.workflow(workflow_id)
        record = self.tools.state.version(workflow_id, version)
        if record is None:
            raise WorkflowMissing(f"Workflow {workflow_id} has no version {version}.", workflow=workflow_id)
        self.tools.state.activate(workflow_id, record.version_id, self.tools.clock())
        return self.workflow(workflow_id)

    def deactivate(self, workflow_id: str) -> WorkflowRecord:
        """Deactivate a workflow: its triggers no longer fire, and only starts that name a version are possible.

        Raises:
            WorkflowMissing: the workflow does not exist.
        """
        self.tools.state.activate(workflow_id, None, self.tools.clock())
        return self.workflow(workflow_id)

    def change_properties(
        self, workflow_id: str, changes: Mapping[str, Any], *, reset: Collection[str] = ()
    ) -> WorkflowRecord:
        """Change properties of a workflow; those that are missing or None stay as they are.

        Raises:
            WorkflowMissing: the workflow does not exist.
            RequestInvalid: a property is invalid, or the run strategy cannot be changed now.
        """
        check_text(changes)
        return self._with(workflow_id, with_changes(changes, reset))

    def tag(self, workflow_id: str, tag: str | Mapping[str, Any]) -> WorkflowRecord:
        """Add a tag to a workflow, for all of its versions.

        Raises:
            WorkflowMissing: the workflow does not exist.
            RequestInvalid: the tag is invalid.
        """
        check_text(tag, "tag")
        return self._with(workflow_id, with_tag(tag))

    def untag(self, workflow_id: str, name: str) -> WorkflowRecord:
        """Remove a tag from a workflow.

        Raises:
            WorkflowMissing: the workflow does not exist.
        """
        return self._with(workflow_id, without_tag(name))

    def _with(self, workflow_id: str, change: PropertyChange) -> WorkflowRecord:
        return self.tools.state.change_properties(workflow_id, change, self.tools.clock())

    def start(self, workflow_id: str, **request: Any) -> Started:
        """Start an instance; ``starts.start`` documents the request."""
        return starts.start(self.tools, workflow_id, **request)

    def start_all(self, workflow_id: str, requests: Sequence[Mapping[str, Any]]) -> list[Started]:
        """Start instances together, all or none.

        Raises:
            RequestInvalid: there are no requests, or too many.
        """
        if not 1 <= len(requests) <= BATCH:
            raise RequestInvalid(f"Between 1 and {BATCH} instances can be started together, not {len(requests)}.")
        return starts.start_all(self.tools, workflow_id, requests)

    def restart(self, address: Address, **request: Any) -> Started:
        """Run an instance again; ``restarts.restart`` documents the request."""
        return restart(self.tools, address, **request)

    def plan_restart(self, address: Address, **request: Any) -> RestartPlan:
        """Return what a restart would keep and what it would run again; ``restarts.restart`` documents the request."""
        return plan_restart(self.tools, address, **request)

    def stop(self, address: Address, *, by: str = "", reason: str = "") -> Run:
        """Stop an instance or a step: it ends as STOPPED."""
        return commands.act(self.tools, address, Action.STOP, by=by, reason=reason)

    def kill(self, address: Address, *, by: str = "", reason: str = "") -> Run:
        """Kill an instance or a step: it ends as FAILED."""
        return commands.act(self.tools, address, Action.KILL, by=by, reason=reason)

    def stop_all(self, workflow_id: str, *, by: str = "", reason: str = "") -> list[Run]:
        """Stop all running instances of a workflow."""
        self.workflow(workflow_id)
        return commands.for_all(self.tools, workflow_id, lambda address: self.stop(address, by=by, reason=reason))

    def kill_all(self, workflow_id: str, *, by: str = "", reason: str = "") -> list[Run]:
        """Kill all running instances of a workflow."""
        self.workflow(workflow_id)
        return commands.for_all(self.tools, workflow_id, lambda address: self.kill(address, by=by, reason=reason))

    def skip(self, address: Address, *, by: str = "") -> Run:
        """Skip a step; the steps after it continue. If it has ended, restart without it.

        Raises:
            RequestInvalid: the address names no step.
        """
        found = find(self.tools.state, address)
        if not address.path:
            raise RequestInvalid(f"{address} does not name a step.", remedy="Name the step to skip.")
        attempt = found.attempt
        if attempt is not None and attempt.status.is_final and Action.SKIP in commands.possible_for(attempt):
            return self.restart(address, skip=(address.steps[-1],)).run
        return commands.act(self.tools, address, Action.SKIP, by=by)

    def unblock(self, address: Address, *, by: str = "") -> Run:
        """Unblock a failed instance, so that STRICT_SEQUENTIAL continues."""
        return commands.act(self.tools, address, Action.UNBLOCK, by=by)

    def unblock_all(self, workflow_id: str, *, by: str = "") -> list[Run]:
        """Unblock all failed instances, so that STRICT_SEQUENTIAL continues."""
        self.workflow(workflow_id)
        failed = commands.each(self.tools, workflow_id, (RunStatus.FAILED,))
        blocking = [Address(workflow_id, run.instance_id) for run in failed if run.is_blocking]
        return [self.unblock(address, by=by) for address in blocking]

    def bypass(self, address: Address, *, by: str = "") -> Run:
        """Continue a step without the signals that it waits for."""
        return commands.act(self.tools, address, Action.BYPASS_STEP_DEPENDENCIES, by=by)

    def approve(self, address: Address, *, by: str, comment: str = "") -> Run:
        """Approve an Approval step."""
        return commands.act(self.tools, address, Action.APPROVE, by=by, params={"comment": comment})

    def reject(self, address: Address, *, by: str, comment: str = "") -> Run:
        """Reject an Approval step."""
        return commands.act(self.tools, address, Action.REJECT, by=by, params={"comment": comment})

    def approvals(
        self,
        *,
        workflow_id: str | None = None,
        after: str = "",
        limit: int = 100,
        namespaces: Sequence[str] = ("",),
    ) -> list[Approval]:
        """Return the Approval steps that wait for a decision, oldest first, starting after the attempt ``after``.

        Limited to one workflow, if it is given, and to workflows below ``namespaces``.
        """
        found = self.tools.state.approvals(workflow_id=workflow_id, after=after, limit=limit, namespaces=namespaces)
        return approvals_of(self.tools.state, found)

    def pause(self, point: Breakpoint) -> None:
        """Set a breakpoint, at which attempts pause before they start.

        Raises:
            WorkflowMissing: the workflow or the step does not exist.
        """
        latest = self.workflow(point.workflow_id).latest_version
        workflow = self.tools.blueprints.get(point.workflow_id, point.version_id or latest).workflow
        steps = [step.id for step in workflow.all_steps()]
        if point.step_id not in steps:
            raise WorkflowMissing(
                f"Workflow {point.workflow_id} has no step {point.step_id}.", remedy=f"It has {', '.join(steps)}."
            )
        self.tools.state.set_breakpoint(replace(point, created_at=self.tools.clock()))
        self.tools.cache.breakpoints.forget()

    def resume(self, address: Address, *, by: str = "") -> Run:
        """Resume one paused step."""
        return commands.act(self.tools, address, Action.RESUME, by=by)

    def unpause(self, point: Breakpoint, *, by: str = "") -> list[Run]:
        """Remove a breakpoint, and resume all attempts that it has paused."""
        self.remove_breakpoint(point)
        paused = self.tools.state.paused(point.workflow_id, point.step_id)
        return [run for attempt in paused if (run := self._resumed(point, attempt, by)) is not None]

    def remove_breakpoint(self, point: Breakpoint) -> None:
        """Remove a breakpoint; attempts that it has paused stay paused."""
        self.tools.state.delete_breakpoint(point)
        self.tools.cache.breakpoints.forget()

    def _resumed(self, point: Breakpoint, attempt: Attempt, by: str) -> Run | None:
        """Resume an attempt; return None if another breakpoint paused it, or if it is no longer paused."""
        state = UnitOfWork(self.tools, self.tools.clock()).state(attempt.run_uuid, is_fresh=True)
        if not point.is_for(state.outermost.run, attempt):
            return None
        try:
            return self.resume(Address(state.run.workflow_id, state.run.instance_id, path=(attempt.step_id,)), by=by)
        except ActionRefused:
            return None

    def put_outputs(self, attempt_uuid: str, outputs: Mapping[str, Any], artifacts: Json | None = None) -> None:
        """Store output params and artifacts of a running attempt.

        Raises:
            WorkflowMissing: the attempt does not exist.
            ActionRefused: the attempt is not running.
            ParamError: the step declares no such param.
        """
        put_outputs(self.tools, attempt_uuid, outputs, artifacts or {})

    def limit_tag(self, tag: str, max_allowed: int) -> None:
        """Limit how many steps of a tag run concurrently.

        Raises:
            RequestInvalid: the limit is out of range.
        """
        check_text(tag, "tag")
        if not 0 <= max_allowed <= LIMIT:
            raise RequestInvalid(f"The limit of a tag must be between 0 and {LIMIT}, not {max_allowed}.")
        self.tools.state.set_tag_permit(tag, max_allowed, self.tools.clock())

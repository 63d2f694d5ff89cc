"""What the engine needs from a store."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from calve.definition.templates import JobTemplate
from calve.engine.model import (
    Ancestor,
    Attempt,
    Breakpoint,
    Changes,
    Children,
    Committed,
    Event,
    FailedRun,
    GridRow,
    HeartbeatReply,
    HeldWork,
    InstanceQuery,
    IterationRecord,
    Json,
    Leaves,
    LiveSteps,
    LogChunk,
    LogExtent,
    ParamMatch,
    PermitUse,
    Position,
    QueueState,
    RecentRun,
    Run,
    RunEnd,
    RunStatus,
    Scope,
    Signal,
    Snapshot,
    StepStatus,
    TagPermit,
    Task,
    TaskKind,
    VersionRecord,
    WorkerRecord,
    WorkflowQuery,
    WorkflowRecord,
    WorkflowRow,
    Workload,
)

Clock = Callable[[], int]
"""Returns the time in milliseconds."""
NewId = Callable[[], str]
"""Returns a new uuid."""


class Definitions(Protocol):
    """Stores workflows and their versions."""

    def push(
        self, workflow_id: str, definition: Json, properties: Json, *, is_active: bool, author: str, now: int
    ) -> VersionRecord:
        """Store a definition as the next version, and its properties as the latest snapshot.

        Properties that only the previous snapshot has are kept, except run_strategy,
        step_concurrency and alerting. A change of the run strategy goes through ``run_strategies.check_change`` in the
        same transaction, under the lock of the workflow's row.

        Raises:
            RequestInvalid: the run strategy cannot be changed now.
        """
        ...

    def workflow(self, workflow_id: str) -> WorkflowRecord | None:
        """Return a workflow, or None if it does not exist or was deleted."""
        ...

    def workflows(
        self, *, after: str = "", limit: int = 100, contains: str = "", namespaces: Sequence[str] = ("",)
    ) -> list[WorkflowRecord]:
        """Return workflows by id, starting after ``after``, limited to those below ``namespaces``."""
        ...

    def change_properties(self, workflow_id: str, change: Callable[[Json], Json], now: int) -> WorkflowRecord:
        """Replace the properties of a workflow by the result of ``change``, under the lock of its row.

        Raises:
            WorkflowMissing: the workflow does not exist.
            RequestInvalid: the run strategy cannot be changed now.
        """
        ...

    def version(self, workflow_id: str, selector: str | int) -> VersionRecord | None:
        """Return a version: active, latest, default (active, else latest), or a number."""
        ...

    def versions(self, workflow_id: str) -> list[VersionRecord]:
        """Return every version, newest first."""
        ...

    def activate(self, workflow_id: str, version_id: int | None, now: int) -> None:
        """Activate a version; None deactivates the workflow."""
        ...

    def delete_workflow(self, workflow_id: str, now: int) -> None:
        """Delete a workflow, its versions, instances, attempts, logs and events; its instance numbers are not reused.

        Raises:
            RequestInvalid: an instance of it has not ended.
        """
        ...


class Instances(Protocol):
    """Stores runs and attempts; ``commit`` is the only way to change them."""

    def commit(self, changes: Changes) -> Committed:
        """Write everything in one transaction, or nothing.

        In this order: every trigger of ``marks`` has the ``seq`` that it was read with and belongs to the active
        version of its workflow, and gets the next one; every task of ``held`` and ``done`` is still its owner's with
        its generation (the row of a ``done`` one is deleted; if its ``wakes`` has grown since, it is set free instead,
        to be claimed again);
        every run of ``runs`` has the ``seq`` that it was read with, and gets the next one; the claims of attempts
        that are written in a state outside ``statuses.HOLDING`` are deleted (WAITING_FOR_PERMITS keeps waiting
        ones), so that a step takes over the permits of the one before it; each admission is decided: if every permit
        has room, ``started`` is written, its claims are held and its task is enqueued, else ``waiting`` is written
        and its claims wait; for each permit that became free the waiting attempts next in line have their runs'
        tasks enqueued; starts are decided by ``run_strategies.arrive`` (a child that this ends at once wakes its
        parent's run); for every workflow with a start, or with a run (not inline) that reached a terminal status or
        was unblocked, ``run_strategies.leaving`` lets instances go: ``is_queued`` becomes false and the run's task is
        enqueued; tasks are enqueued; events and logs are appended.

        Raises:
            Conflict: a run or a trigger has changed since it was read.
            LeaseLost: a worker no longer owns a task.
        """
        ...

    def load(self, run_uuid: str) -> Snapshot | None:
        """Return a run and the newest attempt of each of its steps, including carried-over ones."""
        ...

    def run(self, workflow_id: str, instance_id: int, run_id: int | None = None) -> Run | None:
        """Return a run of an instance, the latest if none is named."""
        ...

    def run_by_request(self, workflow_id: str, request_id: str) -> Run | None:
        """Return the run that an earlier call with this request id started, if any."""
        ...

    def runs(self, workflow_id: str, instance_id: int) -> list[Run]:
        """Return every run of an instance, newest first."""
        ...

    def instances(
        self,
        *,
        workflow_id: str | None = None,
        statuses: Sequence[RunStatus] = (),
        before: tuple[int, str] | None = None,
        limit: int = 100,
        namespaces: Sequence[str] = ("",),
    ) -> list[Run]:
        """Return the latest runs of instances, without iterations, newest first.

        ``before`` is the (created_at, uuid) of the last one of the previous page. Only those of workflows below
        ``namespaces`` are returned.
        """
        ...

    def numbered(
        self,
        workflow_id: str,
        *,
        statuses: Sequence[RunStatus] = (),
        before: int | None = None,
        after: int | None = None,
        limit: int = 100,
    ) -> list[Run]:
        """Return the latest runs of a workflow's instances, the highest number first.

        Returns those next below ``before``, or next above ``after``.
        """
        ...

    def instance_counts(self, workflow_id: str) -> dict[RunStatus, int]:
        """Count the instances of a workflow by the status of their latest run."""
        ...

    def attempt(self, attempt_uuid: str) -> Attempt | None:
        """Return an attempt."""
        ...

    def attempts(self, run_uuid: str, step_id: str | None = None) -> list[Attempt]:
        """Return all attempts of a run, or of one of its steps, oldest first."""
        ...

    def newest_attempt(self, workflow_id: str, instance_id: int, step_id: str) -> Attempt | None:
        """Return the newest attempt of a step in all runs of an instance."""
        ...

    def children(self, attempt_uuid: str) -> Children:
        """Count the child runs of an attempt, in time proportional to the unfinished and failed ones."""
        ...

    def child_runs(
        self, attempt_uuid: str, *, statuses: Sequence[RunStatus] = (), after: int = 0, limit: int = 1000
    ) -> list[Run]:
        """Return the latest child runs of an attempt by instance id, starting after ``after``."""
        ...

    def child_params(self, workflow_id: str, step_id: str, param: str) -> dict[int, Json]:
        """Return a stored param of a step in all iterations of a loop, by number."""
        ...

    def latest_inline(self, workflow_id: str, *, after: int = 0, limit: int = 1000) -> list[Run]:
        """Return the latest runs of a loop's iterations, by number, starting after ``after``."""
        ...

    def rollup(self, root_uuid: str) -> dict[StepStatus, int]:
        """Count the leaf steps of a whole tree by the status of their newest attempts."""
        ...

    def leaves(self, scope: Scope, limit: int = 100) -> Leaves:
        """Count the leaf steps of a scope, and return the first of those that a rollup names."""
        ...

    def iterations(self, workflow_id: str, *, with_params: bool = False) -> list[IterationRecord]:
        """Return the iterations of a loop, by number."""
        ...

    def ancestors(self, run_uuid: str) -> list[Ancestor]:
        """Return the attempts that contain a run, from that of the root down."""
        ...

    def overdue(self, now: int, limit: int = 100) -> list[str]:
        """Return the uuids of unfinished runs that have timed out, or that have an unfinished attempt that has."""
        ...

    def events(
        self, *, after: int = 0, run_uuid: str | None = None, root_uuid: str | None = None, limit: int = 1000
    ) -> list[Event]:
        """Return events in order, starting after ``after``."""
        ...

    def last_event(self) -> int:
        """Return the number of the newest event; 0 if there is none."""
        ...

    def run_ends(self, attempt_uuids: Sequence[str]) -> Mapping[str, RunEnd]:
        """Return the ends of the runs of some attempts, by attempt; unknown attempts are missing."""
        ...

    def append_log(self, chunk: LogChunk) -> None:
        """Store a piece of an attempt's log."""
        ...

    def log(self, attempt_uuid: str, *, after: int = -1) -> list[LogChunk]:
        """Return an attempt's log, starting after the piece with number ``after``."""
        ...

    def log_extents(self, attempt_uuid: str) -> list[LogExtent]:
        """Return the pieces of an attempt's log, in order, without overlaps and without their texts."""
        ...

    def log_texts(self, attempt_uuid: str, numbers: Sequence[int]) -> dict[int, str]:
        """Return the texts of pieces of a log by number; pieces that are no longer kept are missing."""
        ...

    def log_files(self, attempt_uuid: str) -> list[LogExtent]:
        """Return the files that contain an attempt's log, in order."""
        ...

    def keep_log_file(self, attempt_uuid: str, extent: LogExtent) -> None:
        """Record that a file contains a part of an attempt's log; replaces a file that begins at the same offset."""
        ...


class Queue(Protocol):
    """Hands tasks to workers."""

    def now(self) -> int:
        """Return the database's clock."""
        ...

    def register(self, worker: WorkerRecord) -> None:
        """Register a worker."""
        ...

    def heartbeat(self, worker_uuid: str, *, is_draining: bool = False) -> HeartbeatReply:
        """Record a worker's heartbeat."""
        ...

    def retire(self, worker_uuid: str) -> None:
        """Remove a worker, and release the tasks that it still owns."""
        ...

    def workers(self) -> list[WorkerRecord]:
        """Return the workers that are alive."""
        ...

    def claim(self, worker_uuid: str, now: int, *, runs: int, steps: int) -> list[Task]:
        """Claim tasks that are due and not claimed: up to ``runs`` and ``steps`` of each kind, by priority and age."""
        ...

    def release(self, tasks: Sequence[Task]) -> None:
        """Release tasks that were not done, so that other workers can claim them."""
        ...

    def reap(self, silent_ms: int, *, is_gone: Callable[[WorkerRecord], bool]) -> list[str]:
        """Release the tasks of workers that are silent, or whose process is certainly gone; return those workers.

        Increments the ``generation`` and the ``tries`` of each task.
        """
        ...

    def next_due(self, now: int) -> int | None:
        """Return the milliseconds until the next unclaimed task is due; None if there is none."""
        ...

    def wait(self, seconds: float) -> None:
        """Sleep until there may be a new task, in this process or another, or until the seconds have passed."""
        ...

    def wake(self) -> None:
        """Wake the ``wait`` of this process."""
        ...

    def counts(self) -> dict[TaskKind, int]:
        """Count the tasks in the queue."""
        ...


class Controls(Protocol):
    """Stores breakpoints and the limits of tags."""

    def set_breakpoint(self, point: Breakpoint) -> None:
        """Set a breakpoint."""
        ...

    def delete_breakpoint(self, point: Breakpoint) -> bool:
        """Delete a breakpoint; return whether it existed."""
        ...

    def breakpoints(self, workflow_id: str | None = None) -> list[Breakpoint]:
        """Return the breakpoints of a workflow, or all."""
        ...

    def paused(self, workflow_id: str, step_id: str) -> list[Attempt]:
        """Return the paused attempts of a step, in all instances."""
        ...

    def set_tag_permit(self, tag: str, max_allowed: int, now: int) -> None:
        """Limit how many steps of a tag run concurrently, and wake the waiting ones."""
        ...

    def delete_tag_permit(self, tag: str) -> bool:
        """Remove a limit, and wake the steps that wait for it; return whether it existed."""
        ...

    def tag_permits(self) -> list[TagPermit]:
        """Return the limits, and how many permits are held."""
        ...


class LiveWork(Protocol):
    """Returns what unfinished steps wait for, and their progress."""

    def live_steps(self, run_uuid: str, limit: int = 5) -> LiveSteps:
        """Return the unfinished attempts in a run, and in the unfinished runs below it.

        At most ``limit`` of each kind, oldest first, in time proportional to the unfinished runs.
        """
        ...

    def ancestry(self, run_uuids: Sequence[str]) -> dict[str, Run]:
        """Return some runs, and the runs that contain them up to the roots, by uuid."""
        ...

    def approvals(
        self,
        *,
        workflow_id: str | None = None,
        after: str = "",
        limit: int = 100,
        namespaces: Sequence[str] = ("",),
    ) -> list[Attempt]:
        """Return the attempts of Approval steps that wait for people, by uuid, starting after ``after``.

        Limited to definitions of ``workflow_id``, and to workflows below ``namespaces``.
        """
        ...

    def awaited_permits(self, attempt_uuids: Sequence[str]) -> dict[str, list[PermitUse]]:
        """Return the limited permits that attempts wait for, by attempt."""
        ...

    def last_lines(self, attempt_uuids: Sequence[str]) -> dict[str, str]:
        """Return the end of the newest piece of each attempt's log, some thousand characters."""
        ...


class SignalBoard(Protocol):
    """Stores signals; ``Instances.commit`` sends them, and wakes the steps that wait for them."""

    def signal_heads(self, names: Iterable[str]) -> dict[str, int]:
        """Return the number of the newest signal of each name; 0 if there is none."""
        ...

    def match_signal(self, name: str, wanted: Sequence[ParamMatch]) -> Signal | None:
        """Return the newest signal of a name whose params meet the conditions."""
        ...

    def sent_signals(self, workflow_id: str, instance_id: int, attempt_uuids: Sequence[str]) -> dict[str, list[Signal]]:
        """Return the signals sent by attempts of an instance, or of runs inside it, by attempt."""
        ...


class Templates(Protocol):
    """Stores the pushed job templates."""

    def keep_template(self, template: JobTemplate, now: int) -> None:
        """Store a template, replacing the one of the same type and version."""
        ...

    def remove_templates(self, job_type: str, wanted: str | None) -> int:
        """Delete one version of a template, or all; return how many were deleted."""
        ...

    def templates(self, job_type: str | None = None) -> list[JobTemplate]:
        """Return the templates of a type, or all, by type and version."""
        ...

    def versions_naming(self, word: str) -> list[VersionRecord]:
        """Return the versions, active or of unfinished instances, whose definitions contain a word as a whole text."""
        ...


class Overviews(Protocol):
    """Reads many workflows and instances with few fields each: every method takes a fixed number of queries."""

    def workflow_rows(self, query: WorkflowQuery) -> list[WorkflowRow]:
        """Return workflows with their default versions."""
        ...

    def recent_runs(self, workflow_ids: Sequence[str], number: int) -> dict[str, list[RecentRun]]:
        """Return the newest instances of each workflow, the highest number first."""
        ...

    def instances_numbered(
        self, number: int, *, contains: str, limit: int = 10, namespaces: Sequence[str] = ("",)
    ) -> list[RecentRun]:
        """Return the instances with a number, of workflows whose ids contain a text; the shortest ids first."""
        ...

    def filtered_instances(self, query: InstanceQuery) -> tuple[list[Run], Position | None]:
        """Return the instances that match a query, newest first, and where to continue if it did not see all."""
        ...

    def grid(self, workflow_id: str, number: int) -> list[GridRow]:
        """Return the newest instances of a workflow with their steps, the highest number first."""
        ...

    def iteration_statuses(self, workflow_id: str, *, started_by: Sequence[str] = ()) -> list[tuple[int, str]]:
        """Return the numbers and statuses of a loop's iterations, by number."""
        ...

    def iteration_runs(
        self,
        workflow_id: str,
        *,
        statuses: Sequence[RunStatus] = (),
        holding: Iterable[str] = (),
        started_by: Sequence[str] = (),
        after: int = 0,
        limit: int = 100,
    ) -> list[Run]:
        """Return the latest runs of a loop's iterations, by number, starting after ``after``.

        With ``started_by``, the latest that these runs around the loop started. With ``holding``, at least those
        whose params have these values, as texts; the result may include others.
        """
        ...

    def workloads(self, number: int = 20) -> list[Workload]:
        """Return the workers, including those that died within a day, each with its first tasks."""
        ...

    def queue_states(self, now: int) -> dict[TaskKind, QueueState]:
        """Count the tasks in the queue, by kind."""
        ...


class Attention(Protocol):
    """Finds what may need a person, limited to workflows below ``namespaces``."""

    def failed_runs(
        self, *, limit: int = 1_000, namespaces: Sequence[str] = ("",), saying: str = ""
    ) -> list[FailedRun]:
        """Return the instances that failed and were not restarted, newest first, each with the step that failed.

        Leaves out those of a subworkflow whose parent has failed too. With ``saying``, returns only those of the
        newest ``limit`` whose message begins with this text.
        """
        ...

    def explained(self, runs: Sequence[Run], *, namespaces: Sequence[str] = ("",)) -> dict[str, FailedRun]:
        """Return why some runs failed, by uuid."""
        ...

    def held_work(self, *, limit: int = 100, namespaces: Sequence[str] = ("",)) -> list[HeldWork]:
        """Return branches that are held although their instance has ended and nothing of it runs, oldest first."""
        ...

    def running_since(self, before: int, *, limit: int = 200, namespaces: Sequence[str] = ("",)) -> list[RecentRun]:
        """Return the unfinished instances that started before a time, oldest start first."""
        ...

    def all_paused(self, *, limit: int = 100, namespaces: Sequence[str] = ("",)) -> list[Attempt]:
        """Return the paused attempts, oldest first."""
        ...

    def waiting_counts(self, *, namespaces: Sequence[str] = ("",)) -> tuple[int, int]:
        """Count the Approval steps that wait for people, and the paused attempts."""
        ...


class EngineState(
    Definitions, Instances, LiveWork, Queue, Controls, SignalBoard, Templates, Overviews, Attention, Protocol
):
    """Everything that the engine stores."""


class GivenUp(Protocol):
    """A capture that was abandoned."""

    @property
    def message(self) -> str:
        """What happened to it."""
        ...

    def remedy(self, options: str = "") -> str:
        """Return what to do next; ``options`` are added to the command that restarts the instance."""
        ...


class LogPieces(Protocol):
    """Stores pieces of logs and the addresses of log files: the part of the store that a log reader needs."""

    def log_extents(self, attempt_uuid: str) -> list[LogExtent]:
        """Return the pieces that are kept, in order."""
        ...

    def log_texts(self, attempt_uuid: str, numbers: Sequence[int]) -> dict[int, str]:
        """Return the texts of pieces by number; pieces that are no longer kept are missing."""
        ...

    def log_files(self, attempt_uuid: str) -> list[LogExtent]:
        """Return the files that contain an attempt's log, in order."""
        ...


class LogFiles(Protocol):
    """Reads files outside the store."""

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return a range of bytes of a file."""
        ...

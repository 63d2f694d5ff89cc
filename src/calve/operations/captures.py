"""Captures, checkpoints and lag, without workflows. ``calve.capture.Captures`` checks permissions."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from calve.access import Permission
from calve.capture import (
    CaptureLimits,
    CaptureReport,
    Mode,
    OnGap,
    OnSchemaChange,
    Operation,
    StoredCheckpoint,
    Wanted,
    capture_json,
    checkpoint_json,
    work_of,
)
from calve.operations import shapes
from calve.operations.arguments import Word
from calve.operations.caller import Caller
from calve.operations.declaration import Argument, Document, StrictBody, Topic, jsonable, operation, request
from calve.operations.pages import FIRST, LIMIT, Page, look_through, page_json, page_of_list
from calve.operations.policy import EDIT_SOMEWHERE, READ_SOMEWHERE, RUN_SOMEWHERE

Table = Annotated[str, Field(min_length=1, max_length=512, examples=["db.events"])]
ConsumerName = Annotated[
    str,
    Field(
        description="The consumer, for example a workflow; the checkpoint belongs to it.",
        min_length=1,
        max_length=512,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        examples=["demo.daily"],
    ),
]
Place = Annotated[str, Field(min_length=1, max_length=128)]
Reason = Annotated[str, Field(description="The reason, which is recorded.", min_length=1, max_length=1_000)]
_Amount = Annotated[int, Field(ge=1, lt=2**63)]
Consumer = Annotated[str | None, Argument("Only those of this consumer.", max_length=512)]
_ALL = 1_000_000
"""How long a page is where the whole list is computed at once."""


class PlanRequest(StrictBody):
    """A description of a capture."""

    tables: Annotated[list[Table], Field(min_length=1, max_length=100)]
    consumer: ConsumerName
    operations: list[Operation] = Field(
        [Operation.APPEND], description="The kinds of snapshots to capture; other kinds cause an error."
    )
    mode: Mode = Field(
        Mode.TABLE,
        description="table: an ICDC table; range: only the ranges; path: metadata by its path; view: a Spark view.",
    )
    ranges: list[Annotated[str, Field(min_length=1, max_length=256)]] = Field(
        [], description="Report the range of the changed values of these columns."
    )
    max_files: _Amount | None = Field(None, description="Maximum number of files to capture from each table.")
    max_bytes: _Amount | None = Field(None, description="Maximum number of bytes to capture from each table.")
    start: Place | None = Field(
        None, description="Where to start if there is no checkpoint. Default: capture the whole table."
    )
    end: Place | None = Field(None, description="Where to stop. Default: now.")
    on_gap: OnGap = Field(
        OnGap.FAIL,
        description=(
            "If snapshots were expired: fail; continue by row lineage (v3, no deletes); capture the whole table."
        ),
    )
    on_schema_change: OnSchemaChange = Field(
        OnSchemaChange.EVOLVE,
        description="If the schema changed since the checkpoint: read with the new schema, by column id, or fail.",
    )

    def wanted(self) -> Wanted:
        """Return the options of the capture."""
        return Wanted(
            operations=frozenset(self.operations),
            mode=self.mode,
            ranges=tuple(self.ranges),
            limits=CaptureLimits(self.max_files, self.max_bytes),
            start=self.start,
            end=self.end,
            on_gap=self.on_gap,
            on_schema_change=self.on_schema_change,
        )


class CaptureRequest(PlanRequest):
    """A capture."""

    key: Annotated[str, Field(min_length=1, max_length=256)] | None = Field(
        None, description="A name for this request: repeating it returns the same capture."
    )
    lease: bool = Field(
        default=False,
        description="Tag the captured snapshots until the commit, so that expiry keeps their files.",
    )
    supersede: bool = Field(default=False, description="Abandon the capture that the consumer has open.")

    def options(self) -> dict[str, Any]:
        """Return the options of the request."""
        return {"key": self.key, "lease": self.lease, "supersede": self.supersede}


class CheckpointRequest(StrictBody):
    """A manual move of a checkpoint."""

    table: Table
    consumer: ConsumerName
    to: Annotated[Place, Field(description="Everything up to this point counts as processed.")]
    reason: Reason


class Captures(Topic):
    """Captures changes, commits them, and reports the lag of consumers."""

    __slots__ = ()
    tag = "captures"

    def captures(self, *, consumer: str | None = None) -> list[Document]:
        """Return the captures of a consumer, or all, newest first."""
        return list(self._all(self.list_captures, consumer))

    @operation("GET /captures", READ_SOMEWHERE, answer=shapes.Page, is_slow=True)
    def list_captures(self, page: Page = FIRST, consumer: Consumer = None) -> Document:
        """List captures, newest first."""
        page = page.forward()
        look = partial(self.call.captures.part, consumer=consumer, limit=max(page.limit + 1, LIMIT))
        found, onward = look_through(page, page.cursor, look)
        return page_json(found, page, lambda one: jsonable(capture_json(one)), lambda one: one.capture_id, onward)

    def plan(self, tables: Sequence[str], consumer: str, **options: Any) -> Document:
        """Return what the next capture of a consumer would contain; options that are None are ignored."""
        return self.plan_capture(request(PlanRequest, tables=list(tables), consumer=consumer, **_present(options)))

    @operation("POST /captures/plan", READ_SOMEWHERE, is_slow=True, is_repeatable=True)
    def plan_capture(self, request: PlanRequest) -> Document:
        """Return what the next capture would contain, without writing anything."""
        return _report_json(self.call.captures.plan(request.tables, request.consumer, request.wanted()))

    def create_capture(self, tables: Sequence[str], consumer: str, **options: Any) -> Document:
        """Capture the changes since the consumer's last commit; options that are None are ignored."""
        asked = request(CaptureRequest, tables=list(tables), consumer=consumer, **_present(options))
        return self.capture_changes(asked)

    @operation("POST /captures", RUN_SOMEWHERE, id="capture", is_slow=True)
    def capture_changes(self, request: CaptureRequest) -> Document:
        """Capture the changes since the consumer's last commit."""
        captures = self.call.captures
        return _report_json(captures.capture(request.tables, request.consumer, request.wanted(), **request.options()))

    @operation("GET /captures/{capture_id}", READ_SOMEWHERE, id="get_capture", is_slow=True)
    def capture(self, capture_id: Word) -> Document:
        """Return the report of a capture."""
        return _report_json(self.call.captures.show(capture_id))

    @operation("GET /captures/{capture_id}/history", READ_SOMEWHERE, id="get_capture_history", is_slow=True)
    def capture_history(self, capture_id: Word) -> Document:
        """Return who took a capture and when, where it was delivered, and which checkpoints its commit moved."""
        stored, moves = self.call.captures.stored(capture_id)
        document: Document = jsonable(
            {
                **capture_json(stored),
                "taken_by": self._taken_by(stored.key),
                "deliveries": self._deliveries(capture_id),
                "moves": moves,
            }
        )
        return document

    def _taken_by(self, key: str | None) -> Document | None:
        """Return the step of an instance that a capture was taken for, if the caller may read it."""
        work = work_of(key)
        if work is None or not self.call.may(Permission.READ, work.workflow_id):
            return None
        if self.call.engine.state.run(work.workflow_id, work.instance_id) is None:
            return None  # a key that was chosen by hand
        return {"workflow_id": work.workflow_id, "workflow_instance_id": work.instance_id, "step_id": work.step}

    def _deliveries(self, capture_id: str) -> list[Document]:
        if self.call.services.tables is None:
            return []
        tables = self.call.tables
        return [
            {
                "stream": one.stream,
                "table": tables.short(one.table),
                "status": one.status,
                "at": one.changed_at,
                "attempt": one.attempt,
                "snapshot_id": snapshot_id,
            }
            for one, snapshot_id in tables.deliveries(capture_id)
        ]

    @operation("GET /captures/{capture_id}/files", READ_SOMEWHERE, id="list_capture_files", is_slow=True)
    def capture_files(
        self,
        capture_id: Word,
        *,
        is_checked: Annotated[bool, Argument("Check that every file still exists.", alias="check")] = False,
    ) -> dict[str, list[Document]]:
        """Return the files that a capture references, by table; none after they were cleaned up.

        Raises:
            FilesLost: a file that was checked no longer exists.
        """
        files: dict[str, list[Document]] = jsonable(self.call.captures.files(capture_id, check=is_checked))
        return files

    @operation("POST /captures/{capture_id}/actions/commit", RUN_SOMEWHERE, is_slow=True, is_repeatable=True)
    def commit_capture(self, capture_id: Word) -> Document:
        """Commit a processed capture: move the checkpoints past it. Repeating the request has no effect."""
        return _report_json(self.call.captures.commit(capture_id))

    @operation("POST /captures/{capture_id}/actions/abandon", RUN_SOMEWHERE, is_slow=True, is_repeatable=True)
    def abandon_capture(self, capture_id: Word) -> Document:
        """Abandon a capture; the next one starts from the same checkpoint."""
        return _report_json(self.call.captures.abandon(capture_id))

    def checkpoints(self, *, consumer: str | None = None) -> list[Document]:
        """Return the checkpoints of consumers, or of one of them."""
        return list(self._all(self.list_checkpoints, consumer))

    @operation("GET /checkpoints", READ_SOMEWHERE, answer=shapes.Page, is_slow=True)
    def list_checkpoints(self, page: Page = FIRST, consumer: Consumer = None) -> Document:
        """List the checkpoints of consumers."""
        found = self.call.captures.checkpoints(consumer)
        return page_of_list(
            found, page, lambda one: _checkpoint_json(self.call, one), lambda one: f"{one.consumer} {one.table}"
        )

    @operation("PUT /checkpoints", EDIT_SOMEWHERE, body=CheckpointRequest, is_slow=True)
    def set_checkpoint(self, table: str, consumer: str, *, to: str, reason: str) -> Document:
        """Set a consumer's checkpoint: to a snapshot, a tag, a branch, a time, or ``latest``."""
        return _checkpoint_json(self.call, self.call.captures.set_checkpoint(table, consumer, to, reason))

    @operation("DELETE /checkpoints", EDIT_SOMEWHERE, is_slow=True)
    def reset_checkpoint(
        self,
        table: Annotated[str, Argument(min_length=1, max_length=512)],
        consumer: Annotated[str, Argument("The consumer of the checkpoint.", min_length=1, max_length=512)],
        *,
        reason: Annotated[str, Argument("The reason, which is recorded.", min_length=1, max_length=1_000)],
    ) -> Document:
        """Delete a consumer's checkpoint; its next capture contains the whole table."""
        self.call.captures.reset_checkpoint(table, consumer, reason)
        return {"consumer": consumer, "table": table, "reset": True}

    def checkpoint_moves(self, *, consumer: str | None = None) -> list[Document]:
        """Return all moves of checkpoints with their reasons, newest first."""
        return list(self._all(self.list_checkpoint_moves, consumer))

    @operation("GET /checkpoints/log", READ_SOMEWHERE, answer=shapes.Page, is_slow=True)
    def list_checkpoint_moves(self, page: Page = FIRST, consumer: Consumer = None) -> Document:
        """List all moves of checkpoints with their reasons, newest first."""
        moves = list(enumerate(self.call.captures.checkpoint_log(consumer)))[::-1]
        return page_of_list(moves, page, lambda one: jsonable(one[1]), lambda one: str(one[0]))

    def lag(self, *, consumer: str | None = None) -> list[Document]:
        """Return how far consumers are behind their tables."""
        return list(self._all(self.list_lag, consumer))

    @operation("GET /lag", READ_SOMEWHERE, answer=shapes.Page, is_slow=True)
    def list_lag(self, page: Page = FIRST, consumer: Consumer = None) -> Document:
        """List how far consumers are behind their tables, and when the history that they need expires."""
        found = self.call.captures.lag(consumer)
        return page_of_list(found, page, lambda one: jsonable(asdict(one)), lambda one: f"{one.consumer} {one.table}")

    def _all(self, listed: Any, consumer: str | None) -> Iterator[Document]:
        return self.pages(listed, limit=_ALL, consumer=consumer)


def _present(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _report_json(report: CaptureReport) -> Document:
    document: Document = jsonable(report.as_json())
    return document


def _checkpoint_json(call: Caller, stored: StoredCheckpoint) -> Document:
    document: Document = jsonable(checkpoint_json(stored, call.captures.named([str(stored.table)])[0]))
    return document

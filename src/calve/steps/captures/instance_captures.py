"""The capture of a workflow instance: its own, a new one, or an open one that was partly delivered."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from calve.capture import CaptureReport, Captures, Status, StoredCapture, nothing_changed
from calve.engine import StepContext
from calve.errors import (
    AccessError,
    CaptureError,
    DeliveryError,
    EnvironmentUnfit,
    LakeError,
    RequestInvalid,
    SettingsInvalid,
)
from calve.failpoints import reach
from calve.steps.captures.request import CaptureRequest
from calve.steps.failures import failure_of, fatal
from calve.steps.services import Declared, Deliveries, nothing_declared


@dataclass(frozen=True, slots=True)
class InstanceCaptures:
    """Finds or takes the capture for a step. A consumer has one open capture at a time."""

    captures: Captures
    deliveries: Deliveries
    declared: Declared = nothing_declared

    def capture(self, context: StepContext, request: CaptureRequest) -> CaptureReport:
        """Return the capture of this instance, for every run and attempt of it; take one if there is none.

        An open capture of another instance is abandoned, because the new one includes all of its rows. But if any
        of them were delivered, this instance continues with that capture.

        Raises:
            StepFailed: the capture cannot be used anymore.
            CaptureError, LakeError: it cannot be taken.
        """
        consumer, key = request.consumer or context.place.consumer, context.place.work
        captures = self.captures.for_workflow(context.place.workflow_id)
        mine = captures.of_request(consumer, key)
        if mine is not None and self._is_outdated(mine, request):
            captures.abandon(mine.capture_id)
            context.log(
                f"Capture {mine.capture_id}, taken before by this instance, is abandoned: the step now asks for "
                "something else, and nothing of it was delivered."
            )
            mine = None
        if mine is not None:
            context.log(f"Capture {mine.capture_id}: taken before by this instance, and used again.")
            return self._usable(mine, request)
        left = captures.open_capture(consumer)
        if left is not None and self.deliveries.delivered(left.capture_id):
            context.log(
                f"Capture {left.capture_id}: taken by {left.key}, which delivered some of it and did not commit. "
                "This instance continues with it; newer rows are left for the next instance."
            )
            return self._usable(left, request)
        self._adopt(context, captures, consumer)
        if left is not None:
            context.log(
                f"Capture {left.capture_id}, taken by {left.key}, is abandoned: the new one includes all of it."
            )
        report = captures.capture(
            list(request.tables.values()),
            consumer,
            request.wanted,
            key=key,
            lease=request.is_leased,
            supersede=False if left is None else left.capture_id,  # not a newer one, which may have been delivered
        )
        reach("step.captured")
        context.log(_summary(report))
        return report

    def _adopt(self, context: StepContext, captures: Captures, consumer: str) -> None:
        """Move the checkpoint to the end of the capture that the targets contain, if that is later."""
        declared = self.declared(context.place)
        delivered = self.deliveries.delivered_up_to(declared, consumer) if declared else None
        moved = [] if delivered is None else captures.adopt(consumer, delivered)
        if delivered is not None and moved:
            reach("step.adopted")
            context.log(
                f"The checkpoint of {consumer} in {', '.join(moved)} was behind: the targets contain capture "
                f"{delivered.capture_id}, whose commit was not recorded. The checkpoint is now at its end."
            )

    def _is_outdated(self, stored: StoredCapture, request: CaptureRequest) -> bool:
        """Return whether a capture differs from what the step asks for now, and can still be abandoned."""
        report = CaptureReport.from_json(stored.document)
        held = ([table.source_table for table in report.tables], report.mode, report.asked)
        asked = request.wanted.as_json() if report.asked else {}
        wanted = (self.captures.named(request.tables.values()), request.wanted.mode.value, asked)
        is_open = stored.status is Status.OPEN
        return held != wanted and is_open and not self.deliveries.delivered(stored.capture_id)

    def _usable(self, stored: StoredCapture, request: CaptureRequest) -> CaptureReport:
        """Return a capture that was taken before.

        Raises:
            StepFailed: it is a capture of other tables, or its tables were cleaned up.
        """
        capture_id = stored.capture_id
        report = replace(CaptureReport.from_json(stored.document), status=stored.status.value)
        held, wanted = [table.source_table for table in report.tables], self.captures.named(request.tables.values())
        if held != wanted:
            first = f"Part of it was delivered: run `calve commit {capture_id}`, then start"
            raise fatal(
                f"Capture {capture_id} is a capture of {', '.join(held)}, but the step asks for {', '.join(wanted)}.",
                remedy=f"{first if stored.status is Status.OPEN else 'Start'} a new instance.",
            )
        if stored.collected_at is not None and stored.artifacts.files:
            raise fatal(
                f"Capture {capture_id} was {stored.status}, and its tables were cleaned up.",
                remedy="Start a new instance: it captures newer changes.",
            )
        return report


def _summary(report: CaptureReport) -> str:
    lines = [f"Capture {report.capture_id}:"]
    lines += [
        f"  {table.source_table}: {table.records:,} rows in {table.files:,} files up to snapshot "
        f"{table.to_snapshot_id}{', more rows are left' if table.pending else ''}"
        if table.changed
        else f"  {nothing_changed([table])}"
        for table in report.tables
    ]
    return "\n".join(lines)


_TOLD = (AccessError, CaptureError, DeliveryError, EnvironmentUnfit, LakeError, RequestInvalid, SettingsInvalid)


@contextmanager
def step_failures() -> Iterator[None]:
    """Turn errors of the lake, of captures and of delivery into failures of the step; temporary errors are retried.

    Raises:
        StepFailed: there was such an error.
    """
    try:
        yield
    except _TOLD as error:
        raise failure_of(error) from error

"""Which capture a step works on: its instance's own, a new one, or one of which something was delivered already."""

from dataclasses import dataclass, replace

from calve.capture import CaptureReport, Captures, Status, StoredCapture, nothing_changed
from calve.engine.ports import StepContext
from calve.failpoints import reach
from calve.steps.captures.requests import Request
from calve.steps.failures import fatal
from calve.steps.services import Declared, Deliveries, nothing_declared


@dataclass(frozen=True, slots=True)
class Capturing:
    """Captures for steps. A consumer has one capture open at a time."""

    captures: Captures
    deliveries: Deliveries
    declared: Declared = nothing_declared

    def capture(self, context: StepContext, request: Request) -> CaptureReport:
        """Return the capture of this instance, whichever run or attempt asks; take one if there is none.

        A capture that another instance left open is given up, since what it holds is in the new one. But if
        something of it was delivered, nothing else may be: then this instance finishes it.

        Raises:
            StepFailed: the capture cannot be used any more.
            CaptureError, LakeError: it cannot be taken.
        """
        consumer, key = request.consumer or context.place.consumer, context.place.work
        captures = self.captures.for_workflow(context.place.workflow_id)
        mine = captures.of_request(consumer, key)
        if mine is not None and self._is_outdated(mine, request):
            captures.abandon(mine.capture_id)
            context.log(
                f"Capture {mine.capture_id}, taken before by this instance, is given up: the step asks for something "
                "else now, and nothing of it was delivered."
            )
            mine = None
        if mine is not None:
            context.log(f"Capture {mine.capture_id}: taken before by this instance, and used again as it is.")
            return self._usable(mine, request)
        left = captures.open_capture(consumer)
        if left is not None and self.deliveries.delivered(left.capture_id):
            context.log(
                f"Capture {left.capture_id}: taken by {left.key}, which delivered some of it and did not commit. "
                "This instance goes on with it; what is newer is left for the next one."
            )
            return self._usable(left, request)
        self._adopt(context, captures, consumer)
        if left is not None:
            context.log(f"Capture {left.capture_id}, taken by {left.key}, is given up: the new one holds all of it.")
        report = captures.capture(
            list(request.tables.values()),
            consumer,
            request.wanted,
            key=key,
            lease=request.is_leased,
            supersede=False if left is None else left.capture_id,  # not one that came since: it may be delivered
        )
        reach("step.captured")
        context.log(_summary(report))
        return report

    def _adopt(self, context: StepContext, captures: Captures, consumer: str) -> None:
        """Go on from what the targets hold, where that is later than the checkpoint says."""
        declared = self.declared(context.place)
        delivered = self.deliveries.delivered_up_to(declared, consumer) if declared else None
        moved = [] if delivered is None else captures.adopt(consumer, delivered)
        if delivered is not None and moved:
            reach("step.adopted")
            context.log(
                f"The checkpoint of {consumer} in {', '.join(moved)} was behind: the targets hold capture "
                f"{delivered.capture_id}, whose commit is not on record. It is where that capture ended now."
            )

    def _is_outdated(self, stored: StoredCapture, request: Request) -> bool:
        """Tell whether a capture is not what the step asks for now, and can still be given up."""
        report = CaptureReport.from_json(stored.document)
        held = ([table.source_table for table in report.tables], report.mode, report.asked)
        asked = request.wanted.as_json() if report.asked else {}
        wanted = (self.captures.named(request.tables.values()), request.wanted.mode.value, asked)
        is_open = stored.status is Status.OPEN
        return held != wanted and is_open and not self.deliveries.delivered(stored.capture_id)

    def _usable(self, stored: StoredCapture, request: Request) -> CaptureReport:
        """Return a capture that was taken before.

        Raises:
            StepFailed: it is of other tables, or what it left in the lake has been cleaned up.
        """
        capture_id = stored.capture_id
        report = replace(CaptureReport.from_json(stored.document), status=stored.status.value)
        held, wanted = [table.source_table for table in report.tables], self.captures.named(request.tables.values())
        if held != wanted:
            first = f"Something of it was delivered: `calve commit {capture_id}` first, then start"
            raise fatal(
                f"Capture {capture_id} is of {', '.join(held)}, and the step asks for {', '.join(wanted)}.",
                remedy=f"{first if stored.status is Status.OPEN else 'Start'} a new instance.",
            )
        if stored.collected_at is not None and stored.artifacts.files:
            raise fatal(
                f"Capture {capture_id} was {stored.status}, and its tables have been cleaned up since.",
                remedy="Start a new instance: it captures what is newer.",
            )
        return report


def _summary(report: CaptureReport) -> str:
    lines = [f"Capture {report.capture_id}:"]
    lines += [
        f"  {table.source_table}: {table.records:,} rows in {table.files:,} files up to snapshot "
        f"{table.to_snapshot_id}{', more is left' if table.pending else ''}"
        if table.changed
        else f"  {nothing_changed([table])}"
        for table in report.tables
    ]
    return "\n".join(lines)

"""The IpCapture step: captures what changed since the last commit, for the steps after it."""

from calve.capture import Captures, nothing_changed
from calve.definition.step_types import IP_CAPTURE
from calve.engine import Outcome, State, StepContext
from calve.steps.captures.instance_captures import InstanceCaptures, step_failures
from calve.steps.captures.outputs import outputs_of
from calve.steps.captures.request import capture_request
from calve.steps.config import fields
from calve.steps.failures import settled
from calve.steps.services import Declared, Deliveries, nothing_declared


class IpCapture:
    """Captures from metadata alone, without reading data files."""

    def __init__(self, captures: Captures, deliveries: Deliveries, declared: Declared = nothing_declared) -> None:
        self._captures = captures
        self._capturing = InstanceCaptures(captures, deliveries, declared)

    def execute(self, context: StepContext) -> Outcome:
        """Capture what changed; if nothing did, end the workflow unless ``when_unchanged`` says otherwise."""
        return settled(self._capture, context)

    def terminate(self, context: StepContext) -> None:
        """Do nothing: nothing is under way."""

    def _capture(self, context: StepContext) -> Outcome:
        config = fields(context, IP_CAPTURE)
        request = capture_request(config)
        with step_failures():
            report = self._capturing.capture(context, request)
            is_last = not report.changed and config["when_unchanged"] == "skip"
            if is_last and report.capture_id:
                # so that the next capture need not read these snapshots again
                self._captures.for_workflow(context.place.workflow_id).commit(report.capture_id)
                context.log("The steps after this one do not run.")
        return Outcome(
            State.DONE,
            outputs=outputs_of(report, list(request.tables), is_mapped=request.is_mapped),
            artifacts={"capture_id": report.capture_id, "consumer": report.consumer},
            message="" if report.changed else nothing_changed(report.tables),
            is_last=is_last,
        )

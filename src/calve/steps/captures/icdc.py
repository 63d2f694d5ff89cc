"""The ICDC step, the older form of IpCapture: captures one table into a table that the user names."""

from calve.capture import CaptureReport, Captures, nothing_changed
from calve.definition.step_types import ICDC as DECLARED
from calve.engine import Outcome, State, StepContext
from calve.errors import FilesLost
from calve.failpoints import reach
from calve.lake import Lake, Right, TableName
from calve.steps.captures.instance_captures import InstanceCaptures, step_failures
from calve.steps.captures.outputs import outputs_of
from calve.steps.captures.request import capture_request
from calve.steps.config import fields
from calve.steps.failures import fatal, settled
from calve.steps.services import Deliveries

_OURS = "calve.capture-id"
"""The table property that marks a table as created by a capture."""


class ICDC:
    """Captures like IpCapture, and registers the change as the target table; another step commits."""

    def __init__(self, captures: Captures, deliveries: Deliveries, lake: Lake) -> None:
        self._captures = captures
        self._capturing = InstanceCaptures(captures, deliveries)
        self._lake = lake

    def execute(self, context: StepContext) -> Outcome:
        """Capture the change, and register it."""
        return settled(self._capture, context)

    def terminate(self, context: StepContext) -> None:
        """Do nothing: nothing is under way."""

    def _capture(self, context: StepContext) -> Outcome:
        config = fields(context, DECLARED)
        request = capture_request({**config, "source_tables": config["source_table"]})
        with step_failures():
            captures = self._captures.for_workflow(context.place.workflow_id)
            captures.require_table(config["target_table"], Right.WRITE, context.place.consumer)
            report = self._capturing.capture(context, request)
            target = self._lake.parse(config["target_table"])
            self._name(report, target)
        context.log(f"{target} contains the captured change.")
        outputs = outputs_of(report, list(request.tables), is_mapped=False)
        outputs["icdc_table"] = target.short(self._lake.default_catalog)
        artifacts = {"capture_id": report.capture_id, "consumer": report.consumer}
        message = "" if report.changed else nothing_changed(report.tables)
        return Outcome(State.DONE, outputs=outputs, artifacts=artifacts, message=message)

    def _name(self, report: CaptureReport, target: TableName) -> None:
        """Register the change as the target table; replace only a table that a capture created.

        Raises:
            StepFailed: the target is a table that no capture created.
        """
        made = self._lake.parse(report.tables[0].icdc_table or "")
        location = self._lake.catalog(made.catalog).load(made).metadata_location
        catalog = self._lake.catalog(target.catalog)
        if catalog.exists(target):
            if self._points_to(target, report.consumer) == location:
                return
            catalog.drop(target)
            reach("step.dropped")
        catalog.register(target, location)
        reach("step.registered")

    def _points_to(self, target: TableName, consumer: str) -> str:
        """Return the metadata location of the existing target.

        Raises:
            StepFailed: no capture created it.
        """
        try:
            table = self._lake.catalog(target.catalog).load(target)
        except FilesLost as error:
            # The target may be left from a capture that was cleaned up: that capture's record still lists its files.
            lost = str(error.context.get("path"))
            if any(lost == path for stored in self._captures.captures(consumer) for _, path in stored.artifacts.files):
                return lost
            raise
        if _OURS not in table.metadata.get("properties", {}):
            raise fatal(
                f"icdc.target_table is {target}, a table that no capture created.",
                remedy="Name a table that does not exist.",
            )
        return table.metadata_location

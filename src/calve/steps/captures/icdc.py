"""The ICDC step, the older form: what changed in one table, in a table of a name of the user's."""

from calve.capture import CaptureReport, Captures, nothing_changed
from calve.definition.step_types.captures import ICDC as DECLARED
from calve.engine.ports import Outcome, State, StepContext
from calve.errors import FilesLost
from calve.failpoints import reach
from calve.lake import Lake, Right, TableName
from calve.steps.captures.capturing import Capturing
from calve.steps.captures.failures import told_to_the_engine
from calve.steps.captures.outputs import outputs_of
from calve.steps.captures.requests import request_of
from calve.steps.configs import fields
from calve.steps.failures import fatal, settled
from calve.steps.services import Deliveries

_OURS = "calve.capture-id"
"""The property of every table that a capture made."""


class ICDC:
    """Captures like IpCapture, and gives the table of the change another name; a step of its own commits."""

    def __init__(self, captures: Captures, deliveries: Deliveries, lake: Lake) -> None:
        self._captures = captures
        self._capturing = Capturing(captures, deliveries)
        self._lake = lake

    def execute(self, context: StepContext) -> Outcome:
        """Capture what changed, and name it."""
        return settled(self._capture, context)

    def terminate(self, context: StepContext) -> None:
        """Do nothing: nothing is under way."""

    def _capture(self, context: StepContext) -> Outcome:
        config = fields(context, DECLARED)
        request = request_of({**config, "source_tables": config["source_table"]})
        with told_to_the_engine():
            captures = self._captures.for_workflow(context.place.workflow_id)
            captures.require_table(config["target_table"], Right.WRITE, context.place.consumer)
            report = self._capturing.capture(context, request)
            target = self._lake.parse(config["target_table"])
            self._name(report, target)
        context.log(f"{target} holds the change.")
        outputs = outputs_of(report, list(request.tables), is_mapped=False)
        outputs["icdc_table"] = target.short(self._lake.default_catalog)
        artifacts = {"capture_id": report.capture_id, "consumer": report.consumer}
        message = "" if report.changed else nothing_changed(report.tables)
        return Outcome(State.DONE, outputs=outputs, artifacts=artifacts, message=message)

    def _name(self, report: CaptureReport, target: TableName) -> None:
        """Make the target the table of the change; only a table that a capture made is replaced.

        Raises:
            StepFailed: the name is that of a table of somebody else.
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
        """Return the metadata of the table that has the target's name.

        Raises:
            StepFailed: no capture made it.
        """
        try:
            table = self._lake.catalog(target.catalog).load(target)
        except FilesLost as error:
            # of a capture that has been cleaned up since: its record tells that the files were its own
            lost = str(error.context.get("path"))
            if any(lost == path for stored in self._captures.captures(consumer) for _, path in stored.artifacts.files):
                return lost
            raise
        if _OURS not in table.metadata.get("properties", {}):
            raise fatal(
                f"icdc.target_table is {target}, a table that no capture made.",
                remedy="Name a table that is not there yet.",
            )
        return table.metadata_location

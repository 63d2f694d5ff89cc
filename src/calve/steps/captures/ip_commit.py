"""The IpCommit step: the checkpoint moves past what a capture step captured."""

from calve.capture import Captures
from calve.definition.step_types.captures import IP_COMMIT
from calve.engine.ports import Outcome, State, StepContext
from calve.failpoints import reach
from calve.steps.captures.failures import told_to_the_engine
from calve.steps.configs import fields
from calve.steps.failures import fatal, settled
from calve.steps.services import Deliveries


class IpCommit:
    """Publishes what was held back for the commit, then moves the checkpoints; repeating it changes nothing."""

    def __init__(self, captures: Captures, deliveries: Deliveries) -> None:
        self._captures = captures
        self._deliveries = deliveries

    def execute(self, context: StepContext) -> Outcome:
        """Commit the capture."""
        return settled(self._commit, context)

    def terminate(self, context: StepContext) -> None:
        """Do nothing: nothing is under way."""

    def _commit(self, context: StepContext) -> Outcome:
        config = fields(context, IP_COMMIT)
        capture_id = config.get("capture")
        if not capture_id:
            raise fatal(
                f"ip_commit.capture is missing: nothing tells which capture {config['capture_step']} took.",
                remedy="Push the workflow again, or write ip_commit: {capture_step: …, capture: ${….capture_id}}.",
            )
        with told_to_the_engine():
            published = self._deliveries.publish_held(capture_id)
            reach("step.published")
            report = self._captures.commit(capture_id)
            reach("step.committed")
        context.log(f"Capture {capture_id} of {report.consumer} is committed.")
        outputs = {"capture_id": capture_id, "committed": report.changed}
        artifacts = {"capture_id": capture_id, "published": [one.as_json() for one in published]}
        return Outcome(State.DONE, outputs=outputs, artifacts=artifacts)

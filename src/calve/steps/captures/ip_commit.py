"""The IpCommit step: moves the checkpoint past what a capture step captured."""

from collections.abc import Sequence

from calve.capture import CaptureReport, Captures, Status
from calve.definition.step_types import IP_COMMIT
from calve.engine import Outcome, State, StepAddress, StepContext, StepEnd, StepStatus
from calve.failpoints import reach
from calve.steps.captures.instance_captures import step_failures
from calve.steps.config import fields
from calve.steps.failures import fatal, settled
from calve.steps.services import Deliveries

_NOT_ENDED = frozenset({StepStatus.NOT_CREATED, StepStatus.UNSATISFIED, StepStatus.RUNNING})
"""The statuses of steps that a restart would not run, or not before the commit."""
_TOLD = 5
"""How many steps a message names."""


class IpCommit:
    """Publishes the branches that steps keep until the commit, then moves the checkpoints; it is idempotent."""

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
                f"ip_commit.capture is missing: it is unknown which capture {config['capture_step']} took.",
                remedy="Push the workflow again, or write ip_commit: {capture_step: …, capture: ${….capture_id}}.",
            )
        captures = self._captures.for_workflow(context.place.workflow_id)
        with step_failures():
            report = captures.show(capture_id)
            self._check_delivered(context, config["capture_step"], report)
            published = self._deliveries.publish_held(capture_id)
            reach("step.published")
            report = captures.commit(capture_id)
            reach("step.committed")
        context.log(f"Capture {capture_id} of {report.consumer} is committed.")
        outputs = {"capture_id": capture_id, "committed": report.changed}
        artifacts = {"capture_id": capture_id, "published": [one.as_json() for one in published]}
        return Outcome(State.DONE, outputs=outputs, artifacts=artifacts)

    def _check_delivered(self, context: StepContext, capture_step: str, report: CaptureReport) -> None:
        """Refuse to skip rows that no step has delivered.

        Raises:
            StepFailed: a step that used the capture did not succeed.
        """
        if not report.changed or report.status == Status.COMMITTED:
            return  # there are no rows to lose, or a user decided to skip them
        ends = context.undelivered(capture_step)
        if ends:
            told = ", ".join(f"{end.path} ({end.status})" for end in ends[:_TOLD])
            capture_id = str(report.capture_id)
            more = f" and {len(ends) - _TOLD} more" if len(ends) > _TOLD else ""
            raise fatal(
                f"Capture {capture_id} is not committed, because steps that use what {capture_step} captured did not "
                f"succeed: {told}{more}.",
                remedy=_remedy(context.place, capture_id, ends),
            )


def _remedy(place: StepAddress, capture_id: str, ends: Sequence[StepEnd]) -> str:
    instance = f"{place.workflow_id} {place.instance_id}"
    ended = next((end for end in ends if end.status not in _NOT_ENDED), None)
    if ended is None:
        first = (
            f"Change the workflow so that {ends[0].path} always runs before {place.step_id}, push it, "
            "and start a new instance."
        )
    else:
        first = f"Run it again with `calve restart {instance} --step {ended.path}`."
    return f"{first} To skip these rows for good, run `calve commit {capture_id}`, then `calve restart {instance}`."

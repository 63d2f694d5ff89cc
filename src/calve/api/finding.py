"""Attempts by address."""

from calve.engine import Address
from calve.engine.addresses import find
from calve.engine.model import Attempt, Run
from calve.engine.ports import Instances
from calve.errors import WorkflowMissing


def attempt_at(instances: Instances, address: Address, attempt_id: int | None) -> tuple[Run, Attempt]:
    """Return an attempt of a step, the newest if none is named, and the run that holds the step.

    Raises:
        WorkflowMissing: there is none.
    """
    found = find(instances, address)
    if address.run_id is None:
        known = [found.attempt] if found.attempt else []
        if attempt_id is not None and found.attempt is not None:
            known = instances.attempts(found.attempt.run_uuid, found.step_id)
    else:
        known = instances.attempts(found.run.uuid, found.step_id)
    chosen = [attempt for attempt in known if attempt_id in {None, attempt.attempt_id}]
    if not chosen:
        what = "has not begun" if attempt_id is None else f"has no attempt {attempt_id}"
        raise WorkflowMissing(f"{address} {what}.", workflow=address.workflow_id, instance=address.instance_id)
    return found.run, chosen[-1]

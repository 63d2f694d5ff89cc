"""What others see of the engine's records: overviews of instances, and documents in Maestro's shape."""

from calve.engine.views.documents import (
    API,
    approval_json,
    attempt_json,
    instance_json,
    overview_json,
    restart_plan_json,
    run_json,
    started_json,
)
from calve.engine.views.instances import runtime_state
from calve.engine.views.overview import Failure, Iterations, Overview, StepOverview, failures, overview_of
from calve.engine.views.sources import step_source
from calve.engine.views.waits import Approval, Live, Progress, Wait, WaitReason, approvals_of

__all__ = [
    "API",
    "Approval",
    "Failure",
    "Iterations",
    "Live",
    "Overview",
    "Progress",
    "StepOverview",
    "Wait",
    "WaitReason",
    "approval_json",
    "approvals_of",
    "attempt_json",
    "failures",
    "instance_json",
    "overview_json",
    "overview_of",
    "restart_plan_json",
    "run_json",
    "runtime_state",
    "started_json",
    "step_source",
]

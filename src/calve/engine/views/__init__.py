"""What others see of the engine's records: overviews of instances, and documents in Maestro's shape."""

from calve.engine.views.documents import (
    attempt_json,
    instance_json,
    overview_json,
    restart_plan_json,
    run_json,
    started_json,
)
from calve.engine.views.overview import Failure, Iterations, Overview, StepOverview, failures, overview_of

__all__ = [
    "Failure",
    "Iterations",
    "Overview",
    "StepOverview",
    "attempt_json",
    "failures",
    "instance_json",
    "overview_json",
    "overview_of",
    "restart_plan_json",
    "run_json",
    "started_json",
]
